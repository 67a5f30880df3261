import { SvcError } from '../../../../core/errors.ts';
import { readExactJson, tryParseJson } from '../../../../core/json.ts';
import type { Field } from '../../../../core/schema/model.ts';
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
  valuesOf,
  withBytes,
} from './object-rows.ts';

/** Changes that take effect together, or not at all. Every key occurs once in `put` and `remove`. */
export interface KeyCommit {
  /** The texts that keys have, compared in the same step. */
  readonly expected: readonly ExpectedText[];
  readonly put: readonly { readonly key: string; readonly text: string }[];
  readonly remove: readonly string[];
}

/** A connection to a server with texts under keys, which it orders by their UTF-8 bytes, such as etcd or FoundationDB. */
export interface OrderedKeyServer extends Pick<KeyValueDriver, 'server' | 'close' | 'toSvcError'> {
  /** The texts of at most `maxKeys` keys, including every acknowledged write; undefined for a key that does not exist. */
  get(keys: readonly string[]): Promise<readonly (string | undefined)[]>;
  /** The keys of a range, at most `limit` of them. */
  keys(range: KeyRange): Promise<readonly string[]>;
  /** Makes all of the changes or, if a key has another text, none. Returns whether they were made. */
  commit(commit: KeyCommit): Promise<boolean>;
  /** How many keys `get` and each list of a `commit` have at most; default 100. Only `baseline` may have more. */
  readonly maxKeys?: number;
  /** The time of the server. Default: that of this process, so that all processes need the same time. */
  now?(): Promise<Date>;
  /** Calls `onPut` with the text of a key when it is put. Calls may be lost, late or repeated. Returns what stops them. */
  watch?(key: string, onPut: (text: string) => void): Promise<() => Promise<void>>;
}

/**
 * The driver of a server with ordered keys and commits under conditions, for `keyValueDialect`. A row is a JSON object under
 * the key `<table>:<id>`, with bytes as `{ "$bytes": "<base64>" }`.
 *
 * @example
 * open: async (url) => orderedKeyDriver({ server: 'etcd 3.5', get, keys, commit, close, toSvcError })
 */
export function orderedKeyDriver(server: OrderedKeyServer): KeyValueDriver {
  const { maxKeys = 100 } = server;
  const watch = server.watch?.bind(server);
  const now = async () => (server.now ? server.now() : new Date());
  const read = async (keys: readonly string[]) =>
    (await Promise.all(parts(keys, maxKeys).map((part) => server.get(part)))).flat();
  const isMet = async (expected: readonly ExpectedText[]) => {
    const texts = await read(expected.map(({ key }) => key));
    return expected.every(({ text }, at) => texts[at] === text);
  };
  return {
    ...(server.server !== undefined && { server: server.server }),
    read,
    entries: async (set, range) => entriesFrom(set, await server.keys(rangeOfEntries(set, range))),
    async commit({ expected, before, notify = [], ...changes }) {
      if (before !== undefined && before <= (await now()).getTime())
        return (await isMet(expected)) ? 'late' : 'conflict';
      const { put, remove } = changesOf(changes);
      const notified = watch ? new Map(notify.map(({ collection, key }) => [watchedKey(collection), key])) : [];
      const all = [...put, ...[...notified].map(([key, text]) => ({ key, text }))];
      return (await server.commit({ expected, put: all, remove })) ? 'committed' : 'conflict';
    },
    async *scan(prefix, which) {
      for (let range = keysWith(prefix); ; ) {
        const keys = await server.keys(range);
        const texts = await read(keys);
        const found = keys.filter((key, at) => (storedRow(key, texts[at]) !== undefined) === (which === 'rows'));
        if (found.length > 0) yield found;
        if (keys.length < BATCH) return;
        range = { ...range, start: `${keys.at(-1)}\0` };
      }
    },
    async readRows(keys, fields) {
      const texts = await read(keys);
      return keys.map((key, at) => valuesOf(storedRow(key, texts[at]), fields));
    },
    async writeRows(writes, expected, fields) {
      const outcomes: RowOutcome[] = [];
      // A row that moves has two keys.
      for (const part of parts(writes, Math.max(1, (maxKeys - expected.length) >> 1))) {
        let written: readonly RowOutcome[] | 'conflict' | undefined;
        while (!written) written = await writePart(server, part, expected, fields, read);
        if (written === 'conflict') return written;
        outcomes.push(...written);
      }
      return outcomes;
    },
    query: (text) =>
      runCommand(text, {
        get: async (key) => storedValue(key, (await server.get([key]))[0]),
        keys: (prefix) => server.keys({ ...keysWith(prefix), limit: Number.MAX_SAFE_INTEGER }),
        put: async (key, row) =>
          void (await server.commit({ expected: [], put: [{ key, text: textOfRow(row) }], remove: [] })),
        remove: async (key) => void (await server.commit({ expected: [], put: [], remove: [key] })),
      }),
    now,
    ...(watch && { watch: (collection, notify) => watch(watchedKey(collection), notify) }),
    toSvcError: (error) => server.toSvcError(error),
    close: () => server.close(),
  };
}

