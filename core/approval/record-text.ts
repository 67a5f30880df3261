import { inlineJson } from '../display/json.ts';
import { displayText } from '../display/text.ts';
import { isPlainObject } from '../json.ts';
import type { DeliveryAttempt } from './audit.ts';
import type { ApprovalRecord, ApprovalRequest, ApprovalVote } from './request.ts';

// What became of a request, in words that are safe to show.

/** Writes a moment in ISO 8601 as it is, or for people. */
type TimeText = (at: string) => string;
const asIs: TimeText = (at) => at;

/** `2026-11-28 10:30:07 UTC` */
export const utcText: TimeText = (at) => `${at.slice(0, 19).replace('T', ' ')} UTC`;

export function statusText(record: ApprovalRecord, timeText = asIs): string {
  const { status, cause, decidedBy, override, standing, run } = record;
  const by = decidedBy === undefined ? '' : ` by ${displayText(decidedBy)}`;
  const how = override ? ' (override)' : standing === undefined ? '' : ` (standing rule ${standing})`;
  const why = cause === 'timeout' ? ' by timeout' : `${by}${how}`;
  const ran = run === 'none' ? '' : `, run: ${run}`;
  return `${status}${why}${ran}${staleText(record)}${notStartedText(record, timeText)}`;
}

/** Of an approval that can no longer be used: what was approved has changed. */
function staleText({ status, outcome }: ApprovalRecord): string {
  if (status !== 'approved' || outcome?.status !== 'stale') return '';
  const reason = isPlainObject(outcome.result) ? outcome.result.reason : undefined;
  return typeof reason === 'string' ? `, stale: ${displayText(reason)}` : ', stale';
}

/** For the approver of a call that no process has started: its process may be gone. */
export function notStartedText({ status, run, validUntil, events }: ApprovalRecord, timeText = asIs): string {
  const isClosed = events.some(({ type }) => type === 'closed');
  if (status !== 'approved' || run !== 'none' || isClosed || validUntil === undefined) return '';
  return Date.parse(validUntil) <= Date.now()
    ? `, not started: the approval was valid until ${timeText(validUntil)}`
    : `, not started yet: the approval is valid until ${timeText(validUntil)}`;
}

/** `4 min 12 s left` */
export function timeLeft({ timeout }: ApprovalRequest, now: Date): string {
  const seconds = Math.max(0, Math.floor((Date.parse(timeout) - now.getTime()) / 1000));
  const units: [number, string][] = [
    [86_400, 'd'],
    [3_600, 'h'],
    [60, 'min'],
    [1, 's'],
  ];
  const first = units.findIndex(([size]) => seconds >= size);
  if (first < 0) return 'expired';
  let rest = seconds;
  const parts = units.slice(first, first + 2).flatMap(([size, name]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return count === 0 ? [] : [`${count} ${name}`];
  });
  return `${parts.join(' ')} left`;
}

/** A name that cannot be taken for more than a name. */
const PLAIN_NAME = /^[\w.$-]+$/;

/** All parameters on one line. A name that is not plain is a string of JSON, so that it does not look like other parameters. */
export function parametersText({ parameters }: ApprovalRequest): string {
  return Object.entries(parameters)
    .map(([name, value]) => `${PLAIN_NAME.test(name) ? name : inlineJson(name)}=${inlineJson(value)}`)
    .join(' ');
}

export function voteText(
  { by, approved, at, modifiedParams, reason, void: isVoid }: ApprovalVote,
  timeText = asIs,
): string {
  const words = [
    approved ? 'approve' : 'reject',
    `by ${displayText(by)}`,
    `at ${timeText(at)}`,
    modifiedParams && `with ${inlineJson(modifiedParams)}`,
    reason !== undefined && `because ${displayText(reason)}`,
    isVoid && '(void: for other parameters)',
  ];
  return words.filter(Boolean).join(' ');
}

/** Events and delivery attempts, oldest first. Attempts with the same channel and error are one entry. */
export function history({
  events,
  deliveries,
}: Pick<ApprovalRecord, 'events'> & { readonly deliveries: readonly DeliveryAttempt[] }): {
  readonly at: string;
  readonly words: readonly string[];
}[] {
  const eventLines = events.map(({ at, type, by, from, as }) => ({
    at,
    words: [type, as && `(${displayText(as)})`, by && `by ${displayText(by)}`, from && `from ${displayText(from)}`],
  }));
  const attempts = new Map<string, { readonly last: DeliveryAttempt; readonly times: number }>();
  for (const last of deliveries) {
    const key = JSON.stringify([last.channel, last.error]);
    attempts.set(key, { last, times: (attempts.get(key)?.times ?? 0) + 1 });
  }
  const deliveryLines = [...attempts.values()].map(({ last: { at, channel, delivered, error }, times }) => ({
    at,
    words: [
      delivered ? 'delivered' : 'not delivered',
      `(${displayText(channel)})`,
      times > 1 && `${times} times`,
      error && displayText(error),
    ],
  }));
  return [...eventLines, ...deliveryLines]
    .sort((one, other) => Date.parse(one.at) - Date.parse(other.at))
    .map(({ at, words }) => ({ at, words: words.flatMap((word) => word || []) }));
}
