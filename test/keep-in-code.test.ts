import * as assert from 'node:assert/strict';
import type { Config } from '../config/define.ts';
import { Svc } from '../config/sdk/index.ts';
import { Database } from '../core/database/database.ts';
import { drift } from '../core/migration/drift.ts';
import { historyModel } from '../core/migration/history.ts';
import { rollback } from '../core/migration/migrate.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import { listKept, purge } from '../core/migration/purge.ts';
import type { Target } from '../core/migration/target.ts';
import { reversible } from './kit/migrations.ts';
import { approvalConfig, approve, requestOf } from './kit/plan-approval.ts';
import { sixEngines } from './kit/six-engines.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// `keep` in the configuration of a database: what `db.schema` and engines drop is kept too.

const DAY = 86_400_000;
const fields = { id: { type: 'integer', primaryKey: true }, note: 'string' } as const;

async function assertAsInHistory(target: Target): Promise<void> {
  const { connection } = target;
  assert.deepEqual(await drift(connection, await historyModel(target), await connection.introspect()), []);
}

async function fill({ connection, dialect }: Target, table = 'notes'): Promise<void> {
  const insert = JSON.stringify({ insert: table, documents: [{ id: 1, note: 'ß🎉' }] });
  await connection.query(dialect.name === 'mongodb' ? insert : `INSERT INTO ${table} (id, note) VALUES (1, 'ß🎉')`);
}

async function notesOf({ connection, dialect }: Target, table = 'notes'): Promise<unknown[]> {
  const find = JSON.stringify({ find: table, projection: { _id: 0 } });
  const rows = await connection.query(dialect.name === 'mongodb' ? find : `SELECT * FROM ${table}`);
  return (rows as { note?: unknown }[]).map(({ note }) => note);
}

const keptNames = async (target: Target) =>
  (await listKept(target)).map(({ table, field }) => (field === undefined ? table : `${table}.${field}`));

for (const engine of sixEngines) {
  const { name, dialect, missing, createDatabase } = engine;
  const it = (title: string, more: Partial<Config>, body: (db: Database, target: Target, svc: Svc) => Promise<void>) =>
    missing === undefined
      ? test(`${name}: ${title}`, async () => {
          const { url, drop } = await createDatabase();
          const config = approvalConfig(name, url, more);
          const main = { dialect: dialect.name as 'postgresql', url, keep: '30d' };
          const svc = new Svc({ config: { ...config, databases: { main } } });
          try {
            const db = await svc.database.connect({ database: 'main' });
            await body(db, db.getAdapter(), svc);
          } finally {
            await svc.close();
            await drop();
          }
        })
      : test.skip(`${name}: ${title}`, missing);
  const free = { environments: {} };

  if (name === 'dynamodb' || name === 'cassandra') {
    it('keep is refused, with the setting to remove', free, async (db) => {
      const { message, next } = await expectError(db.schema.create('notes', fields), 'not_supported');
      assert.match(message, /^keep is not possible with the dialect/);
      assert.match(next.join(), /^Remove databases\.main\.keep/);
    });
    continue;
  }

  it('db.schema keeps what it drops, and a rollback brings it back', free, async (db, target) => {
    await db.schema.create('notes', fields);
    await db.schema.createIndex('notes', ['note']);
    await fill(target);
    await db.schema.dropField('notes', 'note');
    await assertAsInHistory(target);
    await db.schema.drop('notes');
    await assertAsInHistory(target);
    const [first] = await listKept(target);
    assert.equal(Number(first?.keptUntil) - Number(first?.keptAt), 30 * DAY);
    assert.deepEqual(await keptNames(target), ['notes.note', 'notes']);
    await rollback(target, { count: 2 });
    await assertAsInHistory(target);
    assert.deepEqual(await notesOf(target), ['ß🎉']);
    assert.deepEqual(await keptNames(target), []);

    // Dropped again, it is kept again.
    await db.schema.drop('notes');
    await db.schema.create('notes', fields);
    await fill(target);
    await db.schema.drop('notes');
    assert.deepEqual(await keptNames(target), ['notes', 'notes']);
    assert.equal((await purge(target, { all: true, allowDestructive: true })).length, 2);
    await rollback(target);
    assert.deepEqual(await notesOf(target), []);
  });

  it('an engine keeps what up drops, and down restores it', free, async (db, target) => {
    await db.schema.create('notes', fields);
    await fill(target);
    const engine = new MigrationEngine(target);
    const drop = {
      ...reversible('20260102_000000_drop', []),
      up: [{ type: 'dropCollection', collection: 'notes' }],
      down: [
        {
          type: 'createCollection',
          name: 'notes',
          fields: [
            { name: 'id', type: 'integer', primaryKey: true },
            { name: 'note', type: 'string' },
          ],
        },
      ],
    } as const;
    await engine.up(drop);
    assert.deepEqual(await keptNames(target), ['notes']);
    await engine.down(drop);
    assert.deepEqual(await notesOf(target), ['ß🎉']);
    await assertAsInHistory(target);
  });

  it('a change that keeps something waits for approval, which is for that time only', {}, async (db, target, svc) => {
    await db.schema.create('notes', fields);
    await fill(target);
    const asked = await requestOf(db.schema.drop('notes'));
    assert.equal(await requestOf(db.schema.drop('notes')), asked);
    const { parameters } = await svc.approvals.get(asked);
    assert.equal(parameters.keepHours, 720);
    await approve(svc, asked);
    assert.notEqual(await requestOf(new Database({ ...target, keepMs: DAY }).schema.drop('notes')), asked);
    await db.schema.drop('notes');
    assert.deepEqual(await keptNames(target), ['notes']);
    assert.equal((await svc.approvals.get(asked)).run, 'done');
  });

  it('a field with a name of what is kept is refused, and what is kept cannot be named', free, async (db, target) => {
    const own = '_svc_kept_mine';
    const integer = { type: 'integer' } as const;
    await db.schema.create('notes', fields);
    await fill(target);
    await db.schema.dropField('notes', 'note');
    const [kept] = await listKept(target);
    assert.ok(kept);
    const refused = [
      () => db.schema.create('others', { ...fields, [own]: integer }),
      () => db.schema.addField('notes', own, integer),
      () => db.schema.renameField('notes', 'id', own),
      () => db.schema.dropField('notes', kept.name),
      () => db.schema.renameField('notes', kept.name, 'note'),
      () => db.schema.modifyField('notes', kept.name, { required: true }),
      () => db.schema.createIndex('notes', [kept.name]),
      () => db.schema.create(own, fields),
      () => db.schema.rename('notes', own),
    ];
    for (const one of refused) await expectError(one(), 'name_invalid');
    await expectError(db.schema.drop(kept.name), 'collection_unknown');
    const up = [{ type: 'dropField', collection: 'notes', field: kept.name }] as const;
    const migration = { tag: '20260102_000000_drop', name: 'drop', up, down: [] };
    await expectError(new MigrationEngine(target).up(migration), 'migration_invalid');
    assert.deepEqual(await keptNames(target), ['notes.note']);
    await rollback(target);
    assert.deepEqual(await notesOf(target), ['ß🎉']);
  });
}
