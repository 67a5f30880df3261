import type { Progress } from './progress.ts';
import { beginning, type Standing, type Sweep, sweep } from './sweep.ts';

interface Resumed extends Omit<Sweep, 'standing' | 'reached'> {
  /** Items of the table, as far as DynamoDB knows. */
  readonly items: number;
  readonly progress: Progress;
  /** What an attempt before this one has changed is fine. */
  readonly settles: boolean;
  /** Told after each page how many items were read. */
  told(seen: number): void;
}

/**
 * A sweep from where an interrupted attempt stopped, to its end. What came in behind that place since then is found by
 * going through the table once more: a scan has no order in which only the part before it could be read. Where nothing
 * tells it from what is done it is left alone, like what comes in behind a sweep that is not interrupted.
 */
export async function sweepOn({ items, progress, settles, told, ...job }: Resumed): Promise<Standing> {
  const found = await progress.found();
  const standing = found ?? beginning(items);
  const reached = async (now: Standing) => {
    told(now.seen);
    await progress.reached(now);
  };
  await sweep({ ...job, standing, reached });
  if (found && settles) {
    const again = beginning(items);
    await sweep({ ...job, standing: again, reached: async () => told(standing.seen) });
    // What is fine already was counted the first time.
    standing.matched += again.changed;
    standing.changed += again.changed;
  }
  await progress.finish();
  return standing;
}
