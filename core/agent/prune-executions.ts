import { pruneCutoff } from '../approval/audit.ts';
import { idRange } from '../approval/request.ts';
import type { StoreClock } from '../approval/store-clock.ts';
import { allRows } from '../records.ts';
import type { ExecutionService } from './execution-service.ts';

/** An index may lag: a worker that seems to own nothing may still own executions. */
const INDEX_LAG_MS = 60_000;

/** Removes ended executions that started before the cutoff, and old dead workers. Returns the number of executions. */
export async function pruneExecutions(
  executions: ExecutionService,
  clock: StoreClock,
  { olderThanMs }: { readonly olderThanMs: number },
): Promise<number> {
  const { rows } = executions;
  const before = await pruneCutoff(clock, olderThanMs);
  await executions.pruneWorkers(await pruneCutoff(clock, Math.max(olderThanMs, INDEX_LAG_MS)));
  const range = idRange('exe', undefined, before);
  let removed = 0;
  for (const status of ['completed', 'failed', 'cancelled'] as const) {
    const query = { equals: { status }, ...range, limit: 500, columns: ['executionId', 'createdAt'] } as const;
    for await (const { record, version } of allRows(rows, 'byStatus', query)) {
      if (record.createdAt >= before) continue;
      if ((await rows.remove(record.executionId, version)) === 'removed') removed += 1;
    }
  }
  return removed;
}
