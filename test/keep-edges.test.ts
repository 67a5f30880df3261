import * as assert from 'node:assert/strict';
import { drift } from '../core/migration/drift.ts';
import { historyModel } from '../core/migration/history.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import { listKept, purge } from '../core/migration/purge.ts';
import { resolveMigration } from '../core/migration/resolve.ts';
import type { Target } from '../core/migration/target.ts';
import type { MigrationOperation } from '../core/schema/operation.ts';
import { cutConnection } from './kit/cut-connection.ts';
import { definedInCode, reversible } from './kit/migrations.ts';
import { sixEngines } from './kit/six-engines.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// What `--keep` does where names meet: renames, a field that is added again, foreign keys, and names taken by others.

const DAY = 86_400_000;
const key = { name: 'id', type: 'integer', primaryKey: true } as const;
const ground: readonly MigrationOperation[] = [
  {
    type: 'createCollection',
    name: 'orders',
    fields: [key, { name: 'code', type: 'string', length: 40 }, { name: 'note', type: 'string', length: 40 }],
  },
  { type: 'createIndex', collection: 'orders', index: 'orders_code', columns: [{ name: 'code' }] },
];
const first = reversible('20260101_000000_ground', ground);
const after = (tag: string, up: readonly MigrationOperation[], ...before: readonly Migration[]): Migration =>
  reversible(
    tag,
    up,
    [first, ...before].flatMap((one) => one.up),
  );
const files = (...migrations: readonly Migration[]) => [first, ...migrations].map(definedInCode);

interface Row {
  readonly id: number;
  readonly [field: string]: unknown;
}
const ROWS: readonly Row[] = [
  { id: 1, code: 'a', note: 'ß🎉' },
  { id: 2, code: 'b', note: 'x' },
];

async function insert({ connection, dialect }: Target, table: string, rows: readonly Row[]): Promise<void> {
  if (dialect.name === 'mongodb') {
    await connection.query(JSON.stringify({ insert: table, documents: rows }));
    return;
  }
  for (const row of rows) {
    const values = Object.values(row).map((value) => (typeof value === 'string' ? `'${value}'` : String(value)));
    await connection.query(`INSERT INTO ${table} (${Object.keys(row).join(', ')}) VALUES (${values.join(', ')})`);
  }
}

/** The rows, without what a document does not have. */
async function read({ connection, dialect }: Target, table = 'orders'): Promise<Row[]> {
  const text =
    dialect.name === 'mongodb'
      ? JSON.stringify({ find: table, sort: { id: 1 }, projection: { _id: 0 } })
      : `SELECT * FROM ${table} ORDER BY id`;
  const rows = structuredClone(await connection.query(text)) as unknown as Row[];
  return rows.map((row) => {
    const known = Object.entries(row).filter(([name, value]) => value !== null && !name.startsWith('_svc_kept_'));
    return Object.fromEntries(known.sort(([one], [other]) => (one < other ? -1 : 1))) as unknown as Row;
  });
}

async function assertAsInHistory(target: Target): Promise<void> {
  const { connection } = target;
  assert.deepEqual(await drift(connection, await historyModel(target), await connection.introspect()), []);
}

async function assertRestored(target: Target): Promise<void> {
  await assertAsInHistory(target);
  assert.deepEqual(await read(target), sorted(ROWS));
  assert.deepEqual(await listKept(target), []);
}

const sorted = (rows: readonly Row[]) =>
  rows.map((row) => Object.fromEntries(Object.entries(row).sort(([one], [other]) => (one < other ? -1 : 1))));

const keptNames = async (target: Target) =>
  (await listKept(target)).map(({ table, field }) => (field === undefined ? table : `${table}.${field}`)).sort();

