import { mergedPage } from '../../../../core/merged-page.ts';
import {
  type AnyRecordDefinition,
  allRows,
  anyDefinition,
  buildPage,
  CLOCK,
  columnOf,
  ELAPSED,
  type Guard,
  pageIndex,
  pageStart,
  type RecordDefinition,
  type RecordIndex,
  type RecordStore,
  type RecordValue,
  type RecordValues,
  type RecordWrite,
  typedStore,
  type Versioned,
} from '../../../../core/records.ts';
import { type convertingErrors, lockLostError } from '../errors.ts';
import { leaseTable } from '../lease.ts';
import type { ExpectedText, KeyValueCommit, KeyValueDriver, SetEntry } from './driver.ts';

const EPOCH_KEY = '_svc_epoch';
/** The index of every table that contains all of its records. */
const ALL = '';
/** Sorts after every entry with the same beginning. */
const LAST = '\u{10FFFF}';
/** A page is read again if one of its records was removed after its index was read. */
const MAX_ATTEMPTS = 20;

/** What must be true of the database while the epoch is current; nothing without a lock. */
export const fenceOf = (epoch: number | undefined): readonly ExpectedText[] =>
  epoch ? [{ key: EPOCH_KEY, text: String(epoch) }] : [];

interface Stored extends Versioned<RecordValues> {
  readonly text: string;
}

type Changes = Omit<KeyValueCommit, 'expected' | 'before'>;

/** A record store over `KeyValueDriver`: a record is a text, its indexes are entries in sorted sets. */
export function keyValueRecords<R extends object>(
  driver: KeyValueDriver,
  typed: RecordDefinition<R>,
  convert: ReturnType<typeof convertingErrors>,
): RecordStore<R> {
  const definition = anyDefinition(typed);
  const find = async (key: string) => (await readRecords(driver, definition, [key]))[0];
  /** Repeats a change of a record until nobody else changes it in between. */
  const change = async (
    key: string,
    version: number,
    guard: Guard<RecordValues>,
    changes: (from: Stored) => Promise<Changes>,
  ) => {
    for (;;) {
      const stored = await find(key);
      if (!stored) return 'missing';
      if (stored.version !== version) return 'stale';
      const before = guard.before === undefined ? undefined : Number(stored.record[guard.before] ?? 0);
      const expected = [{ key: recordKey(definition, key), text: stored.text }, ...fenceOf(guard.epoch)];
      const outcome = await driver.commit({
        expected,
        ...(before !== undefined && { before }),
        ...(await changes(stored)),
      });
      if (outcome !== 'conflict') return outcome;
      const [epoch] = guard.epoch === undefined ? [] : await driver.read([EPOCH_KEY]);
      if (guard.epoch !== undefined && epoch !== String(guard.epoch)) return 'stale';
    }
  };
  const store: RecordStore<RecordValues> = {
    insert: (record) =>
      convert(async () => {
        const { changes, expected } = await prepareWrite(driver, { definition, record }, 0, undefined);
        return (await driver.commit({ expected: [expected], ...changes })) === 'committed' ? 'inserted' : 'exists';
      }),
    get: (key) =>
      convert(async () => {
        const stored = await find(key);
        return stored && { record: stored.record, version: stored.version };
      }),
    replace: (key, version, record, guard = {}) =>
      convert(async () => {
        const write = { definition, record, version };
        const changes = async (stored: Stored) => (await prepareWrite(driver, write, 0, stored)).changes;
        const outcome = await change(key, version, guard, changes);
        return outcome === 'committed' ? 'replaced' : outcome;
      }),
    remove: (key, version) =>
      convert(async () => {
        const changes = async ({ record }: Stored) => ({
          remove: [recordKey(definition, key)],
          removeEntries: entriesOf(definition, record),
        });
        const outcome = await change(key, version, {}, changes);
        return outcome === 'committed' ? 'removed' : outcome === 'missing' ? 'missing' : 'stale';
      }),
    page: (name, query) =>
      convert(async () => {
        if (query.anyOf) return mergedPage(definition, name, query, (one) => store.page(name, one));
        const index = name === ALL ? allOf(definition) : pageIndex(definition, name, query);
        const [start, reverse] = [pageStart(definition, index, query), query.direction === 'desc'];
        const position = (value: RecordValue) => sortText(value, index, definition);
        const cursor = start && `${position(start.sort)}${start.key}`;
        const low = cursor !== undefined && !reverse ? `${cursor}\0` : query.from !== undefined && position(query.from);
        const high =
          cursor !== undefined && reverse ? cursor : query.to !== undefined && `${position(query.to)}${LAST}`;
        const range = {
          ...(low !== false && { low }),
          ...(high !== false && { high }),
          limit: query.limit + 1,
          reverse,
        };
        const wanted = query.columns ?? Object.keys(definition.columns);
        for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
          const found = await driver.entries(indexSet(definition, index, query.equals ?? {}), range);
          const keys = found.map((entry) => entry.slice(isNumeric(definition, index) ? 16 : entry.indexOf('\0') + 1));
          const records = await readRecords(driver, definition, keys);
          const read = records.filter((stored) => stored !== undefined);
          if (read.length < found.length) continue;
          return buildPage(
            read,
            query.limit,
            ({ record, version }) => ({
              record: Object.fromEntries(wanted.map((column) => [column, record[column] ?? null])),
              version,
            }),
            ({ record }) => ({ sort: record[index.sort] ?? null, key: String(record[definition.key]) }),
          );
        }
        throw new Error(`the index ${definition.collection}.${name} has an entry without a record`);
      }),
  };
  return typedStore<R>(store);
}

