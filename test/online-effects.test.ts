import * as assert from 'node:assert/strict';
import { previewMigrate } from '../core/migration/preview.ts';
import type { MigrationOperation } from '../core/schema/operation.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { type Fixture, INDEX, migration, N, withRows } from './kit/online-rows.ts';
import { unavailable } from './kit/postgresql.ts';
import { test } from './kit/test.ts';

/** Where the server reads, writes or builds more than a statement says, and what a dry run makes of it. */

const missing = await unavailable();
const LARGE_ROWS = 10_000;

const addField = (field: object): MigrationOperation =>
  ({ type: 'addField', collection: 'rows', field }) as MigrationOperation;
const longer = (field: string, length: number): MigrationOperation => ({
  type: 'modifyField',
  collection: 'rows',
  field,
  changes: { length },
});
const TEXT = { name: 'name', type: 'string', length: 50 };

const locksOf = async ({ target, after }: Fixture, operations: readonly MigrationOperation[], online?: boolean) => {
  const [planned] = await previewMigrate(target, after(migration(operations, online)));
  return planned?.statements.map(({ lock }) => lock && `${lock.blocks}, ${lock.work}`);
};

if (missing) test.skip('PostgreSQL: effects of changes online', missing);
else {
  test('PostgreSQL: a check of a field whose type changes is not verified under the lock', async () => {
    await withRows(50, async ({ database, sent }) => {
      const check = { name: 'named', type: 'check', columns: ['name'], expression: "name <> ''" } as const;
      await sent(migration([addField(TEXT), { type: 'addConstraint', collection: 'rows', constraint: check }]));
      assert.deepEqual(await sent(migration([longer('name', 60)], true)), [
        'ALTER TABLE "rows" DROP CONSTRAINT "named"',
        'ALTER TABLE "rows" ALTER COLUMN "name" TYPE varchar(60)',
        'ALTER TABLE "rows" ADD CONSTRAINT "named" CHECK (name <> \'\') NOT VALID',
        'ALTER TABLE "rows" VALIDATE CONSTRAINT "named"',
      ]);
      await assert.rejects(database.query("INSERT INTO rows (name) VALUES ('')"), { code: '23514' });
    });
  });

  test('PostgreSQL: an index on an expression is built again under a lock only with leave', async () => {
    for (const [native, isBuilt] of [
      ['(lower(name))', true],
      ['(name) WHERE n > 0', true],
      ['(n) WHERE name IS NULL', true],
      ['USING hash (name)', false],
    ] as const)
      await withRows(LARGE_ROWS + 1, async ({ database, sent }) => {
        await sent(migration([addField(TEXT), { ...INDEX, columns: [], native }]));
        const fileOf = () => database.query("SELECT pg_relation_filenode('rows_n') AS file");
        const before = await fileOf();
        const change = migration([longer('name', 60)]);
        if (isBuilt) await assert.rejects(sent(change), { code: 'copy_required', state: 'Nothing was changed.' });
        else await sent(change);
        assert.deepEqual(await fileOf(), before, native);
      });
  });

  test('PostgreSQL: a computed field without stored values is added online', async () => {
    await withRows(1, async ({ target }) => {
      const model = await target.connection.introspect();
      const added = (kind: string, required: boolean) => {
        const native = `integer GENERATED ALWAYS AS (n * 2) ${kind}`;
        const operation = addField({ ...N, name: 'twice', native, required });
        return postgresql
          .compileOnline?.(operation as Parameters<typeof postgresql.compile>[0] & { collection: string }, model)
          ?.map(({ text, run }) => [text.split(' ').slice(3, 5).join(' '), 'copies' in run]);
      };
      assert.deepEqual(added('STORED', false), [['ADD COLUMN', true]]);
      assert.equal(added('VIRTUAL', false), undefined);
      assert.deepEqual(added('VIRTUAL', true), [
        ['ADD COLUMN', false],
        ['DROP CONSTRAINT', false],
        ['VALIDATE CONSTRAINT', false],
        ['ALTER COLUMN', false],
        ['DROP CONSTRAINT', false],
      ]);
    });
  });

  test('PostgreSQL: a dry run is not misled by names and values, and says when rows are read for NOT NULL', async () => {
    await withRows(LARGE_ROWS + 1, async (fixture) => {
      const required = { type: 'modifyField', collection: 'rows', field: 'n', changes: { required: true } } as const;
      assert.deepEqual(await locksOf(fixture, [required], false), ['reads and writes, read']);
      assert.deepEqual(await locksOf(fixture, [required], true), [
        'nothing, read',
        'reads and writes, none',
        'nothing, read',
        'reads and writes, none',
        'reads and writes, none',
      ]);
      const named = { name: 'a FOREIGN KEY', type: 'text', default: 'STORED' };
      assert.deepEqual(await locksOf(fixture, [addField(named)]), ['reads and writes, none']);
      const computed = { name: 'a b', type: 'uuid', autoGenerate: true };
      assert.deepEqual(await locksOf(fixture, [addField(computed)], false), ['reads and writes, write']);
    });
  });

  test('PostgreSQL: an identity that begins after the highest value needs an index to find it, or leave', async () => {
    await withRows(LARGE_ROWS + 1, async ({ database, sent }) => {
      const numbered = {
        type: 'modifyField',
        collection: 'rows',
        field: 'n',
        changes: { autoGenerate: true },
      } as const;
      await database.query('UPDATE rows SET n = id');
      await assert.rejects(sent(migration([numbered])), { code: 'copy_required', state: 'Nothing was changed.' });
      await sent(migration([INDEX, numbered]));
      await database.query('INSERT INTO rows DEFAULT VALUES');
      assert.deepEqual(await database.query('SELECT max(n) AS n FROM rows'), [{ n: LARGE_ROWS + 2 }]);
    });
  });
}
