import * as assert from 'node:assert/strict';
import { isSvcError } from '../../core/errors.ts';
import { affectedCollections } from '../../core/migration/affected-collections.ts';
import { apply } from '../../core/schema/apply.ts';
import { describeDifferences } from '../../core/schema/diff.ts';
import { invert } from '../../core/schema/invert.ts';
import type { SchemaModel } from '../../core/schema/model.ts';
import type { NameKind } from '../../core/schema/names.ts';
import type { NamedFieldDefinition, Operation } from '../../core/schema/operation.ts';
import { assertDestructiveIsTrue } from './data-loss.ts';
import type { DeclareConnectedCase } from './dialect-case.ts';
import type { DialectUnderTest, Row, SqlSyntax } from './dialect-under-test.ts';
import { expectRejection } from './expect-error.ts';
import { assertDefaultExpressionsWork } from './row-cases.ts';
import { assertDefaultsApply, assertRowsFollow } from './row-rules.ts';
import { assertCatalogMatches, runnerOf } from './run-operations.ts';
import { baseTables, CHECK, everyField, operationsToTest } from './sample-operations.ts';
import { describeTestError } from './suite.ts';
import { expectThrown, ID, isLegal, type SupportedOperations } from './supported-operations.ts';

/** Cases about what an operation makes of the catalog. */
export function schemaCases(
  on: DeclareConnectedCase,
  engine: DialectUnderTest,
  syntax: SqlSyntax,
  supported: SupportedOperations,
): void {
  const { dialect } = engine;
  const { names } = dialect.capabilities;
  const { isUnsupported, isAnyUnsupported, supportedField, create } = supported;
  const run = runnerOf(dialect);

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
    'names that look like code',
    'Names are quoted everywhere. A name that `capabilities.names` does not allow is rejected with `name_invalid` and the reason of its `problem`.',
    async ({ connection }) => {
      // What is before a dot may be a schema.
      const hostile = HOSTILE.filter((name) => !names.schemas || !name.includes('.'));
      for (const name of [...hostile, 'x'.repeat(names.max)]) {
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

  if (!dialect.capabilities.unsupported.check)
    on(
      'a table in which expressions are read back is seen by its session only',
      'What `normalize` creates to read expressions back, such as the `scratchTable` of `sqlServerDialect`, is not visible to other connections.',
      async ({ connection, connectAgain }) => {
        const other = await connectAgain();
        const check = { name: CHECK, type: 'check', expression: syntax.notNull('n') } as const;
        const model = [
          create('spelled', [ID, { name: 'n', type: 'integer' }]),
          { type: 'addConstraint', collection: 'spelled', constraint: check } as const,
        ].reduce(apply, new Map() as SchemaModel);
        for (let round = 0; round < SCRATCH_ROUNDS; round++) {
          let isNormalized = false;
          let isSeen = false;
          const normalize = async () => {
            await connection.normalize(model).finally(() => {
              isNormalized = true;
            });
          };
          const look = async () => {
            do
              isSeen ||= await other.query('SELECT 1 AS svc_one FROM "_svc_scratch_0"').then(
                () => true,
                () => false,
              );
            while (!isNormalized && !isSeen);
          };
          await Promise.all([normalize(), look()]);
          assert.ok(!isSeen, 'another connection sees "_svc_scratch_0": scratchTable must create a temporary table');
        }
      },
    );

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
        const description = JSON.stringify(operation);
        const error = await expectRejection(run(connection, [operation], model), `${description}: it was accepted`);
        const isRight = isSvcError(error) && error.code === 'data_violates' && error.why !== undefined;
        assert.ok(isRight, `${description}: ${describeTestError(error)}`);
      }
      await assertCatalogMatches(connection, model);
    },
  );
}

/** Each time, another connection looks for the table until the model is normalized. */
const SCRATCH_ROUNDS = 20;
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
