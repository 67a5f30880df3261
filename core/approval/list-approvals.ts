import { SvcError } from '../errors.ts';
import { allRows, isPageLimit, type RecordStore } from '../records.ts';
import { type Problem, problemText, type Shape, shapeProblems } from '../validate-shape.ts';
import { toApprovalRecord } from './public-view.ts';
import { APPROVAL_STATUSES, type ApprovalRecord, type ApprovalStatus, idRange, isCreatedIn } from './request.ts';
import { type ApprovalRow, waitingByExpiry } from './schema.ts';
import type { ApprovalService, RequestRow } from './service.ts';

/** @experimental */
export interface ListQuery {
  /** Default `waiting`, or any status with `executionId`. Overdue requests do not count as waiting. */
  readonly status?: ApprovalStatus | undefined;
  readonly agentTag?: string | undefined;
  readonly executionId?: string | undefined;
  /** Requests created at or after this moment, by the store's clock. */
  readonly since?: Date | undefined;
  /** Requests created before this moment. */
  readonly before?: Date | undefined;
  /** Default: oldest first. */
  readonly newestFirst?: boolean | undefined;
  /** 1 to 1,000; default 100. */
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
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
    status: { oneOf: APPROVAL_STATUSES },
    agentTag: 'string',
    executionId: 'string',
    since: 'any',
    before: 'any',
    newestFirst: 'boolean',
    limit: 'number',
    cursor: 'string',
  },
};

export async function listApprovals(service: ApprovalService, query: ListQuery = {}): Promise<ApprovalPage> {
  assertQuery(query);
  const { limit = 100 } = query;
  const records: ApprovalRecord[] = [];
  let { cursor } = query;
  await service.clock.readNow();
  do {
    // The page size is what is still missing, so that the cursor follows the last returned record.
    const page = await readPage(service.rows, query, limit - records.length, cursor);
    const hasOverdue = page.records.some(({ record }) => service.isDue(record));
    const rows = hasOverdue ? await Promise.all(page.records.map((row) => service.expireIfDue(row))) : page.records;
    const found = rows.map(({ record }) => record).filter((record) => matchesQuery(service, query, record));
    const unattended = await service.presence.unattended(found);
    for (const record of found) {
      records.push(toApprovalRecord(record, false, unattended.get(record.requestId)));
    }
    cursor = page.cursor;
  } while (cursor !== undefined && records.length < limit);
  return { records, ...(cursor !== undefined && { cursor }) };
}

export interface WaitingCount {
  readonly waiting: number;
  /** There may be more: no more are counted. */
  readonly atLeast?: true;
}

const MAX_COUNT = 1_000;

/**
 * Counts the requests that wait, up to `max`: a store has no cheaper way than to read their ids. Where many wait, one shard
 * has enough of them, which an engine that partitions by it reads with one query. Even an index that lags shows that: the
 * other shards have as many. `known`: the number, if another read, which never rejects, has found it in the meantime.
 */
export async function countWaiting(
  { clock, rows }: Pick<ApprovalService, 'clock' | 'rows'>,
  max = MAX_COUNT,
  known: Promise<number | undefined> = Promise.resolve(undefined),
): Promise<WaitingCount> {
  const { equals, anyOf } = waitingByExpiry;
  const from = new Date((await clock.readNow()) + 1);
  const query = { from, columns: ['requestId'] } as const;
  const shard = { ...query, equals: { ...equals, shard: 0 }, limit: max, unconfirmed: true } as const;
  const [some, found] = await Promise.all([rows.page('byExpiry', shard), known]);
  if (found !== undefined) return { waiting: found };
  if (some.records.length === max) return { waiting: max, atLeast: true };
  const { records, cursor } = await rows.page('byExpiry', { ...query, equals, anyOf, limit: Math.max(1, max - 1) });
  const waiting = records.length + (cursor === undefined ? 0 : 1);
  return waiting < max ? { waiting } : { waiting: max, atLeast: true };
}

/** The conditions that no index covers, and rows that changed after they were indexed. */
function matchesQuery(
  service: ApprovalService,
  { status, agentTag, executionId, since, before }: ListQuery,
  row: ApprovalRow,
): boolean {
  const wantedStatus = status ?? (executionId === undefined ? 'waiting' : undefined);
  return (
    (wantedStatus === undefined || row.status === wantedStatus) &&
    (wantedStatus !== 'waiting' || !service.isDue(row)) &&
    (agentTag === undefined || row.agentTag === agentTag) &&
    isCreatedIn(row.body.timestamp, since, before)
  );
}

function readPage(rows: RecordStore<ApprovalRow>, query: ListQuery, limit: number, cursor: string | undefined) {
  const { status = 'waiting', agentTag, executionId, since, before, newestFirst } = query;
  const [index, equals] =
    executionId !== undefined
      ? (['byExecution', { executionId }] as const)
      : agentTag !== undefined
        ? (['byAgent', { status, agentTag }] as const)
        : (['byStatus', { status }] as const);
  return rows.page(index, {
    equals,
    ...idRange('apr', since, before),
    direction: newestFirst ? 'desc' : 'asc',
    limit,
    ...(cursor !== undefined && { cursor }),
  });
}

function assertQuery(query: ListQuery): void {
  const problems: Problem[] = shapeProblems(query, QUERY);
  for (const key of ['since', 'before'] as const) {
    const moment: unknown = query[key];
    if (moment === undefined || (moment instanceof Date && !Number.isNaN(moment.getTime()))) continue;
    problems.push({ path: [key], text: 'is not a Date' });
  }
  assertNoQueryProblems('The query for approvals is invalid.', problems, query);
}

/** Throws `value_invalid` for the problems, or for a limit that is out of range. */
export function assertNoQueryProblems(
  message: string,
  problems: readonly Problem[],
  { limit = 100 }: { readonly limit?: number | undefined },
): void {
  const all = isPageLimit(limit) ? problems : [...problems, { path: ['limit'], text: 'is not 1 to 1,000' }];
  if (all.length > 0) throw new SvcError('value_invalid', message, { why: all.map(problemText).join(' ') });
}

/**
 * Every request with an id in the range. One whose status changes in the meantime appears again under the new one: the
 * order of the statuses is that in which they change, so that none is left out.
 */
export async function* everyRequest(
  { rows }: ApprovalService,
  range: { readonly from?: string; readonly to?: string },
): AsyncGenerator<RequestRow> {
  for (const status of APPROVAL_STATUSES)
    yield* allRows(rows, 'byStatus', { equals: { status }, ...range, limit: 500 });
}
