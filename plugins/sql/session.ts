/** Rows of one statement, and how many rows it touched: 0 where nothing matched, which every compare-and-set rests on. */
export interface Result {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly count: number;
}

/** Sends text that may hold several statements; gives the result of each. */
export type Exec = (text: string) => Promise<readonly Result[]>;

/** One conversation with the server. What is asked at the same time is answered one after the other. */
export interface Session {
  readonly exec: Exec;
  /** Nobody else's text comes between those that `work` sends. */
  alone<T>(work: (exec: Exec) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Rows of the only statement in `text`. */
export async function rowsOf(exec: Exec, text: string): Promise<Result['rows']> {
  return (await exec(text)).at(-1)?.rows ?? [];
}
