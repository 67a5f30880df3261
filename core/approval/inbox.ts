import { SvcError } from '../errors.ts';
import { allRows } from '../records.ts';
import { currentDigest, mayVote, voterOf } from './apply-decision.ts';
import { countWaiting, type WaitingCount } from './list-approvals.ts';
import { isVerified, type Principal } from './principal.ts';
import { toApprovalRecord } from './public-view.ts';
import type { ApprovalRecord, ApprovalStatus } from './request.ts';
import { personKey } from './rule.ts';
import { type ApprovalRow, waitingByExpiry } from './schema.ts';
import type { ApprovalService } from './service.ts';

export interface InboxQuery {
  /** Those that wait come in the order of their deadlines, all others the newest first. */
  readonly status: ApprovalStatus;
  readonly agentTag?: string | undefined;
  readonly tool?: string | undefined;
  /** In the tool, the agent, the reason or the id of the request, in capitals or not. */
  readonly text?: string | undefined;
  /** Only what waits for this person. */
  readonly decidableBy?: Principal | undefined;
  readonly limit: number;
  /** Of the page before. */
  readonly cursor?: string | undefined;
}

export interface InboxPage {
  /** Sensitive parameters are masked. */
  readonly records: readonly ApprovalRecord[];
  /** Absent on the last page. A page with fewer than `limit` has one where only a part of the requests was looked at. */
  readonly cursor?: string;
}

/** A page, and how many requests wait, which are not counted to the end where the page has all of them. */
export async function inboxPageAndCount(
  service: ApprovalService,
  query: InboxQuery,
  maxCount: number,
): Promise<readonly [InboxPage, WaitingCount]> {
  const reading = inboxPage(service, query);
  const { status, agentTag, tool, text, decidableBy, cursor } = query;
  const isOfAll = [agentTag, tool, text, decidableBy, cursor].every((one) => one === undefined);
  if (status !== 'waiting' || !isOfAll) return Promise.all([reading, countWaiting(service, maxCount)]);
  const known = reading.then(
    (page) => (page.cursor === undefined ? page.records.length : undefined),
    () => undefined,
  );
  return Promise.all([reading, countWaiting(service, maxCount, known)]);
}

/** Where a row is in the order of its status. */
type Position = Pick<ApprovalRow, 'expiresAt' | 'requestId'>;

/** Filters have no index of their own, so a page looks at no more requests than this. */
const MAX_READ = 1_000;

/** A page of requests for a person who looks for something to decide. Throws `value_invalid` for another cursor. */
export async function inboxPage(service: ApprovalService, query: InboxQuery): Promise<InboxPage> {
  const { status, limit, cursor } = query;
  const after = cursor === undefined ? undefined : parseCursor(cursor);
  const isWanted = await filterOf(service, query);
  const size = isWanted ? MAX_READ / 4 : limit + 1;
  const found: ApprovalRow[] = [];
  let [read, last]: [number, ApprovalRow | undefined] = [0, undefined];
  for await (const row of status === 'waiting'
    ? waitingRows(service, size, after)
    : endedRows(service, query, size, after)) {
    if (!isWanted || isWanted(row)) found.push(row);
    if (found.length > limit || ++read === MAX_READ) {
      last = found[limit - 1] ?? row;
      break;
    }
  }
  const rows = found.slice(0, limit);
  const unattended = await service.presence.unattended(rows);
  const records = rows.map((row) => toApprovalRecord(row, false, unattended.get(row.requestId)));
  return { records, ...(last && { cursor: `${last.expiresAt.getTime()}.${last.requestId}` }) };
}

/** Undefined if every request is wanted. */
async function filterOf(
  service: ApprovalService,
  { agentTag, tool, text, decidableBy }: InboxQuery,
): Promise<((row: ApprovalRow) => boolean) | undefined> {
  const tests: ((row: ApprovalRow) => boolean)[] = [];
  if (agentTag !== undefined) tests.push((row) => row.agentTag === agentTag);
  if (tool !== undefined) tests.push(({ body }) => body.tool === tool);
  if (text !== undefined) {
    const wanted = text.toLowerCase();
    tests.push(({ requestId, agentTag: agent, body }) =>
      [requestId, agent, body.tool, body.reason].some((one) => one.toLowerCase().includes(wanted)),
    );
  }
  if (decidableBy) {
    const may = await mayDecide(service, decidableBy);
    tests.push((row) => may(row) && !hasApproved(row, decidableBy));
  }
  return tests.length === 0 ? undefined : (row) => tests.every((test) => test(row));
}

/** Whether a person may vote on a request: for themselves, or in the place of another. */
export async function mayDecide(service: ApprovalService, person: Principal): Promise<(row: ApprovalRow) => boolean> {
  const delegators = isVerified(person) ? await service.delegations.delegatorsOf(person) : [];
  const now = await service.clock.now();
  return (row) => mayVote(row, person, now) || voterOf(row, person, delegators, now).for !== undefined;
}

/** Whether a person has approved a request as it is now: a vote for other parameters is void. */
function hasApproved(row: ApprovalRow, person: Principal): boolean {
  const key = personKey(person);
  const current = currentDigest(row);
  const { votes = [] } = row.body;
  return votes.some(
    ({ principal, approved, digest }) => approved && digest === current && personKey(principal) === key,
  );
}

/** The requests that wait and whose deadline has not passed, by deadline, read in parts of `size`. */
async function* waitingRows(service: ApprovalService, size: number, after?: Position): AsyncGenerator<ApprovalRow> {
  const now = await service.clock.readNow();
  const from = new Date(Math.max(now + 1, after?.expiresAt.getTime() ?? 0));
  for await (const { record } of allRows(service.rows, 'byExpiry', { ...waitingByExpiry, from, limit: size })) {
    if (!after || byDeadline(record, after) > 0) yield record;
  }
}

function byDeadline(one: Position, other: Position): number {
  return (
    one.expiresAt.getTime() - other.expiresAt.getTime() ||
    (one.requestId < other.requestId ? -1 : Number(one.requestId > other.requestId))
  );
}

/** The requests that do not wait any more, the newest first. */
async function* endedRows(
  { rows }: ApprovalService,
  { status, agentTag }: InboxQuery,
  size: number,
  after: Position | undefined,
): AsyncGenerator<ApprovalRow> {
  const [index, equals] =
    agentTag === undefined ? (['byStatus', { status }] as const) : (['byAgent', { status, agentTag }] as const);
  const query = { equals, direction: 'desc', limit: size, ...(after && { to: after.requestId }) } as const;
  for await (const { record } of allRows(rows, index, query)) {
    if (record.requestId !== after?.requestId) yield record;
  }
}

/** The end of the year 9999: some stores have no later time. */
const MAX_TIME = Date.UTC(10_000, 0) - 1;

function parseCursor(cursor: string): Position {
  const [, time = '', requestId = ''] = /^(\d{1,15})\.(apr_[0-9a-f-]{36})$/.exec(cursor) ?? [];
  if (time !== '' && Number(time) <= MAX_TIME) return { expiresAt: new Date(Number(time)), requestId };
  throw new SvcError('value_invalid', 'The cursor was not returned by an earlier page.');
}
