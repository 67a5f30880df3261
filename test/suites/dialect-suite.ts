import * as assert from 'node:assert/strict';
import { inspect } from 'node:util';
import type { Connection, ConnectOptions, RunOutcome, Segment } from '../../core/dialect.ts';
import { isSvcError } from '../../core/errors.ts';
import { affectedCollections } from '../../core/migration/affected-collections.ts';
import { anyDefinition, CLOCK, ELAPSED, type RecordDefinition, recordWrite } from '../../core/records.ts';
import { describeDifferences, diff } from '../../core/schema/diff.ts';
import { invert } from '../../core/schema/invert.ts';
import type { SchemaModel } from '../../core/schema/model.ts';
import type { NameKind } from '../../core/schema/names.ts';
import type { NamedFieldDefinition, Operation } from '../../core/schema/operation.ts';
import { crashCases } from './crash-cases.ts';
import { assertDestructiveIsTrue } from './data-loss.ts';
import { type CaseDatabase, dialectCase } from './dialect-case.ts';
import type { DialectUnderTest, Row, SqlSyntax } from './dialect-under-test.ts';
import { openingCase } from './opening-case.ts';
import { processCases } from './process-cases.ts';
import { applyMoves, CHOICES, randomMoves, type SchemaChoices, type SchemaMove } from './random-schema.ts';
import { type Thing, thing, things } from './record-store-suite.ts';
import { assertDefaultExpressionsWork, rowCases } from './row-cases.ts';
import { assertDefaultsApply, assertRowsFollow } from './row-rules.ts';
import { runOperations } from './run-operations.ts';
import { type DeclareCase, describeTestError, reportSkipped, suite, type TestFunction, withTimeout } from './suite.ts';
import { expectThrown, ID, isLegal, supportedOperations } from './supported-operations.ts';
import { timeZoneCase } from './time-zone-case.ts';
import { valueCases } from './value-cases.ts';
import { waitUntil } from './wait-until.ts';

/** The longest that a call may take to settle once its connection is closed. */
const SETTLE_MS = 5_000;

interface OpenDatabase extends Pick<CaseDatabase, 'url' | 'engine'> {
  readonly connection: Connection;
  connectAgain(options?: ConnectOptions): Promise<Connection>;
}

/**
 * Tests that a dialect fulfills its contract. An operation that needs a feature in `capabilities.unsupported` must be
 * rejected with the reason and the alternative given there. Every other operation must work, read back, and be followed by
 * the rows that a program inserts. Other processes with the dialect are started and killed.
 */
export function dialectSuite(test: TestFunction, engine: DialectUnderTest): void {
  suite(test, engine, (declare) => cases(declare, engine));
  if (typeof engine.skip === 'string') return;
  for (const [rule, reason] of Object.entries(engine.notEnforced ?? {}))
    reportSkipped(test, `${engine.name}: inserted rows that rely on "${rule}" of a field`, reason);
}

