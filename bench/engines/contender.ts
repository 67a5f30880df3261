import type { Dialect } from '../../core/dialect.ts';
import type { Migration } from '../../core/migration/migration.ts';

/** A server of an engine, and the same work done with its driver alone. */
export interface BenchEngine {
  readonly dialect: Dialect;
  /** Description of the server, for the report. */
  readonly server: string;
  /** A new, empty database. */
  fresh(): Promise<BenchDatabase>;
  close(): Promise<void>;
}

export interface BenchDatabase {
  readonly url: string;
  /** The connected driver; connecting is not measured. */
  bare(): Promise<Bare>;
  drop(): Promise<void>;
}

/** Hand-written, the fastest way to the same result with the driver. */
export interface Bare {
  /** Runs each statement with two history writes, started and completed, combined where possible. */
  migrate(migrations: readonly Migration[]): Promise<void>;
  /** Fills a table `load` with that many rows that have a `name` but no `kind`. */
  load(rows: number): Promise<void>;
  /** Sets `kind` in every row without one, in the same batches as the dialect; returns the number of rows. */
  backfill(): Promise<number>;
  close(): Promise<void>;
}
