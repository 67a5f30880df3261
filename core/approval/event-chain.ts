import { jsonDigest } from '../json.ts';
import { requestDigest } from './approved-parameters.ts';
import type { ApprovalEvent } from './request.ts';
import type { ApprovalRow } from './schema.ts';

/*
 * Every event of a request has the SHA-256 of the one before it, of its canonical JSON (RFC 8785), and of what the request was
 * after it. The first has that of the request itself, and the request has that of the last. Events that an earlier version of
 * the SDK stored have neither.
 */

/** A new row, which has no events. */
export function withOrigin(row: ApprovalRow): ApprovalRow {
  return { ...row, body: { ...row.body, head: originOf(row) } };
}

/** `after`, with one event more than `before`. If `before` is not what its last event left, the event says so. */
export function withEvent(before: ApprovalRow, after: ApprovalRow, event: ApprovalEvent): ApprovalRow {
  const { events, head } = before.body;
  const last = events.at(-1);
  const prev = head ?? (last ? jsonDigest(last) : originOf(before));
  const was = isAsLeft(before) ? {} : { was: stateOf(before) };
  const linked = { ...event, prev, ...was, state: stateOf(after) };
  return { ...after, body: { ...after.body, events: [...events, linked], head: jsonDigest(linked) } };
}

/** The hash of the last event, or of the request without one, computed from what is stored. */
export function headOf(row: ApprovalRow, count = row.body.events.length): string {
  const last = row.body.events[count - 1];
  return last ? jsonDigest(last) : originOf(row);
}

/** What is wrong with the events of a request, oldest first. Parameters are not quoted. */
export function chainProblems(row: ApprovalRow): string[] {
  const { body } = row;
  if (body.damaged !== undefined) return ['Its body is damaged.'];
  const problems: string[] = [];
  if (requestDigest(row) !== body.digest) problems.push('The call was changed: it does not match its digest.');
  const { events } = body;
  // Those of an earlier version come first.
  const firstLinked = events.findIndex(({ prev }) => prev !== undefined);
  for (const [index, { prev, was, type, at }] of events.entries()) {
    if (firstLinked < 0 ? body.head === undefined : index < firstLinked) continue;
    const name = `event ${index + 1} (${type}, ${at})`;
    if (prev !== headOf(row, index)) {
      problems.push(`Before ${name}, an event or the request was changed, or an event was removed, added or moved.`);
    }
    if (was !== undefined) problems.push(`Before ${name}, the status, votes, decision or result was changed.`);
  }
  const isEarlier = firstLinked < 0 && body.head === undefined;
  if (!isEarlier && body.head !== headOf(row))
    problems.push('After the last event, events or the request were changed.');
  if (!isAsLeft(row)) problems.push('After the last event, the status, votes, decision or result was changed.');
  return problems;
}

/** Whether a request is as its last event left it, or as it was made. */
function isAsLeft(row: ApprovalRow): boolean {
  const { status, body } = row;
  const last = body.events.at(-1);
  if (last) return last.state === undefined || last.state === stateOf(row);
  return status === 'waiting' && body.run === 'none' && !body.votes && !body.decision && !body.outcome;
}

/** The hash that the first event has as `prev`. */
const originOf = (row: ApprovalRow): string => jsonDigest(originFields(row));

/** What a request has from the beginning: the digest of the call, and what that does not cover. */
export function originFields({ body, expiresAt, ...row }: ApprovalRow) {
  const { digest, timestamp, timeoutMs, validForMs, groupId, requester, model, rules } = body;
  const { requestId, agentTag, executionId } = row;
  const fixed = { digest, timestamp, timeoutMs, validForMs, groupId, requester, model, rules };
  return { requestId, agentTag, executionId, expiresAt: expiresAt.toISOString(), ...fixed };
}

/** What events change. Not the processes that wait, nor the signs of life of the one that runs the tool. */
function stateOf({ status, body: { votes, decision, run, outcome, salt } }: ApprovalRow): string {
  return jsonDigest({ status, votes, decision, run, outcome, salt });
}
