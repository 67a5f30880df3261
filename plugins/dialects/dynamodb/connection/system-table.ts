import { setTimeout as wait } from 'node:timers/promises';
import type { DynamoClient, Input } from './client.ts';
import { isReady, waitForTable } from './wait-for-table.ts';

/** A table of svc itself, with a string as key and KEYS_ONLY indexes. */
export interface SystemTable {
  readonly key: string;
  readonly indexes: readonly { readonly name: string; readonly partition: string; readonly sort: string }[];
}

const noLease = async (): Promise<void> => undefined;
const RETRY_MS = 50;

/** Creates the table and its indexes if missing, one at a time. Several processes may do so at once. */
export async function ensureTable(client: DynamoClient, name: string, wanted: SystemTable): Promise<void> {
  for (;;) {
    const table = await waitForTable(client, name, noLease);
    if (!table) {
      const response = await ignoreInUse(() => client.sendNonIdempotent('CreateTable', createTableInput(name, wanted)));
      if (response && response !== 'unknown' && isReady(response.TableDescription)) return;
      await wait(RETRY_MS);
      continue;
    }
    const existing = new Set(table.GlobalSecondaryIndexes?.map(({ IndexName }) => IndexName));
    const missing = wanted.indexes.find((index) => !existing.has(index.name));
    if (!missing) return;
    await ignoreInUse(() => client.sendNonIdempotent('UpdateTable', addIndexInput(name, missing)));
  }
}

/** Undefined if another process is changing the table. */
async function ignoreInUse<T>(send: () => Promise<T>): Promise<T | undefined> {
  try {
    return await send();
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'ResourceInUseException') throw error;
    return undefined;
  }
}

type SystemIndex = SystemTable['indexes'][number];

const stringAttribute = (name: string) => ({ AttributeName: name, AttributeType: 'S' as const });
const keySchema = ({ partition, sort }: Omit<SystemIndex, 'name'>) => [
  { AttributeName: partition, KeyType: 'HASH' as const },
  { AttributeName: sort, KeyType: 'RANGE' as const },
];
const globalIndex = (index: SystemIndex) => ({
  IndexName: index.name,
  KeySchema: keySchema(index),
  Projection: { ProjectionType: 'KEYS_ONLY' as const },
});

function createTableInput(name: string, { key, indexes }: SystemTable): Input<'CreateTable'> {
  return {
    TableName: name,
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: [key, ...indexes.flatMap(({ partition, sort }) => [partition, sort])].map(stringAttribute),
    KeySchema: [{ AttributeName: key, KeyType: 'HASH' }],
    ...(indexes.length > 0 && { GlobalSecondaryIndexes: indexes.map(globalIndex) }),
  };
}

function addIndexInput(name: string, index: SystemIndex): Input<'UpdateTable'> {
  return {
    TableName: name,
    AttributeDefinitions: [stringAttribute(index.partition), stringAttribute(index.sort)],
    GlobalSecondaryIndexUpdates: [{ Create: globalIndex(index) }],
  };
}
