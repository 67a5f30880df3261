import { setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { AttributeValue, TableDescription, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../../core/errors.ts';
import { alreadyExistsError } from '../../../../core/schema/find-or-throw.ts';
import { collectionFrom, entryWrite, type TableDefinition } from '../catalog/registry.ts';
import { type IndexShape, type KeyAttribute, shapeOfIndex, shapeOfTable } from '../catalog/table-shape.ts';
import type { KeyType } from '../compile/types.ts';
import type { Input } from '../connection/client.ts';
import { errorName, isNotFound, isThrottled } from '../connection/errors.ts';
import { waitForTable } from '../connection/wait-for-table.ts';
import { itemToJson } from '../data/attribute.ts';
import { capacityLimits } from '../data/capacity.ts';
import { itemKey, nameInFilter, scanTable, segmentCount, startOfTable } from '../data/scan.ts';
import { indexInput } from './create-table.ts';
import { type RunContext, sendChange } from './run-context.ts';

const RETRY_MS = 200;
const MAX_ATTEMPTS = 20;

/** DynamoDB builds one index at a time: waits for earlier builds first, and then until every index is active. */
export async function createIndex(
  context: RunContext,
  table: string,
  index: string,
  definition: TableDefinition,
): Promise<TransactWriteItem[]> {
  const collection = collectionFrom(definition);
  const declared = collection.indexes.get(index);
  if (!declared) throw new Error(`the definition of ${table} has no index ${index}`);
  const wanted = shapeOfIndex(collection, declared);
  const keys = wanted.sort ? [wanted.partition, wanted.sort] : [wanted.partition];
  return updateIndexes(context, table, definition, async (found) => {
    const shape = shapeOfTable(found, undefined);
    const existing = [...shape.globals, ...shape.locals].find((one) => one.name === index);
    if (existing && !isDeepStrictEqual(existing, wanted)) throw alreadyExistsError('index', index, table);
    if (existing) return undefined;
    for (const key of keys) await assertIndexable(context, table, found, wanted, key);
    return {
      AttributeDefinitions: keys.map(({ name, type }) => ({ AttributeName: name, AttributeType: type })),
      GlobalSecondaryIndexUpdates: [{ Create: indexInput(wanted, shape.capacity) }],
    };
  });
}

export function dropIndex(
  context: RunContext,
  table: string,
  index: string,
  definition: TableDefinition,
): Promise<TransactWriteItem[]> {
  return updateIndexes(context, table, definition, async ({ GlobalSecondaryIndexes: indexes }) =>
    indexes?.some(({ IndexName }) => IndexName === index)
      ? { GlobalSecondaryIndexUpdates: [{ Delete: { IndexName: index } }] }
      : undefined,
  );
}

/** Applies changes until `nextChange` returns none, each when no other index is being built. */
async function updateIndexes(
  context: RunContext,
  table: string,
  definition: TableDefinition,
  nextChange: (found: TableDescription) => Promise<Omit<Input<'UpdateTable'>, 'TableName'> | undefined>,
): Promise<TransactWriteItem[]> {
  const { client, state, assertLease } = context;
  const tolerate = tolerateConcurrentChange();
  for (;;) {
    const change = await nextChange(await waitForExistingTable(context, table));
    if (!change) return [entryWrite(state, table, definition)];
    await tolerate(() => sendChange(context, 'UpdateTable', { TableName: client.table(table), ...change }));
    await assertLease();
    await wait(RETRY_MS);
  }
}

async function waitForExistingTable({ client, assertLease }: RunContext, table: string): Promise<TableDescription> {
  const found = await waitForTable(client, client.table(table), assertLease);
  if (found) return found;
  throw new SvcError('collection_unknown', `The table "${table}" does not exist.`, {
    next: ['See what differs: svc db schema check'],
  });
}

/** Ignores errors that mean another client changes the table or the change is already made, up to MAX_ATTEMPTS times. */
function tolerateConcurrentChange(): (send: () => Promise<unknown>) => Promise<void> {
  let left = MAX_ATTEMPTS;
  return async (send) => {
    try {
      await send();
    } catch (error) {
      const retryable = errorName(error) === 'ResourceInUseException' || isNotFound(error) || isThrottled(error);
      const done = /already exists/i.test((error as Error).message);
      left -= 1;
      if ((!retryable && !done) || left === 0) throw error;
    }
  };
}

/** Bytes. */
const MAX_KEY_BYTES = { partition: 2_048, sort: 1_024 } as const;
/** In UTF-8. size() counts characters, but the length of a key is limited in bytes. */
const MAX_BYTES_PER_CHARACTER = 4;

/**
 * Throws `data_violates` if values cannot be in the key of the index. DynamoDB would silently leave those items out of the index
 * and reject such values from then on.
 */
async function assertIndexable(
  { client, assertLease, onProgress }: RunContext,
  table: string,
  found: TableDescription,
  index: IndexShape,
  key: KeyAttribute,
): Promise<void> {
  const shape = shapeOfTable(found, undefined);
  const role = key === index.sort ? 'sort' : 'partition';
  // An attribute that is already part of a key is valid everywhere.
  const keys = [shape, ...shape.globals, ...shape.locals];
  if (keys.some((one) => one.sort?.name === key.name || one[role]?.name === key.name)) return;
  const name = nameInFilter(key.name);
  const maxBytes = MAX_KEY_BYTES[role];
  const items = found.ItemCount ?? 0;
  const examples: string[] = [];
  let count = 0;
  const length = key.type === 'N' ? '' : ` OR size(${name}) = :none OR size(${name}) > :most`;
  await scanTable({
    client,
    table: client.table(table),
    shape,
    attributes: [key.name],
    filter: {
      text: `attribute_exists(${name}) AND (NOT attribute_type(${name}, :type)${length})`,
      values: {
        ':type': { S: key.type },
        ...(length !== '' && { ':none': { N: '0' }, ':most': { N: String(maxBytes / MAX_BYTES_PER_CHARACTER) } }),
      },
    },
    position: startOfTable(items),
    limits: capacityLimits(found, segmentCount(items)),
    assertLease,
    updateFor(item) {
      if (fitsKey(item[key.name], key.type, maxBytes)) return undefined;
      count += 1;
      if (examples.length < 3) examples.push(JSON.stringify(itemToJson(itemKey(shape, item))));
      return undefined;
    },
    onPage: async ({ scanned }) => onProgress?.({ collection: table, done: scanned }),
  });
  if (count === 0) return;
  throw new SvcError('data_violates', `Items of "${table}" do not allow the index "${index.name}".`, {
    why: `In ${count} ${count === 1 ? 'item' : 'items'} "${key.name}" is not of type ${key.type}, is empty, or is longer than the ${maxBytes} bytes that a ${role} key may have. For example ${examples.join(', ')}.`,
    state: 'Nothing was changed.',
    next: [`Give those items a valid key value of type ${key.type}, or remove the attribute from them.`],
    details: { count },
  });
}

function fitsKey(value: AttributeValue | undefined, type: KeyType, maxBytes: number): boolean {
  const data = value?.[type];
  if (data === undefined || type === 'N') return data !== undefined;
  const bytes = Buffer.byteLength(data);
  return bytes > 0 && bytes <= maxBytes;
}
