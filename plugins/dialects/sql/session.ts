/** The rows of one statement and the number of affected rows. Compare-and-set relies on 0 when no row matches. */
export interface Result {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly count: number;
}

/**
 * Sends text with one or more statements and returns the result of each. Without a response after `timeoutMs`, the
 * session ends: its connection counts as lost.
 */
export type ExecSql = (text: string, timeoutMs?: number) => Promise<readonly Result[]>;

/** One session on the server. Concurrent calls are executed one after the other. */
export interface Session {
  readonly exec: ExecSql;
  /** Runs `work` without statements of other callers in between. */
  exclusive<T>(work: (exec: ExecSql) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** The same session for short statements, each of which has a time limit. Waiting for other callers does not count. */
export function withTimeLimit({ exec, exclusive, close }: Session, timeoutMs: number): Session {
  const limited =
    (send: ExecSql): ExecSql =>
    (text) =>
      send(text, timeoutMs);
  return { exec: limited(exec), exclusive: (work) => exclusive((send) => work(limited(send))), close };
}

/** After `timeoutMs` without a response, calls `abandon`, which has to reject `response` with its error. */
export async function abandonAfter<T>(
  timeoutMs: number | undefined,
  response: Promise<T>,
  abandon: (error: Error) => void,
): Promise<T> {
  if (timeoutMs === undefined) return response;
  const error = () => Object.assign(new Error(`no response within ${timeoutMs} ms`), { code: 'ETIMEDOUT' });
  const timer = setTimeout(() => abandon(error()), timeoutMs);
  try {
    return await response;
  } finally {
    clearTimeout(timer);
  }
}

/** Rows of the only statement in `text`. */
export async function rowsOf(exec: ExecSql, text: string): Promise<Result['rows']> {
  return (await exec(text)).at(-1)?.rows ?? [];
}

/** Some servers return the names of columns in upper case. */
export const withLowerCaseNames = (row: Result['rows'][number]): Result['rows'][number] =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name.toLowerCase(), value]));

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
