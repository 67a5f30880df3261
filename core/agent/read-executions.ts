import { assertNoQueryProblems } from '../approval/list-approvals.ts';
import type { OutcomeStatus } from '../approval/request.ts';
import type { ErrorCode } from '../error-codes.ts';
import type { RecordStore } from '../records.ts';
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

/** An execution for those who decide its requests: without the prompt, what the model wrote, parameters and results. */
export interface ExecutionSummary extends ExecutionRecord, Pick<RunOutcome, 'usage' | 'reason'> {
  /** The id of the person who started it, if the program said. */
  readonly requester?: string;
  /** The code of the error that ended it. */
  readonly error?: ErrorCode;
  /** In the order of the model; `requestId` is that of a request if the call needed approval. */
  readonly calls: readonly { readonly requestId: string; readonly tool: string; readonly status?: OutcomeStatus }[];
}

export async function summarizeExecution(
  rows: RecordStore<ExecutionRow>,
  executionId: string,
): Promise<ExecutionSummary | undefined> {
  const found = await rows.get(executionId);
  if (!found) return undefined;
  const { record } = found;
  const { requester, steps } = record.state;
  const { usage, reason, error } = runOutcome('completed', record.state);
  return {
    ...publicRecord(record),
    usage,
    ...(requester !== undefined && { requester }),
    ...(reason !== undefined && { reason }),
    ...(error !== undefined && { error: error.code }),
    calls: steps.flatMap(({ calls }) =>
      calls.map(({ requestId, tool, outcome }) => ({ requestId, tool, ...(outcome && { status: outcome.status }) })),
    ),
  };
}

function publicRecord({ executionId, agentTag, status, createdAt, updatedAt }: ExecutionRow): ExecutionRecord {
  return { executionId, agentTag, status, createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() };
}
