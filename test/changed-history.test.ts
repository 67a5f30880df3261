import * as assert from 'node:assert/strict';
import { baseline } from '../core/migration/baseline.ts';
import { type HistoryRow, historyTable } from '../core/migration/history-table.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import { previewRollback } from '../core/migration/preview.ts';
import { resolveMigration } from '../core/migration/resolve.ts';
import { status } from '../core/migration/status.ts';
import type { Target } from '../core/migration/target.ts';
import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { freshKeyspace, unavailable } from './kit/cassandra.ts';
import { sqlEngines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { freshMongo, missing } from './kit/mongodb.ts';
import { assertExit, json, LONG, project } from './kit/project.ts';
import { connectTarget, tablesOf } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// Rows of the history that somebody changed by hand.

const id = { name: 'id', type: 'uuid', primaryKey: true } as const;
const creates = (tag: string, name: string): Migration => ({
  tag,
  name,
  up: [{ type: 'createCollection', name, fields: [id] }],
  down: [{ type: 'dropCollection', collection: name }],
});
const kept = creates('20260101_000000_kept', 'kept');
const last = creates('20260102_000000_made', 'made');
const files = [kept, last].map(definedInCode);

type Changes = Partial<HistoryRow>;

async function change({ connection }: Target, tag: string, changes: Changes): Promise<void> {
  const records = connection.records(historyTable);
  const stored = await records.get(tag);
  assert.ok(stored);
  assert.notEqual(await records.replace(tag, stored.version, { ...stored.record, ...changes }), 'stale');
}

/** In each way a row can be changed, nothing runs until the row is removed and recorded again. */
async function rejectsChangedRows(target: Target): Promise<void> {
  await migrate(target, files);
  const dropsKept: Migration = { ...last, down: [{ type: 'dropCollection', collection: 'kept' }] };
  const noDown = { ...last, down: undefined } as unknown as Migration;
  for (const [tag, changes] of [
    [kept.tag, { migration: { ...kept, up: [] } }],
    [last.tag, { migration: dropsKept }],
    [last.tag, { migration: noDown }],
    [last.tag, { checksum: '0'.repeat(64) }],
  ] as const) {
    await change(target, tag, changes);
    await expectError(rollback(target, { allowDestructive: true }), 'history_damaged');
    await expectError(new MigrationEngine(target).down(last), 'history_damaged');
    const more = [...files, definedInCode(creates('20260103_000000_more', 'more'))];
    await expectError(migrate(target, more), 'history_damaged');
    // `status` compares the checksums of the files only.
    if ('checksum' in changes) await expectError(status(target, files), 'history_damaged');
    const { message, next } = await expectError(previewRollback(target), 'history_damaged');
    assert.match(message, new RegExp(`"${tag}"`));
    assert.equal(next.length, 3);
    assert.deepEqual(await tablesOf(target), ['kept', 'made']);
    await resolveMigration(target, tag, 'forget');
    await baseline(target, files);
    await change(target, tag, { duration_ms: 0 });
  }
  const { checksum } = definedInCode(last);
  await change(target, last.tag, { status: 'failed', checksum: '0'.repeat(64) });
  for (const decision of ['applied', 'retry'] as const)
    await expectError(resolveMigration(target, last.tag, decision, { defined: files }), 'history_damaged');
  await change(target, last.tag, { status: 'completed', checksum });
  assert.equal((await rollback(target, { count: 1, allowDestructive: true })).migrations.length, 1);
  assert.deepEqual(await tablesOf(target), ['kept']);
}

for (const engine of sqlEngines) {
  const on = (what: string, body: Parameters<typeof engine.withUrl>[0]): void => {
    if (engine.missing !== undefined) test.skip(`${engine.name}: ${what}`, engine.missing);
    else test(`${engine.name}: ${what}`, () => engine.withUrl(body), LONG);
  };

  on('a history row whose migration or checksum was changed runs nothing', async (_url, connect) =>
    rejectsChangedRows(await connect()),
  );

  on('doctor, status and migrate name what is damaged in the history, and what to do', async (url, connect) => {
    const shop = project({ main: url });
    const query = async (sql: string): Promise<void> => {
      const { connection } = await connect();
      await connection.query(sql);
      await connection.close();
    };
    const doctor = async (status: number): Promise<string> => assertExit(await shop.svc('doctor'), status).stdout;
    const text = (made: Migration) => ({ tag: made.tag, up: made.up, down: made.down });
    shop.write(`svc/database/migrations/main/${kept.tag}.json`, text(kept));
    assertExit(await shop.svc('db', 'migrate'));

    await query("UPDATE _svc_migrations SET status = 'done'");
    const unknown = await doctor(1);
    assert.match(unknown, /fail {2}database main: The history row of "20260101_000000_kept" has an unknown status/);
    assert.match(unknown, /-> Or set its status to what it was/);
    for (const words of [['status'], [], ['rollback']]) {
      const error = json(assertExit(await shop.svc('db', 'migrate', ...words, '--json'), 5));
      assert.equal(error.code, 'history_damaged');
    }
    await query("UPDATE _svc_migrations SET status = 'completed'");

    await query('DELETE FROM _svc_meta');
    assert.match(await doctor(1), /fail {2}database main: the history has 1 row, and the row of _svc_meta/);
    assertExit(await shop.svc('db', 'migrate', '--adopt'));
    assert.match(await doctor(0), /1 of 1 migration file applied/);

    for (const [table, column] of [
      ['_svc_meta', 'product'],
      ['_svc_migrations', 'checksum'],
    ] as const) {
      await query(`ALTER TABLE ${table} DROP COLUMN ${column}`);
      const lacks = await doctor(1);
      assert.match(lacks, new RegExp(`The table ${table} lacks a column that svc created\\.[^\\n]*${column}`));
      assert.match(lacks, new RegExp(`-> Restore the table ${table} from a backup`));
      const error = json(assertExit(await shop.svc('db', 'migrate', 'status', '--json'), 5));
      assert.equal(error.code, 'history_damaged');
      await query('DROP TABLE _svc_migrations');
      await query('DROP TABLE _svc_meta');
      assertExit(await shop.svc('db', 'migrate', 'baseline'));
      assert.match(await doctor(0), /1 of 1 migration file applied/);
    }
  });
}

const MONGO = 'mongodb: a history row whose migration or checksum was changed runs nothing';
if (missing !== undefined) test.skip(MONGO, missing);
else
  test(MONGO, async () => {
    const { url, drop } = await freshMongo();
    const target = await connectTarget(mongodb, url);
    try {
      await rejectsChangedRows(target);
    } finally {
      await target.connection.close();
      await drop();
    }
  });

const CASSANDRA = 'cassandra: status names the column that the history lacks, and the table that has it';
if (unavailable !== undefined) test.skip(CASSANDRA, unavailable);
else
  test(
    CASSANDRA,
    async () => {
      const { url, query, drop } = await freshKeyspace();
      const connect = () => connectTarget(cassandra, url);
      let target = await connect();
      try {
        await migrate(target, files);
        for (const column of ['checksum', 'meta.product']) {
          await query(`ALTER TABLE "_svc_migrations" DROP "${column}"`);
          // A prepared statement of the other session still has the column.
          await target.connection.close();
          target = await connect();
          const { message, why } = await expectError(status(target, files), 'history_damaged');
          assert.match(message, /^The table _svc_migrations lacks a column/);
          assert.match(why ?? '', new RegExp(column));
        }
      } finally {
        await target.connection.close();
        await drop();
      }
    },
    LONG,
  );
