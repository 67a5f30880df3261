import * as assert from 'node:assert/strict';
import { migrate } from '../core/migration/migrate.ts';
import { previewMigrate } from '../core/migration/preview.ts';
import { resolveMigration } from '../core/migration/resolve.ts';
import type { AddConstraint } from '../core/schema/operation.ts';
import { INDEX, migration, N, withOwner, withRows } from './kit/online-rows.ts';
import { unavailable } from './kit/postgresql.ts';
import { test } from './kit/test.ts';

/** Changes online of tables that others have given policies, children, owners, names and indexes. */

const missing = await unavailable();
const ROWS = 50;
const LARGE_ROWS = 10_000;

const constraint = (definition: AddConstraint['constraint']): AddConstraint => ({
  type: 'addConstraint',
  collection: 'rows',
  constraint: definition,
});
const PARENT = constraint({
  name: 'rows_parent',
  type: 'foreignKey',
  columns: ['n'],
  references: { table: 'parents', columns: ['id'] },
});
const UNIQUE = constraint({ name: 'rows_one', type: 'unique', columns: ['n'] });
const PARENTS = `CREATE TABLE parents (id integer PRIMARY KEY); INSERT INTO parents SELECT generate_series(1, ${ROWS})`;
const constraintsOf = (table: string) =>
  `SELECT conname AS name, pg_get_constraintdef(oid) AS definition FROM pg_constraint
   WHERE conrelid = '${table}'::regclass AND contype <> 'p' ORDER BY conname`;

