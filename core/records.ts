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

/** Placeholder for the engine's clock at the time of the write. */
export const CLOCK: unique symbol = Symbol('svc.clock');
/**
 * Placeholder for the elapsed milliseconds by the engine's clock: since the first segment of the run, or since the
 * segment after the last one that wrote it.
 */
export const ELAPSED: unique symbol = Symbol('svc.elapsed');

export type Writable<R> = { readonly [K in keyof R]: R[K] | typeof CLOCK | typeof ELAPSED };

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
   * Set for a table of few records that share a segment with other tables so marked. An engine without atomic writes
   * across partitions stores them in one partition, together with the lock.
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
  /** The column that pages are sorted by; the key breaks ties. */
  readonly sort: keyof R & string;
  /** Set if many records share the same `equals` values: an engine that partitions by them uses several partitions. */
  readonly sharded?: true;
}

export interface PageQuery<R> {
  readonly equals?: Partial<R>;
  /** Bounds of the sort column, both inclusive. */
  readonly from?: RecordValue;
  readonly to?: RecordValue;
  readonly direction?: 'asc' | 'desc';
  /** 1 to 1,000. */
  readonly limit: number;
  readonly cursor?: string;
  /** Reads only these columns; the others are absent from the records. */
  readonly columns?: readonly (keyof R & string)[];
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

export type AnyRecordDefinition = RecordDefinition<RecordValues>;

/** Erases the record type, for lists of writes to several tables. */
export function recordWrite<R extends object>(
  definition: RecordDefinition<R>,
  record: Writable<R>,
  version?: number,
): RecordWrite {
  return { ...({ definition, record } as unknown as RecordWrite), ...(version !== undefined && { version }) };
}

/** A write of some columns, including the key. */
export function recordUpdate<R extends object>(
  definition: RecordDefinition<R>,
  change: Partial<Writable<R>>,
  version: number,
): RecordWrite {
  return { definition, record: change, version } as unknown as RecordWrite;
}

export function anyDefinition<R extends object>(definition: RecordDefinition<R>): AnyRecordDefinition {
  return definition as unknown as AnyRecordDefinition;
}

/** Every record that matches a query, read page by page; `limit` is the size of a page. */
export async function* allRows<R extends object>(
  store: RecordStore<R>,
  index: string,
  query: Omit<PageQuery<R>, 'cursor'>,
): AsyncGenerator<Versioned<R>> {
  let cursor: string | undefined;
  do {
    const page = await store.page(index, { ...query, ...(cursor !== undefined && { cursor }) });
    yield* page.records;
    cursor = page.cursor;
  } while (cursor !== undefined);
}
