import type { Dialect } from '../../../../core/dialect.ts';
import { isSvcError, SvcError } from '../../../../core/errors.ts';
import { canonicalJson, type Json, tryParseJson } from '../../../../core/json.ts';
import type { Field } from '../../../../core/schema/model.ts';
import { type FileEngine, identifyFile, type OpenFile, openFile } from '../embedded-file.ts';
import type { NoOptions, Options, OptionValues } from '../settings.ts';
import type { KeyValueStep } from './compile.ts';
import { type KeyValueDialect, keyValueDialect } from './dialect.ts';
import type { ExpectedText, KeyValueDriver, RowOutcome, RowWrite } from './driver.ts';

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

/** What a transaction reads and writes. A write need not be visible to `get` of the same transaction. */
export interface KeyValueTransaction {
  get(key: string): unknown;
  put(key: string, value: string | KeyValueRow): void;
  remove(key: string): void;
}

/**
 * One open file of an engine with ordered keys and transactions, whose values are texts and objects with bytes: with
 * MessagePack, or `serialize` of `node:v8`. Its functions are never called concurrently.
 */
export interface KeyValueFile {
  /** Product and version, for people. */
  readonly server: string;
  /** The value of a key, not a promise of it, including every committed write of another process; undefined without one. */
  get(key: string): unknown;
  /** Keys in the order of their UTF-8 bytes. */
  keys(range: KeyRange): Iterable<string> | Promise<Iterable<string>>;
  /**
   * Runs `work`, which is synchronous, while nobody else writes, other processes included. When it returns, all writes of
   * `work` are durable; if `work` throws, none has an effect.
   */
  transaction<T>(work: (transaction: KeyValueTransaction) => T): T | Promise<T>;
  close(): void | Promise<void>;
}

export interface EmbeddedKeyValueDialect<O extends Options = NoOptions>
  extends Pick<KeyValueDialect, 'name' | 'unsupported'> {
  /** Options of the database besides those of svc: `{ mapSizeMb: integerOption('…', 64, 1, 4096) }`. */
  readonly options?: O;
  /**
   * Of an engine whose databases are folders: the names of files that show one, also while it is created, such as
   * `/^(CURRENT|LOCK|LOG)$/` of LevelDB. Another folder is not opened, unless it is empty.
   */
  readonly folderFiles?: RegExp;
  /** Converts an error of the engine to an `SvcError`: `errorConverter`. Returns other errors unchanged. */
  toSvcError(error: unknown): unknown;
  /** Opens the file, and creates it if it does not exist. */
  open(file: string, options: OptionValues<O>): Promise<KeyValueFile>;
}

/**
 * Creates a dialect for a key-value engine that runs inside the process, with one file per database. The URL is the name of
 * the dialect and a path: `<name>://./folder/file.db`. The engine has the clock of the process.
 *
 * @example
 * export const myStore = embeddedKeyValueDialect({ name: 'my-store', unsupported: UNSUPPORTED_BY_KEY_VALUE, toSvcError, open });
 */
export function embeddedKeyValueDialect<O extends Options = NoOptions>(
  engine: EmbeddedKeyValueDialect<O>,
): Dialect<KeyValueStep> {
  const { name, unsupported, toSvcError, options: own, folderFiles } = engine;
  const isBusy = (error: unknown) => {
    const converted = toSvcError(error);
    return isSvcError(converted) && converted.code === 'database_in_use';
  };
  const file: FileEngine<KeyValueFile, O> = {
    name,
    options: own,
    folderFiles,
    toSvcError,
    isBusy,
    open: (path, values) => engine.open(path, values),
  };
  return keyValueDialect({
    name,
    unsupported,
    identify: (url) => identifyFile(name, url),
    open: async (url, options) => fileDriver(await openFile(file, url, options)),
  });
}

const BATCH = 1000;
/** Sorts after every key with the same beginning. */
const LAST = '\u{10FFFF}';

/** A promise would look like a row without fields, or be a write after its transaction. Throws `plugin_invalid`. */
function assertNoPromise(call: 'get' | 'put' | 'remove', value: unknown): unknown {
  if (!(value instanceof Promise)) return value;
  value.catch(() => undefined);
  throw new SvcError('plugin_invalid', `"${call}" of the key-value file returned a promise.`, {
    why: 'It is called inside synchronous transactions.',
    next: ['Use the synchronous call of the engine, or keyValueDialect with a driver, whose calls are asynchronous.'],
  });
}