/** Writes all records or none. Returns the values of CLOCK and ELAPSED. Throws `lock_lost` if one has changed. */
export async function writeRecords(
  driver: KeyValueDriver,
  writes: readonly RecordWrite[],
  epoch: number,
  elapsedMs: number,
): Promise<Readonly<Record<string, Date | number>>[]> {
  const prepared = await Promise.all(
    writes.map(async (write) => {
      const [stored] = await readRecords(driver, write.definition, [String(write.record[write.definition.key])]);
      if (stored?.version !== write.version) throw lockLostError();
      return prepareWrite(driver, write, elapsedMs, stored);
    }),
  );
  const outcome = await driver.commit({
    expected: [...prepared.map(({ expected }) => expected), ...fenceOf(epoch)],
    put: prepared.flatMap(({ changes }) => changes.put ?? []),
    removeEntries: prepared.flatMap(({ changes }) => changes.removeEntries ?? []),
    addEntries: prepared.flatMap(({ changes }) => changes.addEntries ?? []),
    notify: prepared.flatMap(({ changes }) => changes.notify ?? []),
  });
  if (outcome !== 'committed') throw lockLostError();
  return prepared.map(({ filled }) => filled);
}

/** Adds the records of tables to the indexes of a newer definition. */
export async function ensureIndexes(
  driver: KeyValueDriver,
  definitions: readonly AnyRecordDefinition[],
  convert: ReturnType<typeof convertingErrors>,
): Promise<void> {
  for (const definition of definitions) {
    const key = `_svc_indexes/${definition.collection}`;
    const names = JSON.stringify(definition.indexes.map(({ name }) => name));
    const [text] = await driver.read([key]);
    if (text === names) continue;
    const store = keyValueRecords<RecordValues>(driver, definition, convert);
    for await (const { record } of allRows(store, ALL, { limit: 1000 })) {
      for (let added = false; !added; ) {
        const [stored] = await readRecords(driver, definition, [String(record[definition.key])]);
        if (!stored) break;
        const expected = [{ key: recordKey(definition, String(record[definition.key])), text: stored.text }];
        added = (await driver.commit({ expected, addEntries: entriesOf(definition, stored.record) })) === 'committed';
      }
    }
    await driver.commit({ expected: [], put: [{ key, text: names }] });
  }
}