function cases(declare: DeclareCase, engine: DialectUnderTest): void {
  const { dialect } = engine;
  const { names } = dialect.capabilities;
  const syntax = engine.syntax ?? NO_SYNTAX;
  const supported = supportedOperations(dialect);
  const { isUnsupported, isAnyUnsupported, supportedField, create } = supported;

  const onDatabase = dialectCase(declare, engine);
  const on = (
    name: string,
    promise: string,
    body: (database: OpenDatabase) => Promise<void>,
    timeoutMs?: number,
  ): void =>
    onDatabase(
      name,
      promise,
      async ({ url, engine, connect }) => body({ url, engine, connection: await connect(), connectAgain: connect }),
      timeoutMs,
    );

  const run = (connection: Connection, operations: readonly Operation[], from?: SchemaModel, epoch?: number) =>
    runOperations(dialect, connection, operations, from, epoch);
  const assertCatalogMatches = async (connection: Connection, model: SchemaModel, what = '') =>
    assert.deepEqual(describeDifferences(await connection.normalize(model), await connection.introspect()), [], what);

  on(
    'every field type and default reads back unchanged',
    '`introspect` returns every field and default as `normalize` returns them for the model, and `normalize` does not change an introspected model. A row that leaves them out gets the defaults.',
    async ({ connection, engine }) => {
      await assertDefaultExpressionsWork(engine, connection, syntax);
      const model = await run(connection, [create('everything', everyField(syntax))]);
      await assertCatalogMatches(connection, model);
      await assertDefaultsApply(engine, connection, model.get('everything')!);
      const normalized = dialect.normalize(await connection.introspect());
      assert.deepEqual(describeDifferences(normalized, await connection.introspect()), []);
    },
  );

  on(
    'every operation and its inverse',
    'Every supported operation compiles, runs, and reads back as `apply` predicts. So does its inverse, and the operation once more. The engine rejects rows that break a rule of the model, and applies the defaults to others.',
    async ({ connection, engine }) => {
      const assertFollows = async (model: SchemaModel, when: string, names: Iterable<string> = model.keys()) => {
        await assertCatalogMatches(connection, model, when);
        const violations = { [CHECK]: [{ total: -1 }, { amount: 7 }] };
        await assertRowsFollow(engine, connection, model, { names, violations, when });
      };
      let model = await run(connection, baseTables(supportedField));
      await assertFollows(model, 'base');
      for (const operation of operationsToTest(syntax)) {
        if (!isLegal(operation, model) || isUnsupported(operation, model)) continue;
        const description = JSON.stringify(operation);
        const inverse = invert(operation, model);
        let after = await run(connection, [operation], model);
        await assertFollows(after, `after ${description}`, affectedCollections(operation));
        if (!isAnyUnsupported(inverse, after)) {
          const before = await run(connection, inverse, after);
          await assertFollows(before, `after the inverse of ${description}`, affectedCollections(operation));
          after = await run(connection, [operation], before);
        }
        model = after;
      }
      await assertFollows(model, 'at the end');
    },
    240_000,
  );

  on(
    'destructive statements are those that lose values',
    '`destructive` is true for a statement that destroys values of rows which a rollback cannot restore, and false for one that destroys none.',
    ({ connection, engine }) => assertDestructiveIsTrue(engine, connection, supported),
  );

  on(
    'what a model cannot express is listed',
    '`unsupportedObjects` is empty for what svc created, and lists what `introspect` leaves out or approximates, with the collection and a reason.',
    async ({ connection, engine }) => {
      await run(connection, [create('listed', [ID, { name: 'n', type: 'integer' }])]);
      assert.deepEqual(await connection.unsupportedObjects(), []);
      assert.ok(engine.addUnsupportedObject, 'there is no addUnsupportedObject(): skip this case, and give the reason');
      await engine.addUnsupportedObject(connection, 'listed');
      const found = await connection.unsupportedObjects();
      const listed = found.filter(({ collection = 'listed', what }) => collection === 'listed' && what.length > 0);
      const missing = `unsupportedObjects returned ${JSON.stringify(found)}: the table "listed" has what addUnsupportedObject() added`;
      const next = 'list it with its collection, or skip this case with the reason if the engine cannot report it';
      assert.ok(listed.length > 0, `${missing}; ${next}`);
    },
  );

  on(
    'the options that svc passes to every dialect are accepted',
    '`connect` accepts `root`, `connectTimeoutMs`, `busyTimeoutMs`, `readOnly`, `allowCopy`, `onWait`, `onProgress` and `signal`, whether it uses them or not, and rejects an unknown option with `config_invalid`.',
    async ({ url, connectAgain }) => {
      const connection = await connectAgain({
        root: process.cwd(),
        connectTimeoutMs: 5_000,
        busyTimeoutMs: 0,
        readOnly: true,
        allowCopy: false,
        onWait: () => undefined,
        onProgress: () => undefined,
        signal: new AbortController().signal,
      });
      assert.deepEqual([...(await connection.introspect()).keys()], []);
      await assert.rejects(
        dialect.connect(url, { ...engine.options, unknownOption: 1 }),
        (error) => isSvcError(error) && error.code === 'config_invalid',
        'an unknown option is rejected with config_invalid',
      );
    },
  );

  openingCase(onDatabase, engine);
  rowCases(onDatabase, engine, supported);
  valueCases(onDatabase, engine, supported);
  processCases(onDatabase, engine);
  timeZoneCase(onDatabase, engine, supported);
  crashCases(declare, engine);

  on(
    'names that look like code',
    'Names are quoted everywhere. A name that `capabilities.names` does not allow is rejected with `name_invalid` and the reason of its `problem`.',
    async ({ connection }) => {
      for (const name of [...HOSTILE, 'x'.repeat(names.max)]) {
        const isAllowed = (kind: NameKind) => names.problem?.(name, kind) === undefined;
        const [table, field] = [isAllowed('table') ? name : 'plain', isAllowed('field') ? name : 'plain'];
        for (const kind of ['table', 'field'] as const) {
          if (isAllowed(kind)) continue;
          const fields = [ID, { name: kind === 'field' ? name : 'n', type: 'integer' as const }];
          const invalidTable: Operation = { type: 'createCollection', name: kind === 'table' ? name : 'plain', fields };
          const error = expectThrown(() => dialect.compile(invalidTable, new Map()));
          assert.equal(error.code, 'name_invalid', name);
          assert.equal(error.why, names.problem?.(name, kind));
        }
        const enumeration: NamedFieldDefinition = {
          name: 'e',
          type: 'enum',
          enumValues: [isAllowed('table') ? name : 'plain'],
          unique: true,
          default: isAllowed('table') ? name : 'plain',
        };
        let model = await run(connection, [
          {
            type: 'createCollection',
            name: table,
            fields: [{ name: field, type: 'integer', primaryKey: true }, supportedField(enumeration)],
          },
        ]);
        const index: Operation = {
          type: 'createIndex',
          collection: table,
          index: isAllowed('index') ? `i${name}`.slice(0, 40) : 'i',
          columns: [{ name: 'e', order: 'desc' }, { name: field }],
        };
        if (!isUnsupported(index, model)) model = await run(connection, [index], model);
        const found = await connection.introspect([table]);
        assert.deepEqual(describeDifferences(await connection.normalize(model), found), [], name);
        await run(connection, [{ type: 'dropCollection', collection: table }], model);
      }
      const long = 'x'.repeat(names.max + 1);
      const error = expectThrown(() =>
        dialect.compile({ type: 'createCollection', name: long, fields: [ID] }, new Map()),
      );
      assert.equal(error.code, 'name_invalid');
    },
  );

  on(
    'random schemas and the differences between them read back unchanged',
    'After any legal operations the catalog matches the model. An operation that the engine rejects for another reason than `capabilities.unsupported` fails with a specific code, not with `migration_failed`, and changes nothing.',
    async ({ connection, engine }) => {
      const seed = Number(process.env.SVC_TEST_SEED ?? '20261121');
      const choices: SchemaChoices = {
        ...CHOICES,
        check: syntax.notNull,
        fields: CHOICES.fields.filter(
          ({ type, precision, scale }) => type !== 'decimal' || (precision !== undefined && scale !== undefined),
        ),
      };
      for (let index = 0; index < (engine.randomSchemas ?? 20); index += 1) {
        const description = `schema ${index} of SVC_TEST_SEED=${seed}`;
        const first = randomMoves(30, seed + index, choices);
        const second = randomMoves(12, -seed - index, choices);
        let model = await runMoves(connection, first, new Map(), choices);
        await assertCatalogMatches(connection, model, description);
        const goal = applyMoves(second, model, choices).model;
        for (const operation of diff(model, goal)) model = (await runIfAccepted(connection, operation, model)) ?? model;
        await assertCatalogMatches(connection, model, `${description}, after the difference`);
        for (const operation of diff(model, new Map()))
          model = (await runIfAccepted(connection, operation, model)) ?? model;
        for (const table of model.keys())
          model = await run(connection, [{ type: 'dropCollection', collection: table, cascade: true }], model);
        await assertCatalogMatches(connection, new Map(), `${description}, emptied`);
      }
    },
    240_000,
  );

  const runMoves = async (
    connection: Connection,
    list: readonly SchemaMove[],
    from: SchemaModel,
    choices: SchemaChoices,
  ) => {
    let model = from;
    for (const operation of applyMoves(list, from, choices).operations)
      model = (await runIfAccepted(connection, operation, model)) ?? model;
    return model;
  };
  /** Runs an operation unless the engine rejects it. The later comparison detects whether a rejected one changed anything. */
  const runIfAccepted = async (connection: Connection, operation: Operation, model: SchemaModel) => {
    // An operation that it depends on was rejected.
    if (!isLegal(operation, model)) return undefined;
    if (isUnsupported(operation, model)) return undefined;
    try {
      return await run(connection, [operation], model);
    } catch (error) {
      // A rejection needs a specific code.
      if (!isSvcError(error)) throw error;
      if (error.code !== 'migration_failed') return undefined;
      throw new Error(`${JSON.stringify(operation)} failed without a specific code: ${error.message} ${error.why}`, {
        cause: error,
      });
    }
  };

  on(
    'creating an existing table is an error',
    '`compile` rejects creating a table of the model, `run` rejects creating a table that only the database has, both with `collection_exists` and a message that contains `already exists`.',
    async ({ connection }) => {
      const twice: Operation = { type: 'createCollection', name: 'twice', fields: [ID] };
      const model = await run(connection, [twice]);
      assert.throws(() => dialect.compile(twice, model), /already exists/);
      const answer = await run(connection, [twice]).then(() => 'It was created again.', describeTestError);
      assert.match(answer, /^collection_exists: .*already exists/);
      await assertCatalogMatches(connection, model);
    },
  );

  on(
    'rows and values are counted',
    '`count` counts rows up to its limit. `countValues`, if there is one, counts those in which the field is not null.',
    async ({ connection, engine }) => {
      const model = await run(connection, [create('counted', [ID, { name: 'a', type: 'integer' }])]);
      const rows: Row[] = [{ id: 1, a: 1 }, { id: 2, a: null }, { id: 3, a: 0 }, { id: 4 }];
      await engine.insert(connection, 'counted', rows, model.get('counted')!.fields);
      assert.equal(await connection.count('counted', 2), 2);
      assert.equal(await connection.count('counted', 4), 4);
      assert.equal(await connection.count('counted', Number.MAX_SAFE_INTEGER), 4);
      if (!connection.countValues) return;
      assert.equal(await connection.countValues('counted', 'a', 1), 1);
      assert.equal(await connection.countValues('counted', 'a', Number.MAX_SAFE_INTEGER), 2);
    },
  );
  on(
    'rows that violate a change are an error',
    'A change that existing rows violate is rejected with `data_violates` and the message of the engine in `why`, and changes nothing.',
    async ({ connection, engine }) => {
      const model = await run(connection, [
        create('rows', [
          ID,
          { name: 'a', type: 'integer', default: 1 },
          { name: 'e', type: 'enum', enumValues: ['x', 'y'], default: 'x' },
        ]),
      ]);
      const rows: Row[] = [
        { id: 1, a: 1, e: 'x' },
        { id: 2, a: 1, e: 'x' },
      ];
      await engine.insert(connection, 'rows', rows, model.get('rows')!.fields);
      const violated: Operation[] = [
        { type: 'addField', collection: 'rows', field: { name: 'n', type: 'integer', required: true } },
        { type: 'createIndex', collection: 'rows', index: 'u', columns: [{ name: 'a' }], unique: true },
        { type: 'modifyField', collection: 'rows', field: 'a', changes: { unique: true } },
        { type: 'modifyField', collection: 'rows', field: 'e', changes: { enumValues: ['y'], default: null } },
      ];
      for (const operation of violated) {
        if (isUnsupported(operation, model)) continue;
        await assert.rejects(
          run(connection, [operation], model),
          (error) => isSvcError(error) && error.code === 'data_violates' && error.why !== undefined,
          JSON.stringify(operation),
        );
      }
      await assertCatalogMatches(connection, model);
    },
  );

  on(
    'a raw statement runs on its own dialect only, and its check detects it',
    '`compile` returns nothing for a raw statement of another dialect. A raw statement of the own dialect runs unchanged, and its `check` is a query that returns a row once the statement has taken effect.',
    async ({ connection, engine }) => {
      const model = await run(connection, [create('raws', [ID])]);
      const { statement, check = '' } = engine.raw('raws');
      assert.deepEqual(dialect.compile({ type: 'raw', dialect: 'another', statement }, model), []);
      assert.deepEqual(await connection.query(check), []);
      const raw: Operation = { type: 'raw', dialect: dialect.name, statement, check };
      assert.equal(dialect.compile(raw, model)[0]?.check, check);
      // A raw statement may release the lock, so the lock must be held.
      await connection.withLock((epoch) => run(connection, [raw], model, epoch));
      assert.equal((await connection.query(check)).length, 1);
      assert.deepEqual(
        (await engine.read(connection, 'raws')).map(({ id }) => Number(id)),
        [7],
      );
    },
  );

  if (dialect.capabilities.transactionalDdl)
    on(
      'a segment is verified before it commits',
      '`run` calls `verify` of a segment after its statements, with the catalog as its transaction sees it. If it throws, the segment is rolled back, and the failure contains the error.',
      async ({ connection }) => {
        const statements = dialect.compile(create('verified', [ID]), new Map());
        const refusal = new Error('It is not what was announced.');
        for (const error of [refusal, undefined]) {
          let seen: readonly string[] = [];
          const { committed, failure } = await connection.run(
            [
              {
                transactional: true,
                statements,
                writes: [],
                async verify(introspect) {
                  seen = [...(await introspect(['verified', 'other'])).keys()];
                  if (error) throw error;
                },
              },
            ],
            0,
          );
          assert.deepEqual(seen, ['verified']);
          assert.equal(failure?.error, error);
          assert.equal(committed, error ? 0 : 1);
          assert.equal((await connection.introspect()).has('verified'), error === undefined);
        }
      },
    );

  on(
    'an update counts matched and modified rows',
    '`update` counts the rows that `where` matches and those whose values changed. `eq` and `in` can match null. $CONCAT treats null as an empty string.',
    async ({ connection, engine }) => {
      const model = await run(connection, [
        create('people', [
          ID,
          { name: 'first', type: 'string' },
          { name: 'age', type: 'integer' },
          { name: 'full', type: 'string' },
        ]),
      ]);
      const collection = model.get('people')!;
      const rows: Row[] = [
        { id: 1, first: 'Ada', age: 36 },
        { id: 2, first: null, age: 1 },
        { id: 3, first: "it's", age: null },
      ];
      await engine.insert(connection, 'people', rows, collection.fields);
      const concat = { field: 'full', concat: [{ field: 'first' }, { literal: "'s " }, { field: 'age' }] };
      const job = { table: 'people', collection, key: 'k1', where: [], set: [concat] };
      assert.deepEqual(await connection.update(job), { matched: 3, modified: 3 });
      assert.deepEqual(await connection.update({ ...job, key: 'k2' }), { matched: 3, modified: 0 });
      const full = await engine.read(connection, 'people');
      assert.deepEqual(full.map((row) => row.full).sort(), ["'s 1", "Ada's 36", "it's's "]);
      const where = [{ field: 'first', operator: 'eq', value: null }] as const;
      assert.deepEqual(await connection.update({ ...job, key: 'k3', where, set: [{ field: 'age', value: 2 }] }), {
        matched: 1,
        modified: 1,
      });
      const some = [{ field: 'age', operator: 'in', value: [36, null] }] as const;
      assert.deepEqual(
        await connection.update({ ...job, key: 'k4', where: some, set: [{ field: 'age', value: null }] }),
        {
          matched: 2,
          modified: 1,
        },
      );
    },
  );

  on(
    'an update accepts bytes as base64',
    '`update` accepts base64 for binary fields, in values and in `where`, and stores the decoded bytes.',
    async ({ connection, engine }) => {
      const model = await run(connection, [
        create('files', [
          ID,
          { name: 'short', type: 'binary', length: 8 },
          { name: 'long', type: 'blob' },
          { name: 'n', type: 'integer' },
        ]),
      ]);
      await engine.insert(connection, 'files', [{ id: 1 }, { id: 2 }], model.get('files')!.fields);
      const odd = Buffer.from([0, 0x27, 0x5c, 0xff, 0x78]).toString('base64');
      const job = { table: 'files', collection: model.get('files')!, where: [] };
      const set = [
        { field: 'short', value: odd },
        { field: 'long', value: 'SGVsbG8=' },
      ];
      const first = [{ field: 'id', operator: 'eq', value: 1 }] as const;
      assert.deepEqual(await connection.update({ ...job, key: 'k1', where: first, set }), { matched: 1, modified: 1 });
      assert.deepEqual(await connection.update({ ...job, key: 'k2', where: first, set }), { matched: 1, modified: 0 });
      const where = [
        { field: 'short', operator: 'in', value: [odd, 'AA=='] },
        { field: 'long', operator: 'eq', value: 'SGVsbG8=' },
      ] as const;
      const n = [{ field: 'n', value: 5 }];
      assert.deepEqual(await connection.update({ ...job, key: 'k3', where, set: n }), { matched: 1, modified: 1 });
      const stored = (await engine.read(connection, 'files')).find(({ id }) => Number(id) === 1);
      assert.deepEqual([base64Of(stored?.short), base64Of(stored?.long), Number(stored?.n)], [odd, 'SGVsbG8=', 5]);
    },
  );

  on(
    'segments commit one by one, and the failed statement is named',
    '`run` commits segments in order until one fails. `committed` counts those before it, `failure.statement` is the index of the statement, the failed segment is rolled back, and `written` contains the values of CLOCK and ELAPSED.',
    async ({ connection }) => {
      await connection.withLock(async (epoch) => {
        await connection.ensureTables([anyDefinition(things)]);
        /** The segments of a migration, with and without transactional DDL. */
        const segments = (n: number): Segment[] => {
          const statements = dialect.compile(create(`t${n === 3 ? 1 : n}`, [ID]), new Map());
          const writes = [recordWrite(things, { ...thing(`s${n}`, n), expires: CLOCK, took: ELAPSED })];
          if (statements.every(({ transactional }) => transactional))
            return [{ transactional: true, statements, writes }];
          return [
            ...statements.map((statement) => ({ transactional: false, statements: [statement], writes: [] })),
            { transactional: true, statements: [], writes },
          ];
        };
        const list = [1, 2, 3, 4].map(segments);
        const outcome = await connection.run(list.flat(), epoch);
        const committed = list.slice(0, 2).flat().length;
        assert.equal(outcome.committed, committed);
        assert.equal(outcome.failure?.statement, 0);
        const written = outcome.written[committed - 1]?.[0];
        assert.ok(written?.expires instanceof Date);
        assert.equal(typeof written.took, 'number');
        assert.deepEqual([...(await connection.introspect()).keys()].sort(), ['t1', 't2']);
        assert.equal((await connection.records(things).get('s2'))?.record.size, 2);
        assert.equal(await connection.records(things).get('s3'), undefined);
      });
    },
  );

  on(
    'the record writes of a segment are stored together, or none of them',
    'If a write of a segment fails, `run` reports the failure, and no other write of the segment has an effect: the records of definitions with `colocateWithLock` are written together.',
    async ({ connection }) => {
      await connection.withLock(async (epoch) => {
        const together: RecordDefinition<Thing> = { ...things, colocateWithLock: true };
        await connection.ensureTables([anyDefinition(together)]);
        const store = connection.records(together);
        await store.insert(thing('changed', 1));
        const good = [recordWrite(together, thing('new', 1)), recordWrite(together, thing('changed', 2), 1)];
        const stale = recordWrite(together, thing('absent', 1), 9);
        const run = (writes: Segment['writes']) =>
          connection.run([{ transactional: true, statements: [], writes }], epoch);
        const sizes = () => Promise.all(['new', 'changed'].map(async (key) => (await store.get(key))?.record.size));
        for (const writes of [
          [...good, stale],
          [stale, ...good],
        ]) {
          const { committed, failure } = await run(writes);
          assert.equal(isSvcError(failure?.error) && failure.error.code, 'lock_lost');
          assert.equal(committed, 0);
          assert.deepEqual(await sizes(), [undefined, 1], 'the other writes took effect');
        }
        assert.deepEqual((await run(good)).failure, undefined);
        assert.deepEqual(await sizes(), [1, 2]);
      });
    },
  );

  if (dialect.capabilities.runsSegmentsSingly)
    on(
      'a run stops when the observer stops it',
      '`run` calls `shouldContinue` before each segment and stops when it returns false. Earlier segments are committed and reported in order, and no later one is started.',
      async ({ connection }) => {
        await connection.withLock(async (epoch) => {
          await connection.ensureTables([anyDefinition(things)]);
          const segments = [1, 2].flatMap((n): Segment[] => [
            { transactional: true, statements: [], writes: [recordWrite(things, thing(`begins ${n}`, n))] },
            ...dialect
              .compile(create(`t${n}`, [ID]), new Map())
              .map((one): Segment => ({ transactional: false, statements: [one], writes: [] })),
            {
              transactional: true,
              statements: [],
              writes: [recordWrite(things, { ...thing(`ends ${n}`, n), expires: CLOCK })],
            },
          ]);
          const half = segments.length / 2;
          const segmentsAsked: number[] = [];
          const reported: RunOutcome['written'][number][] = [];
          const outcome = await connection.run(segments, epoch, 0, {
            shouldContinue: (segment) => segmentsAsked.push(segment) <= half,
            onCommitted: (written) => void reported.push(written),
            shouldRetry: () => true,
            onSent: () => undefined,
          });
          assert.deepEqual(outcome, { committed: half, written: reported });
          assert.deepEqual(
            segmentsAsked,
            Array.from({ length: half + 1 }, (_, segment) => segment),
          );
          assert.ok(reported.at(-1)?.[0]?.expires instanceof Date);
          assert.deepEqual([...(await connection.introspect()).keys()], ['t1']);
          const store = connection.records(things);
          assert.equal((await store.get('ends 1'))?.record.size, 1);
          assert.equal(await store.get('begins 2'), undefined);
          const rest = await connection.run(segments.slice(half), epoch);
          assert.deepEqual([rest.committed, rest.failure], [half, undefined]);
          assert.deepEqual([...(await connection.introspect()).keys()].sort(), ['t1', 't2']);
        });
      },
    );

  on(
    'writes of an earlier epoch fail',
    '`withLock` increments the epoch by one each time. Writes with an earlier epoch or another version of the record fail with `lock_lost`, and `replace` with an earlier epoch is `stale`.',
    async ({ connection, connectAgain }) => {
      const other = await connectAgain();
      const old = await connection.withLock(async (epoch) => {
        await connection.ensureTables([anyDefinition(things)]);
        return epoch;
      });
      const epoch = await other.withLock(async (next) => next);
      assert.equal(epoch, old + 1);
      const late = await connection.run(
        [{ transactional: true, statements: [], writes: [recordWrite(things, thing('a', 1))] }],
        old,
      );
      assert.equal(isSvcError(late.failure?.error) && late.failure.error.code, 'lock_lost');
      const store = connection.records(things);
      await store.insert(thing('a', 1));
      assert.equal(await store.replace('a', 1, thing('a', 2), { epoch: old }), 'stale');
      assert.equal(await store.replace('a', 1, thing('a', 2), { epoch }), 'replaced');
      const stale = await connection.run(
        [{ transactional: true, statements: [], writes: [recordWrite(things, thing('a', 1), 1)] }],
        epoch,
      );
      assert.equal(isSvcError(stale.failure?.error) && stale.failure.error.code, 'lock_lost');
    },
  );

  on(
    'the lock has one holder, others wait, and a failure releases it',
    'The lock has one holder across all connections. While waiting, `withLock` calls `onWait`; it fails with `lock_timeout` after the timeout, and acquires the lock when the holder succeeds or fails. `isLocked` returns whether there is a holder.',
    async ({ connection, connectAgain }) => {
      const other = await connectAgain();
      let inside = 0;
      let waited = 0;
      const enter = (holder: Connection) =>
        holder.withLock(
          async () => {
            inside += 1;
            assert.equal(inside, 1);
            await holder.now();
            await waitUntil(() => waited > 0, 'onWait was never called');
            inside -= 1;
          },
          { onWait: () => (waited += 1) },
        );
      await Promise.all([enter(connection), enter(other), enter(connection), enter(other)]);
      await assert.rejects(
        connection.withLock(() => Promise.reject(new Error('mine'))),
        /mine/,
      );
      assert.equal(await other.isLocked(), false);
      await connection.withLock(async () => {
        assert.equal(await other.isLocked(), true);
        assert.equal(await connection.isLocked(), true);
        await assert.rejects(
          other.withLock(async () => {}, { timeoutMs: 30 }),
          (error) => isSvcError(error) && error.code === 'lock_timeout',
        );
      });
      await other.withLock(async () => {});
    },
  );

  on(
    'waiting for the lock can be interrupted, also on the connection that holds it',
    '`withLock` fails with `interrupted` when its `signal` is aborted, whichever connection holds the lock.',
    async ({ connection, connectAgain }) => {
      const other = await connectAgain();
      await connection.withLock(async () => {
        for (const holder of [connection, other]) {
          const signal = new AbortController();
          await assert.rejects(
            holder.withLock(async () => {}, { signal: signal.signal, onWait: () => signal.abort() }),
            (error) => isSvcError(error) && error.code === 'interrupted',
          );
        }
      });
      await other.withLock(async () => {});
    },
  );

  on(
    'a pending call settles when the connection closes',
    'A pending call resolves or rejects when `close` is called, within five seconds.',
    async ({ connectAgain }) => {
      for (let round = 0; round < 5; round += 1) {
        const connection = await connectAgain();
        const pending = Promise.allSettled([connection.now(), connection.now()]);
        await new Promise((sent) => setImmediate(sent));
        await connection.close();
        await withTimeout(SETTLE_MS, 'a call that was pending when close() was called', () => pending);
      }
    },
  );

  on(
    'a closed connection can be closed again, and its calls fail',
    '`close` may be called again, also at once, and each call resolves. Every later call of the connection fails with an error, within five seconds, and has no effect. Other connections are not affected.',
    async ({ connection: other, connectAgain }) => {
      const connection = await connectAgain();
      await connection.withLock(() => connection.ensureTables([anyDefinition(things)]));
      const store = connection.records(things);
      const close = () => Promise.all([connection.close(), connection.close()]);
      for (const what of ['close(), called twice at once,', 'close(), called again,'])
        await withTimeout(SETTLE_MS, what, close);
      // An engine without a clock has that of the process, which still runs.
      await withTimeout(SETTLE_MS, 'now() of a closed connection', () => connection.now().catch(() => undefined));
      const calls: Readonly<Record<string, () => Promise<unknown>>> = {
        introspect: () => connection.introspect(),
        get: () => store.get('late'),
        insert: () => store.insert(thing('late', 1)),
        isLocked: () => connection.isLocked(),
        withLock: () => connection.withLock(async () => undefined),
        run: () => runOperations(dialect, connection, [create('late', [ID])]),
      };
      for (const [name, call] of Object.entries(calls)) {
        const what = `${name}() of a closed connection`;
        await withTimeout(SETTLE_MS, what, () => assert.rejects(call, Error, `${what} did not fail`));
      }
      assert.deepEqual([...(await other.introspect()).keys()], []);
      assert.equal(await other.records(things).get('late'), undefined);
      assert.equal(await other.withLock(() => other.records(things).insert(thing('late', 1))), 'inserted');
    },
  );

  on(
    'a watcher is notified of the records that notifyOn selects',
    '`watch` calls its listener with the key of every written record for which `notifyOn` of its definition returns true.',
    async ({ connection }) => {
      const definition: RecordDefinition<Thing> = { ...things, notifyOn: ({ size }) => Number(size) >= 2 };
      await connection.ensureTables([anyDefinition(definition)]);
      const notified: (string | undefined)[] = [];
      let resolveLast: () => void = () => {};
      const last = new Promise<void>((resolve) => {
        resolveLast = resolve;
      });
      const stop = await connection.watch?.(definition.collection, (key) => {
        notified.push(key);
        if (key === 'b') resolveLast();
      });
      assert.ok(stop, 'there is no watch(): skip this case, and give the reason');
      const store = connection.records(definition);
      await store.insert(thing('a', 1));
      await store.replace('a', 1, thing('a', 2));
      await store.replace('a', 2, thing('a', 1));
      await store.insert(thing('b', 2));
      await last;
      await stop();
      assert.deepEqual(notified, ['a', 'b']);
    },
  );
}

