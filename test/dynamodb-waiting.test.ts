import * as assert from 'node:assert/strict';
import { DescribeTableCommand } from '@aws-sdk/client-dynamodb';
import { apply } from '../core/schema/apply.ts';
import type { SchemaModel } from '../core/schema/model.ts';
import type { Operation } from '../core/schema/operation.ts';
import { dynamodb } from '../plugins/dialects/dynamodb/dialect.ts';
import { bareClient, freshPrefix, put } from './kit/dynamodb.ts';
import { test } from './kit/test.ts';
import { find } from './servers/find.ts';

// On this server tables and indexes take some time to become active, as on AWS.

const found = await find('dynamodb');
if ('missing' in found) test.skip('waiting for tables and indexes of DynamoDB', found.missing);
else {
  const port = Number(new URL(found.url).port);

  test(
    'every step waits until the table and all its indexes are usable',
    async () => {
      const fresh = freshPrefix(port);
      const connection = await dynamodb.connect(fresh.url, { leaseMs: 4000 });
      const observer = bareClient(port);
      const statuses = async () => {
        const { Table } = await observer.send(new DescribeTableCommand({ TableName: `${fresh.prefix}.users` }));
        return [Table?.TableStatus, ...(Table?.GlobalSecondaryIndexes ?? []).map(({ IndexStatus }) => IndexStatus)];
      };
      try {
        // An index takes longer than several leases, so the lock must be renewed.
        await connection.withLock(async (epoch) => {
          let model: SchemaModel = new Map();
          const run = async (operation: Operation) => {
            for (const statement of dynamodb.compile(operation, model)) {
              const segment = { transactional: false, statements: [statement], writes: [] };
              const { failure } = await connection.run([segment], epoch);
              if (failure) throw failure.error;
            }
            model = apply(model, operation);
          };
          await run({
            type: 'createCollection',
            name: 'users',
            fields: [
              { name: 'id', type: 'integer', primaryKey: true },
              { name: 'mail', type: 'string' },
              { name: 'until', type: 'integer' },
            ],
            options: {
              dynamoOptions: {
                ttlAttribute: 'until',
                globalSecondaryIndexes: [{ name: 'byUntil', partitionKey: { name: 'until', type: 'N' } }],
              },
            },
          });
          assert.deepEqual(await statuses(), ['ACTIVE', 'ACTIVE']);
          await put(connection, 'users', { id: 1, mail: 'a@b', until: 1 });
          await run({ type: 'createIndex', collection: 'users', index: 'users_mail', columns: [{ name: 'mail' }] });
          assert.deepEqual(await statuses(), ['ACTIVE', 'ACTIVE', 'ACTIVE']);
          await run({ type: 'dropIndex', collection: 'users', index: 'users_mail' });
          assert.deepEqual(await statuses(), ['ACTIVE', 'ACTIVE']);
          assert.deepEqual(await connection.normalize(model), await connection.introspect());
          await run({ type: 'dropCollection', collection: 'users' });
          assert.equal((await connection.introspect()).size, 0);
        });
      } finally {
        observer.destroy();
        await connection.close();
        await fresh.drop();
      }
    },
    { timeoutMs: 240_000 },
  );
}
