import { setTimeout as wait } from 'node:timers/promises';
import type { Api, Input } from './api.ts';
import { isReady, settled } from './settled.ts';

/** A table of svc itself: a text as its key, and indexes that have nothing but keys. */
export interface OwnTable {
  readonly key: string;
  readonly indexes: readonly { readonly name: string; readonly partition: string; readonly sort: string }[];
}

const FREE = async (): Promise<void> => undefined;
const AGAIN_MS = 50;

/** Makes the table where it is missing and its indexes, one at a time; whoever else does so at once is waited for. */
export async function ensureTable(api: Api, name: string, wanted: OwnTable): Promise<void> {
  for (;;) {
    const table = await settled(api, name, FREE);
    if (!table) {
      const made = await tolerant(() => api.attempt('CreateTable', creation(name, wanted)));
      if (made && made !== 'unknown' && isReady(made.TableDescription)) return;
      await wait(AGAIN_MS);
      continue;
    }
    const there = new Set(table.GlobalSecondaryIndexes?.map(({ IndexName }) => IndexName));
    const missing = wanted.indexes.find((index) => !there.has(index.name));
    if (!missing) return;
    await tolerant(() => api.attempt('UpdateTable', addition(name, missing)));
  }
}

/** Nothing where somebody else was faster: then it is looked at again. */
async function tolerant<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'ResourceInUseException') throw error;
    return undefined;
  }
}

type Index = OwnTable['indexes'][number];

const text = (name: string) => ({ AttributeName: name, AttributeType: 'S' as const });
const keys = ({ partition, sort }: Omit<Index, 'name'>) => [
  { AttributeName: partition, KeyType: 'HASH' as const },
  { AttributeName: sort, KeyType: 'RANGE' as const },
];
const global = (index: Index) => ({
  IndexName: index.name,
  KeySchema: keys(index),
  Projection: { ProjectionType: 'KEYS_ONLY' as const },
});

function creation(name: string, { key, indexes }: OwnTable): Input<'CreateTable'> {
  return {
    TableName: name,
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: [key, ...indexes.flatMap(({ partition, sort }) => [partition, sort])].map(text),
    KeySchema: [{ AttributeName: key, KeyType: 'HASH' }],
    ...(indexes.length > 0 && { GlobalSecondaryIndexes: indexes.map(global) }),
  };
}

function addition(name: string, index: Index): Input<'UpdateTable'> {
  return {
    TableName: name,
    AttributeDefinitions: [text(index.partition), text(index.sort)],
    GlobalSecondaryIndexUpdates: [{ Create: global(index) }],
  };
}
