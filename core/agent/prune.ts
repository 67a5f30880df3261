import { pruneBefore } from '../approval/audit.ts';
import type { StoreClock } from '../approval/clock.ts';
import { firstIdAt } from '../approval/id.ts';
import type { Executions } from './executions.ts';

/** Removes executions that were begun that long ago and have ended. Gives how many. */
export async function pruneExecutions(
  { rows }: Executions,
  clock: StoreClock,
  { olderThanMs }: { readonly olderThanMs: number },
): Promise<number> {
  const to = firstIdAt(await pruneBefore(clock, olderThanMs), 'exe');
  let removed = 0;
  for (const status of ['completed', 'failed', 'cancelled'] as const) {
    let cursor: string | undefined;
    do {
      const page = await rows.page('byStatus', {
        equals: { status },
        to,
        limit: 500,
        columns: ['executionId'],
        ...(cursor !== undefined && { cursor }),
      });
      for (const { record, version } of page.records) {
        if ((await rows.remove(record.executionId, version)) === 'removed') removed += 1;
      }
      cursor = page.cursor;
    } while (cursor !== undefined);
  }
  return removed;
}