function fileDriver({ database: given, run, toSvcError, close }: OpenFile<KeyValueFile>): KeyValueDriver {
  const database: Pick<KeyValueFile, 'server' | 'keys' | 'get' | 'transaction'> = {
    server: given.server,
    keys: (range) => given.keys(range),
    get: (key) => assertNoPromise('get', given.get(key)),
    transaction: (work) =>
      given.transaction((store) =>
        work({
          get: (key) => assertNoPromise('get', store.get(key)),
          put: (key, value) => void assertNoPromise('put', store.put(key, value)),
          remove: (key) => void assertNoPromise('remove', store.remove(key)),
        }),
      ),
  };
  const transaction = <T>(work: (transaction: KeyValueTransaction) => T) => run(async () => database.transaction(work));
  const keysOf = async (prefix: string, range: Partial<KeyRange>) => {
    const all = { start: prefix, end: `${prefix}${LAST}`, limit: BATCH, reverse: false };
    return [...(await database.keys({ ...all, ...range }))];
  };
  return {
    server: database.server,
    read: (keys) => run(async () => keys.map((key) => textOf(database.get(key)))),
    async entries(set, { low = '', high, limit, reverse }) {
      const prefix = `${set}\0`;
      const end = `${prefix}${high ?? LAST}`;
      const keys = await run(() => keysOf(prefix, { start: `${prefix}${low}`, end, limit, reverse }));
      return keys.map((key) => key.slice(prefix.length));
    },
    commit: ({ expected, before, put = [], remove = [], removeEntries = [], addEntries = [] }) =>
      transaction((store) => {
        if (!isMet(store, expected)) return 'conflict';
        if (before !== undefined && before <= Date.now()) return 'late';
        const added = new Set(addEntries.map(entryKey));
        for (const key of [...remove, ...removeEntries.map(entryKey)]) if (!added.has(key)) store.remove(key);
        for (const { key, text } of put) store.put(key, text);
        for (const key of added) store.put(key, '');
        return 'committed';
      }),
    async *scan(prefix, which) {
      for (let start = prefix; ; ) {
        const [keys, found] = await run(async () => {
          const batch = await keysOf(prefix, { start });
          return [batch, batch.filter((key) => (rowOf(key, database.get(key)) !== undefined) === (which === 'rows'))];
        });
        if (found.length > 0) yield found;
        if (keys.length < BATCH) return;
        start = `${keys.at(-1)}\0`;
      }
    },
    readRows: (keys, fields) =>
      run(async () =>
        keys.map((key) => {
          const row = rowOf(key, database.get(key)) ?? {};
          return Object.fromEntries(fields.map((field) => [field.name, bytesOf(row[field.name], field)]));
        }),
      ),
    writeRows: (writes, expected, fields) =>
      transaction((store) =>
        isMet(store, expected) ? writes.map((write) => writeRow(store, write, fields)) : 'conflict',
      ),
    query: (text) => runCommand(text, { database, run, transaction, keysOf }),
    now: async () => new Date(),
    toSvcError,
    close,
  };
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
const entryKey = ({ set, entry }: { readonly set: string; readonly entry: string }): string => `${set}\0${entry}`;

const isMet = ({ get }: Pick<KeyValueTransaction, 'get'>, expected: readonly ExpectedText[]): boolean =>
  expected.every(({ key, text }) => textOf(get(key)) === text);

/** Undefined for a value that is not an object, and for svc's own. */
function rowOf(key: string, value: unknown): KeyValueRow | undefined {
  const isObject =
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
  return isObject && !key.startsWith('_svc_') ? (value as KeyValueRow) : undefined;
}

function writeRow(store: KeyValueTransaction, write: RowWrite, fields: readonly Field[]): RowOutcome {
  const { key, read, set = {}, moveTo, remove } = write;
  const row = rowOf(key, store.get(key));
  if (!row) return 'missing';
  for (const field of fields) {
    const [found, expected] = [bytesOf(row[field.name], field), read[field.name] ?? null];
    if (found === null || expected === null ? found !== expected : Buffer.compare(found, expected) !== 0)
      return 'changed';
  }
  if (moveTo !== undefined && store.get(moveTo) !== undefined) return 'taken';
  if (remove || moveTo !== undefined) store.remove(key);
  if (remove) return 'written';
  const changed: Record<string, unknown> = { ...row };
  for (const field of fields) {
    const bytes = set[field.name];
    if (bytes) changed[field.name] = valueFrom(bytes, field);
    else if (bytes === null) delete changed[field.name];
  }
  store.put(moveTo ?? key, changed);
  return 'written';
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

interface Commands extends Pick<OpenFile<KeyValueFile>, 'run'> {
  readonly database: Pick<KeyValueFile, 'get'>;
  transaction(work: (transaction: KeyValueTransaction) => void): Promise<void>;
  keysOf(prefix: string, range: Partial<KeyRange>): Promise<readonly string[]>;
}

/** `["get", key]`, `["list", prefix]`, `["put", key, value]` or `["remove", key]`; bytes are `{ "$bytes": "<base64>" }`. */
async function runCommand(text: string, { database, run, transaction, keysOf }: Commands): Promise<KeyValueRow[]> {
  const command: unknown = tryParseJson(text);
  const [verb, key, value]: readonly unknown[] = Array.isArray(command) ? command : [];
  if (typeof key !== 'string' || !['get', 'list', 'put', 'remove'].includes(String(verb))) {
    throw new SvcError('value_invalid', 'The text is not a command.', {
      why: text,
      next: ['Write ["get", key], ["list", prefix], ["put", key, value] or ["remove", key].'],
    });
  }
  if (verb === 'put') await transaction((store) => store.put(key, withBytes(value) as KeyValueRow));
  if (verb === 'remove') await transaction((store) => store.remove(key));
  if (verb === 'put' || verb === 'remove') return [];
  return run(async () => {
    const keys = verb === 'get' ? [key] : await keysOf(key, { limit: Number.MAX_SAFE_INTEGER });
    return keys.flatMap((one) => {
      const found = database.get(one);
      return found === undefined ? [] : [{ key: one, value: found }];
    });
  });
}

function withBytes(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withBytes);
  if ('$bytes' in value) return new Uint8Array(Buffer.from(String(value.$bytes), 'base64'));
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withBytes(one)]));
}
