import type { Connection } from '../../../../core/dialect.ts';
import type { ExecSql } from '../session.ts';

/**
 * The engine-specific part of `sqlConnection`, for an engine that rolls DDL back, supports IS DISTINCT FROM,
 * and runs the statements of `compileTextCatalog`.
 */
export interface SqlDriver extends Pick<Connection, 'close'> {
  /** Product and version of the engine, for people. */
  readonly server: string;
  /** Runs one statement. Calls may be concurrent, also with a transaction: they have to be queued. */
  readonly exec: ExecSql;
  /**
   * Runs `work` in a transaction that excludes other writers. Commits, or rolls back and throws the error of `work`.
   * `script` runs one or more statements. `rebuilds`: a table is dropped and recreated, which must not change rows that
   * reference it.
   */
  transaction<T>(work: (exec: ExecSql, script: RunScript) => Promise<T>, rebuilds: boolean): Promise<T>;
  /** Converts an error of the engine to an `SvcError` with its message in `why`. Returns other errors unchanged. */
  toSvcError(error: unknown): unknown;
  /** Whether the error means that a table does not exist. */
  isMissing(error: unknown): boolean;
  /** Whether the error means that a primary key value exists already. */
  isDuplicate(error: unknown): boolean;
}

export type RunScript = (text: string) => Promise<unknown>;
