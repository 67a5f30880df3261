import type { Dialect } from '../../../../core/dialect.ts';
import { isSvcError, SvcError } from '../../../../core/errors.ts';
import type { Field } from '../../../../core/schema/model.ts';
import { type FileEngine, identifyFile, type OpenFile, openFile } from '../embedded-file.ts';
import type { NoOptions, Options, OptionValues } from '../settings.ts';
import type { KeyValueStep } from './compile.ts';
import { type KeyValueDialect, keyValueDialect } from './dialect.ts';
import type { ExpectedText, KeyValueDriver, RowOutcome, RowWrite } from './driver.ts';
import {
  BATCH,
  changedRow,
  changesOf,
  entriesFrom,
  type KeyRange,
  type KeyValueRow,
  keysWith,
  rangeOfEntries,
  rowOf,
  runCommand,
  textOf,
  valuesOf,
} from './object-rows.ts';

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
  const keysOf = async (prefix: string, range: Partial<KeyRange>) => [
    ...(await database.keys({ ...keysWith(prefix), ...range })),
  ];
  return {
    server: database.server,
    read: (keys) => run(async () => keys.map((key) => textOf(database.get(key)))),
    async entries(set, range) {
      const keys = await run(async () => [...(await database.keys(rangeOfEntries(set, range)))]);
      return entriesFrom(set, keys);
    },
    commit: (commit) =>
      transaction((store) => {
        if (!isMet(store, commit.expected)) return 'conflict';
        if (commit.before !== undefined && commit.before <= Date.now()) return 'late';
        const { put, remove } = changesOf(commit);
        for (const key of remove) store.remove(key);
        for (const { key, text } of put) store.put(key, text);
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
    readRows: (keys, fields) => run(async () => keys.map((key) => valuesOf(rowOf(key, database.get(key)), fields))),
    writeRows: (writes, expected, fields) =>
      transaction((store) =>
        isMet(store, expected) ? writes.map((write) => writeRow(store, write, fields)) : 'conflict',
      ),
    query: (text) =>
      runCommand(text, {
        get: (key) => run(async () => database.get(key)),
        keys: (prefix) => run(() => keysOf(prefix, { limit: Number.MAX_SAFE_INTEGER })),
        put: (key, row) => transaction((store) => store.put(key, row)),
        remove: (key) => transaction((store) => store.remove(key)),
      }),
    now: async () => new Date(),
    toSvcError,
    close,
  };
}

const isMet = ({ get }: Pick<KeyValueTransaction, 'get'>, expected: readonly ExpectedText[]): boolean =>
  expected.every(({ key, text }) => textOf(get(key)) === text);

function writeRow(store: KeyValueTransaction, write: RowWrite, fields: readonly Field[]): RowOutcome {
  const { key, moveTo, remove } = write;
  const changed = changedRow(rowOf(key, store.get(key)), write, fields);
  if (typeof changed === 'string') return changed;
  if (moveTo !== undefined && store.get(moveTo) !== undefined) return 'taken';
  if (remove || moveTo !== undefined) store.remove(key);
  if (!remove) store.put(moveTo ?? key, changed);
  return 'written';
}
