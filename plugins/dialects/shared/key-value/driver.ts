import type { Connection } from '../../../../core/dialect.ts';
import type { Field } from '../../../../core/schema/model.ts';

/**
 * The engine-specific part of `keyValueDialect`: texts under keys and sorted sets of texts, both with names that begin with
 * `_svc_`, and rows with the keys `<table>:<id>`. Every call throws the errors of the engine; `toSvcError` converts them.
 */
export interface KeyValueDriver extends Pick<Connection, 'server' | 'now' | 'query' | 'watch' | 'close'> {
  /** The texts of keys, including every acknowledged write. */
  read(keys: readonly string[]): Promise<readonly (string | undefined)[]>;
  /** The entries of a sorted set, in the order of their UTF-8 bytes. */
  entries(set: string, range: EntryRange): Promise<readonly string[]>;
  /** Makes all of the changes or none. `conflict` comes before `late`. */
  commit(commit: KeyValueCommit): Promise<'committed' | 'conflict' | 'late'>;
  /** The keys with a beginning that are rows, or the others, in batches. A key that exists throughout comes at least once. */
  scan(prefix: string, which: 'rows' | 'others'): AsyncIterable<readonly string[]>;
  /** Fields of rows, in this order. A row that does not exist has none. */
  readRows(keys: readonly string[], fields: readonly Field[]): Promise<readonly RowValues[]>;
  /**
   * Writes each row atomically, and only if it has the values in `read`. `conflict`: `expected` is not met; what was
   * written before stays. `fields` are those in `read` and `set`.
   */
  writeRows(
    writes: readonly RowWrite[],
    expected: readonly ExpectedText[],
    fields: readonly Field[],
  ): Promise<readonly RowOutcome[] | 'conflict'>;
  /** Converts an error of the engine to an `SvcError`. Returns other errors unchanged. */
  toSvcError(error: unknown): unknown;
}

export interface EntryRange {
  /** The first entry, inclusive. */
  readonly low?: string;
  /** The end, exclusive. */
  readonly high?: string;
  readonly limit: number;
  /** From the last entry to the first. */
  readonly reverse: boolean;
}

export interface ExpectedText {
  readonly key: string;
  /** Absent if the key must not exist. */
  readonly text?: string;
}

export interface SetEntry {
  readonly set: string;
  readonly entry: string;
}

export interface KeyValueCommit {
  readonly expected: readonly ExpectedText[];
  /** Milliseconds since 1970. `late` if the engine's clock has reached it, compared in the same step. */
  readonly before?: number;
  readonly put?: readonly { readonly key: string; readonly text: string }[];
  readonly remove?: readonly string[];
  /** Removed before others are added. */
  readonly removeEntries?: readonly SetEntry[];
  readonly addEntries?: readonly SetEntry[];
  /** The watchers to notify. */
  readonly notify?: readonly { readonly collection: string; readonly key: string }[];
}

/** The stored values of fields; null for a missing one. Texts are UTF-8. */
export type RowValues = Readonly<Record<string, Uint8Array | null>>;

/** One of the three changes of a row. `set` is null for a field to remove; `moveTo` is the new key. */
export interface RowWrite {
  readonly key: string;
  readonly read: RowValues;
  readonly set?: RowValues;
  readonly moveTo?: string;
  readonly remove?: true;
}

/** `changed`: it has other values than those read. `taken`: the new key exists. */
export type RowOutcome = 'written' | 'changed' | 'missing' | 'taken';
