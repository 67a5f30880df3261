import { missingApprovals, ruleOf } from './apply-decision.ts';
import type { Notice } from './channel.ts';
import type { ApprovalEvent } from './request.ts';
import type { Escalation } from './rule.ts';
import type { ApprovalRow } from './schema.ts';
import type { ApprovalService } from './service.ts';
import { withNotice } from './state.ts';

/*
 * When channels are notified of a request that still waits: the `remind` and `escalate` of its rule, counted from the time of the
 * request. Each notice is an event of the request, so that it is given once; one that is late replaces those before it.
 */

interface PlannedNotice {
  /** By the store's clock. */
  readonly at: number;
  readonly to?: Escalation;
}

/** The notices of a request before its deadline, earliest first. */
function plannedNotices(row: ApprovalRow): readonly PlannedNotice[] {
  const { remind = [], escalate = [] } = ruleOf(row) ?? {};
  const requestedAt = Date.parse(row.body.timestamp);
  const reminders = remind.map((afterMs): PlannedNotice => ({ at: requestedAt + afterMs }));
  const escalations = escalate.map((to): PlannedNotice => ({ at: requestedAt + to.afterMs, to }));
  return [...reminders, ...escalations]
    .filter(({ at }) => at < row.expiresAt.getTime())
    .sort((one, other) => one.at - other.at);
}

const isNotice = ({ type }: ApprovalEvent): boolean => type === 'reminded' || type === 'escalated';

/** When the channels are next notified of a request, after `since` and the last notice; undefined if never again. */
export function nextNoticeAt(row: ApprovalRow, since = 0): number | undefined {
  if (row.status !== 'waiting' || row.body.rules === undefined) return undefined;
  const last = Date.parse(row.body.events.findLast(isNotice)?.at ?? '') || 0;
  return plannedNotices(row).find(({ at }) => at > Math.max(since, last))?.at;
}

/** The row with the event of the notices that are due; undefined if none is. */
export function withDueNotice(row: ApprovalRow, by: string, now: number): ApprovalRow | undefined {
  const next = nextNoticeAt(row);
  if (next === undefined || next > now) return undefined;
  const roles = plannedNotices(row).flatMap(({ at, to }) => (to && at >= next && at <= now ? [to.role] : []));
  return withNotice(row, [...new Set(roles)], by, now);
}

/** The last notice of a request, as channels receive it. */
export function lastNotice(row: ApprovalRow): Notice | undefined {
  const given = row.body.events.filter(isNotice);
  const last = given.at(-1);
  if (!last) return undefined;
  const [from, until] = [Date.parse(given.at(-2)?.at ?? '') || 0, Date.parse(last.at)];
  const added = plannedNotices(row).flatMap(({ at, to }) => (to && at > from && at <= until ? [to] : []));
  return {
    id: `${row.requestId}_${given.length}`,
    kind: last.type === 'escalated' ? 'escalation' : 'reminder',
    at: last.at,
    to: added.map(({ role, members }) => ({ role, members })),
    missing: missingApprovals(row) ?? [],
  };
}

/** Stores when the channels are first notified of a new request. Before the request: an orphan is removed when it is due. */
export async function armNotices(service: ApprovalService, row: ApprovalRow): Promise<void> {
  const at = nextNoticeAt(row);
  if (at === undefined) return;
  const { requestId, agentTag } = row;
  await service.notices.insert({ requestId, agentTag, state: 'due', dueAt: new Date(at) });
}
