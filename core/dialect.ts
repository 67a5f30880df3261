import type { Json } from './json.ts';
import type { AnyRecordDefinition, RecordDefinition, RecordStore, RecordWrite } from './records.ts';
import type { Refusals } from './schema/features.ts';
import type { Collection, SchemaModel } from './schema/model.ts';
import type { NameRules } from './schema/names.ts';
import type { Operation } from './schema/operation.ts';
import type { FieldType } from './schema/types.ts';

/** Everything core knows of an engine. All but `connect` is pure. */
export interface Dialect {
  readonly name: string;
  /** The engine's name of each field type, for documentation and `svc doctor`: a missing one does not compile. */
  readonly types: Readonly<Record<FieldType, string>>;
  readonly capabilities: Capabilities;
  /** Throws `not_supported`, `name_invalid` or `field_invalid` before anything has run. */
  compile(operation: Operation, before: SchemaModel): readonly Statement[];
  /** What the catalog can tell of a model: types, lengths and names as introspection would give them back. */
  seen(model: SchemaModel): SchemaModel;
  connect(url: string, options: ConnectOptions): Promise<Connection>;
  /** The physical database behind a URL, without credentials: equal for two URLs of one database. */
  identify(url: string): string;
}

export interface Capabilities {
  /** DDL commits and rolls back together with the history row. */
  readonly transactionalDdl: boolean;
  /** `run` takes segments one after the other and heeds all of `underway`: many may be given to it at once. */
  readonly stepwise?: true;
  readonly names: NameRules;
  /** What the engine cannot do; everything else it can. */
  readonly refuses: Refusals;
}

export interface Statement {
  /** For people: what `--dry-run` prints and errors quote. */
  readonly text: string;
  /** What is run; opaque to core, but JSON: the journal keeps it. */
  readonly run: Json;
  /** Can be in a transaction with others and with the history write. */
  readonly transactional: boolean;
  /** Destroys data that no rollback brings back. */
  readonly destructive: boolean;
  /** Run before `run` when an interrupted attempt may have left something (an invalid index). */
  readonly repair?: Json;
  /** Run in the place of `run` when an interrupted attempt took effect: waits for what the engine may still be doing. */
  readonly settle?: Json;
  /** Running it again after an interrupted attempt ends in the same state: nobody has to ask whether it took effect. */
  readonly idempotent?: true;
  /**
   * A query that gives a row when the statement has taken effect. Raw statements have what their author says; others
   * need one where an operation takes several statements, of which the catalog has to be asked one by one.
   */
  readonly check?: string;
}

export interface ConnectOptions {
  /** PostgreSQL: where tables live; every name is qualified with it. */
  readonly schema?: string;
  /** Milliseconds until a connection attempt is given up; default 10,000. */
  readonly connectTimeoutMs?: number;
  /** SQL: milliseconds a DDL statement waits for a table lock before it lets others pass and tries again; default 500. */
  readonly lockTimeoutMs?: number;
  /** Milliseconds to wait for a database that one process at a time can have open; default 0. */
  readonly busyTimeoutMs?: number;
  /** Folder of the project, whose own driver is taken where it has one; default the folder of the process. */
  readonly root?: string;
  /** Statements may copy a table to which nobody can write meanwhile, where the engine has such; default false. */
  readonly allowCopy?: boolean;
  /** Called once when it has to wait that long. */
  readonly onWait?: () => void;
  /** Ends the waiting. */
  readonly signal?: AbortSignal;
  /** Called now and then while data moves in batches. */
  readonly onProgress?: (progress: Progress) => void;
  /** Anything else the dialect documents; what it does not know is refused. */
  readonly [option: string]: unknown;
}

/** How far a statement or an update is that works in batches. */
export interface Progress {
  readonly collection: string;
  /** Rows, documents or items, those of interrupted attempts counted. */
  readonly done: number;
  /** Absent where the engine cannot count them at a price worth paying. */
  readonly total?: number;
  /** They are only read: whether all of them allow the change is seen before the first is changed. */
  readonly checks?: true;
}

/** Statements and record writes that belong together. */
export interface Segment {
  /** True: everything commits or nothing does. False: one statement; the segments before and behind it journal it. */
  readonly transactional: boolean;
  readonly statements: readonly Statement[];
  readonly writes: readonly RecordWrite[];
}

export interface RunOutcome {
  /** Segments that are committed, from the first. */
  readonly committed: number;
  /** Of each committed segment, for each of its writes, what CLOCK (a Date) and ELAPSED (a number) became, by column. */
  readonly written: readonly (readonly Readonly<Record<string, Date | number>>[])[];
  readonly failure?: {
    /** Of the segment at index `committed`: the statement that failed, or undefined for its record writes. */
    readonly statement: number | undefined;
    readonly error: unknown;
    /** The engine refused the statement as a whole: nothing of it took effect. Else the catalog is asked. */
    readonly untouched?: boolean;
    /** Another session was in the way, and nothing of the statement or the writes took effect: the same may pass later. */
    readonly passing?: boolean;
  };
}

