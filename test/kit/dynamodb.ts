import { randomUUID } from 'node:crypto';
import { DeleteTableCommand, DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb';
import type { Connection } from '../../core/dialect.ts';
import type { Json } from '../../core/json.ts';
import type { Field, FieldType } from '../../core/schema/model.ts';
import type { DialectUnderTest, Row } from '../suites/dialect-under-test.ts';
import type { TestDatabase } from '../suites/test-database.ts';

/** DynamoDB Local does not check credentials, but the SDK requires some. */
const CREDENTIALS = { accessKeyId: 'local', secretAccessKey: 'local' };

/** A client as an application creates it, independent of the code under test. */
export function bareClient(port: number): DynamoDBClient {
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true';
  return new DynamoDBClient({ region: 'us-east-1', endpoint: `http://127.0.0.1:${port}`, credentials: CREDENTIALS });
}

export interface FreshPrefix extends TestDatabase {
  readonly prefix: string;
}

/** A new prefix on a server; `drop` deletes its tables. */
export function freshPrefix(port: number): FreshPrefix {
  const prefix = `svc_test_${randomUUID().replaceAll('-', '')}`;
  return {
    prefix,
    url: `dynamodb://127.0.0.1:${port}/${prefix}`,
    async drop() {
      const client = bareClient(port);
      try {
        let start: string | undefined;
        do {
          const page = await client.send(new ListTablesCommand({ ExclusiveStartTableName: start }));
          for (const TableName of page.TableNames?.filter((name) => name.startsWith(`${prefix}.`)) ?? []) {
            await client.send(new DeleteTableCommand({ TableName })).catch(() => undefined);
          }
          start = page.LastEvaluatedTableName;
        } while (start !== undefined);
      } finally {
        client.destroy();
      }
    },
  };
}

/** Encodes a value of the types that the suite writes, as the dialect does. */
function attribute(value: Json, type?: FieldType): Json {
  switch (type) {
    case 'bigint':
    case 'decimal':
      return { N: String(value) };
    case 'timestamp':
      return { N: String(Date.parse(`${String(value)}Z`)) };
    case 'binary':
    case 'blob':
      return { B: String(value) };
  }
  if (Array.isArray(value)) return { L: value.map((item) => attribute(item)) };
  if (value === null) return { NULL: true };
  if (typeof value === 'object')
    return { M: Object.fromEntries(Object.entries(value).map(([name, item]) => [name, attribute(item)])) };
  if (typeof value === 'number') return { N: String(value) };
  return typeof value === 'boolean' ? { BOOL: value } : { S: String(value) };
}

export async function put(
  connection: Connection,
  table: string,
  row: Row,
  fields?: ReadonlyMap<string, Field>,
): Promise<void> {
  const item = Object.entries(row).filter(([, value]) => value !== null);
  const attributes = item.map(([name, value]) => [name, attribute(value, fields?.get(name)?.type)]);
  const input = { TableName: table, Item: Object.fromEntries(attributes) };
  await connection.query(JSON.stringify({ PutItem: input }));
}

export function scan(connection: Connection, table: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  return connection.query(JSON.stringify({ Scan: { TableName: table, ConsistentRead: true } }));
}

/** How the dialect suite writes and reads items on DynamoDB. */
export const dynamodbSyntax: Omit<DialectUnderTest, 'name' | 'dialect' | 'module' | 'createDatabase'> = {
  async insert(connection, collection, rows, fields) {
    for (const row of rows) await put(connection, collection, row, fields);
  },
  async clear(connection, collection) {
    const fields = (await connection.introspect([collection])).get(collection)?.fields.values() ?? [];
    const keys = [...fields].filter(({ primaryKey }) => primaryKey).map(({ name }) => name);
    for (const item of await scan(connection, collection)) {
      const key = Object.fromEntries(keys.map((name) => [name, attribute(item[name] as Json)]));
      await connection.query(JSON.stringify({ DeleteItem: { TableName: collection, Key: key } }));
    }
  },
  async addUnsupportedObject(connection, collection) {
    const [capacity, more] = [5, 7].map((units) => ({ ReadCapacityUnits: units, WriteCapacityUnits: units }));
    const index = {
      IndexName: 'some',
      KeySchema: [{ AttributeName: 'n', KeyType: 'HASH' }],
      Projection: { ProjectionType: 'ALL' },
      ProvisionedThroughput: more,
    };
    const provisioned = { TableName: collection, BillingMode: 'PROVISIONED', ProvisionedThroughput: capacity };
    await connection.query(JSON.stringify({ UpdateTable: provisioned }));
    const table = { TableName: collection, AttributeDefinitions: [{ AttributeName: 'n', AttributeType: 'N' }] };
    await connection.query(
      JSON.stringify({ UpdateTable: { ...table, GlobalSecondaryIndexUpdates: [{ Create: index }] } }),
    );
  },
  notEnforced: {
    required: 'DynamoDB knows the keys of a table only',
    default: 'DynamoDB does not fill in values',
    enum: 'DynamoDB knows the keys of a table only',
    length: 'DynamoDB knows the keys of a table only',
  },
  async read(connection, collection) {
    const fields = (await connection.introspect([collection])).get(collection)?.fields;
    const isBytes = (name: string) => ['binary', 'blob'].includes(fields?.get(name)?.type ?? '');
    const values = (item: Readonly<Record<string, unknown>>) =>
      Object.entries(item).map(([name, value]) => [name, isBytes(name) ? Buffer.from(String(value), 'base64') : value]);
    return (await scan(connection, collection)).map((item) => Object.fromEntries(values(item)));
  },
  // A batch has 25 items; pages have a size, which other tests fill.
  manyRows: 101,
  raw: (collection) => ({
    statement: JSON.stringify({ PutItem: { TableName: collection, Item: { id: { N: '7' } } } }),
    check: JSON.stringify({ GetItem: { TableName: collection, Key: { id: { N: '7' } }, ConsistentRead: true } }),
  }),
};
