import type { Json } from './json.ts';
import type { AnyRecordDefinition, RecordDefinition, RecordStore, RecordWrite } from './records.ts';
import type { DatabaseObject, ObjectModel } from './schema/database-object.ts';
import type { Collection, FieldType, ForeignKey, SchemaModel } from './schema/model.ts';
import type { NameRules } from './schema/names.ts';
import type { MigrationOperation, ObjectOperation, Operation } from './schema/operation.ts';
import type { UnsupportedFeatures } from './schema/unsupported-features.ts';

/** The contract between core and an engine. All members except `connect` are pure. `Step` is the type of `Statement.run`. */
export interface Dialect<Step = unknown> {
  readonly name: string;
  /** The engine's name for each field type, for documentation and `svc doctor`. */
  readonly types: Readonly<Record<FieldType, string>>;
  readonly capabilities: Capabilities;
  /** Throws `not_supported`, `name_invalid` or `field_invalid` before anything has run. */
  compile(operation: Operation, before: SchemaModel): readonly Statement<Step>[];
  /**
   * The same change by statements during which the table can be read and written, for a table with many rows. Undefined where
   * those of `compile` do not block it for long. Called for what `compile` has accepted.
   */
  compileOnline?(operation: Operation, before: SchemaModel): readonly Statement<Step>[] | undefined;
  /**
   * One statement that creates a table together with the index or constraint of `addition`, where each statement costs a commit
   * and some copy the table. Undefined if they stay apart.
   */
  mergeIntoCreation?(creation: Statement<Step>, addition: Statement<Step>): Statement<Step> | undefined;
  /**
   * The normal form of a model: what `introspect` returns after the model is created. Two models are equal to this
   * engine if their normal forms are equal.
   */
  normalize(model: SchemaModel): SchemaModel;
  /** What the engine has in addition to tables. Without it, operations on objects are refused. */
  readonly objects?: ObjectRules<Step>;
  /**
   * A statement as a script for the engine's shell contains it, with its end. Undefined where the text and a semicolon are
   * enough, which is the default.
   */
  scriptStatement?(text: string): string | undefined;
  connect(url: string, options: ConnectOptions): Promise<Connection<Step>>;
  /**
   * Identifies the physical database of a URL, without credentials: equal for two URLs of the same database. Throws
   * `url_invalid`.
   */
  identify(url: string): string;
  /**
   * Loads the driver for this URL as a program in the folder `root` does, for `svc doctor`. Throws `driver_missing`. For a
   * dialect whose driver is bundled with the command line: its `connect` finds a driver that a program lacks.
   */
  assertDriver?(url: string, root: string): Promise<void>;
}

/** A table with more rows is changed by the statements of `compileOnline`. */
export const LARGE_ROWS = 10_000;

export interface Capabilities {
  /** DDL commits and rolls back together with the history row. */
  readonly transactionalDdl: boolean;
  /** `run` executes one segment at a time and calls the observer for each, so core passes many segments at once. */
  readonly runsSegmentsSingly?: true;
  /**
   * The engine knows only those fields that svc stores, so what is stored of a table includes fields that are kept: they are
   * in the model that `compile` receives.
   */
  readonly storesFields?: true;
  readonly names: NameRules;
  /** Absent where a transaction holds any number of locks, or where DDL is not in one. */
  readonly transactionLocks?: TransactionLocks;
  /** It compiles `mirrors` of `addField` and `dropField`. */
  readonly mirrorsFields?: true;
  /** The features the engine lacks. It supports all others. */
  readonly unsupported: UnsupportedFeatures;
}

/** What happens to a field, a table, an index or a constraint that an object names. A field whose values are copied counts as dropped. */
export type ChangeOfRead = 'drop' | 'rename' | 'type' | 'index';

