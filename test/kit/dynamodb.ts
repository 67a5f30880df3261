import { randomUUID } from 'node:crypto';
import { DeleteTableCommand, DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb';
import type { Connection } from '../../core/dialect.ts';
import type { Json } from '../../core/json.ts';
import type { DialectUnderTest, Row } from './dialect.ts';
import type { Fresh } from './fresh.ts';

/** What the SDK wants of a server on this machine, which checks none. */
const CREDENTIALS = { accessKeyId: 'local', secretAccessKey: 'local' };

/** The SDK as an application uses it, beside whatever is under test. */
export function bareClient(port: number): DynamoDBClient {
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true';
  return new DynamoDBClient({ region: 'us-east-1', endpoint: `http://127.0.0.1:${port}`, credentials: CREDENTIALS });
}

export interface FreshPrefix extends Fresh {
  readonly prefix: string;
}

/** A prefix of its own on a server, and the removal of the tables that begin with it. */
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

/** A value as the dialect stores it, of the types that the suite writes. */
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

/** What the dialect suite has to say to DynamoDB. */
export const dynamodbWords: Pick<DialectUnderTest, 'insert' | 'read' | 'raw'> = {
  async insert(connection, collection, rows) {
    for (const row of rows) await put(connection, collection, row);
  },
  read: scan,
  raw: (collection) => ({
    statement: JSON.stringify({ PutItem: { TableName: collection, Item: { id: { N: '7' } } } }),
    check: JSON.stringify({ GetItem: { TableName: collection, Key: { id: { N: '7' } }, ConsistentRead: true } }),
  }),
};
