import { createHash } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../../core/errors.ts';
import { historyTable } from '../../../../core/migration/history-table.ts';
import {
  type AnyRecordDefinition,
  CLOCK,
  columnOf,
  ELAPSED,
  type RecordColumn,
  type RecordValue,
  type RecordValues,
  type Writable,
} from '../../../../core/records.ts';
import type { SystemTable } from '../connection/system-table.ts';
import type { Item } from '../data/attribute.ts';

/** The attribute that holds the version of a record. */
export const VERSION = '_version';

/** Longer JSON is compressed, because an item has at most 400 KB. */
const COMPRESS_ABOVE = 16_000;

/** The values of CLOCK and ELAPSED in a write, both in milliseconds. */
export interface WriteTime {
  readonly now: number;
  readonly elapsed: number;
}

/** Replaces CLOCK and ELAPSED by their values. */
export function resolveEngineValues(record: Writable<RecordValues>, { now, elapsed }: WriteTime): RecordValues {
  return Object.fromEntries(
    Object.entries(record).flatMap(([name, value]) => {
      if (value === undefined) return [];
      return [[name, value === CLOCK ? new Date(now) : value === ELAPSED ? elapsed : (value as RecordValue)]];
    }),
  );
}

export function encodeColumn(value: RecordValue, { type }: RecordColumn): AttributeValue {
  if (value === null) return { NULL: true };
  switch (type) {
    case 'string':
    case 'text':
      return { S: value as string };
    case 'boolean':
      return { BOOL: value as boolean };
    case 'timestamp':
      return { N: String((value as Date).getTime()) };
    case 'json':
      return encodeJson(JSON.stringify(value));
    default:
      return { N: String(value) };
  }
}

function encodeJson(text: string): AttributeValue {
  return text.length <= COMPRESS_ABOVE ? { S: text } : { B: new Uint8Array(gzipSync(text)) };
}

function decodeColumn(value: AttributeValue | undefined, { type }: RecordColumn): RecordValue {
  if (value === undefined || value.NULL) return null;
  switch (type) {
    case 'string':
    case 'text':
      return value.S ?? null;
    case 'boolean':
      return value.BOOL ?? null;
    case 'timestamp':
      return new Date(Number(value.N));
    case 'json':
      return JSON.parse(value.B ? gunzipSync(value.B).toString() : (value.S ?? 'null')) as RecordValue;
    default:
      return Number(value.N);
  }
}

export function decodeRecord(
  definition: AnyRecordDefinition,
  item: Item,
  columns: readonly string[] = Object.keys(definition.columns),
): RecordValues {
  return Object.fromEntries(columns.map((name) => [name, decodeColumn(item[name], columnOf(definition, name))]));
}

export const versionOf = (item: Item): number => Number(item[VERSION]?.N);

/** Maps DynamoDB's error for an item over 400 KB. Any other error is returned unchanged. */
export function recordTooLong(error: unknown, collection: string): unknown {
  if (!(error instanceof Error) || !/item size/i.test(error.message)) return error;
  return new SvcError('value_invalid', `A record of "${collection}" is too large for DynamoDB.`, {
    why: 'An item has at most 400 KB.',
    state: 'Nothing was changed.',
    next: [
      collection === historyTable.collection
        ? 'Split the migration into several.'
        : 'Store less: a reference instead of the content.',
    ],
    cause: error,
  });
}

type Index = AnyRecordDefinition['indexes'][number];

/** A partition accepts 1,000 writes per second, so the records of a sharded index are distributed over several partitions. */
const SHARD_COUNT = 16;
/** Appended to a sort text, it sorts after that text followed by any key. */
const ABOVE_ANY_KEY = '\u0001';
const LOWEST = '1';
const NULLS = '2';
const HIGHEST = '3';

/** Whether the index is a global secondary index. An index without `equals` is read from the table instead. */
export const isGlobalIndex = ({ equals }: Index): boolean => equals.length > 0;

