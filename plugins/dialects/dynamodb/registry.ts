import { gunzipSync, gzipSync } from 'node:zlib';
import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../core/errors.ts';
import type { Collection } from '../../../core/schema/model.ts';
import type { Api } from './api.ts';
import type { Item } from './attribute.ts';
import { collectionFrom, type Definition } from './definition.ts';
import { readMany } from './read-many.ts';
import type { State } from './state.ts';

/** What we say of a table whose fields DynamoDB does not know. */
export interface Entry {
  readonly collection: Collection;
  /** Somebody began to create the table with this definition and may not have come to the end. */
  readonly creating: boolean;
}

/** The longest item is 400 KB. */
const MOST_BYTES = 390_000;

const idOf = (table: string): string => `table#${table}`;

export async function entryOf(state: State, table: string): Promise<Entry | undefined> {
  const item = await state.get(idOf(table));
  return item && read(item);
}

/** Those of several tables. Consistent. */
export async function entriesOf(api: Api, state: State, tables: readonly string[]): Promise<Map<string, Entry>> {
  const keys = tables.map((table) => state.key(idOf(table)));
  const entries = (await readMany(api, state.table, keys)).map(read);
  return new Map(entries.map((entry) => [entry.collection.name, entry]));
}

/** What puts an entry into the registry, inside a fenced write. Throws `value_invalid` where it is too long. */
export function entryWrite(state: State, table: string, definition: Definition): TransactWriteItem {
  const text = gzipSync(JSON.stringify(definition));
  if (text.byteLength > MOST_BYTES) {
    throw new SvcError('value_invalid', `The definition of the table "${table}" is too long for DynamoDB.`, {
      why: `It has ${text.byteLength} bytes, packed; an item has at most 400 KB.`,
      next: ['Shorten the names, defaults or enum values of its fields.'],
    });
  }
  return {
    Put: {
      TableName: state.table,
      Item: { ...state.key(idOf(table)), definition: { B: new Uint8Array(text) } },
    },
  };
}

/** The same entry of a table that is only being created. */
export function announcing({ Put }: TransactWriteItem): TransactWriteItem {
  return { Put: { ...Put, TableName: Put?.TableName, Item: { ...Put?.Item, creating: { BOOL: true } } } };
}

export function entryRemoval(state: State, table: string): TransactWriteItem {
  return { Delete: { TableName: state.table, Key: state.key(idOf(table)) } };
}

function read(item: Item): Entry {
  const bytes = item.definition?.B;
  if (bytes === undefined) throw new Error(`the registry's item ${item.id?.S} has no definition`);
  const definition = JSON.parse(gunzipSync(bytes).toString()) as Definition;
  return { collection: collectionFrom(definition), creating: item.creating?.BOOL === true };
}
