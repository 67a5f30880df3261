import * as assert from 'node:assert/strict';
import type { Connection, ConnectOptions, Dialect, RunOutcome, Segment } from '../../core/dialect.ts';
import { isSvcError, type SvcError } from '../../core/errors.ts';
import type { Json } from '../../core/json.ts';
import { anyDefinition, CLOCK, ELAPSED, type RecordDefinition, recordWrite } from '../../core/records.ts';
import { apply } from '../../core/schema/apply.ts';
import { isExpression } from '../../core/schema/default.ts';
import { describeDifferences, diff } from '../../core/schema/diff.ts';
import { invert } from '../../core/schema/invert.ts';
import type { SchemaModel } from '../../core/schema/model.ts';
import type { NameKind } from '../../core/schema/names.ts';
import type { CreateCollection, NamedFieldDefinition, Operation, Raw } from '../../core/schema/operation.ts';
import { type Feature, requiredFeatures } from '../../core/schema/unsupported.ts';
import type { TestDatabase } from './test-database.ts';
import { runOperations } from './run-operations.ts';
import { CHOICES, type SchemaMove, applyMoves, randomMoves, type SchemaChoices } from './random-schema.ts';
import { type Thing, thing, things } from './record-store-suite.ts';
import { type DeclareCase, suite, type TestFunction, describeTestError, type UnderTest } from './suite.ts';
import { waitUntil } from './wait-until.ts';

