import { SvcError } from '../errors.ts';
import type { RecordStore } from '../records.ts';
import { type Problem, problemText, type Shape, shapeProblems } from '../schema/shape.ts';
import type { ApprovalDesk } from './desk.ts';
import { firstIdAt } from './id.ts';
import type { ApprovalRecord, ApprovalStatus } from './request.ts';
import type { ApprovalRow } from './rows.ts';
import { recordOf } from './view.ts';

export const STATUSES = ['waiting', 'approved', 'rejected', 'cancelled'] as const;

/** @experimental */
export interface ListQuery {
  /** Default `waiting`, unless an execution is named. Requests past their time do not wait. */
  readonly status?: ApprovalStatus;
  readonly agentTag?: string;
  readonly executionId?: string;
  /** Requests made from this moment on, by the clock of the process that made them. */
  readonly since?: Date;
  /** Requests made before this moment. */
  readonly before?: Date;
  /** The oldest first is the default. */
  readonly newestFirst?: boolean;
  /** 1 to 1,000; default 100. */
  readonly limit?: number;
  readonly cursor?: string;
}

/** @experimental */
export interface ApprovalPage {
  /** Sensitive parameters are masked. */
  readonly records: readonly ApprovalRecord[];
  /** Absent on the last page. */
  readonly cursor?: string;
}

const QUERY: Shape = {
  properties: {
    status: { oneOf: STATUSES },
    agentTag: 'string',
    executionId: 'string',
    since: 'any',
    before: 'any',
    newestFirst: 'boolean',
    limit: 'number',
    cursor: 'string',
  },
};

export async function list(desk: ApprovalDesk, query: ListQuery = {}): Promise<ApprovalPage> {
  checkQuery(query);
  const { limit = 100 } = query;
  const records: ApprovalRecord[] = [];
  let { cursor } = query;
  await desk.clock.asked();
  do {
    // As many as are still missing: the cursor then stands after the last one that is given.
    const page = await pageOf(desk.rows, query, limit - records.length, cursor);
    const isSettled = !page.records.some(({ record }) => desk.isDue(record));
    const rows = isSettled ? page.records : await Promise.all(page.records.map((row) => desk.settled(row)));
    for (const { record } of rows) {
      if (isWanted(desk, query, record)) records.push(recordOf(record));
    }
    cursor = page.cursor;
  } while (cursor !== undefined && records.length < limit);
  return { records, ...(cursor !== undefined && { cursor }) };
}

/** What no index says. */
function isWanted(desk: ApprovalDesk, { status, agentTag, executionId }: ListQuery, row: ApprovalRow): boolean {
  const wanted = status ?? (executionId === undefined ? 'waiting' : undefined);
  return (
    (wanted === undefined || row.status === wanted) &&
    (wanted !== 'waiting' || !desk.isDue(row)) &&
    (agentTag === undefined || row.agentTag === agentTag)
  );
}

function pageOf(rows: RecordStore<ApprovalRow>, query: ListQuery, limit: number, cursor: string | undefined) {
  const { status = 'waiting', agentTag, executionId, since, before, newestFirst } = query;
  const [index, equals] =
    executionId !== undefined
      ? (['byExecution', { executionId }] as const)
      : agentTag !== undefined
        ? (['byAgent', { status, agentTag }] as const)
        : (['byStatus', { status }] as const);
  return rows.page(index, {
    equals,
    ...(since && { from: firstIdAt(since) }),
    ...(before && { to: firstIdAt(before) }),
    direction: newestFirst ? 'desc' : 'asc',
    limit,
    ...(cursor !== undefined && { cursor }),
  });
}

function checkQuery(query: ListQuery): void {
  const problems: Problem[] = shapeProblems(query, QUERY);
  for (const key of ['since', 'before'] as const) {
    const moment: unknown = query[key];
    if (moment === undefined || (moment instanceof Date && !Number.isNaN(moment.getTime()))) continue;
    problems.push({ path: [key], text: 'is not a Date' });
  }
  const { limit = 100 } = query;
  if (!Number.isInteger(limit) || limit < 1 || limit > 1000)
    problems.push({ path: ['limit'], text: 'is not 1 to 1,000' });
  if (problems.length === 0) return;
  throw new SvcError('value_invalid', 'The list that is asked for cannot be given.', {
    why: problems.map(problemText).join(' '),
  });
}