/** What a run that takes its time asks and tells on its way. */
export interface Underway {
  /** Asked before each segment; false ends the run there, with everything before it committed. */
  goesOn(segment: number): boolean;
  /** Told of each segment once it is committed, in order: its part of `RunOutcome.written`. */
  committed(written: RunOutcome['written'][number]): void;
  /** Asked before a segment that another session stood in the way of is tried again; false ends the run with that failure. */
  waitsOn(): boolean;
  /** Told what is sent for the statement of a segment where that is not its text, as only the catalog tells all of it. */
  sent(segment: number, text: string): void;
}

/** A statement that would be refused once it runs, and how. */
export interface Foreseen {
  /** Its index among those that were asked about. */
  readonly statement: number;
  readonly error: unknown;
}

/** Lock, DDL and history share one session; records and update may use others beside it. */
export interface Connection {
  /** What answers, for people: `PostgreSQL 15.20`. */
  readonly server?: string;
  /** What the engine's own shell has to run first, so that a plan that is piped into it works where `run` would. */
  readonly preamble?: readonly string[];
  /**
   * Runs segments in order until one fails, in as few round trips as the engine allows. The writes of a segment
   * lose with `lock_lost` when the epoch they were planned under is over. `tookMs` is what earlier runs took for the
   * migration of the first segment: ELAPSED counts it in. `underway` is heeded between round trips, and before
   * each segment where `Capabilities.stepwise` says so.
   */
  run(segments: readonly Segment[], epoch: number, tookMs?: number, underway?: Underway): Promise<RunOutcome>;
  /**
   * One of these statements, given in the order in which they are to run, that is sure to be refused. Asked under the
   * lock before any of them has run, where nothing rolls back what has; it leaves everything as it is.
   */
  foresee?(statements: readonly Statement[]): Promise<Foreseen | undefined>;
  /**
   * The texts of these statements, given in the order in which they are to run, with what only the catalog can add to
   * them. It reads and leaves everything as it is.
   */
  texts?(statements: readonly Statement[]): Promise<readonly string[]>;
  /** Rows of a query in the engine's own words: what `check` and a person's questions need. */
  query(text: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** The catalog as a model, without system tables; all collections or those named. */
  introspect(collections?: readonly string[]): Promise<SchemaModel>;
  /** What a catalog has that `introspect` cannot say or only nearly, for a person to read. */
  unreadable(): Promise<readonly Unreadable[]>;
  /** `Dialect.seen`, with expressions in the server's own spelling. */
  seen(model: SchemaModel): Promise<SchemaModel>;
  records<R extends object>(definition: RecordDefinition<R>): RecordStore<R>;
  /** Creates the tables of these records where they are missing and adds columns that are new. Under the lock. */
  ensure(definitions: readonly AnyRecordDefinition[]): Promise<void>;
  update(job: UpdateJob): Promise<UpdateResult>;
  /** The engine's clock. */
  now(): Promise<Date>;
  /** Rows in a collection, up to `limit`: tells an empty table from one with data. */
  count(collection: string, limit: number): Promise<number>;
  /** A hint that records of a collection (`topic`) changed as its definition `tells`, and which if it can tell: may be lost, late or repeated. */
  watch?(topic: string, hint: (key?: string) => void): Promise<() => Promise<void>>;
  /**
   * One migrator per database; others wait. `work` gets an epoch: one more than the last holder's, whoever that
   * was. A lock that is not had in time is `lock_timeout`; a process that died never leaves one.
   */
  exclusively<T>(work: (epoch: number) => Promise<T>, options?: LockOptions): Promise<T>;
  /** Whether somebody holds that lock now. A read. */
  isLocked(): Promise<boolean>;
  close(): Promise<void>;
}

export interface Unreadable {
  /** Absent where it is of the whole database. */
  readonly collection?: string;
  readonly field?: string;
  /** Continues "the table …", "the field …" or "the database …": `has the type money, which …`. */
  readonly what: string;
}

export interface LockOptions {
  /** Milliseconds; default 60,000. */
  readonly timeoutMs?: number;
  /** Called once when the lock is not had at once. */
  readonly onWait?: () => void;
  readonly signal?: AbortSignal;
}

/** `db.update`, checked and normalised. */
export interface UpdateJob {
  readonly table: string;
  readonly set: readonly Assignment[];
  readonly where: readonly Condition[];
  /** Names the job over crashes, where the engine works in batches. */
  readonly key: string;
  /** A value comes from `'now'`: what another attempt at the job has set differs from what this one sets. */
  readonly clocked?: true;
  readonly collection: Collection;
}

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
