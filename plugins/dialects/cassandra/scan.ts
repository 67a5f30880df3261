import { untilKnown } from './known.ts';
import { list, quote } from './names.ts';
import type { Row, Session } from './session.ts';

const PAGE = 1000;
/** Beside the columns of a user: no quoted name of theirs may be the same. */
const TOKEN = 'svc:token';

export interface Scan {
  readonly table: string;
  readonly partition: readonly string[];
  /** What is selected, as CQL. */
  readonly selected: readonly string[];
  /** The tokens of the partitions to begin and to end with. */
  readonly from?: string;
  readonly to?: string;
}

/** The token of the partition of a row that was scanned. */
export const partitionOf = (row: Row): string => String(row[TOKEN]);

export interface ScanPage {
  readonly rows: readonly Row[];
  /** The partition where to begin anew: rows of it may be read twice, none is left out. */
  readonly cursor?: string;
}

/** Every row of a table, a page at a time, in the order of the tokens. The next page is asked for while one is worked on. */
export async function* scan(
  session: Session,
  { table, partition, selected, from, to }: Scan,
): AsyncGenerator<ScanPage> {
  const token = `token(${list(partition)})`;
  const bounds = [...(from === undefined ? [] : [`${token} >= ?`]), ...(to === undefined ? [] : [`${token} <= ?`])];
  const where = bounds.length > 0 ? ` WHERE ${bounds.join(' AND ')}` : '';
  const cql = `SELECT ${[...selected, `${token} AS ${quote(TOKEN)}`].join(', ')} FROM ${quote(table)}${where}`;
  const values = [from, to].filter((bound) => bound !== undefined).map(BigInt);
  let next = untilKnown(() => session.page(cql, values, PAGE));
  for (;;) {
    const { rows, state } = await next;
    if (state !== undefined) {
      next = session.page(cql, values, PAGE, state);
      // Told when its turn comes.
      next.catch(() => undefined);
    }
    const last = rows.at(-1);
    yield { rows, ...(last && { cursor: partitionOf(last) }) };
    if (state === undefined) return;
  }
}

/** Does something with each, so many at a time; the first failure ends it. */
export async function each<T>(
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
  const broken = workers.find((one) => one.status === 'rejected');
  if (broken) throw broken.reason;
}
