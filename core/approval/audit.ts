import { SvcError } from '../errors.ts';
import type { StoreClock } from './clock.ts';
import type { ApprovalDesk, Row } from './desk.ts';
import { callKey } from './digest.ts';
import { firstIdAt } from './id.ts';
import { STATUSES } from './list.ts';
import type { ApprovalEvent } from './request.ts';
import { recordOf } from './view.ts';

/** One line of the audit: an event of a request, or an attempt to deliver it. @experimental */
export interface AuditEntry extends Omit<ApprovalEvent, 'type'> {
  readonly requestId: string;
  readonly executionId: string;
  readonly agentTag: string;
  readonly tool: string;
  readonly type: ApprovalEvent['type'] | 'delivered' | 'not_delivered';
  /** With `requested`: what was asked, sensitive parameters masked; with a decision: its reason and what was changed. */
  readonly details?: object;
}

/** An attempt to deliver a request. @experimental */
export interface DeliveryAttempt {
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly channel: string;
  readonly delivered: boolean;
  readonly error?: string;
}

/** Everything that happened, request by request in the order they were made within each status; a line of JSON each. */
export async function* auditTrail(
  desk: ApprovalDesk,
  { since, before }: { readonly since?: Date; readonly before?: Date } = {},
): AsyncGenerator<AuditEntry> {
  // One that is decided meanwhile is met again, in the pages of what it is then: what was told is not told twice.
  const told = new Map<string, Told>();
  for await (const row of everyRow(desk, since, before)) {
    const { requestId } = row.record;
    const now = yield* entriesOf(desk, row, told.get(requestId));
    if (isOpen(row)) told.set(requestId, now);
  }
}

/** How much of a request the audit has. */
interface Told {
  readonly events: number;
  readonly deliveries: number;
}

async function* entriesOf(
  desk: ApprovalDesk,
  { record }: Row,
  before: Told = { events: 0, deliveries: 0 },
): AsyncGenerator<AuditEntry, Told> {
  const { requestId, executionId, agentTag, tool, ...said } = recordOf(record);
  const of = { requestId, executionId, agentTag, tool };
  const { parameters, reason, timeout, decisionReason, modifiedParams } = said;
  for (const event of said.events.slice(before.events)) {
    const isDecision = event.type === 'approved' || event.type === 'rejected' || event.type === 'cancelled';
    const details =
      event.type === 'requested'
        ? { parameters, reason, timeout }
        : isDecision && (decisionReason !== undefined || modifiedParams)
          ? {
              ...(decisionReason !== undefined && { reason: decisionReason }),
              ...(modifiedParams && { modifiedParams }),
            }
          : undefined;
    yield { ...of, ...event, ...(details && { details }) };
  }
  let deliveries = 0;
  for await (const { at, channel, delivered, error } of deliveriesOf(desk, requestId)) {
    deliveries += 1;
    if (deliveries <= before.deliveries) continue;
    const type = delivered ? 'delivered' : 'not_delivered';
    yield { ...of, type, at, as: channel, ...(error !== undefined && { details: { error } }) };
  }
  return { events: said.events.length, deliveries };
}

/** Attempts to deliver a request, in the order they were made. */
export async function* deliveriesOf(desk: ApprovalDesk, requestId: string): AsyncGenerator<DeliveryAttempt> {
  let cursor: string | undefined;
  do {
    const page = await desk.deliveries.page('byRequest', {
      equals: { requestId },
      limit: 1000,
      ...(cursor !== undefined && { cursor }),
    });
    for (const { record } of page.records) {
      const { at, channel, delivered, error } = record;
      yield { at: at.toISOString(), channel, delivered, ...(error !== null && { error }) };
    }
    cursor = page.cursor;
  } while (cursor !== undefined);
}

/**
 * Removes requests that were made that long ago and are over, with what belongs to them. Gives how many. Those of an
 * execution that `isRunning` stay: once more in its turn, a call whose request is gone would be asked for, and run, anew.
 */
export async function prune(
  desk: ApprovalDesk,
  { olderThanMs }: { readonly olderThanMs: number },
  isRunning: (executionId: string) => Promise<boolean>,
): Promise<number> {
  const before = await pruneBefore(desk.clock, olderThanMs);
  let removed = 0;
  for await (const row of everyRow(desk, undefined, before)) {
    if (isOpen(row) || (await isRunning(row.record.executionId))) continue;
    if ((await desk.rows.remove(row.record.requestId, row.version)) !== 'removed') continue;
    removed += 1;
    await removeBelongings(desk, row);
  }
  return removed;
}

/** What was made before that moment may go. Throws `value_invalid`. */
export async function pruneBefore(clock: StoreClock, olderThanMs: number): Promise<Date> {
  if (Number.isFinite(olderThanMs) && olderThanMs >= 0) return new Date((await clock.asked()) - olderThanMs);
  throw new SvcError('value_invalid', 'prune needs olderThanMs, in milliseconds.', { state: 'Nothing was removed.' });
}

/** Somebody may still decide or run it. */
function isOpen({ record: { status, body } }: Row): boolean {
  return status === 'waiting' || (status === 'approved' && body.outcome === undefined);
}

async function removeBelongings(desk: ApprovalDesk, { record }: Row): Promise<void> {
  const { requestId, executionId, body } = record;
  if (body.toolCallId !== undefined) {
    const key = callKey(executionId, body.toolCallId);
    const found = await desk.calls.get(key);
    if (found?.record.requestId === requestId) await desk.calls.remove(key, found.version);
  }
  for (;;) {
    const { records } = await desk.deliveries.page('byRequest', { equals: { requestId }, limit: 1000 });
    if (records.length === 0) return;
    for (const { record: delivery, version } of records) await desk.deliveries.remove(delivery.id, version);
  }
}

async function* everyRow(desk: ApprovalDesk, since?: Date, before?: Date): AsyncGenerator<Row> {
  for (const status of STATUSES) {
    let cursor: string | undefined;
    do {
      const page = await desk.rows.page('byStatus', {
        equals: { status },
        ...(since && { from: firstIdAt(since) }),
        ...(before && { to: firstIdAt(before) }),
        limit: 500,
        ...(cursor !== undefined && { cursor }),
      });
      yield* page.records;
      cursor = page.cursor;
    } while (cursor !== undefined);
  }
}
