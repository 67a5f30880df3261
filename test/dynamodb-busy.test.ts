import * as assert from 'node:assert/strict';
import { DescribeTableCommand } from '@aws-sdk/client-dynamodb';
import type { Connection } from '../core/dialect.ts';
import type { SchemaModel } from '../core/schema/model.ts';
import type { CreateCollection, Operation } from '../core/schema/operation.ts';
import { batchesAtOnce, capacityLimits, unitsUsed } from '../plugins/dialects/dynamodb/data/capacity.ts';
import { dynamodb } from '../plugins/dialects/dynamodb/dialect.ts';
import { bareClient, freshPrefix, put, scan } from './kit/dynamodb.ts';
import { type ProxiedRequest, type ProxyAction, startProxy } from './kit/dynamodb-proxy.ts';
import { ownDynamodb, unavailable } from './kit/own-dynamodb.ts';
import { test } from './kit/test.ts';
import { runOperations } from './suites/run-operations.ts';

// What a change of a table leaves of its capacity to the application at the same time.

const users = (units?: number): CreateCollection => ({
  type: 'createCollection',
  name: 'users',
  fields: [
    { name: 'id', type: 'integer', primaryKey: true },
    { name: 'mail', type: 'string' },
  ],
  options: {
    dynamoOptions:
      units === undefined ? {} : { billingMode: 'PROVISIONED', readCapacityUnits: units, writeCapacityUnits: units },
  },
});
const filled: Operation = {
  type: 'addField',
  collection: 'users',
  field: { name: 'kind', type: 'string', default: 'x' },
};

