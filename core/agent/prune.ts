import { pruneBefore } from '../approval/audit.ts';
import type { StoreClock } from '../approval/clock.ts';
import type { StoreHome } from '../approval/home.ts';
import { firstIdAt } from '../approval/id.ts';
import { executions } from './execution.ts';
import type { Executions } from './executions.ts';

/** Whether an execution of that id is under way in the store; of a gate's own calls there is none. */
export function runningIn(home: StoreHome): (executionId: string) => Promise<boolean> {
  const rows = home.records(executions);
  return async (executionId) => (await rows.get(executionId))?.record.status === 'running';
}

/** An index may lag behind for a while: until then nobody can say that a process owns nothing. */
const SETTLED_MS = 60_000;

/** Removes executions that were begun that long ago and have ended, and processes that are long gone. Gives how many executions. */
export async function pruneExecutions(
  all: Executions,
  clock: StoreClock,
  { olderThanMs }: { readonly olderThanMs: number },
): Promise<number> {
  const { rows } = all;
  const to = firstIdAt(await pruneBefore(clock, olderThanMs), 'exe');
  await all.pruneWorkers(await pruneBefore(clock, Math.max(olderThanMs, SETTLED_MS)));
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
