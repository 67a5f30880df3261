import * as assert from 'node:assert/strict';
import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { migration } from '../core/migration/builder.ts';
import type { Migration } from '../core/migration/migration.ts';
import type { Target } from '../core/migration/target.ts';
import { dynamodb } from '../plugins/dialects/dynamodb/dialect.ts';
import { bareClient, freshPrefix, scan } from './kit/dynamodb.ts';
import { startProxy } from './kit/dynamodb-proxy.ts';
import { killSuite } from './kit/kill-suite.ts';
import { ownDynamodb, unavailable } from './kit/own-dynamodb.ts';
import { test } from './kit/test.ts';

const users = (from: number) =>
  JSON.stringify({
    BatchWriteItem: {
      RequestItems: {
        users: Array.from({ length: 20 }, (_, index) => ({
          PutRequest: { Item: { id: { N: String(from + index) }, name: { S: `n${from + index}` }, age: { S: '30' } } },
        })),
      },
    },
  });
const counterKey = (id: string) => ({ TableName: 'effects', Key: { id: { S: id } } });
const incrementCounter = (id: string) =>
  JSON.stringify({
    UpdateItem: {
      ...counterKey(id),
      UpdateExpression: 'ADD times :one',
      ExpressionAttributeValues: { ':one': { N: '1' } },
    },
  });

const migrations: readonly Migration[] = [
  migration('20260101_000000_tables')
    .createCollection('effects', [{ name: 'id', type: 'string', primaryKey: true }])
    .createCollection(
      'users',
      [
        { name: 'id', type: 'integer', primaryKey: true },
        { name: 'name', type: 'string' },
        { name: 'age', type: 'string' },
        { name: 'until', type: 'timestamp' },
      ],
      { dynamoOptions: { ttlAttribute: 'until', streamEnabled: true } },
    )
    .build(),
  migration('20260102_000000_items')
    .raw('dynamodb', users(0), { check: JSON.stringify({ GetItem: { TableName: 'users', Key: { id: { N: '19' } } } }) })
    .raw('dynamodb', incrementCounter('once'), {
      check: JSON.stringify({ GetItem: { ...counterKey('once'), ConsistentRead: true } }),
    })
    .build(),
  migration('20260103_000000_moves')
    .addField('users', { name: 'kind', type: 'string', default: 'person', required: true })
    .renameField('users', 'name', 'title')
    .modifyField('users', 'age', { type: 'integer' })
    .build(),
  migration('20260104_000000_indexes')
    .createIndex('users', 'users_kind', [{ name: 'kind' }, { name: 'age' }])
    .createIndex('users', 'users_title', [{ name: 'title' }])
    .build(),
  migration('20260105_000000_last')
    .dropIndex('users', 'users_title', { was: { columns: [{ name: 'title' }] } })
    .dropField('users', 'title', { was: { type: 'string' } })
    .createCollection('orders', [{ name: 'id', type: 'string', primaryKey: true }])
    .dropCollection('orders', { was: { fields: [{ name: 'id', type: 'string', primaryKey: true }] } })
    .build(),
];
/** Expires the lock. */
async function expire(prefix: string, port: number): Promise<void> {
  const client = bareClient(port);
  await client
    .send(
      new UpdateItemCommand({
        TableName: `${prefix}._svc_state`,
        Key: { id: { S: 'lock' } },
        UpdateExpression: 'SET expires = :past',
        ConditionExpression: 'attribute_exists(#owner)',
        ExpressionAttributeNames: { '#owner': 'owner' },
        ExpressionAttributeValues: { ':past': { N: '0' } },
      }),
    )
    .catch(() => undefined);
  client.destroy();
}

async function assertData({ connection }: Target): Promise<void> {
  assert.deepEqual(await scan(connection, 'effects'), [{ id: 'once', times: 1 }]);
  const items = await scan(connection, 'users');
  assert.equal(items.length, 20);
  for (const { id, ...rest } of items) assert.deepEqual(rest, { age: 30, kind: 'person' }, String(id));
}

const missing = unavailable();
if (missing) test.skip('crashes on DynamoDB', missing);
else {
  const server = await ownDynamodb();
  test.after(() => server.kill());
  killSuite({
    dialect: dynamodb,
    migrations,
    connect: { leaseMs: 4000 },
    minMessages: 50,
    killPoints: 14,
    createDatabase: async () => {
      const { prefix, url, drop } = freshPrefix(server.port);
      return {
        url,
        drop,
        assertData,
        expireLease: () => expire(prefix, server.port),
        async startProxy(fate) {
          const proxy = await startProxy(server.port, ({ number }) => fate(number));
          return { ...proxy, url: `dynamodb://127.0.0.1:${proxy.port}/${prefix}` };
        },
      };
    },
  });
}
