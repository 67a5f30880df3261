import type { FieldType } from './schema/types.ts';

/**
 * The one storage primitive a dialect offers: history, leases, approvals and executions are built on it.
 * One record is atomic, two never are: every protocol on top survives a crash between two writes.
 * Only declared indexes can be asked.
 */
export interface RecordStore<R extends object> {
  insert(record: Writable<R>): Promise<'inserted' | 'exists'>;
  /** Linearizable: sees every write that was answered before. */
  get(key: string): Promise<Versioned<R> | undefined>;
  /**
   * Compare-and-set. `late`: the column named by `before` is not after the engine's clock, compared in the same
   * statement. `stale`: another version, or an epoch that is over.
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

/** Stands for the engine's clock at the moment of the write. */
export const CLOCK: unique symbol = Symbol('svc.clock');
/**
 * Stands for the milliseconds, by the engine's clock, since the first segment of the run, or since the one behind the
 * last that wrote it: a migration may take several.
 */
export const ELAPSED: unique symbol = Symbol('svc.elapsed');

export type Writable<R> = { readonly [K in keyof R]: R[K] | typeof CLOCK | typeof ELAPSED };

export interface Versioned<R> {
  readonly record: R;
  /** Starts at 1 and grows by one with each replace. */
  readonly version: number;
}

export interface Guard<R> {
  readonly before?: keyof R & string;
  readonly epoch?: number;
}

export interface RecordDefinition<R extends object> {
  /** The table; its name begins with `_svc_`. */
  readonly collection: string;
  /** A string column. */
  readonly key: keyof R & string;
  readonly columns: { readonly [K in keyof R]: RecordColumn };
  readonly indexes: readonly RecordIndex<R>[];
  /**
   * Few records, written in one segment with those of other definitions that say so: an engine that writes no two
   * partitions at once keeps them in one, with the lock.
   */
  readonly together?: true;
  /** Whether a record, as it was just written, is worth a hint to those who watch; without this none is. */
  tells?(record: Writable<R>): boolean;
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
  /** Columns a query must give a value for. */
  readonly equals: readonly (keyof R & string)[];
  /** The column that orders the page; the key breaks ties. */
  readonly sort: keyof R & string;
  /** Many records have the same values of `equals` at a time: an engine that keeps those in one place spreads them. */
  readonly spread?: true;
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

/** A write that is committed together with the statements of its segment; `recordWrite` makes one. */
export interface RecordWrite {
  readonly definition: AnyRecordDefinition;
  /** Inserts where `version` is absent, else replaces that version: columns that the record leaves out keep their value. */
  readonly version?: number;
  readonly record: Writable<RecordValues>;
}

export type AnyRecordDefinition = RecordDefinition<RecordValues>;

/** Forgets the type of a record: what carries writes of several kinds cannot keep it. */
export function recordWrite<R extends object>(
  definition: RecordDefinition<R>,
  record: Writable<R>,
  version?: number,
): RecordWrite {
  return { ...({ definition, record } as unknown as RecordWrite), ...(version !== undefined && { version }) };
}

/** A write of some columns; the key is among them. */
export function recordChange<R extends object>(
  definition: RecordDefinition<R>,
  change: Partial<Writable<R>>,
  version: number,
): RecordWrite {
  return { definition, record: change, version } as unknown as RecordWrite;
}

export function anyDefinition<R extends object>(definition: RecordDefinition<R>): AnyRecordDefinition {
  return definition as unknown as AnyRecordDefinition;
}