export const partitionAttribute = ({ name }: Index): string => `_${name}`;
export const sortAttribute = ({ name }: Index): string => `_${name}_at`;

export function systemTableOf(definition: AnyRecordDefinition): SystemTable {
  return {
    key: definition.key,
    indexes: definition.indexes.filter(isGlobalIndex).map((index) => ({
      name: index.name,
      partition: partitionAttribute(index),
      sort: sortAttribute(index),
    })),
  };
}

/** The index key of a record; undefined if a column of `equals` is null, which leaves the record out of the index. */
export function indexKey(
  index: Index,
  definition: AnyRecordDefinition,
  record: RecordValues,
): { readonly partition: string; readonly sort: string } | undefined {
  if (index.equals.some((column) => record[column] === null)) return undefined;
  const key = String(record[definition.key]);
  const shard = index.sharded ? createHash('sha256').update(key).digest().readUInt8() % SHARD_COUNT : undefined;
  return { partition: partitionValue(index, record, shard), sort: `${sortText(record[index.sort] ?? null)}\0${key}` };
}

/** The partitions that hold records with these values. */
export function indexPartitions(index: Index, equals: Partial<RecordValues>): string[] {
  if (!index.sharded) return [partitionValue(index, equals, undefined)];
  return Array.from({ length: SHARD_COUNT }, (_, shard) => partitionValue(index, equals, shard));
}

function partitionValue(index: Index, values: Partial<RecordValues>, shard: number | undefined): string {
  const text = JSON.stringify(index.equals.map((column) => values[column]));
  return shard === undefined ? text : `${shard}#${text}`;
}

/** The lowest and highest sort text of a page, both inclusive. */
export function sortBounds(from: RecordValue | undefined, to: RecordValue | undefined): readonly [string, string] {
  return [
    from === undefined ? LOWEST : sortText(from),
    to !== undefined ? sortText(to) + ABOVE_ANY_KEY : from === undefined ? HIGHEST : NULLS,
  ];
}

/** Text with the sort order of the values; null sorts last. */
export function sortText(value: RecordValue): string {
  if (value === null) return NULLS;
  if (typeof value === 'string') return `${LOWEST}${escapeNul(value)}`;
  if (typeof value === 'boolean') return `${LOWEST}${value ? 1 : 0}`;
  return `${LOWEST}${sortableNumber(value instanceof Date ? value.getTime() : Number(value))}`;
}

/** NUL separates the value from the key, so a NUL in the value is escaped. */
function escapeNul(text: string): string {
  return text.replaceAll('\u0001', '\u0001\u0002').replaceAll('\0', '\u0001\u0001');
}

/** The bits of a double in hexadecimal, changed so that the text sorts as the numbers do. */
function sortableNumber(value: number): string {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(value === 0 ? 0 : value);
  const negative = (bytes[0] ?? 0) >= 0x80;
  for (const [index, byte] of bytes.entries()) bytes[index] = negative ? 255 - byte : index === 0 ? byte ^ 0x80 : byte;
  return bytes.toString('hex');
}

/** The index attributes of a record; undefined for an index that the record leaves. */
export function indexAttributes(
  definition: AnyRecordDefinition,
  record: RecordValues,
): Record<string, AttributeValue | undefined> {
  const attributes: Record<string, AttributeValue | undefined> = {};
  for (const index of definition.indexes.filter(isGlobalIndex)) {
    const columns = [...index.equals, index.sort];
    const present = columns.filter((column) => record[column] !== undefined);
    if (present.length === 0) continue;
    if (present.length < columns.length) {
      throw new Error(`a write to ${definition.collection} contains only some columns of the index ${index.name}`);
    }
    const key = indexKey(index, definition, record);
    attributes[partitionAttribute(index)] = key && { S: key.partition };
    attributes[sortAttribute(index)] = key && { S: key.sort };
  }
  return attributes;
}
