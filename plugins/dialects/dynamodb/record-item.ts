import { gunzipSync, gzipSync } from 'node:zlib';
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../core/errors.ts';
import { history } from '../../../core/migration/history.ts';
import {
  type AnyRecordDefinition,
  CLOCK,
  ELAPSED,
  type RecordColumn,
  type RecordValue,
  type RecordValues,
  type Writable,
} from '../../../core/records.ts';
import type { Item } from './attribute.ts';

/** The attribute that counts the replaces of a record. */
export const VERSION = '_version';

/** Longer JSON is packed: an item has at most 400 KB. */
const LONG = 16_000;

/** What stands for the engine's clock in a write, and for the time since its segment began, both in milliseconds. */
export interface Moment {
  readonly now: number;
  readonly elapsed: number;
}

/** A record whose engine's values are known. */
export function filled(record: Writable<RecordValues>, { now, elapsed }: Moment): RecordValues {
  return Object.fromEntries(
    Object.entries(record).flatMap(([name, value]) => {
      if (value === undefined) return [];
      return [[name, value === CLOCK ? new Date(now) : value === ELAPSED ? elapsed : (value as RecordValue)]];
    }),
  );
}

export function columnAttribute(value: RecordValue, { type }: RecordColumn): AttributeValue {
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
      return packed(JSON.stringify(value));
    default:
      return { N: String(value) };
  }
}

function packed(text: string): AttributeValue {
  return text.length <= LONG ? { S: text } : { B: new Uint8Array(gzipSync(text)) };
}

function columnValue(value: AttributeValue | undefined, { type }: RecordColumn): RecordValue {
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

/** The columns that were read; all where none are named. */
export function recordFrom(
  definition: AnyRecordDefinition,
  item: Item,
  columns: readonly string[] = Object.keys(definition.columns),
): RecordValues {
  return Object.fromEntries(columns.map((name) => [name, columnValue(item[name], columnOf(definition, name))]));
}

export function columnOf(definition: AnyRecordDefinition, name: string): RecordColumn {
  const column = definition.columns[name];
  if (!column) throw new Error(`${definition.collection} has no column ${name}`);
  return column;
}

export const versionOf = (item: Item): number => Number(item[VERSION]?.N);

/** A record that no item can hold, in words of ours. */
export function tooLong(error: unknown, collection: string): unknown {
  if (!(error instanceof Error) || !/item size/i.test(error.message)) return error;
  return new SvcError('value_invalid', `A record of "${collection}" is too long for DynamoDB.`, {
    why: 'An item has at most 400 KB.',
    state: 'Nothing was changed.',
    next: [
      collection === history.collection
        ? 'Split the migration into several.'
        : 'Hand on less: a reference, not the content.',
    ],
    cause: error,
  });
}
