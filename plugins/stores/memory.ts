import type { Connection } from '../../core/dialect.ts';
import { SvcError } from '../../core/errors.ts';
import {
  CLOCK,
  ELAPSED,
  type PageQuery,
  type RecordDefinition,
  type RecordStore,
  type RecordValue,
  type RecordValues,
  type Versioned,
  type Writable,
} from '../../core/records.ts';
import { Ordered, type Place } from './ordered.ts';

type Stored = Versioned<RecordValues>;
type Hint = (key?: string) => void;

/** Records that live as long as the process: what nobody else sees and no restart survives. */
export class MemoryStore implements Pick<Connection, 'records' | 'ensure' | 'exclusively' | 'now' | 'watch' | 'close'> {
  readonly #clock: () => number;
  readonly #tables = new Map<string, Table>();
  readonly #hints = new Map<string, Set<Hint>>();
  #turn: Promise<unknown> = Promise.resolve();
  #epoch = 0;

  /** Milliseconds since 1970. */
  constructor(clock: () => number = Date.now) {
    this.#clock = clock;
  }

  records<R extends object>(definition: RecordDefinition<R>): RecordStore<R> {
    const plain = definition as unknown as RecordDefinition<RecordValues>;
    let table = this.#tables.get(definition.collection);
    if (!table) {
      table = new Table(plain, this.#clock, (key) => {
        for (const hint of this.#hints.get(definition.collection) ?? []) hint(key);
      });
      this.#tables.set(definition.collection, table);
    }
    return table as unknown as RecordStore<R>;
  }

  async ensure(): Promise<void> {}

  async now(): Promise<Date> {
    return new Date(this.#clock());
  }

  async watch(topic: string, hint: Hint): Promise<() => Promise<void>> {
    const hints = this.#hints.get(topic) ?? new Set();
    this.#hints.set(topic, hints.add(hint));
    return async () => void hints.delete(hint);
  }

  exclusively<T>(work: (epoch: number) => Promise<T>): Promise<T> {
    this.#epoch += 1;
    const epoch = this.#epoch;
    const result = this.#turn.then(() => work(epoch));
    this.#turn = result.catch(() => undefined);
    return result;
  }

  async close(): Promise<void> {}
}

class Table implements RecordStore<RecordValues> {
  readonly #definition: RecordDefinition<RecordValues>;
  readonly #clock: () => number;
  readonly #changed: (key: string) => void;
  readonly #rows = new Map<string, Stored>();
  /** By index and the values it asks to be equal. */
  readonly #places = new Map<string, Ordered>();

  constructor(definition: RecordDefinition<RecordValues>, clock: () => number, changed: (key: string) => void) {
    this.#definition = definition;
    this.#clock = clock;
    this.#changed = changed;
  }

  async insert(record: Writable<RecordValues>): Promise<'inserted' | 'exists'> {
    const key = this.#keyOf(record);
    if (this.#rows.has(key)) return 'exists';
    this.#put(key, { record: this.#own(record), version: 1 });
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
    this.#remove(key, found);
    this.#put(key, { record: this.#own(record), version: version + 1 });
    return 'replaced';
  }

  async remove(key: string, version: number): Promise<'removed' | 'stale' | 'missing'> {
    const found = this.#rows.get(key);
    if (!found) return 'missing';
    if (found.version !== version) return 'stale';
    this.#remove(key, found);
    return 'removed';
  }

  async page(name: string, query: PageQuery<RecordValues>) {
    const index = this.#definition.indexes.find((one) => one.name === name);
    if (!index) throw new Error(`${this.#definition.collection} has no index ${name}`);
    if (!Number.isInteger(query.limit) || query.limit < 1 || query.limit > 1000) {
      throw new SvcError('value_invalid', `A page has 1 to 1,000 records, not ${query.limit}.`);
    }
    const { equals = {}, from, to, direction, limit, cursor, columns } = query;
    for (const column of index.equals) {
      if (equals[column] === undefined) throw new Error(`${name} needs a value for ${column}`);
    }
    const places = this.#places.get(placeName(name, index.equals, equals as RecordValues));
    const found: Place[] = [];
    const range = { from: bound(from), to: bound(to), after: placeOf(cursor), down: direction === 'desc' };
    for (const place of places?.keys(range) ?? []) {
      found.push(place);
      if (found.length > limit) break;
    }
    const records = found.slice(0, limit).flatMap(([, key]) => {
      const stored = this.#rows.get(key);
      return stored ? [columns ? { ...stored, record: only(stored.record, columns) } : stored] : [];
    });
    const last = found.length > limit ? found[limit - 1] : undefined;
    return { records, ...(last && { cursor: Buffer.from(JSON.stringify(last)).toString('base64url') }) };
  }

  #keyOf(record: Writable<RecordValues>): string {
    return String(record[this.#definition.key]);
  }

  #put(key: string, stored: Stored): void {
    this.#rows.set(key, stored);
    for (const [places, place] of this.#placesOf(key, stored)) places.add(place);
    if (this.#definition.tells?.(stored.record)) this.#changed(key);
  }

  #remove(key: string, stored: Stored): void {
    this.#rows.delete(key);
    for (const [places, place, name] of this.#placesOf(key, stored)) {
      places.delete(place);
      if (places.size === 0) this.#places.delete(name);
    }
  }

  *#placesOf(key: string, { record }: Stored): Generator<[Ordered, Place, string]> {
    for (const { name, equals, sort } of this.#definition.indexes) {
      const of = placeName(name, equals, record);
      let places = this.#places.get(of);
      if (!places) {
        places = new Ordered();
        this.#places.set(of, places);
      }
      yield [places, [bound(record[sort]) ?? null, key], of];
    }
  }

  /** A copy that neither the writer nor a reader can change. */
  #own(record: Writable<RecordValues>): RecordValues {
    const own: Record<string, RecordValue> = {};
    for (const column of Object.keys(this.#definition.columns)) own[column] = this.#value(record[column]);
    return Object.freeze(own);
  }

  #value(value: Writable<RecordValues>[string] | undefined): RecordValue {
    if (value === undefined || value === null) return null;
    if (value === CLOCK) return new Date(this.#clock());
    if (value === ELAPSED) return 0;
    if (value instanceof Date) return new Date(value);
    return typeof value === 'object' ? frozen(JSON.parse(JSON.stringify(value))) : (value as RecordValue);
  }
}

function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const member of Object.values(value)) frozen(member);
  return Object.freeze(value);
}

function only(record: RecordValues, columns: readonly string[]): RecordValues {
  return Object.fromEntries(columns.map((column) => [column, record[column] ?? null]));
}

function placeName(index: string, equals: readonly string[], values: RecordValues): string {
  return JSON.stringify([index, ...equals.map((column) => bound(values[column]))]);
}

function bound(value: RecordValue | undefined): Place[0] | undefined {
  if (value instanceof Date) return value.getTime();
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : value;
}

function placeOf(cursor: string | undefined): Place | undefined {
  if (cursor === undefined) return undefined;
  try {
    const [sort, key, ...more] = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (typeof key === 'string' && sort !== undefined && more.length === 0) return [sort, key];
  } catch {
    // Told below, as for a cursor of another shape.
  }
  throw new SvcError('value_invalid', 'The cursor is not one that a page gave.');
}