/** Objects that are not tables, each defined by a text in the language of the engine: views, functions, triggers. */
export interface ObjectRules<Step = unknown> {
  /** The kinds, each the name of a folder, in the order in which objects are created where nothing else decides. */
  readonly kinds: readonly string[];
  /** How its files end: by default `.sql`, and a semicolon after the text. */
  readonly file?: { readonly extension: string; readonly end: string };
  /** Kinds that tables use, such as types: they are created before tables and dropped after them. */
  readonly beforeTables: ReadonlySet<string>;
  /** Those of them that use neither tables nor other objects, such as a schema, whatever words their texts have. */
  readonly independent?: ReadonlySet<string>;
  /** Kinds that are tables with the fields of another one, which their text names: a change of a field changes them too. */
  readonly tables?: ReadonlySet<string>;
  /** Tables and views are types, which tables and what comes before them may use. */
  readonly rowTypes?: true;
  /** Whether an object of this kind prevents a change of what it reads: it is dropped before it and created after it. */
  isInTheWay(kind: string, change: ChangeOfRead): boolean;
  /** The name by which the texts of others refer to an object; undefined if none does. */
  referredName(object: DatabaseObject): string | undefined;
  /** The part of the text whose names the engine binds to objects. Those of the rest are only looked up when it runs. */
  boundText(object: DatabaseObject): string;
  /** What an operation on a table needs and does not create, such as the schema of the table. */
  needs?(operation: Operation): DatabaseObject | undefined;
  /** The new names of values that `replaceObject` renames, where the engine follows in rows and defaults that have them. */
  renamedValues?(before: DatabaseObject, after: DatabaseObject): readonly string[];
  /** Whether `replaceObject` creates a type again and moves the fields of it over: then their types change. */
  movesFields?(before: DatabaseObject, after: DatabaseObject): boolean;
  /** Whether `replaceObject` leaves everything in place that depends on the object. */
  isReplacedInPlace(before: DatabaseObject, after: DatabaseObject): boolean;
  /** The place of an object that runs among others in the order of their creation, such as a trigger. */
  place?(object: DatabaseObject): ObjectPlace | undefined;
  /** Throws `schema_invalid` for operations that the server would certainly refuse. The tables are those before them, the objects those after. */
  assertAccepted?(
    operations: readonly MigrationOperation[],
    schema: { readonly objects: ObjectModel; readonly tables: SchemaModel },
  ): void;
  /** Pure. Throws `migration_invalid` for a text that does not create this object. */
  compile(operation: ObjectOperation): readonly Statement<Step>[];
}

export interface ObjectPlace {
  /** The same for all objects that run one after another. */
  readonly group: string;
  /** The `<kind>/<name>` of the one that its text places it next to: that one is created before it. */
  readonly nextTo?: string;
}

/** For an engine whose server holds a limited number of locks. */
export interface TransactionLocks {
  /** The locks that an operation adds to its transaction, at least. Pure. */
  count(operation: Operation, before: SchemaModel): number;
  /** Generated migrations are split so that each needs at most this many. They fit a server with default settings. */
  readonly perMigration: number;
}

/** Why the server cannot hold that many locks, and how it could. */
export interface LockShortage {
  readonly why: string;
  readonly next: readonly string[];
}

export interface Statement<Step = unknown> {
  /** Human-readable: printed by `--dry-run` and quoted in errors. */
  readonly text: string;
  /** Executed by the dialect. Opaque to core, but JSON: the journal stores it. */
  readonly run: Step;
  /** Can share a transaction with other statements and with the history write. */
  readonly transactional: boolean;
  /** Destroys data that a rollback cannot restore. */
  readonly destructive: boolean;
  /** Its migration permits copying a whole table: `"allow": ["copy"]`. */
  readonly allowCopy?: true;
  /** Executed before `run` to clean up after an interrupted attempt, for example to drop an invalid index. */
  readonly repair?: Step;
  /** Executed instead of `run` if an interrupted attempt took effect: waits until the engine has finished the work. */
  readonly awaitEffect?: Step;
  /** Safe to run again after an interrupted attempt, so recovery does not check whether it took effect. */
  readonly idempotent?: true;
  /** It only renames what its migration drops, which is kept for this many milliseconds. */
  readonly keptMs?: number;
  /**
   * A query that returns a row once the statement has taken effect. The author of a raw statement supplies it. If an
   * operation compiles to several statements, each needs one, so that recovery can determine which took effect.
   */
  readonly check?: string;
}

