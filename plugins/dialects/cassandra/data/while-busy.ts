import { setTimeout as wait } from 'node:timers/promises';
import { isOverloaded } from '../connection/errors.ts';

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;
/** The next run of the command resumes a data move that gave up. */
const PATIENCE_MS = 60_000;

/** Repeats a statement that the cluster is too busy for, after pauses that leave it to others. */
export async function whileBusy<T>(
  work: () => Promise<T>,
  isBusy: (error: unknown) => boolean = isOverloaded,
): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, MAX_PAUSE_MS)) {
    try {
      return await work();
    } catch (error) {
      if (!isBusy(error) || performance.now() + pause > deadline) throw error;
    }
    // Statements that were refused together are not sent together again.
    await wait(pause * (0.5 + Math.random() / 2));
  }
}
