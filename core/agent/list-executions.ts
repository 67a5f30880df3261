import { pruneCutoff } from '../approval/audit.ts';
import type { StorageBackend } from '../approval/backend.ts';
import { assertNoQueryProblems } from '../approval/list-approvals.ts';
import { minIdAt } from '../approval/request.ts';
import type { StoreClock } from '../approval/store-clock.ts';
import { allRows } from '../records.ts';
import { type Shape, shapeProblems } from '../validate-shape.ts';
import { type ExecutionRow, type ExecutionStatus, executionRecords } from './execution-record.ts';
import type { ExecutionService } from './execution-service.ts';
import { type RunOutcome, runOutcome } from './run.ts';

const STATUSES = ['running', 'completed', 'failed', 'cancelled'] as const satisfies readonly ExecutionStatus[];

/** @experimental */
export interface ExecutionQuery {
  /** Default `running`, which includes executions that wait for approval. */
  readonly status?: ExecutionStatus;
  readonly agentTag?: string;
  /** Default false: oldest first. */
  readonly newestFirst?: boolean;
  /** 1 to 1,000; default 100. */
  readonly limit?: number;
  readonly cursor?: string;
}

/** @experimental */
export interface ExecutionRecord {
  readonly executionId: string;
  readonly agentTag: string;
  readonly status: ExecutionStatus;
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  /** ISO 8601, UTC: when its record was last written. */
  readonly updatedAt: string;
}

/** @experimental */
export interface ExecutionPage {
  readonly records: readonly ExecutionRecord[];
  /** Absent on the last page. */
  readonly cursor?: string;
}

const QUERY: Shape = {
  properties: {
    status: { oneOf: STATUSES },
    agentTag: 'string',
    newestFirst: 'boolean',
    limit: 'number',
    cursor: 'string',
  },
};

/** A page of executions. Throws `value_invalid`. */
export async function listExecutions({ rows }: ExecutionService, query: ExecutionQuery): Promise<ExecutionPage> {
  assertNoQueryProblems('The query for executions is invalid.', shapeProblems(query, QUERY), query);
  const { status = 'running', agentTag, newestFirst, limit = 100, cursor } = query;
  const [index, equals] =
    agentTag === undefined ? (['byStatus', { status }] as const) : (['byAgent', { status, agentTag }] as const);
  const page = await rows.page(index, {
    equals,
    direction: newestFirst ? 'desc' : 'asc',
    limit,
    columns: ['executionId', 'agentTag', 'status', 'createdAt', 'updatedAt'],
    ...(cursor !== undefined && { cursor }),
  });
  return {
    records: page.records.map(({ record }) => publicRecord(record)),
    ...(page.cursor && { cursor: page.cursor }),
  };
}

/** One execution with its steps so far, or its outcome. */
export async function readExecution(
  { rows }: ExecutionService,
  executionId: string,
): Promise<(ExecutionRecord & Pick<RunOutcome, 'text' | 'steps' | 'usage' | 'error' | 'reason'>) | undefined> {
  const found = await rows.get(executionId);
  if (!found) return undefined;
  const { record } = found;
  return { ...runOutcome('completed', record.state), ...publicRecord(record) };
}

function publicRecord({ executionId, agentTag, status, createdAt, updatedAt }: ExecutionRow): ExecutionRecord {
  return { executionId, agentTag, status, createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() };
}

/** Whether an execution is running. False for an executionId that only a gate used. */
export function isRunningIn(backend: StorageBackend): (executionId: string) => Promise<boolean> {
  const rows = backend.records(executionRecords);
  return async (executionId) => (await rows.get(executionId))?.record.status === 'running';
}

/** An index may lag: a worker that seems to own nothing may still own executions. */
const INDEX_LAG_MS = 60_000;

/** Removes ended executions that started before the cutoff, and old dead workers. Returns the number of executions. */
export async function pruneExecutions(
  executions: ExecutionService,
  clock: StoreClock,
  { olderThanMs }: { readonly olderThanMs: number },
): Promise<number> {
  const { rows } = executions;
  const to = minIdAt(await pruneCutoff(clock, olderThanMs), 'exe');
  await executions.pruneWorkers(await pruneCutoff(clock, Math.max(olderThanMs, INDEX_LAG_MS)));
  let removed = 0;
  for (const status of ['completed', 'failed', 'cancelled'] as const) {
    const query = { equals: { status }, to, limit: 500, columns: ['executionId'] } as const;
    for await (const { record, version } of allRows(rows, 'byStatus', query)) {
      if ((await rows.remove(record.executionId, version)) === 'removed') removed += 1;
    }
  }
  return removed;
}