async function readRecords(
  driver: KeyValueDriver,
  definition: AnyRecordDefinition,
  keys: readonly string[],
): Promise<(Stored | undefined)[]> {
  if (keys.length === 0) return [];
  const texts = await driver.read(keys.map((key) => recordKey(definition, key)));
  return texts.map((text) => {
    if (text === undefined) return undefined;
    const { version, record } = JSON.parse(text) as Versioned<RecordValues>;
    const values = Object.entries(definition.columns).map(([name, { type }]) => {
      const value = record[name] ?? null;
      return [name, type === 'timestamp' && value !== null ? new Date(Number(value)) : value];
    });
    return { version, record: Object.fromEntries(values), text };
  });
}

/** The changes that insert a record or replace `stored`, and the values that the engine fills in. */
async function prepareWrite(
  driver: KeyValueDriver,
  { definition, record }: RecordWrite,
  elapsedMs: number,
  stored: Stored | undefined,
) {
  const now = Object.values(record).includes(CLOCK) ? await driver.now() : undefined;
  const filled: Record<string, Date | number> = {};
  const values: Record<string, RecordValue> = { ...stored?.record };
  for (const name of Object.keys(definition.columns)) {
    const value = record[name];
    if (value === CLOCK && now) filled[name] = now;
    else if (value === ELAPSED) filled[name] = elapsedMs;
    else if (value !== undefined) values[name] = value as RecordValue;
  }
  Object.assign(values, filled);
  const key = String(values[definition.key]);
  const texts = Object.entries(values).map(([name, value]) => [name, value instanceof Date ? value.getTime() : value]);
  const text = JSON.stringify({ version: (stored?.version ?? 0) + 1, record: Object.fromEntries(texts) });
  const isLock = definition.collection === leaseTable.collection;
  const changes: Changes = {
    put: [
      { key: recordKey(definition, key), text },
      ...(isLock ? [{ key: EPOCH_KEY, text: String(values.epoch) }] : []),
    ],
    removeEntries: stored ? entriesOf(definition, stored.record) : [],
    addEntries: entriesOf(definition, values),
    notify: definition.notifyOn?.(record) ? [{ collection: definition.collection, key }] : [],
  };
  return { changes, filled, expected: { key: recordKey(definition, key), ...(stored && { text: stored.text }) } };
}

const recordKey = ({ collection }: AnyRecordDefinition, key: string): string => `${collection}:${key}`;

const allOf = ({ key }: AnyRecordDefinition): RecordIndex<RecordValues> => ({ name: ALL, equals: [], sort: key });

function entriesOf(definition: AnyRecordDefinition, record: RecordValues): SetEntry[] {
  return [allOf(definition), ...definition.indexes].map((index) => ({
    set: indexSet(definition, index, record),
    entry: `${sortText(record[index.sort] ?? null, index, definition)}${record[definition.key]}`,
  }));
}

/** The sorted set of the records with these values. */
function indexSet(
  { collection }: AnyRecordDefinition,
  { name, equals }: RecordIndex<RecordValues>,
  values: Partial<RecordValues>,
): string {
  return `${collection}/${name}/${JSON.stringify(equals.map((column) => values[column] ?? null))}`;
}

const isNumeric = (definition: AnyRecordDefinition, { sort }: RecordIndex<RecordValues>): boolean =>
  ['integer', 'bigint', 'double', 'timestamp'].includes(columnOf(definition, sort).type);

/** A text that sorts as the value does: for a number, the bits of the double, with those of negative ones inverted. */
function sortText(value: RecordValue, index: RecordIndex<RecordValues>, definition: AnyRecordDefinition): string {
  if (!isNumeric(definition, index)) return `${value ?? ''}\0`;
  if (value === null) return '0'.repeat(16);
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(Number(value) + 0);
  const bits = bytes.readBigUInt64BE();
  const sign = 1n << 63n;
  return BigInt.asUintN(64, bits >= sign ? ~bits : bits | sign)
    .toString(16)
    .padStart(16, '0');
}
