import type { Connection } from '../../core/dialect.ts';
import { mergedPage } from '../../core/merged-page.ts';
import {
  anyDefinition,
  buildPage,
  CLOCK,
  ELAPSED,
  type Page,
  type PageQuery,
  pageIndex,
  pageStart,
  type RecordDefinition,
  type RecordStore,
  type RecordValue,
  type RecordValues,
  typedStore,
  type Versioned,
  type Writable,
} from '../../core/records.ts';
import { deepFreeze } from '../../core/tool/safe-json.ts';
import { type Position, SortedIndex } from './sorted-index.ts';

type Stored = Versioned<RecordValues>;
/** Where an index has a row. An index is named by its name and the values of its `equals` columns. */
type Place = readonly [index: string, position: Position];
type Listener = (key?: string) => void;

/** Keeps records in this process: no other process sees them, and a restart loses them. */
export class MemoryStore
  implements Pick<Connection, 'records' | 'ensureTables' | 'withLock' | 'now' | 'watch' | 'close'>
{
  readonly #clock: () => number;
  readonly #tables = new Map<string, Table>();
  readonly #listeners = new Map<string, Set<Listener>>();
  #lock: Promise<unknown> = Promise.resolve();
  #epoch = 0;

  /** `clock` returns milliseconds since 1970. */
  constructor(clock: () => number = Date.now) {
    this.#clock = clock;
  }

  records<R extends object>(definition: RecordDefinition<R>): RecordStore<R> {
    let table = this.#tables.get(definition.collection);
    if (!table) {
      table = new Table(anyDefinition(definition), this.#clock, (key) => {
        for (const notify of this.#listeners.get(definition.collection) ?? []) notify(key);
      });
      this.#tables.set(definition.collection, table);
    }
    return typedStore(table);
  }

  async ensureTables(): Promise<void> {}

  async now(): Promise<Date> {
    return new Date(this.#clock());
  }

  async watch(topic: string, notify: Listener): Promise<() => Promise<void>> {
    const listeners = this.#listeners.get(topic) ?? new Set();
    this.#listeners.set(topic, listeners.add(notify));
    return async () => void listeners.delete(notify);
  }

  withLock<T>(work: (epoch: number) => Promise<T>): Promise<T> {
    this.#epoch += 1;
    const epoch = this.#epoch;
    const result = this.#lock.then(() => work(epoch));
    this.#lock = result.catch(() => undefined);
    return result;
  }

  async close(): Promise<void> {}
}

class Table implements RecordStore<RecordValues> {
  readonly #definition: RecordDefinition<RecordValues>;
  readonly #clock: () => number;
  readonly #onChange: (key: string) => void;
  readonly #rows = new Map<string, Stored>();
  readonly #places = new Map<string, readonly Place[]>();
  readonly #indexes = new Map<string, SortedIndex>();

  constructor(definition: RecordDefinition<RecordValues>, clock: () => number, onChange: (key: string) => void) {
    this.#definition = definition;
    this.#clock = clock;
    this.#onChange = onChange;
  }

  async insert(record: Writable<RecordValues>): Promise<'inserted' | 'exists'> {
    const key = this.#keyOf(record);
    if (this.#rows.has(key)) return 'exists';
    this.#put(key, { record: this.#frozenRecord(record), version: 1 });
    return 'inserted';
  }

  async get(key: string): Promise<Stored | undefined> {
    return this.#rows.get(key);
  }

  async replace(
    key: string,
    version: number,
    record: Writable<RecordValues>,
    { before }: { readonly before?: string; readonly epoch?: number } = {},
  ): Promise<'replaced' | 'stale' | 'late' | 'missing'> {
    const found = this.#rows.get(key);
    if (!found) return 'missing';
    if (found.version !== version) return 'stale';
    if (before !== undefined && Number(found.record[before]) <= this.#clock()) return 'late';
    this.#put(key, { record: this.#frozenRecord(record), version: version + 1 });
    return 'replaced';
  }

  async remove(key: string, version: number): Promise<'removed' | 'stale' | 'missing'> {
    const found = this.#rows.get(key);
    if (!found) return 'missing';
    if (found.version !== version) return 'stale';
    this.#rows.delete(key);
    this.#move(key, []);
    return 'removed';
  }

  async page(name: string, query: PageQuery<RecordValues>): Promise<Page<RecordValues>> {
    if (query.anyOf) return mergedPage(this.#definition, name, query, (one) => this.page(name, one));
    const index = pageIndex(this.#definition, name, query);
    const { equals = {}, from, to, direction, limit, columns } = query;
    const start = pageStart(this.#definition, index, query);
    const sorted = this.#indexes.get(indexKey(name, index.equals, equals as RecordValues));
    const found: Stored[] = [];
    const range = {
      from: sortValue(from),
      to: sortValue(to),
      ...(start && { after: [sortValue(start.sort) ?? null, start.key] as const }),
      descending: direction === 'desc',
    };
    for (const [, key] of sorted?.range(range) ?? []) {
      found.push(this.#rows.get(key) as Stored);
      if (found.length > limit) break;
    }
    return buildPage(
      found,
      limit,
      (stored) => (columns ? { ...stored, record: pickColumns(stored.record, columns) } : stored),
      ({ record }) => ({ sort: record[index.sort] ?? null, key: this.#keyOf(record) }),
    );
  }

  #keyOf(record: Writable<RecordValues>): string {
    return String(record[this.#definition.key]);
  }

  #put(key: string, stored: Stored): void {
    this.#rows.set(key, stored);
    this.#move(
      key,
      this.#definition.indexes.map(({ name, equals, sort }) => [
        indexKey(name, equals, stored.record),
        [sortValue(stored.record[sort]) ?? null, key],
      ]),
    );
    if (this.#definition.notifyOn?.(stored.record)) this.#onChange(key);
  }

  #move(key: string, to: readonly Place[]): void {
    const from = this.#places.get(key) ?? [];
    for (const place of from) if (!to.some((one) => isSamePlace(one, place))) this.#leave(place);
    for (const place of to) if (!from.some((one) => isSamePlace(one, place))) this.#enter(place);
    if (to.length > 0) this.#places.set(key, to);
    else this.#places.delete(key);
  }

  #leave([name, position]: Place): void {
    const index = this.#indexes.get(name);
    index?.delete(position);
    if (index?.size === 0) this.#indexes.delete(name);
  }

  #enter([name, position]: Place): void {
    let index = this.#indexes.get(name);
    if (!index) {
      index = new SortedIndex();
      this.#indexes.set(name, index);
    }
    index.add(position);
  }

  /** A copy that neither the writer nor readers can change. */
  #frozenRecord(record: Writable<RecordValues>): RecordValues {
    const copy: Record<string, RecordValue> = {};
    for (const column of Object.keys(this.#definition.columns)) copy[column] = this.#value(record[column]);
    return Object.freeze(copy);
  }

  #value(value: Writable<RecordValues>[string] | undefined): RecordValue {
    if (value === undefined || value === null) return null;
    if (value === CLOCK) return new Date(this.#clock());
    if (value === ELAPSED) return 0;
    if (value instanceof Date) return new Date(value);
    return typeof value === 'object' ? deepFreeze(JSON.parse(JSON.stringify(value))) : (value as RecordValue);
  }
}

/** Of one row. */
const isSamePlace = ([index, [sort]]: Place, [other, [otherSort]]: Place): boolean =>
  index === other && sort === otherSort;

function pickColumns(record: RecordValues, columns: readonly string[]): RecordValues {
  return Object.fromEntries(columns.map((column) => [column, record[column] ?? null]));
}

function indexKey(index: string, equals: readonly string[], values: RecordValues): string {
  return JSON.stringify([index, ...equals.map((column) => sortValue(values[column]))]);
}

function sortValue(value: RecordValue | undefined): Position[0] | undefined {
  if (value instanceof Date) return value.getTime();
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : value;
}
