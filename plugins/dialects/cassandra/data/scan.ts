import { restAfter } from '../../shared/pace.ts';
import { identifierList, quoteIdentifier } from '../compile/names.ts';
import { isOverloaded, isTimeout } from '../connection/errors.ts';
import { retryDuringSchemaLag } from '../connection/schema-lag.ts';
import type { Row, RowPage, Session } from '../connection/session.ts';
import { whileBusy } from './while-busy.ts';

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
  /** Others follow. */
  readonly hasMore: boolean;
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
  const reader = { size: PAGE_SIZE };
  const read = (state?: string) => readPage(reader, (size) => session.readPage(cql, values, size, state));
  let next = retryDuringSchemaLag(() => read());
  for (;;) {
    const { rows, state } = await next;
    if (state !== undefined) {
      next = read(state);
      // An error is thrown when the page is awaited.
      next.catch(() => undefined);
    }
    const last = rows.at(-1);
    yield { rows, hasMore: state !== undefined, ...(last && { cursor: tokenOf(last) }) };
    if (state === undefined) return;
  }
}

/** A page that takes too long, as one between many deleted rows may, is read in smaller parts. */
async function readPage(reader: { size: number }, read: (size: number) => Promise<RowPage>): Promise<RowPage> {
  const page = await whileBusy(
    () => read(reader.size),
    (error) => {
      if (isTimeout(error)) reader.size = Math.max(1, Math.floor(reader.size / 4));
      return isTimeout(error) || isOverloaded(error);
    },
  );
  reader.size = Math.min(PAGE_SIZE, reader.size * 2);
  return page;
}

/** Writes the rows of a page, and then leaves the cluster to others for a while. `write` returns whether it wrote. */
export async function writePage(
  { rows, hasMore }: ScanPage,
  concurrency: number,
  write: (row: Row) => Promise<boolean>,
): Promise<void> {
  const startedAt = performance.now();
  let written = 0;
  await forEachConcurrently(rows, concurrency, async (row) => {
    if (await write(row)) written += 1;
  });
  if (written > 0 && hasMore) await restAfter(performance.now() - startedAt);
}

/** Stops at the first failure, and throws it once all running calls have ended. */
async function forEachConcurrently<T>(
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
