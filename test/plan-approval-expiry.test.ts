import * as assert from 'node:assert/strict';
import { migration } from '../core/migration/builder.ts';
import { migrate } from '../core/migration/migrate.ts';
import { definedInCode } from './kit/migrations.ts';
import { approvalConfig, requestOf, withClient } from './kit/plan-approval.ts';
import { sixEngines } from './kit/six-engines.ts';
import { test } from './kit/test.ts';

const [mongodb] = sixEngines.filter(({ name }) => name === 'mongodb');
const key = { name: 'id', type: 'integer', primaryKey: true } as const;
const expiry = [[{ name: 'at' }], { mongoOptions: { expireAfterSeconds: 60 } }] as const;
const logs = migration('20260101_000000_logs')
  .createCollection('logs', [key, { name: 'at', type: 'timestamp' }])
  .createIndex('logs', 'expires', ...expiry)
  .build();
const users = migration('20260102_000000_users')
  .createCollection('users', [key, { name: 'at', type: 'timestamp' }])
  .build();
const expires = migration('20260103_000000_expires')
  .createIndex('users', 'expires', ...expiry)
  .build();

/** The collection that the index is on has its name from one that is new. */
const renamed = migration('20260103_000000_renamed')
  .createCollection('other', [key])
  .renameCollection('other', 'more')
  .renameCollection('users', 'other')
  .createIndex('other', 'expires', ...expiry)
  .build();

const large = 'a plan on MongoDB says how many documents of a large collection are lost';
if (mongodb?.missing !== undefined) test.skip(large, mongodb.missing);
else
  test(large, async () => {
    const { url, drop } = (await mongodb?.createDatabase()) ?? assert.fail();
    try {
      await withClient(approvalConfig('mongodb', url), async (svc, target) => {
        const db = await svc.database.connect({ database: 'main' });
        await db.schema.create('events', { id: { type: 'integer', primaryKey: true } });
        const documents = Array.from({ length: 10_001 }, (_, id) => ({ id }));
        await target.connection.query(JSON.stringify({ insert: 'events', documents }));
        const requestId = await requestOf(db.schema.drop('events'));
        const { reason } = await svc.approvals.get(requestId);
        assert.match(reason, /events has more than 10,000 rows, about 10,001/);
      });
    } finally {
      await drop();
    }
  });

const name = 'an index with which the server deletes documents waits for a person, except on a new collection';
if (mongodb?.missing !== undefined) test.skip(name, mongodb.missing);
else
  test(name, async () => {
    const { url, drop } = (await mongodb?.createDatabase()) ?? assert.fail();
    try {
      await withClient(approvalConfig('mongodb', url), async (svc, target) => {
        await migrate(target, [logs, users].map(definedInCode));
        for (const last of [expires, renamed]) {
          const requestId = await requestOf(migrate(target, [logs, users, last].map(definedInCode)));
          const { parameters } = await svc.approvals.get(requestId);
          assert.match(String(parameters.losses), /the server then deletes what has expired/);
        }
      });
    } finally {
      await drop();
    }
  });