export interface ConnectOptions {
  /** PostgreSQL: the schema of all tables. Every name is qualified with it. */
  readonly schema?: string;
  /** PostgreSQL: the schemas whose tables are in the model. Those of another one than `schema` have its name and a dot before their own. */
  readonly schemas?: readonly string[];
  /** Milliseconds before a connection attempt is abandoned; default 10,000. */
  readonly connectTimeoutMs?: number;
  /** SQL: milliseconds a DDL statement waits for a table lock before it yields to others and retries; default 500. */
  readonly lockTimeoutMs?: number;
  /** Milliseconds to wait for a database that only one process at a time can open; default 0. */
  readonly busyTimeoutMs?: number;
  /** The caller only reads. An embedded database that does not exist is read as an empty one, and not created. */
  readonly readOnly?: boolean;
  /** The project folder. Its own driver is used if it has one; default the working directory. */
  readonly root?: string;
  /** Allows statements that copy a whole table and block writes to it; default false. */
  readonly allowCopy?: boolean;
  /** Called once if connecting has to wait. */
  readonly onWait?: () => void;
  /** Aborts the wait. */
  readonly signal?: AbortSignal;
  /** Called periodically while data is processed in batches. */
  readonly onProgress?: (progress: Progress) => void;
  /** Further options the dialect documents. Unknown options are rejected. */
  readonly [option: string]: unknown;
}

/** Progress of a statement or an update that works in batches. */
export interface Progress {
  readonly collection: string;
  /** Rows, documents or items processed, including those of interrupted attempts. */
  readonly done: number;
  /** Absent where counting is too expensive for the engine. */
  readonly total?: number;
  /** The rows are only read, to verify that all of them allow the change before the first one is changed. */
  readonly checksOnly?: true;
}

/** Statements and record writes that are executed together. */
export interface Segment<Step = unknown> {
  /** True: all of it commits or none. False: a single statement; the segments before and after it write the journal. */
  readonly transactional: boolean;
  readonly statements: readonly Statement<Step>[];
  readonly writes: readonly RecordWrite[];
  /**
   * Called after the statements, before the transaction commits; if it throws, the segment is rolled back. `introspect`
   * must read the catalog within the transaction. Only with `Capabilities.transactionalDdl`.
   */
  readonly verify?: (introspect: (collections: readonly string[]) => Promise<SchemaModel>) => Promise<void>;
}

export interface RunOutcome {
  /** The number of committed segments, from the first. */
  readonly committed: number;
  /** Per committed segment and write: the values of CLOCK (a Date) and ELAPSED (a number), by column. */
  readonly written: readonly (readonly Readonly<Record<string, Date | number>>[])[];
  readonly failure?: {
    /** The index of the failed statement in the segment at index `committed`; undefined if a record write failed. */
    readonly statement: number | undefined;
    readonly error: unknown;
    /** No part of the statement took effect. Without it, the catalog is checked. */
    readonly rolledBack?: boolean;
    /** Another session blocked the statement, and nothing took effect: a retry may succeed. */
    readonly transient?: boolean;
    /** Its `repair` failed too: the next run has to do it, and then the statement. */
    readonly unrepaired?: boolean;
  };
}

/** Callbacks for long runs: cancellation checks and progress. */
export interface RunObserver {
  /** Called before each segment; false ends the run, with all earlier segments committed. */
  shouldContinue(segment: number): boolean;
  /** Called in order after each committed segment, with its entry of `RunOutcome.written`. */
  onCommitted(written: RunOutcome['written'][number]): void;
  /** Called before a segment that another session blocked is retried; false ends the run with that failure. */
  shouldRetry(): boolean;
  /** Called before `shouldRetry` with the sessions that hold a lock on the table, as far as they are known. */
  onBlocked?(sessions: readonly BlockingSession[]): void;
  /** Called with the text sent for a segment's statement, if it depends on the catalog and differs from `text`. */
  onSent(segment: number, text: string): void;
}

/** A session that holds a lock on a table, as far as the user may see it. */
export interface BlockingSession {
  readonly table: string;
  /** The number that ends it: a process id of PostgreSQL, a connection id of MySQL. */
  readonly id: string;
  readonly user?: string;
  readonly application?: string;
  readonly state?: string;
  /** The start of its transaction, ISO 8601. */
  readonly since?: string;
  /** Its current statement, or its last one. */
  readonly query?: string;
}

/** A statement that is certain to fail, and its error. */
export interface PreflightFailure {
  /** The index in the list passed to `preflight`. */
  readonly statement: number;
  readonly error: unknown;
}

/** A statement that copies a table with rows, which blocks writes to it until it is done. */
export interface TableCopy {
  /** The index in the list passed to `preflight`. */
  readonly statement: number;
  /** The table's name before the first statement. */
  readonly collection: string;
  readonly rows: number;
  readonly isEstimate: boolean;
  /** The table is small, or its migration or an option of the connection permits the copy. */
  readonly isPermitted: boolean;
}

