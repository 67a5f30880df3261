import * as assert from 'node:assert/strict';
import { drift } from '../core/migration/drift.ts';
import { historyModel } from '../core/migration/history.ts';
import { readKept } from '../core/migration/kept.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import { listKept, purge } from '../core/migration/purge.ts';
import type { Target } from '../core/migration/target.ts';
import type { MigrationOperation } from '../core/schema/operation.ts';
import { sqlEngines } from './kit/engines.ts';
import { definedInCode, reversible } from './kit/migrations.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// `svc db migrate --keep`: what a migration drops is renamed, and a rollback brings it back.

const DAY = 86_400_000;
const key = { name: 'id', type: 'integer', primaryKey: true } as const;
const ground: readonly MigrationOperation[] = [
  { type: 'createCollection', name: 'people', fields: [key, { name: 'name', type: 'string', required: true }] },
  {
    type: 'createCollection',
    name: 'orders',
    fields: [
      key,
      { name: 'person', type: 'integer' },
      { name: 'code', type: 'string', length: 40, required: true, unique: true },
      { name: 'state', type: 'enum', enumValues: ['open', 'paid'], default: 'open', required: true },
      { name: 'total', type: 'decimal', precision: 12, scale: 2 },
      { name: 'data', type: 'binary' },
    ],
  },
  { type: 'createIndex', collection: 'orders', index: 'orders_state', columns: [{ name: 'state' }, { name: 'id' }] },
  {
    type: 'addConstraint',
    collection: 'orders',
    constraint: {
      name: 'orders_person',
      type: 'foreignKey',
      columns: ['person'],
      references: { table: 'people', columns: ['id'], onDelete: 'CASCADE' },
    },
  },
  {
    type: 'addConstraint',
    collection: 'orders',
    constraint: { name: 'orders_total', type: 'check', columns: ['total'], expression: 'total > 0' },
  },
];

const first = reversible('20260101_000000_ground', ground);
const dropTable = reversible('20260102_000000_drop', [{ type: 'dropCollection', collection: 'orders' }], ground);
const dropFields = reversible(
  '20260102_000000_fields',
  [
    { type: 'dropIndex', collection: 'orders', index: 'orders_state' },
    { type: 'dropField', collection: 'orders', field: 'state' },
    { type: 'dropField', collection: 'orders', field: 'code' },
    { type: 'dropField', collection: 'orders', field: 'data' },
  ],
  ground,
);
const dropLater = reversible(
  '20260103_000000_drop',
  [{ type: 'dropCollection', collection: 'orders' }],
  [...ground, ...dropFields.up],
);
const files = (...migrations: readonly Migration[]) => migrations.map(definedInCode);

const BINARY: Readonly<Record<string, string>> = {
  postgresql: "'\\x00ff10'",
  mysql: "x'00ff10'",
  mariadb: "x'00ff10'",
};

async function fill({ connection, dialect }: Target): Promise<void> {
  await connection.query("INSERT INTO people (id, name) VALUES (1, 'Ann'), (2, 'Zoë')");
  const data = BINARY[dialect.name];
  await connection.query(
    `INSERT INTO orders (id, person, code, state, total, data) VALUES (1, 1, 'a', 'paid', 9.50, ${data}), (2, 2, 'ß🎉', 'open', NULL, NULL)`,
  );
}

const rows = async ({ connection }: Target, text = 'SELECT * FROM orders ORDER BY id') =>
  structuredClone(await connection.query(text));

async function assertAsInHistory(target: Target): Promise<void> {
  const { connection } = target;
  assert.deepEqual(await drift(connection, await historyModel(target), await connection.introspect()), []);
}

const keptNow = async (target: Target) => (await readKept(target)).filter(({ exists }) => exists);

