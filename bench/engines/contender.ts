import type { Dialect } from '../../core/dialect.ts';
import type { Migration } from '../../core/migration/migration.ts';

/** A server of an engine, and the same work done on it by its driver alone. */
export interface BenchEngine {
  readonly dialect: Dialect;
  /** What answers, for the facts. */
  readonly server: string;
  /** A database of its own. */
  fresh(): Promise<BenchDatabase>;
  close(): Promise<void>;
}

export interface BenchDatabase {
  readonly url: string;
  /** The driver, connected: what is measured begins behind that. */
  bare(): Promise<Bare>;
  drop(): Promise<void>;
}

/** Written by hand in the quickest way that the driver has and that gives the same result. */
export interface Bare {
  /** Each statement with its history writes: one that says that it starts, and one that it is done, together where it can be. */
  migrate(migrations: readonly Migration[]): Promise<void>;
  /** A table `load` of that many rows, whose `name` has a value and whose `kind` has none. */
  load(rows: number): Promise<void>;
  /** Gives every row that has no `kind` one, in the batches that the dialect sends, and tells how many those were. */
  backfill(): Promise<number>;
  close(): Promise<void>;
}
