import { gunzipSync, gzipSync } from 'node:zlib';
import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../../core/errors.ts';
import { defineCollection, defineIndex, toCreateCollection, toCreateIndex } from '../../../../core/schema/define.ts';
import type { Collection } from '../../../../core/schema/model.ts';
import type { CreateCollection, CreateIndex } from '../../../../core/schema/operation.ts';
import type { DynamoClient } from '../connection/client.ts';
import { batchGet } from '../connection/read-items.ts';
import type { StateTable } from '../connection/state-table.ts';
import type { Item } from '../data/attribute.ts';

/** The registry's entry for a table: DynamoDB itself knows only key attributes. */
export interface RegistryEntry {
  readonly collection: Collection;
  /** The creation of the table has begun and may not be complete. */
  readonly creating: boolean;
}

/** Below 400 KB, the limit of an item. */
const MAX_BYTES = 390_000;

const entryId = (table: string): string => `table#${table}`;

export async function readEntry(state: StateTable, table: string): Promise<RegistryEntry | undefined> {
  const item = await state.get(entryId(table));
  return item && parseEntry(item);
}

export async function readEntries(
  client: DynamoClient,
  state: StateTable,
  tables: readonly string[],
): Promise<Map<string, RegistryEntry>> {
  const keys = tables.map((table) => state.key(entryId(table)));
  const entries = (await batchGet(client, state.table, keys)).map(parseEntry);
  return new Map(entries.map((entry) => [entry.collection.name, entry]));
}

/** The write of an entry, for a fenced transaction. Throws `value_invalid` if the definition is too large. */
export function entryWrite(state: StateTable, table: string, definition: TableDefinition): TransactWriteItem {
  const text = gzipSync(JSON.stringify(definition));
  if (text.byteLength > MAX_BYTES) {
    throw new SvcError('value_invalid', `The definition of the table "${table}" is too large for DynamoDB.`, {
      why: `Compressed, it has ${text.byteLength} bytes; an item has at most 400 KB.`,
      next: ['Shorten the names, defaults or enum values of its fields.'],
    });
  }
  return {
    Put: {
      TableName: state.table,
      Item: { ...state.key(entryId(table)), definition: { B: new Uint8Array(text) } },
    },
  };
}

/** The same entry, for a table that is being created. */
export function creatingEntryWrite({ Put }: TransactWriteItem): TransactWriteItem {
  return { Put: { ...Put, TableName: Put?.TableName, Item: { ...Put?.Item, creating: { BOOL: true } } } };
}

export function entryRemoval(state: StateTable, table: string): TransactWriteItem {
  return { Delete: { TableName: state.table, Key: state.key(entryId(table)) } };
}

function parseEntry(item: Item): RegistryEntry {
  const bytes = item.definition?.B;
  if (bytes === undefined) throw new Error(`the registry's item ${item.id?.S} has no definition`);
  const definition = JSON.parse(gunzipSync(bytes).toString()) as TableDefinition;
  return { collection: collectionFrom(definition), creating: item.creating?.BOOL === true };
}

/** A collection as JSON, in statements, the journal and the registry. */
export interface TableDefinition {
  readonly create: CreateCollection;
  readonly indexes: readonly CreateIndex[];
}

export function definitionOf(collection: Collection): TableDefinition {
  return {
    create: toCreateCollection(collection),
    indexes: [...collection.indexes.values()].map((index) => toCreateIndex(collection.name, index)),
  };
}

export function collectionFrom({ create, indexes }: TableDefinition): Collection {
  return {
    ...defineCollection(create),
    indexes: new Map(indexes.map((index) => [index.index, defineIndex(index)])),
  };
}