/** The bytes in base64, or what else `read` has returned. */
const base64Of = (bytes: unknown): string =>
  bytes instanceof Uint8Array ? Buffer.from(bytes).toString('base64') : `not bytes: ${inspect(bytes)}`;

/** For dialects that support no expressions. */
const NO_SYNTAX: SqlSyntax = { sum: '1', now: '1', notNull: () => '1', numberRules: () => '1' };

const HOSTILE = [
  'Capital',
  'two words',
  'say "hi"',
  "it's",
  'select',
  '😀 sélect',
  '__proto__',
  '$1',
  'a.b',
  '; drop table x --',
  '\\',
  '%s',
];

const everyField = (syntax: SqlSyntax): readonly NamedFieldDefinition[] => [
  { name: 'id', type: 'bigint', primaryKey: true, autoGenerate: true },
  { name: 'integer', type: 'integer', default: -5, unique: true },
  { name: 'bigint', type: 'bigint', default: '-9007199254740993' },
  { name: 'smallint', type: 'smallint', default: 7, required: true },
  { name: 'float', type: 'float', default: 0.1 },
  { name: 'double', type: 'double', default: 1.5e300 },
  { name: 'tiny', type: 'double', default: -5e-10 },
  { name: 'decimal', type: 'decimal', precision: 20, scale: 4, default: '12345678901234.5600' },
  { name: 'decimal2', type: 'decimal', precision: 10, scale: 2, default: 1e-7 },
  { name: 'string', type: 'string', default: "it's \\ \n 😀" },
  { name: 'generated', type: 'string', length: 36, autoGenerate: true },
  { name: 'short', type: 'string', length: 3, default: '' },
  { name: 'text', type: 'text', default: "'x'::text" },
  { name: 'boolean', type: 'boolean', default: true },
  { name: 'date', type: 'date', default: '2026-01-31' },
  { name: 'time', type: 'time', default: '23:59' },
  { name: 'datetime', type: 'datetime', default: '2026-01-31T23:59:59.120' },
  { name: 'timestamp', type: 'timestamp', default: '2026-01-31T23:59:59.999+02:00' },
  { name: 'date_now', type: 'date', default: 'now' },
  { name: 'time_now', type: 'time', default: 'now' },
  { name: 'datetime_now', type: 'datetime', default: 'now' },
  { name: 'timestamp_now', type: 'timestamp', default: 'now', required: true },
  { name: 'json', type: 'json', default: { b: [1, null, "it's", { c: 1.5 }], a: 'x' } },
  { name: 'json_text', type: 'json', default: 'now' },
  { name: 'uuid', type: 'uuid', default: 'A0000000-0000-4000-8000-00000000000A' },
  { name: 'uuid2', type: 'uuid', autoGenerate: true, required: true },
  { name: 'enum', type: 'enum', enumValues: ["it's", 'b, c', '"', "'::text, '"], default: "it's" },
  { name: 'one', type: 'enum', enumValues: ['only'], unique: true },
  { name: 'array', type: 'array', default: ['a', 'b,c', '{"}', 'NULL', '', '\\'] },
  { name: 'integers', type: 'array', items: 'integer', default: [1, -2] },
  { name: 'bigints', type: 'array', items: 'bigint', default: ['9007199254740993', 1] },
  { name: 'floats', type: 'array', items: 'float', default: [0.1, 0.123456789] },
  { name: 'decimals', type: 'array', items: 'decimal', default: ['1.50'] },
  { name: 'booleans', type: 'array', items: 'boolean', default: [true, false] },
  { name: 'times', type: 'array', items: 'timestamp', default: ['2026-01-31T23:59:59.999Z'] },
  { name: 'jsons', type: 'array', items: 'json', default: [{ a: 'x"y' }, 'text', 1] },
  { name: 'uuids', type: 'array', items: 'uuid' },
  { name: 'texts', type: 'array', items: 'text', default: [] },
  { name: 'bytes', type: 'array', items: 'blob', default: ['AFwn/w==', ''] },
  { name: 'binary', type: 'binary', length: 16, default: 'AFwn/3g=' },
  { name: 'empty', type: 'binary', default: '' },
  { name: 'blob', type: 'blob', required: true, default: 'SGVsbG8=' },
  { name: 'data', type: 'blob', required: true },
  { name: 'expression', type: 'integer', default: { $expression: syntax.sum } },
  { name: 'expression_now', type: 'timestamp', default: { $expression: syntax.now } },
];

