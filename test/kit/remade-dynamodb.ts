import {
  CreateTableCommand,
  type CreateTableCommandInput,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  type DynamoDBClient,
  ListTablesCommand,
  PutItemCommand,
  UpdateTimeToLiveCommand,
} from '@aws-sdk/client-dynamodb';
import { bareClient, type FreshPrefix, freshPrefix } from './dynamodb.ts';
import type { Facts } from './remake-files.ts';

type Case = Partial<CreateTableCommandInput> & { readonly ttl?: string };

const hash = (AttributeName: string) => ({ AttributeName, KeyType: 'HASH' as const });
const range = (AttributeName: string) => ({ AttributeName, KeyType: 'RANGE' as const });
const attributes = (types: Readonly<Record<string, 'S' | 'N' | 'B'>>) =>
  Object.entries(types).map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType }));
const all = { ProjectionType: 'ALL' } as const;
const keysOnly = { ProjectionType: 'KEYS_ONLY' } as const;
const some = { ProjectionType: 'INCLUDE' as const, NonKeyAttributes: ['title', 'author'] };
const units = (read: number, write: number) => ({
  ProvisionedThroughput: { ReadCapacityUnits: read, WriteCapacityUnits: write },
});
const two: Case = { AttributeDefinitions: attributes({ id: 'S', at: 'N' }), KeySchema: [hash('id'), range('at')] };
const three = attributes({ id: 'S', at: 'N', mail: 'S' });

const CASES: Readonly<Record<string, Case>> = {
  key_text: {},
  key_number: { AttributeDefinitions: attributes({ id: 'N' }) },
  key_bytes: { AttributeDefinitions: attributes({ id: 'B' }) },
  key_sorted: two,
  provisioned: { BillingMode: 'PROVISIONED', ...units(5, 3) },
  global_all: {
    AttributeDefinitions: attributes({ id: 'S', mail: 'S' }),
    GlobalSecondaryIndexes: [{ IndexName: 'by_mail', KeySchema: [hash('mail')], Projection: all }],
  },
  global_projections: {
    AttributeDefinitions: attributes({ id: 'S', at: 'N' }),
    GlobalSecondaryIndexes: [
      { IndexName: 'keys', KeySchema: [hash('at')], Projection: keysOnly },
      { IndexName: 'some', KeySchema: [hash('at'), range('id')], Projection: some },
    ],
  },
  global_provisioned: {
    AttributeDefinitions: attributes({ id: 'S', at: 'N' }),
    ...{ BillingMode: 'PROVISIONED', ...units(5, 3) },
    GlobalSecondaryIndexes: [
      { IndexName: 'same', KeySchema: [hash('at')], Projection: all, ...units(5, 3) },
      { IndexName: 'other', KeySchema: [hash('at')], Projection: all, ...units(7, 2) },
    ],
  },
  local_projections: {
    ...two,
    AttributeDefinitions: three,
    LocalSecondaryIndexes: [
      { IndexName: 'all', KeySchema: [hash('id'), range('mail')], Projection: all },
      { IndexName: 'keys', KeySchema: [hash('id'), range('mail')], Projection: keysOnly },
      { IndexName: 'some', KeySchema: [hash('id'), range('mail')], Projection: some },
    ],
  },
  stream_keys: { StreamSpecification: { StreamEnabled: true, StreamViewType: 'KEYS_ONLY' } },
  stream_new: { StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_IMAGE' } },
  stream_old: { StreamSpecification: { StreamEnabled: true, StreamViewType: 'OLD_IMAGE' } },
  stream_both: { StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' } },
  time_to_live: {
    AttributeDefinitions: attributes({ id: 'S', until: 'N' }),
    GlobalSecondaryIndexes: [{ IndexName: 'by_until', KeySchema: [hash('until')], Projection: all }],
    ttl: 'until',
  },
  rare: { TableClass: 'STANDARD_INFREQUENT_ACCESS' },
};

/** Tables of one feature each, with items. */
export async function grownDynamo(port: number): Promise<FreshPrefix> {
  const database = freshPrefix(port);
  const client = bareClient(port);
  try {
    for (const [name, one] of Object.entries(CASES)) await create(client, `${database.prefix}.${name}`, one);
    return database;
  } catch (error) {
    await database.drop();
    throw error;
  } finally {
    client.destroy();
  }
}

async function create(client: DynamoDBClient, TableName: string, { ttl, ...input }: Case): Promise<void> {
  await client.send(
    new CreateTableCommand({
      ...{ TableName, BillingMode: 'PAY_PER_REQUEST', KeySchema: [hash('id')] },
      AttributeDefinitions: attributes({ id: 'S' }),
      ...input,
    }),
  );
  const TimeToLiveSpecification = { Enabled: true, AttributeName: ttl };
  if (ttl !== undefined) await client.send(new UpdateTimeToLiveCommand({ TableName, TimeToLiveSpecification }));
  if (!input.AttributeDefinitions)
    await client.send(new PutItemCommand({ TableName, Item: { id: { S: '1' }, n: { N: '5' } } }));
}

/** The facts of the service by table. */
export async function dynamoFacts(port: number, { prefix }: FreshPrefix): Promise<Facts> {
  const client = bareClient(port);
  try {
    const { TableNames = [] } = await client.send(new ListTablesCommand({ ExclusiveStartTableName: `${prefix}.` }));
    const facts: Facts = new Map();
    for (const TableName of TableNames) {
      const name = TableName.slice(prefix.length + 1);
      if (!TableName.startsWith(`${prefix}.`) || name.startsWith('_svc_')) continue;
      const { Table = {} } = await client.send(new DescribeTableCommand({ TableName }));
      const { TimeToLiveDescription: ttl } = await client.send(new DescribeTimeToLiveCommand({ TableName }));
      const indexes = [...(Table.GlobalSecondaryIndexes ?? []), ...(Table.LocalSecondaryIndexes ?? [])];
      facts.set(
        name,
        new Set([
          `key ${JSON.stringify([Table.KeySchema, sorted(Table.AttributeDefinitions)])}`,
          `billing ${JSON.stringify([Table.BillingModeSummary?.BillingMode, capacity(Table.ProvisionedThroughput)])}`,
          `class ${JSON.stringify([Table.TableClassSummary?.TableClass, Table.DeletionProtectionEnabled])}`,
          `stream ${JSON.stringify(Table.StreamSpecification)}`,
          `ttl ${JSON.stringify(ttl)}`,
          ...indexes.map(({ IndexName, KeySchema, Projection: { ProjectionType, NonKeyAttributes } = {}, ...one }) => {
            const projection = [ProjectionType, sorted(NonKeyAttributes)];
            const own = 'ProvisionedThroughput' in one ? capacity(one.ProvisionedThroughput as object) : undefined;
            return `index ${JSON.stringify([IndexName, KeySchema, projection, own])}`;
          }),
        ]),
      );
    }
    return facts;
  } finally {
    client.destroy();
  }
}

const sorted = (list: readonly unknown[] = []) => list.map((one) => JSON.stringify(one)).sort();

const capacity = ({ ReadCapacityUnits, WriteCapacityUnits }: Units = {}) => [ReadCapacityUnits, WriteCapacityUnits];

interface Units {
  readonly ReadCapacityUnits?: number | undefined;
  readonly WriteCapacityUnits?: number | undefined;
}