/** A dialect, and what the suite has to say in the words of its engine. */
export interface DialectUnderTest extends UnderTest {
  readonly dialect: Dialect;
  /** A database that is new and empty. */
  createDatabase(): Promise<TestDatabase>;
  /** What the suite connects with. */
  readonly options?: ConnectOptions;
  /** Stores rows beside what is under test; a null may be left away where that is what the engine makes of it. */
  insert(connection: Connection, collection: string, rows: readonly Row[]): Promise<void>;
  /** All rows, in any order; what has no value is null or missing. */
  read(connection: Connection, collection: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** A raw statement that stores a row whose `id` is 7, and the `check` that knows it. */
  raw(collection: string, url: string): Pick<Raw, 'statement' | 'check'>;
  /** Expressions, where the dialect does not refuse them all. */
  readonly syntax?: SqlSyntax;
  /** How many random schemas; default 20. */
  readonly cases?: number;
}

export type Row = Readonly<Record<string, Json>>;

export interface SqlSyntax {
  /** A default: 1 and 2 added up. */
  readonly sum: string;
  /** A default: the moment. */
  readonly now: string;
  /** A check: a field has a value. */
  notNull(field: string): string;
  /** A check: a number is not negative, and another one not 7. */
  numberRules(number: string, other: string): string;
}

interface Database {
  readonly url: string;
  readonly connection: Connection;
  again(options?: ConnectOptions): Promise<Connection>;
}

/**
 * What every dialect must do, whatever its engine. An operation that asks for what the dialect's `refuses` lists must be
 * refused with the reason and the alternative that stand there; every other must work and read back.
 */
export function dialectSuite(test: TestFunction, engine: DialectUnderTest): void {
  suite(test, engine, (declare) => cases(declare, engine));
}

function cases(declare: DeclareCase, engine: DialectUnderTest): void {
  const { dialect } = engine;
  const { names, unsupported } = dialect.capabilities;
  const words = engine.syntax ?? NO_WORDS;

  const on = (name: string, promise: string, body: (database: Database) => Promise<void>, timeoutMs?: number): void => {
    const held = async () => {
      const database = await engine.createDatabase();
      const opened: Connection[] = [];
      const again = async (options: ConnectOptions = {}) => {
        const connection = await dialect.connect(database.url, { ...engine.options, ...options });
        opened.push(connection);
        return connection;
      };
      try {
        await body({ url: database.url, connection: await again(), again });
      } finally {
        for (const connection of opened) await connection.close().catch(() => undefined);
        await database.drop();
      }
    };
    declare(name, held, { promise, ...(timeoutMs !== undefined && { timeoutMs }) });
  };

  const run = (connection: Connection, operations: readonly Operation[], from?: SchemaModel, epoch?: number) =>
    runOperations(dialect, connection, operations, from, epoch);
  /** Whether the dialect cannot do it, as it says itself: then it says so before anything has run. */
  const isRefused = (operation: Operation, model: SchemaModel): boolean => {
    const asked = [...requiredFeatures(operation, model)].filter((feature) => unsupported[feature]);
    if (asked.length === 0) return false;
    const error = thrown(() => dialect.compile(operation, model));
    const told = `${JSON.stringify(operation)} asks for ${asked}, which is refused`;
    assert.equal(error.code, 'not_supported', told);
    assert.ok(
      asked.some((feature) => unsupported[feature]?.why === error.why && unsupported[feature]?.next === error.next[0]),
      told,
    );
    return true;
  };
  /** The field without what the dialect refuses; that it refuses it is seen to. */
  const possible = (field: NamedFieldDefinition): NamedFieldDefinition => {
    const others = field.primaryKey ? [] : [ID];
    const operation: CreateCollection = { type: 'createCollection', name: 'one', fields: [...others, field] };
    if (!isRefused(operation, new Map())) return field;
    const { unique, required, autoGenerate, default: value, ...plain } = field;
    const without = (feature: Feature, kept: Partial<NamedFieldDefinition>): Partial<NamedFieldDefinition> => {
      const fields = [...others, { ...plain, ...kept }];
      return requiredFeatures({ ...operation, fields }, new Map()).has(feature) && unsupported[feature] ? {} : kept;
    };
    const numbered = plain.type === 'uuid' || plain.type === 'string' ? 'generated' : 'generatedInteger';
    const expression = value !== undefined && isExpression(value) ? 'expressionDefault' : 'default';
    return {
      ...plain,
      ...(unique && without('unique', { unique })),
      ...(required && without('required', { required })),
      ...(autoGenerate && without(numbered, { autoGenerate })),
      ...(value !== undefined && !unsupported.default && without(expression, { default: value })),
    };
  };
  const create = (name: string, fields: readonly NamedFieldDefinition[]): CreateCollection => ({
    type: 'createCollection',
    name,
    fields: fields.map(possible),
  });
  const agrees = async (connection: Connection, model: SchemaModel, what = '') =>
    assert.deepEqual(describeDifferences(await connection.normalize(model), await connection.introspect()), [], what);

  on(
    'every field type and default reads back as it was made',
    '`introspect` gives every field and default back as `seen` says of the model it was made from, and `seen` changes nothing that was read.',
    async ({ connection }) => {
      await agrees(connection, await run(connection, [create('everything', everyField(words))]));
      const again = dialect.normalize(await connection.introspect());
      assert.deepEqual(describeDifferences(again, await connection.introspect()), []);
    },
  );

  on(
    'every operation and its way back',
    'Every operation that `capabilities.unsupported` does not name compiles, runs, and reads back as `apply` says; so does its inverse, and the operation once more.',
    async ({ connection }) => {
      let model = await run(connection, base(possible));
      await agrees(connection, model, 'base');
      for (const operation of steps(words)) {
        if (!isLegal(operation, model) || isRefused(operation, model)) continue;
        const told = JSON.stringify(operation);
        const back = invert(operation, model);
        let after = await run(connection, [operation], model);
        await agrees(connection, after, `after ${told}`);
        if (!isSomeRefused(back, after)) {
          const before = await run(connection, back, after);
          await agrees(connection, before, `back from ${told}`);
          after = await run(connection, [operation], before);
        }
        model = after;
      }
      await agrees(connection, model, 'at the end');
    },
  );

  /** Whether one of operations that follow one another is refused. */
  const isSomeRefused = (operations: readonly Operation[], from: SchemaModel): boolean => {
    let model = from;
    for (const operation of operations) {
      if (isRefused(operation, model)) return true;
      model = apply(model, operation);
    }
    return false;
  };

  on(
    'names that break what treats them as code',
    'Names are quoted everywhere: one that looks like code is a name like any other, and one that `capabilities.names` rules out is refused with `name_invalid` and the reason of its `problem`.',
    async ({ connection }) => {
      for (const name of [...HOSTILE, 'x'.repeat(names.max)]) {
        const legal = (kind: NameKind) => names.problem?.(name, kind) === undefined;
        const [table, field] = [legal('table') ? name : 'plain', legal('field') ? name : 'plain'];
        for (const kind of ['table', 'field'] as const) {
          if (legal(kind)) continue;
          const fields = [ID, { name: kind === 'field' ? name : 'n', type: 'integer' }];
          const illegal: Operation = { type: 'createCollection', name: kind === 'table' ? name : 'plain', fields };
          const error = thrown(() => dialect.compile(illegal, new Map()));
          assert.equal(error.code, 'name_invalid', name);
          assert.equal(error.why, names.problem?.(name, kind));
        }
        const enumeration: NamedFieldDefinition = {
          name: 'e',
          type: 'enum',
          enumValues: [legal('table') ? name : 'plain'],
          unique: true,
          default: legal('table') ? name : 'plain',
        };
        let model = await run(connection, [
          {
            type: 'createCollection',
            name: table,
            fields: [{ name: field, type: 'integer', primaryKey: true }, possible(enumeration)],
          },
        ]);
        const index: Operation = {
          type: 'createIndex',
          collection: table,
          index: legal('index') ? `i${name}`.slice(0, 40) : 'i',
          columns: [{ name: 'e', order: 'desc' }, { name: field }],
        };
        if (!isRefused(index, model)) model = await run(connection, [index], model);
        const found = await connection.introspect([table]);
        assert.deepEqual(describeDifferences(await connection.normalize(model), found), [], name);
        await run(connection, [{ type: 'dropCollection', collection: table }], model);
      }
      const long = 'x'.repeat(names.max + 1);
      const error = thrown(() => dialect.compile({ type: 'createCollection', name: long, fields: [ID] }, new Map()));
      assert.equal(error.code, 'name_invalid');
    },
  );

  on(
    'random schemas read back as they were made, and so do the differences between them',
    'After any legal operations the catalog says what the model says. What the engine cannot do beyond `capabilities.unsupported` is refused with a code that says why, and changes nothing; `migration_failed` is none.',
    async ({ connection }) => {
      const seed = Number(process.env.SVC_TEST_SEED ?? '20261121');
      const choices: SchemaChoices = {
        ...CHOICES,
        check: words.notNull,
        fields: CHOICES.fields.filter(
          ({ type, precision, scale }) => type !== 'decimal' || (precision !== undefined && scale !== undefined),
        ),
      };
      for (let index = 0; index < (engine.cases ?? 20); index += 1) {
        const told = `schema ${index} of SVC_TEST_SEED=${seed}`;
        const first = randomMoves(30, seed + index, choices);
        const second = randomMoves(12, -seed - index, choices);
        let model = await legal(connection, first, new Map(), choices);
        await agrees(connection, model, told);
        const goal = applyMoves(second, model, choices).model;
        for (const operation of diff(model, goal)) model = (await tried(connection, operation, model)) ?? model;
        await agrees(connection, model, `${told}, after the difference`);
        for (const operation of diff(model, new Map())) model = (await tried(connection, operation, model)) ?? model;
        for (const table of model.keys())
          model = await run(connection, [{ type: 'dropCollection', collection: table, cascade: true }], model);
        await agrees(connection, new Map(), `${told}, emptied`);
      }
    },
    240_000,
  );

  const legal = async (connection: Connection, list: readonly SchemaMove[], from: SchemaModel, choices: SchemaChoices) => {
    let model = from;
    for (const operation of applyMoves(list, from, choices).operations)
      model = (await tried(connection, operation, model)) ?? model;
    return model;
  };
  /** An engine may refuse more than the model does; then nothing may have changed, which the comparison shows. */
  const tried = async (connection: Connection, operation: Operation, model: SchemaModel) => {
    // Something before it was refused.
    if (!isLegal(operation, model)) return undefined;
    if (isRefused(operation, model)) return undefined;
    try {
      return await run(connection, [operation], model);
    } catch (error) {
      // Refused with a reason that is known, not stumbled over.
      if (!isSvcError(error)) throw error;
      if (error.code !== 'migration_failed') return undefined;
      throw new Error(`${JSON.stringify(operation)} was stumbled over: ${error.message} ${error.why}`, {
        cause: error,
      });
    }
  };

  on(
    'a table that exists says so',
    'Creating what the model has is refused by `compile`, creating what only the engine has by `run`, both with `collection_exists` and a message that contains `already exists`.',
    async ({ connection }) => {
      const twice: Operation = { type: 'createCollection', name: 'twice', fields: [ID] };
      const model = await run(connection, [twice]);
      assert.throws(() => dialect.compile(twice, model), /already exists/);
      const answer = await run(connection, [twice]).then(() => 'It was created again.', describeTestError);
      assert.match(answer, /^collection_exists: .*already exists/);
      await agrees(connection, model);
    },
  );

  on(
    'rows that do not allow a change are told of',
    'A change that rows do not allow is refused with `data_violates` and the engine’s words in `why`, and changes nothing.',
    async ({ connection }) => {
      const model = await run(connection, [
        create('rows', [
          ID,
          { name: 'a', type: 'integer', default: 1 },
          { name: 'e', type: 'enum', enumValues: ['x', 'y'], default: 'x' },
        ]),
      ]);
      await engine.insert(connection, 'rows', [
        { id: 1, a: 1, e: 'x' },
        { id: 2, a: 1, e: 'x' },
      ]);
      assert.equal(await connection.count('rows', 1), 1);
      assert.equal(await connection.count('rows', 10), 2);
      const refused: Operation[] = [
        { type: 'addField', collection: 'rows', field: { name: 'n', type: 'integer', required: true } },
        { type: 'createIndex', collection: 'rows', index: 'u', columns: [{ name: 'a' }], unique: true },
        { type: 'modifyField', collection: 'rows', field: 'a', changes: { unique: true } },
        { type: 'modifyField', collection: 'rows', field: 'e', changes: { enumValues: ['y'], default: null } },
      ];
      for (const operation of refused) {
        if (isRefused(operation, model)) continue;
        await assert.rejects(
          run(connection, [operation], model),
          (error) => isSvcError(error) && error.code === 'data_violates' && error.why !== undefined,
          JSON.stringify(operation),
        );
      }
      await agrees(connection, model);
    },
  );

  on(
    'a raw statement runs where it is meant to, and its check knows',
    '`compile` gives nothing for a raw statement of another dialect; its own runs as it is written, and its `check` is a query that gives a row once it has taken effect.',
    async ({ connection, url }) => {
      const model = await run(connection, [create('raws', [ID])]);
      const { statement, check = '' } = engine.raw('raws', url);
      assert.deepEqual(dialect.compile({ type: 'raw', dialect: 'another', statement }, model), []);
      assert.deepEqual(await connection.query(check), []);
      const raw: Operation = { type: 'raw', dialect: dialect.name, statement, check };
      assert.equal(dialect.compile(raw, model)[0]?.check, check);
      // A raw text may give the lock up: who runs one must hold it.
      await connection.withLock((epoch) => run(connection, [raw], model, epoch));
      assert.equal((await connection.query(check)).length, 1);
      assert.deepEqual(
        (await engine.read(connection, 'raws')).map(({ id }) => Number(id)),
        [7],
      );
    },
  );

  on(
    'an update says how many matched and how many changed',
    '`update` counts the rows that `where` matches and those of them whose values became others; null is a value that `eq` and `in` can ask for; $CONCAT takes null for an empty text.',
    async ({ connection }) => {
      const model = await run(connection, [
        create('people', [
          ID,
          { name: 'first', type: 'string' },
          { name: 'age', type: 'integer' },
          { name: 'full', type: 'string' },
        ]),
      ]);
      const collection = model.get('people')!;
      await engine.insert(connection, 'people', [
        { id: 1, first: 'Ada', age: 36 },
        { id: 2, first: null, age: 1 },
        { id: 3, first: "it's", age: null },
      ]);
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
    'an update takes bytes as base64',
    '`update` takes base64 for a field of bytes, in what it writes and in `where`, and stores the bytes that it stands for.',
    async ({ connection }) => {
      const model = await run(connection, [
        create('files', [
          ID,
          { name: 'short', type: 'binary', length: 8 },
          { name: 'long', type: 'blob' },
          { name: 'n', type: 'integer' },
        ]),
      ]);
      await engine.insert(connection, 'files', [{ id: 1 }, { id: 2 }]);
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
    'segments commit one by one, and the first that fails is named',
    '`run` commits segments in order until one fails: `committed` counts those before it, `failure.statement` names the statement, nothing of the failed segment is left, and `written` has what CLOCK and ELAPSED became.',
    async ({ connection }) => {
      await connection.withLock(async (epoch) => {
        await connection.ensureTables([anyDefinition(things)]);
        /** What a migration is where DDL can be in a transaction, and where it cannot. */
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
        const through = list.slice(0, 2).flat().length;
        assert.equal(outcome.committed, through);
        assert.equal(outcome.failure?.statement, 0);
        const written = outcome.written[through - 1]?.[0];
        assert.ok(written?.expires instanceof Date);
        assert.equal(typeof written.took, 'number');
        assert.deepEqual([...(await connection.introspect()).keys()].sort(), ['t1', 't2']);
        assert.equal((await connection.records(things).get('s2'))?.record.size, 2);
        assert.equal(await connection.records(things).get('s3'), undefined);
      });
    },
  );

  if (dialect.capabilities.runsSegmentsSingly)
    on(
      'a run ends where it is told to',
      '`run` asks `underway.goesOn` before each segment and, told to stop, ends there: what comes before is committed and told in order, nothing behind it is begun.',
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
          const asked: number[] = [];
          const told: RunOutcome['written'][number][] = [];
          const outcome = await connection.run(segments, epoch, 0, {
            shouldContinue: (segment) => asked.push(segment) <= half,
            onCommitted: (written) => void told.push(written),
            shouldRetry: () => true,
            onSent: () => undefined,
          });
          assert.deepEqual(outcome, { committed: half, written: told });
          assert.deepEqual(
            asked,
            Array.from({ length: half + 1 }, (_, segment) => segment),
          );
          assert.ok(told.at(-1)?.[0]?.expires instanceof Date);
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
    'writes of an epoch that is over lose',
    '`withLock` counts the epoch up by one each time; writes planned under an earlier one, or on another version of the record, fail with `lock_lost`, and `replace` with that epoch is `stale`.',
    async ({ connection, again }) => {
      const other = await again();
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
    'one holds the lock, others wait, and a failure lets go',
    'One holder at a time over all connections; who waits hears `onWait`, is refused with `lock_timeout` when its time is over, and is let in when the work before it ended, well or badly. `isLocked` tells whether there is one.',
    async ({ connection, again }) => {
      const other = await again();
      let inside = 0;
      let waited = 0;
      const enter = (who: Connection) =>
        who.withLock(
          async () => {
            inside += 1;
            assert.equal(inside, 1);
            await who.now();
            await waitUntil(() => waited > 0, 'nobody who waits is told');
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
    'who waits for the lock and is interrupted is told so, on its own connection too',
    '`withLock` gives up with `interrupted` once its `signal` aborts, whoever has the lock.',
    async ({ connection, again }) => {
      const other = await again();
      await connection.withLock(async () => {
        for (const who of [connection, other]) {
          const signal = new AbortController();
          await assert.rejects(
            who.withLock(async () => {}, { signal: signal.signal, onWait: () => signal.abort() }),
            (error) => isSvcError(error) && error.code === 'interrupted',
          );
        }
      });
      await other.withLock(async () => {});
    },
  );

  on(
    'what is under way when the connection closes comes to an end',
    'A call that is under way when `close` is called settles, one way or the other.',
    async ({ again }) => {
      for (let round = 0; round < 5; round += 1) {
        const connection = await again();
        const asked = Promise.allSettled([connection.now(), connection.now()]);
        await new Promise((sent) => setImmediate(sent));
        await connection.close();
        await asked;
      }
    },
  );

  on(
    'who watches hears of what its definition tells, and of nothing else',
    '`watch` calls its hint with the key of every record that was written and that `tells` of its definition is true for.',
    async ({ connection }) => {
      const told: RecordDefinition<Thing> = { ...things, notifyOn: ({ size }) => Number(size) >= 2 };
      await connection.ensureTables([anyDefinition(told)]);
      const heard: (string | undefined)[] = [];
      let ring: () => void = () => {};
      const last = new Promise<void>((resolve) => {
        ring = resolve;
      });
      const stop = await connection.watch?.(told.collection, (key) => {
        heard.push(key);
        if (key === 'b') ring();
      });
      assert.ok(stop, 'there is no watch(): skip this case, and say why nobody is told');
      const store = connection.records(told);
      await store.insert(thing('a', 1));
      await store.replace('a', 1, thing('a', 2));
      await store.replace('a', 2, thing('a', 1));
      await store.insert(thing('b', 2));
      await last;
      await stop();
      assert.deepEqual(heard, ['a', 'b']);
    },
  );
}

/** Of what a driver gives for bytes: an array of them, or something that tells them. */
const base64Of = (bytes: unknown): string =>
  bytes instanceof Uint8Array
    ? Buffer.from(bytes).toString('base64')
    : String((bytes as Buffer | undefined)?.toString('base64'));

/** For dialects that refuse every expression. */
const NO_WORDS: SqlSyntax = { sum: '1', now: '1', notNull: () => '1', numberRules: () => '1' };

function isLegal(operation: Operation, model: SchemaModel): boolean {
  try {
    apply(model, operation);
    return true;
  } catch (error) {
    if (isSvcError(error)) return false;
    throw error;
  }
}

function thrown(work: () => unknown): SvcError {
  try {
    work();
  } catch (error) {
    if (isSvcError(error)) return error;
    throw error;
  }
  throw new Error('a refusal was expected, and nothing was refused');
}

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

const everyField = (words: SqlSyntax): readonly NamedFieldDefinition[] => [
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
  { name: 'expression', type: 'integer', default: { $expression: words.sum } },
  { name: 'said', type: 'timestamp', default: { $expression: words.now } },
];

const ID: NamedFieldDefinition = { name: 'id', type: 'integer', primaryKey: true };
const base = (possible: (field: NamedFieldDefinition) => NamedFieldDefinition): readonly Operation[] => [
  {
    type: 'createCollection',
    name: 'users',
    fields: [
      ID,
      possible({ name: 'email', type: 'string', unique: true, required: true }),
      possible({ name: 'mood', type: 'enum', enumValues: ['a', 'b'], default: 'a' }),
      possible({ name: 'n', type: 'integer', default: 3 }),
      possible({ name: 'createdAt', type: 'timestamp', required: true, default: 'now' }),
    ],
  },
  {
    type: 'createCollection',
    name: 'orders',
    fields: [
      possible({ ...ID, autoGenerate: true }),
      { name: 'user', type: 'integer' },
      { name: 'amount', type: 'integer' },
      { name: 'total', type: 'decimal', precision: 10, scale: 2 },
    ],
  },
];

/** Each is run, undone and run again, in this order; what relies on one that is refused is left out. */
const steps = (words: SqlSyntax): readonly Operation[] => [
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
    constraint: { name: 'positive', type: 'check', expression: words.numberRules('total', 'amount') },
  },
  { type: 'addConstraint', collection: 'users', constraint: { name: 'pair', type: 'unique', columns: ['n', 'email'] } },
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
    columns: [{ name: 'email', order: 'DESC' }],
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
  { type: 'dropConstraint', collection: 'orders', constraint: 'positive' },
  { type: 'dropField', collection: 'orders', field: 'total' },
  { type: 'dropCollection', collection: 'People "x"', cascade: true },
];
