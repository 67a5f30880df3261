import { SvcError } from './errors.ts';
import type { FieldType } from './schema/model.ts';

/**
 * The one storage primitive of a dialect: history, leases, approvals and executions are built on it.
 * A write of one record is atomic. Two writes never are, so every caller must survive a crash between them.
 * Only declared indexes can be queried.
 */
export interface RecordStore<R extends object> {
  insert(record: Writable<R>): Promise<'inserted' | 'exists'>;
  /** Linearizable: sees every write acknowledged before the call. */
  get(key: string): Promise<Versioned<R> | undefined>;
  /**
   * Compare-and-set. `late`: the time in the column `guard.before` has passed by the engine's clock, compared in the
   * same statement. `stale`: the version or the epoch is no longer current.
   */
  replace(
    key: string,
    version: number,
    record: Writable<R>,
    guard?: Guard<R>,
  ): Promise<'replaced' | 'stale' | 'late' | 'missing'>;
  page(index: string, query: PageQuery<R>): Promise<Page<R>>;
  remove(key: string, version: number): Promise<'removed' | 'stale' | 'missing'>;
}

export type RecordValue = string | number | boolean | Date | null | object;
export type RecordValues = { readonly [column: string]: RecordValue };

/** A type that is the same in two copies of this package, which a `unique symbol` is not. */
export type Clock = symbol & { readonly description: 'svc.clock' };
export type Elapsed = symbol & { readonly description: 'svc.elapsed' };

/** Placeholder for the engine's clock at the time of the write. */
export const CLOCK = Symbol.for('svc.clock') as Clock;
/**
 * Placeholder for the elapsed milliseconds by the engine's clock: since the first segment of the run, or since the
 * segment after the last one that wrote it.
 */
export const ELAPSED = Symbol.for('svc.elapsed') as Elapsed;

export type Writable<R> = { readonly [K in keyof R]: R[K] | Clock | Elapsed };

export interface Versioned<R> {
  readonly record: R;
  /** Starts at 1 and increases by 1 with each replace. */
  readonly version: number;
}

export interface Guard<R> {
  readonly before?: keyof R & string;
  readonly epoch?: number;
}

export interface RecordDefinition<R extends object> {
  /** The table. Its name starts with `_svc_`. */
  readonly collection: string;
  /** A string column. */
  readonly key: keyof R & string;
  readonly columns: { readonly [K in keyof R]: RecordColumn };
  readonly indexes: readonly RecordIndex<R>[];
  /**
   * Set for small tables that are written in one segment. An engine without atomic writes across partitions stores all
   * of them in one partition, together with the lock.
   */
  readonly colocateWithLock?: true;
  /** Whether the write of this record notifies watchers. Default: never. */
  notifyOn?(record: Writable<R>): boolean;
}

export interface RecordColumn {
  readonly type: Extract<
    FieldType,
    'string' | 'text' | 'integer' | 'bigint' | 'double' | 'boolean' | 'timestamp' | 'json'
  >;
  readonly nullable?: true;
}

export interface RecordIndex<R> {
  readonly name: string;
  /** Columns a query must provide a value for. */
  readonly equals: readonly (keyof R & string)[];
  /** The column that pages are sorted by; the key breaks ties, in the order of its UTF-8 bytes. */
  readonly sort: keyof R & string;
  /** Set if many records share the same `equals` values: an engine that partitions by them uses several partitions. */
  readonly sharded?: true;
}

export interface PageQuery<R> {
  readonly equals?: Partial<R>;
  /**
   * Values for the rest of the columns of the index: a page of the records that match any of these, in one order. None
   * twice, and of an index whose sort column is never null.
   */
  readonly anyOf?: readonly Partial<R>[];
  /** Bounds of the sort column, both inclusive. */
  readonly from?: RecordValue;
  readonly to?: RecordValue;
  readonly direction?: 'asc' | 'desc';
  /** 1 to 1,000. */
  readonly limit: number;
  readonly cursor?: string;
  /** Reads only these columns; the others are absent from the records. */
  readonly columns?: readonly (keyof R & string)[];
  /**
   * The first `limit` keys suffice, as they were a moment ago. A store whose indexes lag may read the index alone: the
   * records then have no other column, the version 0, and no cursor follows them.
   */
  readonly unconfirmed?: true;
}

export interface Page<R> {
  readonly records: readonly Versioned<R>[];
  /** Absent on the last page. */
  readonly cursor?: string;
}

/** A write committed together with the statements of its segment. Created by `recordWrite`. */
export interface RecordWrite {
  readonly definition: AnyRecordDefinition;
  /** Without it the record is inserted, else this version is replaced. Omitted columns keep their values. */
  readonly version?: number;
  readonly record: Writable<RecordValues>;
}

/** Whether the writes of a segment contain ELAPSED, which then restarts with the next segment. */
export function endsElapsed({ writes }: { readonly writes: readonly RecordWrite[] }): boolean {
  return writes.some(({ record }) => Object.values(record).includes(ELAPSED));
}

export type AnyRecordDefinition = RecordDefinition<RecordValues>;