/** A check of two numbers, `SqlSyntax.numberRules`. */
const CHECK = 'positive';
const baseTables = (supportedField: (field: NamedFieldDefinition) => NamedFieldDefinition): readonly Operation[] => [
  {
    type: 'createCollection',
    name: 'users',
    fields: [
      ID,
      supportedField({ name: 'email', type: 'string', unique: true, required: true }),
      supportedField({ name: 'mood', type: 'enum', enumValues: ['a', 'b'], default: 'a' }),
      supportedField({ name: 'n', type: 'integer', default: 3 }),
      supportedField({ name: 'createdAt', type: 'timestamp', required: true, default: 'now' }),
    ],
  },
  {
    type: 'createCollection',
    name: 'orders',
    fields: [
      supportedField({ ...ID, autoGenerate: true }),
      { name: 'user', type: 'integer' },
      { name: 'amount', type: 'integer' },
      { name: 'total', type: 'decimal', precision: 10, scale: 2 },
    ],
  },
];

/** Each one runs, is undone and runs again, in this order. Those that depend on an unsupported one are skipped. */
const operationsToTest = (syntax: SqlSyntax): readonly Operation[] => [
  {
    type: 'addConstraint',
    collection: 'orders',
    constraint: {
      name: 'orders_user_fkey',
      type: 'foreignKey',
      columns: ['user'],
      references: { table: 'users', columns: ['id'], onDelete: 'CASCADE', onUpdate: 'CASCADE' },
    },
  },
  {
    type: 'addConstraint',
    collection: 'orders',
    constraint: { name: CHECK, type: 'check', expression: syntax.numberRules('total', 'amount') },
  },
  { type: 'addConstraint', collection: 'users', constraint: { name: 'pair', type: 'unique', columns: ['n', 'mood'] } },
  {
    type: 'createIndex',
    collection: 'users',
    index: 'users_n',
    columns: [{ name: 'n', order: 'desc' }, { name: 'email' }],
  },
  {
    type: 'createIndex',
    collection: 'users',
    index: 'users_once',
    columns: [{ name: 'n', order: 'DESC' }],
    unique: true,
  },
  { type: 'dropIndex', collection: 'users', index: 'users_once' },
  {
    type: 'addField',
    collection: 'users',
    field: { name: 'kind', type: 'enum', enumValues: ['x', 'y'], required: true, default: 'x', unique: true },
  },
  { type: 'modifyField', collection: 'users', field: 'kind', changes: { enumValues: ['y', 'x', "z'"], unique: false } },
  {
    type: 'modifyField',
    collection: 'users',
    field: 'kind',
    changes: { type: 'string', length: 20, default: 'q', required: false },
  },
  { type: 'modifyField', collection: 'users', field: 'n', changes: { type: 'bigint', default: '9007199254740993' } },
  { type: 'modifyField', collection: 'users', field: 'n', changes: { type: 'text', default: null } },
  { type: 'modifyField', collection: 'orders', field: 'id', changes: { autoGenerate: false } },
  { type: 'modifyField', collection: 'orders', field: 'id', changes: { type: 'bigint', autoGenerate: true } },
  { type: 'modifyField', collection: 'orders', field: 'id', changes: { type: 'string', autoGenerate: false } },
  { type: 'modifyField', collection: 'orders', field: 'id', changes: { type: 'smallint', autoGenerate: true } },
  { type: 'modifyField', collection: 'orders', field: 'user', changes: { primaryKey: true } },
  { type: 'renameField', collection: 'users', from: 'email', to: 'e mail' },
  { type: 'renameField', collection: 'users', from: 'mood', to: 'Mood' },
  { type: 'renameCollection', collection: 'users', to: 'People "x"' },
  { type: 'dropConstraint', collection: 'orders', constraint: CHECK },
  { type: 'dropField', collection: 'orders', field: 'total' },
  { type: 'dropCollection', collection: 'People "x"', cascade: true },
];
