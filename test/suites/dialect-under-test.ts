import type { Connection, ConnectOptions, Dialect } from '../../core/dialect.ts';
import type { ErrorCode } from '../../core/error-codes.ts';
import type { Json } from '../../core/json.ts';
import type { Field } from '../../core/schema/model.ts';
import type { Raw } from '../../core/schema/operation.ts';
import type { UnderTest } from './suite.ts';
import type { TestDatabase } from './test-database.ts';

/**
 * A dialect, and what the suites need to know about its engine. Functions that act on a database receive it last, as
 * `createDatabase` returned it.
 */
export interface DialectUnderTest extends UnderTest {
  readonly dialect: Dialect;
  /**
   * The module whose default export is the plugin that registers the dialect: a file URL, or the name of a package.
   * Processes that the suites start and kill load it with the Node options of this process.
   */
  readonly module: URL | string;
  /**
   * Creates an empty database with a URL of its own. Several exist at once: the cases about identities and about processes that
   * are killed compare them. For a server with a single database, divide it by a part of the URL that the dialect reads, such as
   * `?namespace=…`.
   */
  createDatabase(): Promise<TestDatabase>;
  /** Options for `connect`. They are passed to other processes, so they contain no functions. */
  readonly options?: ConnectOptions;
  /**
   * Inserts rows independently of the dialect, and rejects if the engine rejects them. Values are written as in a
   * `default`, such as bytes in base64; `fields` has their types. A null may be omitted if the engine treats it as a missing
   * value. It may be called again before an earlier call has ended.
   */
  insert(
    connection: Connection,
    collection: string,
    rows: readonly Row[],
    fields: ReadonlyMap<string, Field>,
    database: TestDatabase,
  ): Promise<void>;
  /** Returns all rows, in any order. A field without a value is null or missing. */
  read(connection: Connection, collection: string, database: TestDatabase): Promise<readonly StoredRow[]>;
  /** Deletes all rows independently of the dialect. */
  clear(connection: Connection, collection: string, database: TestDatabase): Promise<void>;
  /** A raw statement that inserts a row with the `id` 7, and the `check` that detects it. */
  raw(collection: string, database: TestDatabase): Pick<Raw, 'statement' | 'check'>;
  /** Expressions, unless the dialect supports none. */
  readonly syntax?: SqlSyntax;
  /** The rules of a field that the engine does not apply to the rows that a program inserts, each with the reason. */
  readonly notEnforced?: Readonly<Partial<Record<RowRule, string>>>;
  /**
   * Adds something to a table that a model cannot express, such as a partial index. Without it, skip the case
   * "what a model cannot express is listed", with the reason.
   */
  addUnsupportedObject?(connection: Connection, collection: string, database: TestDatabase): Promise<void>;
  /**
   * The URL of a database of a server at a port of 127.0.0.1, for an engine with a server. The suite has ports on which nothing
   * listens, or nothing answers: `connect` must fail with `connection_failed`.
   */
  urlAt?(port: number): string;
  /**
   * More URLs that `connect` must reject, each with the code of the error, such as `authentication_failed` for a wrong password
   * or `database_missing`.
   */
  readonly badUrls?: Readonly<Record<string, ErrorCode>>;
  /**
   * The rows of the case "a change reaches every row", more than the dialect reads or writes at a time; default 1,001. Fewer for
   * an engine whose batches are smaller.
   */
  readonly manyRows?: number;
  /** The number of random schemas; default 20. */
  readonly randomSchemas?: number;
}

export type Row = Readonly<Record<string, Json>>;

/**
 * A row as the driver returns it, without a loss: a bigint that a number cannot hold is a `bigint` or a text. Bytes are a
 * `Uint8Array`, or another view of an `ArrayBuffer`.
 */
export type StoredRow = Readonly<Record<string, unknown>>;

/**
 * Rules of a field for which `capabilities.unsupported` has no feature, or which concern existing rows only. `decimal`: its
 * digits are stored exactly.
 */
export type RowRule = 'required' | 'default' | 'enum' | 'length' | 'decimal';

export interface SqlSyntax {
  /** A default: 1 + 2. */
  readonly sum: string;
  /** A default: the current time. */
  readonly now: string;
  /** A check: a field is not null. */
  notNull(field: string): string;
  /** A check: a number is not negative, and another one is not 7. */
  numberRules(number: string, other: string): string;
}