/** Erases the record type, for lists of writes to several tables. */
export function recordWrite<R extends object>(
  definition: RecordDefinition<R>,
  record: Writable<R>,
  version?: number,
): RecordWrite {
  return { ...anyWrite(definition, record), ...(version !== undefined && { version }) };
}

/** A write of some columns, including the key. */
export function recordUpdate<R extends object>(
  definition: RecordDefinition<R>,
  change: Partial<Writable<R>>,
  version: number,
): RecordWrite {
  return { ...anyWrite(definition, change), version };
}

function anyWrite<R extends object>(
  definition: RecordDefinition<R>,
  record: Partial<Writable<R>>,
): Pick<RecordWrite, 'definition' | 'record'> {
  // The columns of a record have the types of `RecordColumn`, all of which are record values.
  return { definition: anyDefinition(definition), record: record as unknown as RecordWrite['record'] };
}

export function anyDefinition<R extends object>(definition: RecordDefinition<R>): AnyRecordDefinition {
  // `notifyOn` takes a record of its own type only, and every record of the table is one.
  return definition as unknown as AnyRecordDefinition;
}

/** The store of a definition whose record type was erased by `anyDefinition`. */
export function typedStore<R extends object>(store: RecordStore<RecordValues>): RecordStore<R> {
  // A store returns the columns of its definition, in the types that they have there.
  return store as unknown as RecordStore<R>;
}

export function columnOf({ collection, columns }: AnyRecordDefinition, name: string): RecordColumn {
  const column = columns[name];
  if (!column) throw new Error(`${collection} has no column ${name}`);
  return column;
}

/** Every page of a query; `limit` is the size of a page. */
export async function* allPages<R extends object>(
  store: RecordStore<R>,
  index: string,
  query: Omit<PageQuery<R>, 'cursor'>,
): AsyncGenerator<readonly Versioned<R>[]> {
  let cursor: string | undefined;
  do {
    const page = await store.page(index, { ...query, ...(cursor !== undefined && { cursor }) });
    yield page.records;
    cursor = page.cursor;
  } while (cursor !== undefined);
}

/** Every record that matches a query, read page by page; `limit` is the size of a page. */
export async function* allRows<R extends object>(
  store: RecordStore<R>,
  index: string,
  query: Omit<PageQuery<R>, 'cursor'>,
): AsyncGenerator<Versioned<R>> {
  for await (const records of allPages(store, index, query)) yield* records;
}

export const isPageLimit = (limit: number): boolean => Number.isInteger(limit) && limit >= 1 && limit <= 1000;

/** The index that a page is read from. Throws `value_invalid` for a limit that is out of range. */
export function pageIndex<R extends object>(
  { collection, indexes }: RecordDefinition<R>,
  name: string,
  query: PageQuery<R>,
): RecordIndex<R> {
  const { limit } = query;
  const index = indexes.find((one) => one.name === name);
  if (!index) throw new Error(`${collection} has no index ${name}`);
  if (!isPageLimit(limit)) throw new SvcError('value_invalid', `A page has 1 to 1,000 records, not ${limit}.`);
  for (const equals of equalsOf(query)) {
    for (const column of index.equals) {
      if (equals[column] === undefined) throw new Error(`${name} needs a value for ${column}`);
    }
  }
  return index;
}

/** The values of `equals`, once for each of `anyOf`. */
export function equalsOf<R extends object>({ equals = {}, anyOf = [{}] }: PageQuery<R>): readonly Partial<R>[] {
  return anyOf.map((values) => ({ ...equals, ...values }));
}

/** The position of a record in an index. The position of a page's last record is its cursor. */
export interface PagePosition {
  readonly sort: RecordValue;
  readonly key: string;
}

/** A page of the first `limit` of `found`, with a cursor if there are more. */
export function buildPage<T, R>(
  found: readonly T[],
  limit: number,
  read: (one: T) => Versioned<R>,
  positionOf: (one: T) => PagePosition,
): Page<R> {
  const records = found.slice(0, limit).map(read);
  const last = found.length > limit ? found[limit - 1] : undefined;
  if (last === undefined) return { records };
  const { sort, key } = positionOf(last);
  return { records, cursor: Buffer.from(JSON.stringify([sort, key])).toString('base64url') };
}

/** The position after which a page starts; undefined for the first page. Throws `value_invalid`. */
export function pageStart<R extends object>(
  { columns }: Pick<RecordDefinition<R>, 'columns'>,
  index: Pick<RecordIndex<R>, 'sort'>,
  { cursor }: Pick<PageQuery<R>, 'cursor'>,
): PagePosition | undefined {
  if (cursor === undefined) return undefined;
  try {
    const [sort, key, ...more] = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (sort !== undefined && typeof key === 'string' && more.length === 0) {
      return { sort: columns[index.sort].type === 'timestamp' && sort !== null ? new Date(String(sort)) : sort, key };
    }
  } catch {
    // Rejected below, like a cursor of another shape.
  }
  throw new SvcError('value_invalid', 'The cursor was not returned by an earlier page.');
}