/** What a statement does to others that use a table with many rows, while it runs. */
export interface StatementLock {
  /** The index in the list passed to `preview`. */
  readonly statement: number;
  /** The table's name before the first statement. */
  readonly collection: string;
  readonly blocks: 'nothing' | 'writes' | 'reads and writes';
  /** What it does with the rows. With `none` it takes a moment. */
  readonly work: 'none' | 'read' | 'write';
  /** An estimate. */
  readonly rows: number;
  /** An estimate of how long it takes, from the number of rows. */
  readonly seconds: number;
}

/** What is certain before the first statement runs, each in the order of the statements. */
export interface PreflightReport {
  readonly failures: readonly PreflightFailure[];
  readonly copies: readonly TableCopy[];
}

/** Lock, DDL and history share one session; records and updates may use additional ones. */
export interface Connection<Step = unknown> {
  /** Product and version of the server, for people: `PostgreSQL 15.20`. */
  readonly server?: string;
  /** Statements to run first in the engine's own shell, so that a printed plan has the same effect as `run`. */
  readonly preamble?: readonly string[];
  /**
   * Runs segments in order until one fails, in as few round trips as the engine allows. The writes of a segment
   * fail with `lock_lost` if `epoch` is no longer current. `tookMs` is the time earlier runs spent on the migration of
   * the first segment, and ELAPSED includes it. The observer is called between round trips; with
   * `Capabilities.runsSegmentsSingly` also before each segment.
   */
  run(segments: readonly Segment<Step>[], epoch: number, tookMs?: number, observer?: RunObserver): Promise<RunOutcome>;
  /**
   * Finds out what is certain about statements in execution order; `operations` has the operation of each. Called under the
   * lock before the first one runs, on engines that cannot roll DDL back. Changes no table of the model.
   */
  preflight?(
    statements: readonly Statement<Step>[],
    operations: readonly MigrationOperation[],
  ): Promise<PreflightReport>;
  /** The same without the migration lock, and the final texts of the statements. For `--dry-run`. */
  preview?(
    statements: readonly Statement<Step>[],
    operations: readonly MigrationOperation[],
  ): Promise<PreflightReport & { readonly texts: readonly string[]; readonly locks?: readonly StatementLock[] }>;
  /** The final texts of the statements, where they depend on the catalog. Only reads. */
  finalTexts?(statements: readonly Statement<Step>[]): Promise<readonly string[]>;
  /** Whether the server has no room for this many locks in one transaction; undefined if it has. Changes nothing. */
  lockShortage?(locks: number): Promise<LockShortage | undefined>;
  /** Rows of a query in the engine's own language, for `Statement.check` and for diagnostics. */
  query(text: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** Queries for `query` that find out whether the user may migrate. They change nothing. */
  readonly permissionProbes?: readonly PermissionProbe[];
  /** A probe for a new foreign key to an existing table. */
  referenceProbe?(references: ForeignKey['references']): PermissionProbe;
  /** The catalog as a model, without system tables: all collections, or the named ones. */
  introspect(collections?: readonly string[]): Promise<SchemaModel>;
  /**
   * Catalog objects that `introspect` cannot represent, or only approximately, such as a field whose type it reads as another
   * one, or a trigger that is lost when a change recreates the table. For people.
   */
  unsupportedObjects(): Promise<readonly UnsupportedObject[]>;
  /** Both of all collections, for an engine that reads them from the same queries. */
  introspectWhole?(): Promise<WholeCatalog>;
  /**
   * Remembers collections as described, which exist and were created by another program. `introspect` then returns what
   * the catalog does not contain, such as fields that no rule enforces. Called under the lock.
   */
  adopt?(collections: readonly Collection[], epoch: number): Promise<void>;
  /**
   * A collection that another program created, as `introspect` returns it after `adopt` has stored this description.
   * Undefined if it does not exist, or if svc has stored a description of it already.
   */
  introspectAs?(collection: Collection): Promise<Collection | undefined>;
  /**
   * The tables and fields whose names begin with `_svc_kept_`, which `introspect` leaves out: by its name, the present table
   * of a field, and undefined of a table. Absent: this engine cannot keep what a migration drops.
   */
  kept?(): Promise<ReadonlyMap<string, string | undefined>>;
  /** The objects that are not tables, each with a text that creates it. Those of extensions and of svc are left out. */
  objects?(): Promise<readonly DatabaseObject[]>;
  /** Kinds that `objects` leaves out unless an option asks for them. One of the files is not missing then. */
  readonly unreadKinds?: ReadonlySet<string>;
  /** The objects with their texts as `objects` returns them after they are created; as written, if the server refuses. */
  normalizeObjects?(objects: readonly DatabaseObject[]): Promise<readonly DatabaseObject[]>;
  /**
   * `Dialect.normalize`, with expressions as the server prints them: create them on a temporary table, in a transaction that is
   * rolled back, and read the catalog. The same as `Dialect.normalize` on an engine that keeps them as written.
   */
  normalize(model: SchemaModel): Promise<SchemaModel>;
  records<R extends object>(definition: RecordDefinition<R>): RecordStore<R>;
  /** Creates missing record tables and adds missing columns. Call it under the lock. */
  ensureTables(definitions: readonly AnyRecordDefinition[]): Promise<void>;
  update(job: UpdateJob): Promise<UpdateResult>;
  /** The engine's clock. */
  now(): Promise<Date>;
  /** The number of rows in a collection, up to `limit`, which may be `Number.MAX_SAFE_INTEGER`. */
  count(collection: string, limit: number): Promise<number>;
  /** The number of rows in which a field has a value, up to `limit`: what `--count-rows` says of a dropped field. */
  countValues?(collection: string, field: string, limit: number): Promise<number>;
  /** How many rows the catalog says that a collection has, for an engine whose preview finds no locks. */
  estimateCount?(collection: string): Promise<number>;
  /**
   * Calls `notify` when a record of a collection is written for which `notifyOn` is true, with its key if the engine
   * reports it. Notifications may be lost, late or repeated. Returns a function that stops them.
   */
  watch?(collection: string, notify: (key?: string) => void): Promise<() => Promise<void>>;
  /**
   * Runs `work` under the migration lock: one process per database, others wait. `epoch` is one higher than that of the
   * previous holder. Throws `lock_timeout` if the lock is not acquired in time. The lock of a process that died is
   * released.
   */
  withLock<T>(work: (epoch: number) => Promise<T>, options?: LockOptions): Promise<T>;
  /** Whether any process holds the migration lock. Read-only. */
  isLocked(): Promise<boolean>;
  /**
   * Waits for running calls, or ends them with an error. May be called again, which changes nothing and resolves too. Later calls
   * of the connection fail, with `connection_lost` where the dialect can recognize it.
   */
  close(): Promise<void>;
}

/**
 * A query that needs a permission of `svc db migrate`. Without it, the query fails with `permission_denied`; with it, it
 * succeeds or fails with `collection_unknown` or `migration_failed`, for example because it names a table that does not exist.
 */
export interface PermissionProbe {
  /** Completes "the user may …": `create tables`. */
  readonly needed: string;
  readonly text: string;
  /** Each row of the result is a table, as `name`, that the user has no permission for. */
  readonly denies?: true;
}

export interface UnsupportedObject {
  /** Absent for an object of the whole database. */
  readonly collection?: string;
  readonly field?: string;
  /** The name of an index or a constraint that `introspect` leaves out. */
  readonly name?: string;
  /** Completes "the table …", "the field …" or "the database …": `has the type money, which …`. */
  readonly what: string;
}

/** The results of `introspect` and `unsupportedObjects`. */
export interface WholeCatalog {
  readonly model: SchemaModel;
  readonly unsupported: readonly UnsupportedObject[];
}

export interface LockOptions {
  /** Milliseconds; default 60,000. */
  readonly timeoutMs?: number;
  /** Called once if the lock is not free. */
  readonly onWait?: () => void;
  readonly signal?: AbortSignal;
}

/** A validated `db.update`. */
export interface UpdateJob {
  readonly table: string;
  readonly set: readonly Assignment[];
  readonly where: readonly Condition[];
  /** Identifies the job after a crash, on engines that work in batches. */
  readonly key: string;
  /** A value comes from `'now'`, so another attempt at the job sets different values. */
  readonly usesNow?: true;
  readonly collection: Collection;
}

/** The parts of `concat` are fields and plain values; a `literal` is not SQL. */
export type Assignment =
  | { readonly field: string; readonly value: Json }
  | { readonly field: string; readonly concat: readonly ({ readonly field: string } | { readonly literal: string })[] }
  | { readonly field: string; readonly now: true };

export type Condition =
  | { readonly field: string; readonly operator: 'eq' | 'ne' | 'gt' | 'gte' | 'lt' | 'lte'; readonly value: Json }
  | { readonly field: string; readonly operator: 'in'; readonly value: readonly Json[] };

export interface UpdateResult {
  readonly matched: number;
  readonly modified: number;
}
