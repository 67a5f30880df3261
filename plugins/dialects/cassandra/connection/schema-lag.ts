import { setTimeout as wait } from 'node:timers/promises';
import { errorCode, rootCause } from './errors.ts';

/*
 * Nodes agree on a schema shortly before each of them applies it. Until then a node may report that a table or column
 * does not exist, or that a replica failed to read it.
 */

const FIRST_RETRY_MS = 20;
const MAX_RETRY_MS = 3_000;
/** Invalid, unprepared, and the server error of a node that is creating the table. */
const UNKNOWN_OBJECT_CODES: ReadonlySet<unknown> = new Set([0x2200, 0x2500, 0x0000]);
const READ_FAILURE = 0x1300;

const serverCode = (error: unknown): unknown =>
  errorCode(rootCause(error instanceof Error ? (error.cause ?? error) : error));

/** A node does not know a table or a column, perhaps only not yet. */
export const isObjectUnknown = (error: unknown): boolean => UNKNOWN_OBJECT_CODES.has(serverCode(error));

/** A replica failed to read, possibly because the table is new. */
export const isReadFailure = (error: unknown): boolean => serverCode(error) === READ_FAILURE;

/** Retries for a few seconds while the error may come from a lagging node. */
export async function retryDuringSchemaLag<T>(
  query: () => Promise<T>,
  isLag: (error: unknown) => boolean | Promise<boolean> = isObjectUnknown,
): Promise<T> {
  for (let pause = FIRST_RETRY_MS; ; pause *= 2) {
    try {
      return await query();
    } catch (error) {
      if (pause > MAX_RETRY_MS || !(await isLag(error))) throw error;
      await wait(pause);
    }
  }
}
