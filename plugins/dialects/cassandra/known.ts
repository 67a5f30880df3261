import { setTimeout as wait } from 'node:timers/promises';
import { codeOf, innermost } from './errors.ts';

/*
 * Nodes agree on a schema a moment before each of them uses it. Until then one says that a table or a column is not
 * there, or that not every replica could read it.
 */

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 3_000;
/** Invalid, prepared and no longer known, and what a node says of a table that it is just making: a server error. */
const NOT_THERE: ReadonlySet<unknown> = new Set([0x2200, 0x2500, 0x0000]);
const READ_FAILURE = 0x1300;

const numberOf = (error: unknown): unknown =>
  codeOf(innermost(error instanceof Error ? (error.cause ?? error) : error));

/** A node that does not know a table or a column, or not yet. */
export const isNotThere = (error: unknown): boolean => NOT_THERE.has(numberOf(error));

/** Not every replica could read: one of a table that is new may not be able to yet. */
export const isReadFailure = (error: unknown): boolean => numberOf(error) === READ_FAILURE;

/** Asks again while an answer may come of a node that lags behind. */
export async function untilKnown<T>(
  ask: () => Promise<T>,
  lags: (error: unknown) => boolean | Promise<boolean> = isNotThere,
): Promise<T> {
  for (let pause = FIRST_PAUSE_MS; ; pause *= 2) {
    try {
      return await ask();
    } catch (error) {
      if (pause > LONGEST_PAUSE_MS || !(await lags(error))) throw error;
      await wait(pause);
    }
  }
}
