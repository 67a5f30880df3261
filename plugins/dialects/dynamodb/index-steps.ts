import { setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { AttributeValue, TableDescription, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../core/errors.ts';
import { exists } from '../../../core/schema/lookup.ts';
import { plainItem } from './attribute.ts';
import { globalIndex } from './create.ts';
import { collectionFrom, type Definition } from './definition.ts';
import { isMissing, isThrottled, nameOf } from './errors.ts';
import type { Work } from './move.ts';
import { Pace } from './pace.ts';
import { entryWrite } from './registry.ts';
import { settled } from './settled.ts';
import { type IndexShape, indexShape, type Key, shapeFrom } from './shape.ts';
import { attributeName, beginning, keyOf, sweep } from './sweep.ts';
import type { KeyType } from './types.ts';

const AGAIN_MS = 200;
const MOST_REFUSALS = 20;

/** One index at a time is all that DynamoDB builds: waits before, and until every index can be asked. */
export async function createIndex(
  work: Work,
  table: string,
  index: string,
  definition: Definition,
): Promise<TransactWriteItem[]> {
  const { api, state, hold } = work;
  const name = api.table(table);
  const collection = collectionFrom(definition);
  const declared = collection.indexes.get(index);
  if (!declared) throw new Error(`the definition of ${table} has no index ${index}`);
  const wanted = indexShape(collection, declared);
  const tolerant = tolerance();
  for (let found = await ready(work, table); ; found = await ready(work, table)) {
    const shape = shapeFrom(found, undefined);
    const there = [...shape.globals, ...shape.locals].find((one) => one.name === index);
    if (there && !isDeepStrictEqual(there, wanted)) throw exists('index', index, table);
    if (there) break;
    for (const key of wanted.sort ? [wanted.partition, wanted.sort] : [wanted.partition])
      await refuseMisfits(work, table, found, wanted, key);
    await tolerant(() =>
      api.attempt('UpdateTable', {
        TableName: name,
        AttributeDefinitions: (wanted.sort ? [wanted.partition, wanted.sort] : [wanted.partition]).map((key) => ({
          AttributeName: key.name,
          AttributeType: key.type,
        })),
        GlobalSecondaryIndexUpdates: [{ Create: globalIndex(wanted, shape.capacity) }],
      }),
    );
    await hold();
    await wait(AGAIN_MS);
  }
  return [entryWrite(state, table, definition)];
}

export async function dropIndex(
  work: Work,
  table: string,
  index: string,
  definition: Definition,
): Promise<TransactWriteItem[]> {
  const { api, state, hold } = work;
  const name = api.table(table);
  const tolerant = tolerance();
  for (let found = await ready(work, table); ; found = await ready(work, table)) {
    if (!found.GlobalSecondaryIndexes?.some((one) => one.IndexName === index)) break;
    await tolerant(() =>
      api.attempt('UpdateTable', {
        TableName: name,
        GlobalSecondaryIndexUpdates: [{ Delete: { IndexName: index } }],
      }),
    );
    await hold();
    await wait(AGAIN_MS);
  }
  return [entryWrite(state, table, definition)];
}

async function ready({ api, hold }: Work, table: string): Promise<TableDescription> {
  const found = await settled(api, api.table(table), hold);
  if (found) return found;
  throw new SvcError('collection_unknown', `The table "${table}" does not exist.`, {
    next: ['Look what became of it: svc db schema check'],
  });
}

/** Somebody else changes the table, or it is done already: the next look tells. But not for ever. */
function tolerance(): (work: () => Promise<unknown>) => Promise<void> {
  let left = MOST_REFUSALS;
  return async (work) => {
    try {
      await work();
    } catch (error) {
      const again = nameOf(error) === 'ResourceInUseException' || isMissing(error) || isThrottled(error);
      const done = /already exists/i.test((error as Error).message);
      left -= 1;
      if ((!again && !done) || left === 0) throw error;
    }
  };
}

/** Bytes. */
const LONGEST = { partition: 2_048, sort: 1_024 } as const;
/** Of a character in UTF-8: DynamoDB counts a text's size in characters, and the length of a key in bytes. */
const BYTES = 4;

/**
 * An item whose value is of another type, or too long for a key, would be left out of the index without a word, and
 * afterwards no such value could be written any more.
 */
async function refuseMisfits(
  { api, hold, onProgress }: Work,
  table: string,
  found: TableDescription,
  index: IndexShape,
  key: Key,
): Promise<void> {
  const shape = shapeFrom(found, undefined);
  const role = key === index.sort ? 'sort' : 'partition';
  // What is a key already has the right type everywhere, and no value that is too long for the part it has there.
  const keys = [shape, ...shape.globals, ...shape.locals];
  if (keys.some((one) => one.sort?.name === key.name || one[role]?.name === key.name)) return;
  const name = attributeName(key.name);
  const most = LONGEST[role];
  const some: string[] = [];
  let count = 0;
  const length = key.type === 'N' ? '' : ` OR size(${name}) = :none OR size(${name}) > :most`;
  await sweep({
    api,
    table: api.table(table),
    shape,
    attributes: [key.name],
    filter: {
      text: `attribute_exists(${name}) AND (NOT attribute_type(${name}, :type)${length})`,
      values: {
        ':type': { S: key.type },
        ...(length !== '' && { ':none': { N: '0' }, ':most': { N: String(most / BYTES) } }),
      },
    },
    standing: beginning(found.ItemCount ?? 0),
    pace: new Pace(),
    hold,
    change(item) {
      if (fits(item[key.name], key.type, most)) return undefined;
      count += 1;
      if (some.length < 3) some.push(JSON.stringify(plainItem(keyOf(shape, item))));
      return undefined;
    },
    reached: async ({ seen }) => onProgress?.({ collection: table, done: seen }),
  });
  if (count === 0) return;
  throw new SvcError('data_violates', `Items of "${table}" do not allow the index "${index.name}".`, {
    why: `In ${count} ${count === 1 ? 'item' : 'items'} "${key.name}" is no ${key.type}, or empty, or longer than the ${most} bytes that a ${role} key may have. Such as ${some.join(', ')}.`,
    state: 'Nothing was changed.',
    next: [`Give those items a value of type ${key.type} that a key may have, or remove the attribute from them.`],
    details: { count },
  });
}

function fits(value: AttributeValue | undefined, type: KeyType, most: number): boolean {
  const held = value?.[type];
  if (held === undefined || type === 'N') return held !== undefined;
  const bytes = Buffer.byteLength(held);
  return bytes > 0 && bytes <= most;
}
