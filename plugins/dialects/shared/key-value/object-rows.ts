import { SvcError } from '../../../../core/errors.ts';
import { canonicalJson, type Json, tryParseJson } from '../../../../core/json.ts';
import type { Field } from '../../../../core/schema/model.ts';
import type { EntryRange, KeyValueCommit, RowValues, RowWrite } from './driver.ts';

/*
 * How an engine with ordered keys has what a `KeyValueDriver` names: an entry of a sorted set is a key, a row is an object.
 */

/** The values of a row by field: numbers, booleans, texts, bytes as `Uint8Array`, JSON. */
export type KeyValueRow = Readonly<Record<string, unknown>>;

export interface KeyRange {
  /** The first key, inclusive. */
  readonly start: string;
  /** The end, exclusive. */
  readonly end: string;
  readonly limit: number;
  /** From the last key to the first. */
  readonly reverse: boolean;
}

export const BATCH = 1000;
/** Sorts after every key with the same beginning. */
const LAST = '\u{10FFFF}';

/** The first keys with a beginning. */
export const keysWith = (prefix: string): KeyRange => ({
  ...{ start: prefix, end: `${prefix}${LAST}` },
  ...{ limit: BATCH, reverse: false },
});

const entryKey = (set: string, entry: string): string => `${set}\0${entry}`;

/** The keys of these entries. */
export const rangeOfEntries = (set: string, { low = '', high, limit, reverse }: EntryRange): KeyRange => ({
  start: entryKey(set, low),
  end: entryKey(set, high ?? LAST),
  limit,
  reverse,
});

export const entriesFrom = (set: string, keys: readonly string[]): string[] =>
  keys.map((key) => key.slice(entryKey(set, '').length));

/** What a commit writes, entries included. No key is both put and removed. */
export function changesOf({
  put = [],
  remove = [],
  removeEntries = [],
  addEntries = [],
}: Omit<KeyValueCommit, 'expected'>): {
  readonly put: readonly { readonly key: string; readonly text: string }[];
  readonly remove: readonly string[];
} {
  const added = new Set(addEntries.map(({ set, entry }) => entryKey(set, entry)));
  const removed = [...remove, ...removeEntries.map(({ set, entry }) => entryKey(set, entry))];
  return {
    put: [...put, ...[...added].map((key) => ({ key, text: '' }))],
    remove: [...new Set(removed.filter((key) => !added.has(key)))],
  };
}

export const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** Undefined for a value that is not an object, and for svc's own. */
export function rowOf(key: string, value: unknown): KeyValueRow | undefined {
  const isObject =
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
  return isObject && !key.startsWith('_svc_') ? (value as KeyValueRow) : undefined;
}

export const valuesOf = (row: KeyValueRow = {}, fields: readonly Field[]): RowValues =>
  Object.fromEntries(fields.map((field) => [field.name, bytesOf(row[field.name], field)]));

/** The row after a write, or why it is not written. */
export function changedRow(
  row: KeyValueRow | undefined,
  { read, set = {} }: RowWrite,
  fields: readonly Field[],
): KeyValueRow | 'missing' | 'changed' {
  if (!row) return 'missing';
  for (const field of fields) {
    const [found, expected] = [bytesOf(row[field.name], field), read[field.name] ?? null];
    if (found === null || expected === null ? found !== expected : Buffer.compare(found, expected) !== 0)
      return 'changed';
  }
  const changed: Record<string, unknown> = { ...row };
  for (const field of fields) {
    const bytes = set[field.name];
    if (bytes) changed[field.name] = valueFrom(bytes, field);
    else if (bytes === null) delete changed[field.name];
  }
  return changed;
}

/** A stored value as the bytes of its text. */
function bytesOf(value: unknown, { type }: Field): Uint8Array | null {
  if (value === undefined || value === null) return null;
  if (value instanceof Uint8Array) return value;
  if (value instanceof Date) return Buffer.from(value.toISOString());
  const isJson = typeof value === 'object' || type === 'json' || type === 'array';
  return Buffer.from(isJson ? canonicalJson(value as Json) : String(value));
}

/** The bytes of a text as a value of the type. A number that JavaScript would round stays a text. */
function valueFrom(bytes: Uint8Array, { type }: Field): unknown {
  if (type === 'binary' || type === 'blob') return new Uint8Array(bytes);
  const text = Buffer.from(bytes).toString();
  switch (type) {
    case 'boolean':
      return text === 'true' || (text === 'false' ? false : text);
    case 'integer':
    case 'smallint':
    case 'bigint':
    case 'float':
    case 'double':
      return String(Number(text)) === text ? Number(text) : text;
    case 'json':
    case 'array':
      return tryParseJson(text) ?? text;
    default:
      return text;
  }
}

/** What a command reads and writes. */
export interface CommandStore {
  get(key: string): Promise<unknown>;
  keys(prefix: string): Promise<readonly string[]>;
  put(key: string, row: KeyValueRow): Promise<void>;
  remove(key: string): Promise<void>;
}

/** `["get", key]`, `["list", prefix]`, `["put", key, value]` or `["remove", key]`; bytes are `{ "$bytes": "<base64>" }`. */
export async function runCommand(text: string, store: CommandStore): Promise<KeyValueRow[]> {
  const command: unknown = tryParseJson(text);
  const [verb, key, value]: readonly unknown[] = Array.isArray(command) ? command : [];
  if (typeof key !== 'string' || !['get', 'list', 'put', 'remove'].includes(String(verb))) {
    throw new SvcError('value_invalid', 'The text is not a command.', {
      why: text,
      next: ['Write ["get", key], ["list", prefix], ["put", key, value] or ["remove", key].'],
    });
  }
  if (verb === 'put') await store.put(key, withBytes(value) as KeyValueRow);
  if (verb === 'remove') await store.remove(key);
  if (verb === 'put' || verb === 'remove') return [];
  const rows: KeyValueRow[] = [];
  for (const one of verb === 'get' ? [key] : await store.keys(key)) {
    const found = await store.get(one);
    if (found !== undefined) rows.push({ key: one, value: found });
  }
  return rows;
}

/** The value of a command, or of a row that is stored as JSON, with its bytes. */
export function withBytes(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withBytes);
  if ('$bytes' in value) return new Uint8Array(Buffer.from(String(value.$bytes), 'base64'));
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withBytes(one)]));
}