const missing = unavailable();
if (missing) test.skip('changes of a busy table of DynamoDB', missing);
else {
  const server = await ownDynamodb();
  test.after(() => server.kill());

  interface Fixture {
    readonly connection: Connection;
    readonly prefix: string;
    run(operation: Operation): Promise<void>;
    /** Requests of the code under test. */
    requests(action: string): readonly Record<string, unknown>[];
  }

  const withTable = async (
    table: CreateCollection,
    items: number,
    body: (fixture: Fixture) => Promise<void>,
    actionFor: (request: ProxiedRequest) => ProxyAction = () => 'pass',
  ) => {
    const fresh = freshPrefix(server.port);
    const seen: ProxiedRequest[] = [];
    const proxy = await startProxy(server.port, (request) => {
      seen.push(request);
      return actionFor(request);
    });
    const connection = await dynamodb.connect(`dynamodb://127.0.0.1:${proxy.port}/${fresh.prefix}`, {
      retryTimeoutMs: 0,
    });
    let model: SchemaModel = new Map();
    const run = async (operation: Operation) => {
      model = await runOperations(dynamodb, connection, [operation], model);
    };
    try {
      await run(table);
      await Promise.all(
        Array.from({ length: items }, (_, id) => put(connection, 'users', { id, mail: `${id}@example.org` })),
      );
      seen.length = 0;
      const requests = (action: string) =>
        seen.filter((one) => one.action === action).map(({ body }) => JSON.parse(body) as Record<string, unknown>);
      await body({ connection, prefix: fresh.prefix, run, requests });
    } finally {
      await connection.close();
      await proxy.close();
      await fresh.drop();
    }
  };
  const describe = async (prefix: string) => {
    const client = bareClient(server.port);
    try {
      return (await client.send(new DescribeTableCommand({ TableName: `${prefix}.users` }))).Table ?? {};
    } finally {
      client.destroy();
    }
  };

  test('pages of a provisioned table are as large as half of its capacity reads in a second', () =>
    withTable(users(40), 60, async ({ connection, run, requests }) => {
      await run(filled);
      const [check, ...pages] = requests('Scan');
      // One unit for each item, until the table has shown that its items are smaller.
      assert.equal(check?.Limit, 20);
      for (const page of [check, ...pages]) assert.equal(page?.ReturnConsumedCapacity, 'TOTAL');
      assert.equal((await scan(connection, 'users')).filter(({ kind }) => kind === 'x').length, 60);
    }));

  test('pages of an on-demand table have 500 items', () =>
    withTable(users(), 3, async ({ run, requests }) => {
      await run(filled);
      assert.deepEqual([...new Set(requests('Scan').map(({ Limit }) => Limit))], [500]);
    }));

  test('writes ask what they use of the table and its indexes', () =>
    withTable(users(), 3, async ({ run, requests }) => {
      await run(filled);
      const writes = requests('BatchExecuteStatement');
      assert.deepEqual([...new Set(writes.map(({ ReturnConsumedCapacity }) => ReturnConsumedCapacity))], ['INDEXES']);
    }));

  test('a table that takes a few items of each request is not given up', () => {
    let left = 5;
    /** As DynamoDB answers for the items that it has not written; the next attempt finds them written. */
    const throttled = (answer: string) => {
      const { Responses, ...others } = JSON.parse(answer) as { readonly Responses: readonly object[] };
      const failure = { Code: 'ProvisionedThroughputExceeded', Message: 'an injected fault' };
      return JSON.stringify({ ...others, Responses: Responses.map((one, at) => (at < 4 ? one : { Error: failure })) });
    };
    return withTable(
      users(),
      25,
      async ({ connection, run, requests }) => {
        await run(filled);
        assert.ok(requests('BatchExecuteStatement').length > 5);
        assert.equal((await scan(connection, 'users')).filter(({ kind }) => kind === 'x').length, 25);
      },
      ({ action }) => (action === 'BatchExecuteStatement' && left-- > 0 ? { rewrite: throttled } : 'pass'),
    );
  });

  test('the limits are half of what the table and the slowest index have', async () => {
    await withTable(users(40), 0, async ({ prefix, run }) => {
      const limits = capacityLimits(await describe(prefix), 4);
      assert.deepEqual([limits.read.rate, limits.write.rate], [20, 20]);
      const index = [{ name: 'byMail', partitionKey: { name: 'mail', type: 'S' } }] as const;
      const capacity = { readCapacityUnits: 40, writeCapacityUnits: 6 };
      await run({
        ...users(40),
        name: 'mails',
        options: {
          dynamoOptions: {
            ...users(40).options?.dynamoOptions,
            globalSecondaryIndexes: [{ ...index[0], ...capacity }],
          },
        },
      });
      const client = bareClient(server.port);
      const { Table = {} } = await client.send(new DescribeTableCommand({ TableName: `${prefix}.mails` }));
      client.destroy();
      assert.equal(capacityLimits(Table, 4).write.rate, 3);
    });
    await withTable(users(), 0, async ({ prefix }) => {
      const table = await describe(prefix);
      const [one, four] = [capacityLimits(table, 1), capacityLimits(table, 4)];
      assert.deepEqual([one.read.rate, one.write.rate], [1_500, 500]);
      assert.deepEqual([four.read.rate, four.write.rate], [6_000, 2_000]);
      const fast = capacityLimits(table, 4, 9_000).write;
      assert.equal(fast.rate, 9_000);
      assert.deepEqual([one.write, four.write, fast].map(batchesAtOnce), [2, 2, 8]);
    });
  });

  test('what a request used is the most of the table and each index', () => {
    // DynamoDB Local does not say it for PartiQL. As AWS answers, an entry for each statement:
    const entry = (table: number, index: number) => ({
      CapacityUnits: table + index,
      Table: { CapacityUnits: table },
      GlobalSecondaryIndexes: { byMail: { CapacityUnits: index } },
    });
    assert.equal(unitsUsed([entry(1, 2), entry(3, 6)]), 8);
    assert.equal(unitsUsed([{ CapacityUnits: 5 }]), 5);
    assert.equal(unitsUsed(undefined), 0);
  });
}
