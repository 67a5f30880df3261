import { SvcError } from '../errors.ts';
import { type Problem, problemText, type Shape, shapeProblems } from '../schema/shape.ts';
import type { ExecutionRow, ExecutionStatus } from './execution.ts';
import type { Executions } from './executions.ts';
import { outcomeOf } from './outcome.ts';
import type { RunOutcome } from './run.ts';

const STATUSES = ['running', 'completed', 'failed', 'cancelled'] as const satisfies readonly ExecutionStatus[];

/** @experimental */
export interface ExecutionQuery {
  /** Default `running`: also those that wait for a human. */
  readonly status?: ExecutionStatus;
  readonly agentTag?: string;
  /** The oldest first is the default. */
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

export async function listExecutions({ rows }: Executions, query: ExecutionQuery): Promise<ExecutionPage> {
  checkQuery(query);
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
  return { records: page.records.map(({ record }) => shown(record)), ...(page.cursor && { cursor: page.cursor }) };
}

/** One execution, with how it ended or how far it has come. */
export async function readExecution(
  { rows }: Executions,
  executionId: string,
): Promise<(ExecutionRecord & Pick<RunOutcome, 'text' | 'steps' | 'usage' | 'error' | 'reason'>) | undefined> {
  const found = await rows.get(executionId);
  if (!found) return undefined;
  const { record } = found;
  return { ...outcomeOf('completed', record.state), ...shown(record) };
}

function shown({ executionId, agentTag, status, createdAt, updatedAt }: ExecutionRow): ExecutionRecord {
  return { executionId, agentTag, status, createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() };
}

function checkQuery(query: ExecutionQuery): void {
  const problems: Problem[] = shapeProblems(query, QUERY);
  const { limit = 100 } = query;
  if (!Number.isInteger(limit) || limit < 1 || limit > 1000)
    problems.push({ path: ['limit'], text: 'is not 1 to 1,000' });
  if (problems.length === 0) return;
  throw new SvcError('value_invalid', 'The list that is asked for cannot be given.', {
    why: problems.map(problemText).join(' '),
  });
}
