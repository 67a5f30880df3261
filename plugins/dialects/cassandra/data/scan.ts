import { identifierList, quoteIdentifier } from '../compile/names.ts';
import { retryDuringSchemaLag } from '../connection/schema-lag.ts';
import type { Row, Session } from '../connection/session.ts';

const PAGE_SIZE = 1000;
/** An alias that no column of the table is likely to have. */
const TOKEN_COLUMN = 'svc:token';

export interface ScanRange {
  readonly table: string;
  readonly partition: readonly string[];
  /** CQL selectors. */
  readonly selected: readonly string[];
  /** The tokens of the first and the last partition, both inclusive. */
  readonly from?: string;
  readonly to?: string;
}

/** The token of a scanned row's partition. */
export const tokenOf = (row: Row): string => String(row[TOKEN_COLUMN]);

export interface ScanPage {
  readonly rows: readonly Row[];
  /** The token of the partition to resume from. Its rows may be read twice. */
  readonly cursor?: string;
}

/** Reads every row of a table in token order, a page at a time, and prefetches the next page. */
export async function* scan(
  session: Session,
  { table, partition, selected, from, to }: ScanRange,
): AsyncGenerator<ScanPage> {
  const token = `token(${identifierList(partition)})`;
  const bounds = [...(from === undefined ? [] : [`${token} >= ?`]), ...(to === undefined ? [] : [`${token} <= ?`])];
  const where = bounds.length > 0 ? ` WHERE ${bounds.join(' AND ')}` : '';
  const cql = `SELECT ${[...selected, `${token} AS ${quoteIdentifier(TOKEN_COLUMN)}`].join(', ')} FROM ${quoteIdentifier(table)}${where}`;
  const values = [from, to].filter((bound) => bound !== undefined).map(BigInt);
  let next = retryDuringSchemaLag(() => session.readPage(cql, values, PAGE_SIZE));
  for (;;) {
    const { rows, state } = await next;
    if (state !== undefined) {
      next = session.readPage(cql, values, PAGE_SIZE, state);
      // An error is thrown when the page is awaited.
      next.catch(() => undefined);
    }
    const last = rows.at(-1);
    yield { rows, ...(last && { cursor: tokenOf(last) }) };
    if (state === undefined) return;
  }
}

/** Stops at the first failure, and throws it once all running calls have ended. */
export async function forEachConcurrently<T>(
  items: readonly T[],
  concurrency: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  let failed = false;
  const worker = async () => {
    while (next < items.length && !failed) {
      const item = items[next++] as T;
      try {
        await work(item);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const workers = await Promise.allSettled(Array.from({ length: Math.min(concurrency, items.length) }, worker));
  const failure = workers.find((one) => one.status === 'rejected');
  if (failure) throw failure.reason;
}
