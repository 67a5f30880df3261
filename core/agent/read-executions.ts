import { assertNoQueryProblems } from '../approval/list-approvals.ts';
import { type Shape, shapeProblems } from '../validate-shape.ts';
import type { ExecutionRow, ExecutionStatus } from './execution-record.ts';
import type { ExecutionService } from './execution-service.ts';
import { type RunOutcome, runOutcome } from './run.ts';

const STATUSES = ['running', 'completed', 'failed', 'cancelled'] as const satisfies readonly ExecutionStatus[];

/** @experimental */
export interface ExecutionQuery {
  /** Default `running`, which includes executions that wait for approval. */
  readonly status?: ExecutionStatus | undefined;
  readonly agentTag?: string | undefined;
  /** Default false: oldest first. */
  readonly newestFirst?: boolean | undefined;
  /** 1 to 1,000; default 100. */
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
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
