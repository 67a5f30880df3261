import * as assert from 'node:assert/strict';
import pg from 'pg';
import { migrate } from '../core/migration/migrate.ts';
import { resolveMigration } from '../core/migration/resolve.ts';
import type { MigrationOperation } from '../core/schema/operation.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { type Fixture, INDEX, migration, withRows } from './kit/online-rows.ts';
import { type PostgresqlTestDatabase, unavailable } from './kit/postgresql.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

/** Changes online that sessions, time limits and people interrupt, and what the next run or a retry makes of them. */

const missing = await unavailable();
const ROWS = 50;
const LARGE_ROWS = 10_000;
const INVALID = 'SELECT indexrelid::regclass::text AS name FROM pg_index WHERE NOT indisvalid';
const BUILDING = `SELECT pid FROM pg_stat_activity
  WHERE datname = current_database() AND query LIKE 'CREATE%CONCURRENTLY%' AND wait_event = 'virtualxid'`;
/** A transaction that an index build waits for at its end, and one that it waits for at its beginning. */
const SNAPSHOT = 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1';
const ROW_LOCK = 'BEGIN; UPDATE rows SET n = n';

const another = (name: string): MigrationOperation => ({
  type: 'createCollection',
  name,
  fields: [{ name: 'id', type: 'integer', primaryKey: true }],
});

/** Begins a transaction, in which `work` may send more, and ends it. */
async function during(
  { url }: PostgresqlTestDatabase,
  begin: string,
  work: (send: (text: string) => Promise<unknown>) => Promise<void>,
): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query(begin);
    await work((text) => client.query(text));
  } finally {
    await client.end();
  }
}

async function isCompletedByNextRun({ database, sent }: Fixture, changes: ReturnType<typeof migration>): Promise<void> {
  await sent(changes);
  assert.deepEqual(await database.query(INVALID), []);
  assert.deepEqual(await database.query("SELECT to_regclass('rows_n')::text AS index"), [{ index: 'rows_n' }]);
}

const untilBuilding = (database: PostgresqlTestDatabase) =>
  waitUntil(async () => (await database.query(BUILDING)).length > 0, 'no index is being built');

if (missing) test.skip('PostgreSQL: interrupted changes online', missing);
else {
  test('PostgreSQL: an index whose session was ended is built by the next run, also on a table that was changed by hand', async () => {
    await withRows(ROWS, async (fixture) => {
      const { database, after } = fixture;
      await database.query('CREATE INDEX by_hand ON rows (n)');
      const change = migration([another('other'), INDEX], true);
      const target = await connectTarget(postgresql, database.url);
      await during(database, SNAPSHOT, async () => {
        const failing = assert.rejects(migrate(target, after(change)), { code: 'connection_lost' });
        await untilBuilding(database);
        await database.query(`SELECT pg_terminate_backend(pid) FROM (${BUILDING}) building`);
        await failing;
      });
      assert.deepEqual(await database.query(INVALID), [{ name: 'rows_n' }]);
      await isCompletedByNextRun(fixture, change);
    });
  });

  test('PostgreSQL: an invalid index that could not be removed is removed by the next run', async () => {
    await withRows(ROWS, async (fixture) => {
      const { database, after } = fixture;
      const change = migration([INDEX], true);
      const limited = await connectTarget(postgresql, database.url, { statementTimeoutMs: 200 });
      await during(database, ROW_LOCK, async () => {
        await assert.rejects(migrate(limited, after(change)), {
          code: 'statement_canceled',
          state: 'The progress is journaled; the next run continues from there.',
        });
      });
      await limited.connection.close();
      assert.deepEqual(await database.query(INVALID), [{ name: 'rows_n' }]);
      await isCompletedByNextRun(fixture, change);
    });
  });

  test('PostgreSQL: an index build that was ended by a deadlock is repeated by the next run', async () => {
    await withRows(ROWS, async (fixture) => {
      const { database, target, after } = fixture;
      const change = migration([another('other'), INDEX], true);
      let failing: Promise<void> | undefined;
      await during(database, `${SNAPSHOT}; SET LOCAL deadlock_timeout = '1min'`, async (send) => {
        failing = assert.rejects(migrate(target, after(change)), {
          code: 'table_locked',
          state: /the next run continues with the one that had to wait/,
        });
        await untilBuilding(database);
        await send('LOCK TABLE rows IN SHARE ROW EXCLUSIVE MODE');
      });
      await failing;
      await isCompletedByNextRun(fixture, change);
    });
  });

  const token = (collection: string): MigrationOperation => ({
    type: 'addField',
    collection,
    field: { name: 'token', type: 'uuid', autoGenerate: true },
  });
  const unique = { ...INDEX, unique: true, sqlOptions: { concurrently: true } } as const;
  const RENAME = { type: 'renameCollection', collection: 'rows', to: 'lines' } as const;
  const lines = { collection: 'lines' } as const;
  /** What ran before it failed, what failed, and what others then did. */
  const FAILED = [
    ['a table that is no longer large', LARGE_ROWS + 1, [token('rows')], unique, 'DELETE FROM rows WHERE id > 100'],
    ['a table that has become large', LARGE_ROWS, [token('rows')], unique, 'INSERT INTO rows (n) VALUES (0)'],
    ['a table that it has renamed', LARGE_ROWS + 1, [RENAME, token('lines')], { ...unique, ...lines }, 'SELECT 1'],
  ] as const;
  for (const [what, rows, ran, failed, then] of FAILED) {
    test(`PostgreSQL: the rest of a failed migration of ${what} is corrected and retried`, async () => {
      await withRows(rows, async ({ database, target, sent, after }) => {
        await database.query('UPDATE rows SET n = 5 WHERE id = 6');
        const change = migration([...ran, failed]);
        await assert.rejects(sent(change), { code: 'migration_half_done', why: /23505/ });
        await database.query(then);
        const corrected = { ...change, up: [...ran, { ...failed, unique: false }] };
        const { status } = await resolveMigration(target, change.tag, 'retry', { defined: after(corrected) });
        assert.equal(status, 'completed');
        await migrate(target, after(corrected));
        const wrong = { ...corrected, up: [token('other'), failed] };
        await assert.rejects(migrate(target, after(wrong)), { code: 'migration_edited' });
      });
    });
  }
}
