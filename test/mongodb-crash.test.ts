import * as assert from 'node:assert/strict';
import { migration } from '../core/migration/builder.ts';
import type { Migration } from '../core/migration/migration.ts';
import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { killSuite } from './kit/kill-suite.ts';
import { freshMongo, type MongoTestDatabase, missing } from './kit/mongodb.ts';
import { startMongoProxy } from './kit/mongodb-proxy.ts';
import { test } from './kit/test.ts';

const DOCUMENTS = 20;
const key = { name: 'id', type: 'integer', primaryKey: true } as const;
const people = Array.from({ length: DOCUMENTS }, (_, id) => ({ id, name: `n${id}`, age: '30', gone: true }));
const countOnce = { q: { _id: 'once' }, u: { $inc: { times: 1 } }, upsert: true };

const migrations: readonly Migration[] = [
  migration('20260101_000000_tables')
    .createCollection('effects', [{ name: 'times', type: 'integer' }])
    .createCollection('users', [
      key,
      { name: 'name', type: 'string', unique: true, required: true },
      { name: 'age', type: 'string' },
      { name: 'gone', type: 'boolean' },
    ])
    .build(),
  migration('20260102_000000_documents')
    .raw('mongodb', JSON.stringify({ insert: 'users', documents: people }), {
      check: JSON.stringify({ find: 'users', limit: 1 }),
    })
    .raw('mongodb', JSON.stringify({ update: 'effects', updates: [countOnce] }), {
      check: JSON.stringify({ find: 'effects', filter: { _id: 'once' } }),
    })
    .build(),
  migration('20260103_000000_moves')
    .addField('users', { name: 'kind', type: 'string', default: 'person', required: true })
    .addField('users', { name: 'token', type: 'uuid', autoGenerate: true, unique: true })
    .renameField('users', 'name', 'title')
    .modifyField('users', 'age', { type: 'integer', required: true })
    .build(),
  migration('20260104_000000_indexes')
    .createIndex('users', 'users_kind', [{ name: 'kind' }, { name: 'age', order: 'desc' }])
    .createIndex('users', 'users_title', [{ name: 'title' }, { name: 'age' }], { unique: true })
    .addConstraint('users', {
      name: 'old',
      type: 'check',
      columns: ['age'],
      expression: '{ "$gte": ["$age", 18] }',
    })
    .build(),
  migration('20260105_000000_last')
    .dropIndex('users', 'users_title', { was: { columns: [{ name: 'title' }, { name: 'age' }], unique: true } })
    .dropField('users', 'gone', { was: { type: 'boolean' } })
    .createCollection('orders', [key])
    .renameCollection('orders', 'sales')
    .createCollection('doomed', [key])
    .dropCollection('doomed', { was: { fields: [key] } })
    .build(),
];
const assertComplete = (database: MongoTestDatabase): Promise<void> =>
  database.on(async (client, name) => {
    const db = client.db(name);
    assert.deepEqual(await db.collection('effects').find().toArray(), [{ _id: 'once', times: 1 }]);
    const found = await db
      .collection('users')
      .find({}, { sort: { id: 1 } })
      .toArray();
    assert.equal(found.length, DOCUMENTS);
    const tokens = new Set<string>();
    for (const [id, { _id, token, ...rest }] of found.entries()) {
      assert.deepEqual(rest, { id, title: `n${id}`, age: 30, kind: 'person' });
      tokens.add(token);
    }
    assert.equal(tokens.size, DOCUMENTS);
  });

/** Lets the lease expire. */
const expire = (database: MongoTestDatabase): Promise<void> =>
  database.on(async (client, name) => {
    await client
      .db(name)
      .collection('_svc_lock')
      .updateMany({}, { $set: { ttlMs: 0 } });
  });

if (missing) test.skip('crashes on MongoDB', missing);
else {
  killSuite({
    dialect: mongodb,
    migrations,
    connect: { leaseMs: 2000, batchSize: 7 },
    minMessages: 50,
    killPoints: 10,
    createDatabase: async () => {
      const database = await freshMongo();
      return {
        ...database,
        assertData: () => assertComplete(database),
        expireLease: () => expire(database),
        startProxy: (fate) => startMongoProxy(database.url, ({ number }) => fate(number)),
      };
    },
  });
}