/** `conflict` if `expected` is not met; undefined if somebody else changed one of the keys in between. */
async function writePart(
  server: OrderedKeyServer,
  writes: readonly RowWrite[],
  expected: readonly ExpectedText[],
  fields: readonly Field[],
  read: KeyValueDriver['read'],
): Promise<readonly RowOutcome[] | 'conflict' | undefined> {
  const rows = writes.flatMap(({ key, moveTo }) => (moveTo === undefined ? [key] : [key, moveTo]));
  const keys = [...expected.map(({ key }) => key), ...rows];
  const texts = new Map((await read(keys)).map((text, at) => [keys[at], text]));
  if (!expected.every(({ key, text }) => texts.get(key) === text)) return 'conflict';
  const unchanged: ExpectedText[] = [];
  const put: { key: string; text: string }[] = [];
  const remove: string[] = [];
  const outcomes = writes.map((write): RowOutcome => {
    const { key, moveTo } = write;
    const text = texts.get(key);
    const changed = changedRow(storedRow(key, text), write, fields);
    if (typeof changed === 'string') return changed;
    if (moveTo !== undefined && texts.get(moveTo) !== undefined) return 'taken';
    unchanged.push({ key, ...(text !== undefined && { text }) }, ...(moveTo === undefined ? [] : [{ key: moveTo }]));
    if (write.remove || moveTo !== undefined) remove.push(key);
    if (!write.remove) put.push({ key: moveTo ?? key, text: textOfRow(changed) });
    return 'written';
  });
  if (unchanged.length === 0) return outcomes;
  return (await server.commit({ expected: [...expected, ...unchanged], put, remove })) ? outcomes : undefined;
}

const watchedKey = (collection: string): string => `_svc_changed/${collection}`;

const storedRow = (key: string, text: string | undefined): KeyValueRow | undefined =>
  text === undefined || key.startsWith('_svc_') ? undefined : rowOf(key, storedValue(key, text));

/** The JSON value of a text; the text itself if it is no JSON. Throws `data_violates` for one that reading would change. */
function storedValue(key: string, text: string | undefined): unknown {
  if (text === undefined || tryParseJson(text) === undefined) return text;
  const exact = readExactJson(text);
  if ('value' in exact) return withBytes(exact.value);
  throw new SvcError('data_violates', `The value of "${key}" cannot be read without a change.`, {
    why: exact.problem,
    next: ['Store a number with more digits as a text.'],
  });
}

const textOfRow = (row: KeyValueRow): string =>
  JSON.stringify(row, (_, value) =>
    value instanceof Uint8Array ? { $bytes: Buffer.from(value).toString('base64') } : value,
  );

function parts<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, (at + 1) * size));
}
