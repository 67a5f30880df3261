import * as assert from 'node:assert/strict';
import { drift } from '../core/migration/drift.ts';
import { historyModel } from '../core/migration/history.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import { listKept, purge } from '../core/migration/purge.ts';
import type { Target } from '../core/migration/target.ts';
import type { MigrationOperation } from '../core/schema/operation.ts';
import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { definedInCode, reversible } from './kit/migrations.ts';
import { freshMongo, missing } from './kit/mongodb.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';

// `svc db migrate --keep` on MongoDB: a collection, and a field of its documents.

const DAY = 86_400_000;
const ground: readonly MigrationOperation[] = [
  {
    type: 'createCollection',
    name: 'orders',
    fields: [
      { name: '_id', type: 'string', primaryKey: true },
      { name: 'code', type: 'string', required: true, unique: true },
      { name: 'total', type: 'decimal' },
    ],
  },
  { type: 'createIndex', collection: 'orders', index: 'orders_total', columns: [{ name: 'total' }] },
];
const first = reversible('20260101_000000_ground', ground);
const dropCode = reversible(
  '20260102_000000_code',
  [{ type: 'dropField', collection: 'orders', field: 'code' }],
  ground,
);
const later = reversible(
  '20260103_000000_note',
  [{ type: 'addField', collection: 'orders', field: { name: 'note', type: 'string', required: true, default: '-' } }],
  [...ground, ...dropCode.up],
);
const dropAll = reversible(
  '20260104_000000_drop',
  [{ type: 'dropCollection', collection: 'orders' }],
  [...ground, ...dropCode.up, ...later.up],
);
const again = reversible('20260105_000000_again', ground);
const files = (...migrations: readonly Migration[]) => migrations.map(definedInCode);

async function assertAsInHistory({ connection, ...target }: Target): Promise<void> {
  const model = await historyModel({ connection, ...target });
  assert.deepEqual(await drift(connection, model, await connection.introspect()), []);
}

const documents = async ({ connection }: Target) =>
  structuredClone(await connection.query(JSON.stringify({ find: 'orders', sort: { _id: 1 } })));

async function withOrders(body: (target: Target) => Promise<void>): Promise<void> {
  const fresh = await freshMongo();
  try {
    const target = await connectTarget(mongodb, fresh.url);
    try {
      await migrate(target, files(first));
      await fresh.on(async (client, name) => {
        const { Decimal128 } = await import('mongodb');
        await client
          .db(name)
          .collection<{ _id: string }>('orders')
          .insertMany([
            { _id: 'a', code: 'ß🎉', total: Decimal128.fromString('9.50') },
            { _id: 'b', code: 'b' },
          ] as never);
      });
      await body(target);
    } finally {
      await target.connection.close();
    }
  } finally {
    await fresh.drop();
  }
}

const it = (title: string, body: (target: Target) => Promise<void>) =>
  missing === undefined ? test(`mongodb: ${title}`, () => withOrders(body)) : test.skip(`mongodb: ${title}`, missing);

it('a field that is kept survives changes of its collection, and comes back', async (target) => {
  const before = await documents(target);
  await migrate(target, files(first, dropCode), { keepMs: DAY });
  await assertAsInHistory(target);
  await migrate(target, files(first, dropCode, later));
  await assertAsInHistory(target);
  assert.deepEqual(
    (await listKept(target)).map(({ table, field }) => [table, field]),
    [['orders', 'code']],
  );
  await target.connection.query(JSON.stringify({ insert: 'orders', documents: [{ _id: 'c', note: 'x' }] }));
  await target.connection.query(JSON.stringify({ delete: 'orders', deletes: [{ q: { _id: 'c' }, limit: 1 }] }));
  await rollback(target, { count: 2 });
  await assertAsInHistory(target);
  assert.deepEqual(await documents(target), before);
  assert.deepEqual(await listKept(target), []);
});

it('a collection that is kept comes back, with a field that is kept in it', async (target) => {
  const before = await documents(target);
  await migrate(target, files(first, dropCode, later, dropAll, again), { keepMs: DAY });
  await assertAsInHistory(target);
  assert.equal((await listKept(target)).length, 2);
  assert.deepEqual(await documents(target), []);
  await rollback(target, { count: 4 });
  await assertAsInHistory(target);
  assert.deepEqual(await documents(target), before);
});

it('a purge drops the field and the collection', async (target) => {
  await migrate(target, files(first, dropCode), { keepMs: 0 });
  await migrate(target, files(first, dropCode, later), { keepMs: 0 });
  assert.equal((await purge(target, { allowDestructive: true })).length, 1);
  await assertAsInHistory(target);
  assert.deepEqual(Object.keys((await documents(target))[1] ?? {}).sort(), ['_id', 'note']);
  await migrate(target, files(first, dropCode, later, dropAll), { keepMs: 0 });
  assert.equal((await purge(target, { allowDestructive: true })).length, 1);
  assert.deepEqual(await listKept(target), []);
});
