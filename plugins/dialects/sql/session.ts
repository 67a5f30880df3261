/** The rows of one statement and the number of affected rows. Compare-and-set relies on 0 when no row matches. */
export interface Result {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly count: number;
}

/** Sends text with one or more statements and returns the result of each. */
export type ExecSql = (text: string) => Promise<readonly Result[]>;

/** One session on the server. Concurrent calls are executed one after the other. */
export interface Session {
  readonly exec: ExecSql;
  /** Runs `work` without statements of other callers in between. */
  exclusive<T>(work: (exec: ExecSql) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Rows of the only statement in `text`. */
export async function rowsOf(exec: ExecSql, text: string): Promise<Result['rows']> {
  return (await exec(text)).at(-1)?.rows ?? [];
}

/** Retries after errors for which `isTransient` is true: another session blocked the statement, and nothing was done. */
export async function retryTransient<T>(
  send: () => Promise<T>,
  isTransient: (error: unknown) => boolean,
  retries: number,
): Promise<T> {
  for (let left = retries; ; left -= 1) {
    try {
      return await send();
    } catch (error) {
      if (left === 0 || !isTransient(error)) throw error;
    }
  }
}