if (missing) test.skip('PostgreSQL: changes online of what others have made', missing);
else {
  test('PostgreSQL: a field may have the name of a variable of PL/pgSQL', async () => {
    await withRows(ROWS, async ({ database, sent }) => {
      const fields = ['found', 'altered'].map((name) => ({ ...N, name }));
      await sent(migration(fields.map((field) => ({ type: 'addField', collection: 'rows', field }) as const)));
      await database.query('UPDATE rows SET found = 1, altered = 2');
      const modify = { type: 'modifyField', collection: 'rows' } as const;
      await sent(migration([{ ...modify, field: 'found', changes: { required: true } }], true));
      await sent(migration([{ ...modify, field: 'altered', changes: { type: 'string', length: 20 } }]));
      await sent(migration([{ ...modify, field: 'altered', changes: { type: 'string', length: 10 } }]));
    });
  });

  test('PostgreSQL: referenced rows that the user may not read, or that a policy hides, are left to the server', async () => {
    await withRows(ROWS, async ({ database, after }) => {
      await database.query(`${PARENTS}; ALTER TABLE parents ENABLE ROW LEVEL SECURITY`);
      await withOwner(database, async (target, owner) => {
        await database.query('UPDATE rows SET n = 99 WHERE id = 3');
        await assert.rejects(migrate(target, after(migration([PARENT], true))), { why: /23503/ });
        await database.query(`ALTER TABLE rows DROP CONSTRAINT rows_parent; UPDATE rows SET n = id;
          DELETE FROM _svc_migrations WHERE status = 'failed'`);
        const change = migration([PARENT], true);
        await migrate(target, after(change));
        const back = { type: 'dropConstraint', collection: 'rows', constraint: 'rows_parent' } as const;
        await database.query(`REVOKE SELECT ON parents FROM ${owner}`);
        await migrate(target, after(change, migration([back, PARENT], true)));
      });
    });
  });

  test('PostgreSQL: rows of children need only obey what they inherit', async () => {
    await withRows(ROWS, async ({ database, sent }) => {
      await database.query(
        `${PARENTS}; CREATE TABLE children () INHERITS (rows); INSERT INTO children (id, n) VALUES (1, 999)`,
      );
      const own = { type: 'check', columns: ['n'], expression: 'n < 100' } as const;
      await sent(migration([PARENT, constraint({ name: 'own', ...own, native: 'NO INHERIT' })], true));
      assert.deepEqual(await database.query(constraintsOf('children')), []);
      const inherited = migration([constraint({ name: 'inherited', ...own })], true);
      await assert.rejects(sent(inherited), { code: 'data_violates', state: 'Nothing was changed.' });
    });
  });

  test('PostgreSQL: an index that somebody else has given the name of a key does not become it', async () => {
    const others = [
      'UNIQUE INDEX rows_one ON rows (id)',
      'UNIQUE INDEX rows_one ON rows (n) INCLUDE (id)',
      'INDEX rows_one ON rows (n)',
    ];
    for (const other of others)
      await withRows(ROWS, async ({ database, target, sent }) => {
        await database.query(`CREATE ${other}`);
        const change = migration([{ type: 'addField', collection: 'rows', field: { ...N, name: 'm' } }, UNIQUE], true);
        await assert.rejects(sent(change), { code: 'migration_half_done', why: /42P07/ });
        await assert.rejects(resolveMigration(target, change.tag, 'retry'), {
          code: 'migration_half_done',
          why: /42P07/,
        });
        await database.query('DROP INDEX rows_one');
        await resolveMigration(target, change.tag, 'retry');
        assert.deepEqual(await database.query(constraintsOf('rows')), [{ name: 'rows_one', definition: 'UNIQUE (n)' }]);
      });
  });

  test('PostgreSQL: a table is large whatever its owner may read of it', async () => {
    const hidden = `ALTER TABLE rows ENABLE ROW LEVEL SECURITY; ALTER TABLE rows FORCE ROW LEVEL SECURITY;
      CREATE POLICY few ON rows USING (id < 10)`;
    for (const analyze of ['', 'ANALYZE rows;'])
      await withRows(LARGE_ROWS + 1, async ({ database, after }) =>
        withOwner(database, async (target, owner) => {
          for (const forbid of [hidden, `REVOKE SELECT ON rows FROM ${owner}`]) {
            await database.query(`${analyze} ${forbid}`);
            const [planned] = await previewMigrate(target, after(migration([INDEX])));
            assert.deepEqual(
              planned?.statements.map(({ text }) => text),
              ['CREATE INDEX CONCURRENTLY "rows_n" ON "rows" ("n")'],
            );
          }
          const drop = migration([{ type: 'dropCollection', collection: 'rows' }]);
          const [dropping] = await previewMigrate(target, after(drop), { allowDestructive: true });
          assert.ok((dropping?.statements[0]?.loss?.rows ?? 0) > 10);
        }),
      );
  });

  test('PostgreSQL: rights that an owner lacks are found before the first statement', async () => {
    const token = { name: 'token', type: 'uuid', autoGenerate: true } as const;
    const change = [{ type: 'addField', collection: 'rows', field: token }, INDEX] as const;
    await withRows(ROWS, async ({ database, after }) =>
      withOwner(database, async (target, owner) => {
        const lacking = [
          [`UPDATE ON rows FROM ${owner}`, /read or change/],
          [`SELECT ON rows FROM ${owner}`, /read or change/],
          [`CREATE ON SCHEMA public FROM ${owner}, public`, /CREATE on the schema/],
        ] as const;
        for (const [right, why] of lacking) {
          await database.query(`REVOKE ${right}`);
          const refused = { code: 'permission_denied', why, state: 'Nothing was changed.' };
          await assert.rejects(migrate(target, after(migration(change, true))), refused);
          await database.query(`GRANT ${right.replace('FROM', 'TO')}`);
        }
        await migrate(target, after(migration(change, true)));
      }),
    );
  });

  test('PostgreSQL: what a change online that was given up has left is no obstacle to the next one', async () => {
    await withRows(ROWS, async ({ database, sent }) => {
      await database.query('ALTER TABLE rows ADD CONSTRAINT rows_n_svc_required_check CHECK (n IS NOT NULL) NOT VALID');
      const required = { type: 'modifyField', collection: 'rows', field: 'n', changes: { required: true } } as const;
      await sent(migration([required], true));
      assert.deepEqual(await database.query(constraintsOf('rows')), []);
    });
  });

  test('PostgreSQL: a foreign key to a table that the run gives the name of another one is not checked against that one', async () => {
    await withRows(ROWS, async ({ database, sent }) => {
      const create = { type: 'createCollection', fields: [{ ...N, name: 'id', primaryKey: true }] } as const;
      await sent(migration(['parents', 'wanted'].map((name) => ({ ...create, name }))));
      await database.query(`INSERT INTO wanted SELECT generate_series(1, ${ROWS})`);
      const rename = (collection: string, to: string) => ({ type: 'renameCollection', collection, to }) as const;
      await sent(migration([rename('parents', 'old'), rename('wanted', 'parents'), PARENT], true));
    });
  });

  test('PostgreSQL: a row with a part of the key is found before MATCH FULL', async () => {
    await withRows(ROWS, async ({ database, sent }) => {
      await database.query(`CREATE TABLE pairs (a integer, b integer, PRIMARY KEY (a, b));
        INSERT INTO pairs SELECT n, n FROM generate_series(1, ${ROWS}) n`);
      const pair = {
        name: 'rows_pair',
        type: 'foreignKey',
        columns: ['n', 'm'],
        references: { table: 'pairs', columns: ['a', 'b'] },
      } as const;
      await sent(migration([{ type: 'addField', collection: 'rows', field: { ...N, name: 'm' } }]));
      const full = migration([constraint({ ...pair, native: 'MATCH FULL' })], true);
      await assert.rejects(sent(full), { code: 'data_violates', state: 'Nothing was changed.' });
      await database.query('UPDATE rows SET n = NULL WHERE id = 1; UPDATE rows SET m = n WHERE id > 1');
      await sent(full);
    });
  });
}