for (const engine of sixEngines.filter(({ name }) => ['postgresql', 'mysql', 'mariadb', 'mongodb'].includes(name))) {
  const { name, dialect, missing, createDatabase } = engine;
  const it = (title: string, body: (target: Target, url: string) => Promise<void>) =>
    missing === undefined
      ? test(`${name}: ${title}`, async () => {
          const { url, drop } = await createDatabase();
          const target = await connectTarget(dialect, url);
          try {
            await migrate(target, files());
            await insert(target, 'orders', ROWS);
            await body(target, url);
          } finally {
            await target.connection.close();
            await drop();
          }
        })
      : test.skip(`${name}: ${title}`, missing);

  it('a purge with nothing kept does nothing, and needs no permission', async (target) => {
    assert.deepEqual(await purge(target), []);
    assert.deepEqual(await purge(target, { all: true }), []);
    assert.deepEqual(await listKept(target), []);
  });

  it('a field and a table that the same migration renames come back under their old names', async (target) => {
    const renames = after('20260102_000000_renames', [
      { type: 'dropIndex', collection: 'orders', index: 'orders_code' },
      { type: 'renameField', collection: 'orders', from: 'code', to: 'sku' },
      { type: 'dropField', collection: 'orders', field: 'sku' },
      { type: 'renameField', collection: 'orders', from: 'note', to: 'code' },
      { type: 'renameCollection', collection: 'orders', to: 'sales' },
      { type: 'dropCollection', collection: 'sales' },
    ]);
    await migrate(target, files(renames), { keepMs: DAY });
    await assertAsInHistory(target);
    assert.deepEqual(await keptNames(target), ['orders.sku', 'sales']);
    await rollback(target);
    await assertRestored(target);
  });

  it('a field that is dropped, added and dropped again is kept twice, each with its values', async (target) => {
    const drop: readonly MigrationOperation[] = [{ type: 'dropField', collection: 'orders', field: 'note' }];
    const note = { name: 'note', type: 'string', length: 40 } as const;
    const dropped = after('20260102_000000_drop', drop);
    const added = after('20260103_000000_add', [{ type: 'addField', collection: 'orders', field: note }], dropped);
    const again = after('20260104_000000_again', drop, dropped, added);
    await migrate(target, files(dropped, added), { keepMs: DAY });
    await insert(target, 'orders', [{ id: 3, code: 'c', note: 'new' }]);
    await migrate(target, files(dropped, added, again), { keepMs: DAY });
    assert.deepEqual(await keptNames(target), ['orders.note', 'orders.note']);
    await assertAsInHistory(target);

    await rollback(target);
    assert.deepEqual(
      (await read(target)).map(({ note }) => note),
      [undefined, undefined, 'new'],
    );
    await rollback(target, { count: 2 });
    const back = await read(target);
    assert.deepEqual(back.slice(0, 2), sorted(ROWS));
    assert.equal(back[2]?.note, undefined);
    assert.deepEqual(await listKept(target), []);
    await assertAsInHistory(target);
  });

  it('one migration may drop a field and add it again with another type', async (target) => {
    const replaced = after('20260102_000000_replace', [
      { type: 'dropField', collection: 'orders', field: 'note' },
      { type: 'addField', collection: 'orders', field: { name: 'note', type: 'integer' } },
    ]);
    await migrate(target, files(replaced), { keepMs: DAY });
    await assertAsInHistory(target);
    await rollback(target, { count: 1 });
    await assertRestored(target);
  });

  it('resolve --retry finishes a migration that failed after it kept something', async (target) => {
    const [statement, create, remove] =
      name === 'mongodb'
        ? ['collMod', 'create', 'drop'].map((command) => JSON.stringify({ [command]: 'absent' }))
        : ['INSERT INTO absent (id) VALUES (1)', 'CREATE TABLE absent (id int)', 'DROP TABLE absent'];
    assert.ok(statement && create && remove);
    const failing = after('20260102_000000_failing', [
      { type: 'dropField', collection: 'orders', field: 'note' },
      { type: 'raw', dialect: name, statement, destructive: false },
      { type: 'dropIndex', collection: 'orders', index: 'orders_code' },
      { type: 'dropField', collection: 'orders', field: 'code' },
    ]);
    const { transactionalDdl } = dialect.capabilities;
    const failed = migrate(target, files(failing), { keepMs: DAY });
    await expectError(failed, transactionalDdl ? 'collection_unknown' : 'migration_half_done');
    await target.connection.query(create);
    if (transactionalDdl) await migrate(target, files(failing), { keepMs: DAY });
    else {
      assert.deepEqual(await keptNames(target), ['orders.note']);
      await resolveMigration(target, failing.tag, 'retry', { defined: files(failing) });
    }
    assert.deepEqual(await keptNames(target), ['orders.code', 'orders.note']);
    await target.connection.query(remove);
    await rollback(target);
    await assertRestored(target);
  });

  it('resolve --retry finishes a migration that lost its connection while it kept something', async (target, url) => {
    const dropped = after('20260102_000000_drop', [
      { type: 'dropField', collection: 'orders', field: 'note' },
      { type: 'dropCollection', collection: 'orders' },
    ]);
    for (let at = 1; ; at += 1) {
      const other = await connectTarget(dialect, url);
      const cut = { ...other, connection: cutConnection(other.connection, at) };
      const failure = await migrate(cut, files(dropped), { keepMs: DAY }).then(
        () => undefined,
        (error) => error,
      );
      await other.connection.close();
      if (failure) await expectError(Promise.reject(failure), 'connection_lost');
      const [entry] = (await new MigrationEngine(target).getHistory({ all: true })).slice(1);
      if (entry && ['applying', 'failed'].includes(entry.status)) {
        await resolveMigration(target, dropped.tag, 'retry');
      } else if (entry?.status !== 'completed') await migrate(target, files(dropped), { keepMs: DAY });
      assert.deepEqual(await keptNames(target), ['orders', 'orders.note']);
      await rollback(target);
      await assertRestored(target);
      if (!failure) return;
    }
  });

  it('a name that looks like a kept one and is not in _svc_kept is left alone', async (target) => {
    const own = '_svc_kept_mine';
    await insertOwn(target, own);
    const dropped = after('20260102_000000_drop', [{ type: 'dropCollection', collection: 'orders' }]);
    await migrate(target, files(dropped), { keepMs: 0 });
    assert.deepEqual(await keptNames(target), ['orders']);
    assert.equal((await purge(target, { all: true, allowDestructive: true })).length, 1);
    assert.deepEqual(await read(target, own), [{ id: 7 }]);
    await rollback(target);
    assert.deepEqual(await read(target, own), [{ id: 7 }]);
  });

  if (name === 'mongodb') continue;

  it('a table that a foreign key points at is kept without it, and comes back with it', async (target) => {
    const items = after('20260102_000000_items', [
      { type: 'createCollection', name: 'items', fields: [key, { name: 'order', type: 'integer' }] },
      {
        type: 'addConstraint',
        collection: 'items',
        constraint: {
          name: 'items_order',
          type: 'foreignKey',
          columns: ['order'],
          references: { table: 'orders', columns: ['id'] },
        },
      },
    ]);
    const dropped = after(
      '20260103_000000_drop',
      [{ type: 'dropCollection', collection: 'orders', cascade: true }],
      items,
    );
    await migrate(target, files(items));
    const quoted = name === 'postgresql' ? '"order"' : '`order`';
    await target.connection.query(`INSERT INTO items (id, ${quoted}) VALUES (1, 2)`);
    await migrate(target, files(items, dropped), { keepMs: DAY });
    await assertAsInHistory(target);
    await target.connection.query(`INSERT INTO items (id, ${quoted}) VALUES (2, 99)`);
    // The rows that were written in the meantime do not fit.
    await assert.rejects(rollback(target));
    assert.deepEqual(await keptNames(target), ['orders']);
    await target.connection.query('DELETE FROM items WHERE id = 2');
    const [, , entry] = await new MigrationEngine(target).getHistory({ all: true });
    if (entry?.status === 'completed') await rollback(target);
    else await resolveMigration(target, dropped.tag, 'retry');
    await assertRestored(target);
    await assert.rejects(target.connection.query(`INSERT INTO items (id, ${quoted}) VALUES (3, 99)`));
  });

  it('a rollback whose names another program has taken is refused, and runs once they are free', async (target) => {
    const dropped = after('20260102_000000_drop', [{ type: 'dropCollection', collection: 'orders' }]);
    await migrate(target, files(dropped), { keepMs: DAY });
    // On PostgreSQL the names of indexes are shared by all tables; elsewhere only the name of the table can be taken.
    const [take, free] =
      name === 'postgresql'
        ? ['CREATE TABLE other (id int); CREATE INDEX orders_code ON other (id)', 'DROP TABLE other']
        : ['CREATE TABLE orders (id int)', 'DROP TABLE orders'];
    for (const one of take.split('; ')) await target.connection.query(one);
    await assert.rejects(rollback(target));
    assert.deepEqual(await keptNames(target), ['orders']);
    await target.connection.query(free);
    const [, entry] = await new MigrationEngine(target).getHistory({ all: true });
    if (entry?.status === 'completed') await rollback(target);
    else await resolveMigration(target, dropped.tag, 'retry');
    await assertRestored(target);
  });
}

async function insertOwn(target: Target, table: string): Promise<void> {
  if (target.dialect.name !== 'mongodb') await target.connection.query(`CREATE TABLE ${table} (id int)`);
  await insert(target, table, [{ id: 7 }]);
}