for (const engine of sqlEngines) {
  const it = (title: string, body: (target: Target, again: () => Promise<Target>) => Promise<void>) =>
    engine.missing === undefined
      ? test(`${engine.name}: ${title}`, () => engine.withDatabase(body))
      : test.skip(`${engine.name}: ${title}`, engine.missing);

  it('a table that is kept is out of the way, and comes back with its rows', async (target) => {
    await migrate(target, files(first));
    await fill(target);
    const before = await rows(target);
    await migrate(target, files(first, dropTable), { keepMs: 30 * DAY });
    await assertAsInHistory(target);
    const [kept, ...others] = await keptNow(target);
    assert.deepEqual(others, []);
    assert.equal(kept?.record.collection, 'orders');
    assert.equal(kept.record.kept_until.getTime() - kept.record.kept_at.getTime(), 30 * DAY);

    await rollback(target);
    await assertAsInHistory(target);
    assert.deepEqual(await rows(target), before);
    assert.deepEqual(await keptNow(target), []);
  });

  it('a table of the same name can be created while the old one is kept', async (target) => {
    await migrate(target, files(first));
    await fill(target);
    const before = await rows(target);
    const again = reversible('20260103_000000_again', ground.slice(1), [...ground, ...dropTable.up]);
    await migrate(target, files(first, dropTable, again), { keepMs: DAY });
    await assertAsInHistory(target);
    await target.connection.query("INSERT INTO orders (id, person, code) VALUES (7, 1, 'new')");
    await target.connection.query('DELETE FROM people WHERE id = 2');
    await target.connection.query("INSERT INTO people (id, name) VALUES (2, 'Zoë')");
    await rollback(target, { count: 2 });
    await assertAsInHistory(target);
    assert.deepEqual(await rows(target), before);
  });

  it('fields that are kept let rows be inserted, and come back with their values', async (target) => {
    await migrate(target, files(first));
    await fill(target);
    const before = await rows(target);
    await migrate(target, files(first, dropFields), { keepMs: DAY });
    await assertAsInHistory(target);
    assert.deepEqual((await keptNow(target)).map(({ record }) => record.field).sort(), ['code', 'data', 'state']);
    await target.connection.query('INSERT INTO orders (id, person) VALUES (3, 1)');
    await target.connection.query('DELETE FROM orders WHERE id = 3');
    await rollback(target);
    await assertAsInHistory(target);
    const columns = Object.keys(before[0] ?? {}).join(', ');
    assert.deepEqual(await rows(target, `SELECT ${columns} FROM orders ORDER BY id`), before);
  });

  it('a field and its table, dropped by one migration, come back together', async (target) => {
    await migrate(target, files(first));
    await fill(target);
    const before = await rows(target);
    const both = reversible('20260102_000000_both', [...dropFields.up, ...dropTable.up], ground);
    await migrate(target, files(first, both), { keepMs: DAY });
    await rollback(target);
    await assertAsInHistory(target);
    const columns = Object.keys(before[0] ?? {}).join(', ');
    assert.deepEqual(await rows(target, `SELECT ${columns} FROM orders ORDER BY id`), before);
    assert.deepEqual(await keptNow(target), []);
  });

  it('a purge drops what is due, and a rollback then says what does not come back', async (target) => {
    await migrate(target, files(first));
    await fill(target);
    await migrate(target, files(first, dropFields), { keepMs: 0 });
    await migrate(target, files(first, dropFields, dropLater), { keepMs: DAY });
    await expectError(purge(target), 'destructive');
    const purged = await purge(target, { allowDestructive: true });
    assert.deepEqual(purged.map(({ field }) => field).sort(), ['code', 'data', 'state']);
    const left = await listKept(target);
    assert.deepEqual(
      left.map(({ table, field }) => [table, field]),
      [['orders', undefined]],
    );
    assert.deepEqual(await purge(target, { allowDestructive: true }), []);
    assert.equal((await purge(target, { allowDestructive: true, all: true })).length, 1);
    assert.deepEqual(await listKept(target), []);
    await assertAsInHistory(target);
    const notices: string[] = [];
    await rollback(target, { onEvent: (event) => event.type === 'notice' && notices.push(event.message) });
    assert.match(notices.join(), /^"orders" was purged on 20.*: it comes back without its data\.$/);
    assert.deepEqual(await rows(target), []);
    await assertAsInHistory(target);
  });

  it('a field is kept in a table that is renamed, and in one that is kept', async (target) => {
    await migrate(target, files(first));
    await fill(target);
    const before = await rows(target);
    const renamed = reversible(
      '20260103_000000_rename',
      [{ type: 'renameCollection', collection: 'orders', to: 'sales' }],
      [...ground, ...dropFields.up],
    );
    const dropped = reversible(
      '20260104_000000_drop',
      [{ type: 'dropCollection', collection: 'sales' }],
      [...ground, ...dropFields.up, ...renamed.up],
    );
    await migrate(target, files(first, dropFields, renamed, dropped), { keepMs: 0 });
    await assertAsInHistory(target);
    assert.equal((await listKept(target)).length, 4);
    await rollback(target, { count: 3 });
    await assertAsInHistory(target);
    const columns = Object.keys(before[0] ?? {}).join(', ');
    assert.deepEqual(await rows(target, `SELECT ${columns} FROM orders ORDER BY id`), before);

    await migrate(target, files(first, dropFields, renamed, dropped), { keepMs: 0 });
    assert.equal((await purge(target, { allowDestructive: true })).length, 4);
    assert.deepEqual(await listKept(target), []);
  });

  it('of two purges at once one drops, and what was restored in the meantime is not dropped', async (target, again) => {
    await migrate(target, files(first));
    await fill(target);
    await migrate(target, files(first, dropTable), { keepMs: 0 });
    const others = await Promise.all([again(), again()]);
    const both = await Promise.all(others.map((one) => purge(one, { allowDestructive: true })));
    assert.deepEqual(both.map(({ length }) => length).sort(), [0, 1]);
  });
}
