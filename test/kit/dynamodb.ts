import { randomUUID } from 'node:crypto';
import { DeleteTableCommand, DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb';
import type { Connection } from '../../core/dialect.ts';
import type { Json } from '../../core/json.ts';
import type { DialectUnderTest, Row } from '../suites/dialect-suite.ts';
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
function attribute(value: Json): Json {
  if (typeof value === 'number') return { N: String(value) };
  return typeof value === 'boolean' ? { BOOL: value } : { S: String(value) };
}

export async function put(connection: Connection, table: string, row: Row): Promise<void> {
  const item = Object.entries(row).filter(([, value]) => value !== null);
  const input = { TableName: table, Item: Object.fromEntries(item.map(([name, value]) => [name, attribute(value)])) };
  await connection.query(JSON.stringify({ PutItem: input }));
}

export function scan(connection: Connection, table: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  return connection.query(JSON.stringify({ Scan: { TableName: table, ConsistentRead: true } }));
}

/** How the dialect suite writes and reads items on DynamoDB. */
export const dynamodbSyntax: Pick<DialectUnderTest, 'insert' | 'read' | 'raw'> = {
  async insert(connection, collection, rows) {
    for (const row of rows) await put(connection, collection, row);
  },
  read: scan,
  raw: (collection) => ({
    statement: JSON.stringify({ PutItem: { TableName: collection, Item: { id: { N: '7' } } } }),
    check: JSON.stringify({ GetItem: { TableName: collection, Key: { id: { N: '7' } }, ConsistentRead: true } }),
  }),
};
