import {
  BatchExecuteStatementCommand,
  BatchWriteItemCommand,
  CreateTableCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  ScanCommand,
  type TransactWriteItem,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb';
import { historyTable } from '../../core/migration/history-table.ts';
import type { Migration } from '../../core/migration/migration.ts';
import { anyDefinition } from '../../core/records.ts';
import { dynamodb } from '../../plugins/dialects/dynamodb/dialect.ts';
import { insertion, replacement } from '../../plugins/dialects/dynamodb/records/record-writes.ts';
import { bareClient, freshPrefix } from '../../test/kit/dynamodb.ts';
import { ownDynamodb } from '../../test/kit/own-dynamodb.ts';
import type { Bare, BenchDatabase, BenchEngine } from './contender.ts';
import { rowOf } from './row.ts';

/** A separate DynamoDB Local whose tables are active at once, so that no waiting hides the overhead of svc. */
export async function dynamodbBench(): Promise<BenchEngine> {
  const server = await ownDynamodb();
  return {
    dialect: dynamodb,
    server: 'DynamoDB Local, in memory, tables active at once',
    fresh: async () => database(server.port),
    close: () => server.kill(),
  };
}

function database(port: number): BenchDatabase {
  const { prefix, url, drop } = freshPrefix(port);
  return { url, bare: () => bare(bareClient(port), prefix), drop };
}

async function createTable(client: DynamoDBClient, TableName: string, key: string, type: 'N' | 'S'): Promise<void> {
  const { TableDescription } = await client.send(
    new CreateTableCommand({
      TableName,
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: [{ AttributeName: key, AttributeType: type }],
      KeySchema: [{ AttributeName: key, KeyType: 'HASH' }],
    }),
  );
  let status = TableDescription?.TableStatus;
  while (status !== 'ACTIVE') {
    status = (await client.send(new DescribeTableCommand({ TableName }))).Table?.TableStatus;
  }
}

async function bare(client: DynamoDBClient, prefix: string): Promise<Bare> {
  const name = (table: string): string => `${prefix}.${table}`;
  const load = name('load');
  return {
    async migrate(migrations) {
      const table = name(historyTable.collection);
      await createTable(client, table, historyTable.key, 'S');
      let done: TransactWriteItem[] = [];
      for (const [index, one] of migrations.entries()) {
        await write(client, [...done, started(table, one, index + 1)]);
        const [create] = one.up;
        if (create?.type !== 'createCollection') throw new Error(`${one.tag} creates no table`);
        await createTable(client, name(create.name), 'id', 'N');
        done = [completed(table, one, index + 1)];
      }
      await write(client, done);
    },
    async load(rows) {
      await createTable(client, load, 'id', 'N');
      for (let from = 0; from < rows; from += 25 * 8) {
        await Promise.all(
          Array.from({ length: 8 }, (_, batch) =>
            client.send(
              new BatchWriteItemCommand({
                RequestItems: {
                  [load]: Array.from({ length: 25 }, (_, index) => {
                    const id = String(from + batch * 25 + index);
                    return { PutRequest: { Item: { id: { N: id }, name: { S: `n${id}` } } } };
                  }),
                },
              }),
            ),
          ),
        );
      }
    },
    async backfill() {
      let filled = 0;
      await Promise.all(
        Array.from({ length: SEGMENTS }, async (_, Segment) => {
          let start: Record<string, never> | undefined;
          do {
            const page = await client.send(
              new ScanCommand({
                TableName: load,
                Segment,
                TotalSegments: SEGMENTS,
                Limit: PAGE,
                ConsistentRead: true,
                ProjectionExpression: 'id',
                FilterExpression: 'attribute_not_exists(kind)',
                ...(start && { ExclusiveStartKey: start }),
              }),
            );
            const batches: Record<string, never>[][] = [];
            const items = (page.Items ?? []) as Record<string, never>[];
            filled += items.length;
            for (let from = 0; from < items.length; from += BATCH) batches.push(items.slice(from, from + BATCH));
            const worker = async () => {
              for (let batch = batches.shift(); batch; batch = batches.shift()) {
                await client.send(
                  new BatchExecuteStatementCommand({
                    Statements: batch.map(({ id }) => ({
                      Statement: `UPDATE "${load}" SET kind = ? WHERE id = ? AND kind IS MISSING`,
                      Parameters: [{ S: 'person' }, id as never],
                    })),
                  }),
                );
              }
            };
            await Promise.all(Array.from({ length: 8 }, worker));
            start = page.LastEvaluatedKey as typeof start;
          } while (start);
        }),
      );
      return filled;
    },
    async close() {
      client.destroy();
    },
  };
}

/** The values of the dialect's table scan. */
const SEGMENTS = 4;
const PAGE = 500;
const BATCH = 25;

async function write(client: DynamoDBClient, TransactItems: TransactWriteItem[]): Promise<void> {
  if (TransactItems.length > 0) await client.send(new TransactWriteItemsCommand({ TransactItems }));
}

const started = (table: string, one: Migration, seq: number): TransactWriteItem =>
  insertion(table, RECORDS, rowOf(one, seq, 'applying'));

const completed = (table: string, one: Migration, seq: number): TransactWriteItem => {
  const { migration: _, ...rest } = rowOf(one, seq, 'completed');
  return replacement(table, RECORDS, one.tag, 1, rest);
};

const RECORDS = anyDefinition(historyTable);
