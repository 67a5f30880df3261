import type { DeliveryAttempt } from '../../core/approval/audit.ts';
import { displayJson, displayText, shortenText } from '../../core/approval/display.ts';
import type { ApprovalRecord, ApprovalRequest } from '../../core/approval/request.ts';
import { oneLine } from '../output.ts';

/** Maximum characters of a line in a list. */
const MAX_LINE = 100;
/** Maximum characters of the parameters in a choice. */
const MAX_CHOICE = 60;

/** A request in a list: the agent, the tool, the parameters, and the time left. */
export function listLines(record: ApprovalRecord, now: Date): string[] {
  const { requestId, agentTag, tool, reason, parameters, status } = record;
  const shortened = shortenText(parametersText(parameters), MAX_LINE);
  return [
    `${requestId}  ${displayText(agentTag)} → ${displayText(tool)}  ${status === 'waiting' ? timeLeft(record, now) : statusText(record)}`,
    `  ${shortenText(reason, MAX_LINE).text}`,
    `  ${shortened.text}${shortened.complete ? '' : `  full request: svc approvals show ${requestId}`}`,
    ...decisionLines(record).map((line) => `  ${shortenText(line, MAX_LINE).text}`),
  ];
}

/** How a request was decided. */
export function decidedLines(record: ApprovalRecord): string[] {
  return [`${record.requestId}  ${statusText(record)}`, ...decisionLines(record).map((line) => `  ${line}`)];
}

/** A request in a prompt: one line. Includes the parameters, which distinguish similar requests. */
export function choiceText(record: ApprovalRecord, now: Date): string {
  const { requestId, agentTag, tool, parameters } = record;
  const shortened = shortenText(parametersText(parameters), MAX_CHOICE).text;
  return `${displayText(agentTag)} → ${displayText(tool)}  ${shortened}  ${timeLeft(record, now)}  ${requestId}`;
}

/** The parameters that the reviewer changed, and the reason. */
export function decisionLines({ parameters, modifiedParams = {}, decisionReason }: ApprovalRecord): string[] {
  const changes = Object.entries(modifiedParams).map(([name, value]) => {
    const requested = Object.hasOwn(parameters, name) ? JSON.stringify(parameters[name]) : 'nothing';
    return `changed    ${displayText(`${name}: ${requested} → ${JSON.stringify(value)}`)}`;
  });
  return [...changes, ...(decisionReason === undefined ? [] : [`reason     ${displayText(decisionReason)}`])];
}

/** Everything that a reviewer must see before deciding; nothing is truncated. */
export function requestLines(record: ApprovalRequest & { readonly description?: string }): string[] {
  const { requestId, executionId, agentTag, tool, description, reason, parameters, timestamp, timeout } = record;
  return [
    `request    ${requestId}`,
    `execution  ${displayText(executionId)}`,
    `agent      ${displayText(agentTag)}`,
    `tool       ${displayText(tool)}${description ? `: ${displayText(description)}` : ''}`,
    `reason     ${displayText(reason)}`,
    `requested  ${timestamp}`,
    `expires    ${timeout}`,
    'parameters',
    ...displayJson(parameters)
      .split('\n')
      .map((line) => `  ${line}`),
  ];
}

/** The history, one event per line. Delivery attempts with the same channel and error share one line. */
export function historyLines({
  events,
  deliveries,
}: ApprovalRecord & { readonly deliveries: readonly DeliveryAttempt[] }): string[] {
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
      error && oneLine(displayText(error)),
    ],
  }));
  return [...eventLines, ...deliveryLines]
    .sort((one, other) => Date.parse(one.at) - Date.parse(other.at))
    .map(({ at, words }) => [at, ...words.filter(Boolean)].join('  '));
}

export function statusText({ status, cause, decidedBy, run }: ApprovalRecord): string {
  const why =
    cause === 'timeout' ? ' by timeout' : decidedBy === undefined ? '' : ` by ${oneLine(displayText(decidedBy))}`;
  return `${status}${why}${run === 'none' ? '' : `, run: ${run}`}`;
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
  if (first < 0) return 'expires now';
  let rest = seconds;
  const parts = units.slice(first, first + 2).flatMap(([size, name]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return count === 0 ? [] : [`${count} ${name}`];
  });
  return `${parts.join(' ')} left`;
}

function parametersText(parameters: ApprovalRequest['parameters']): string {
  return Object.entries(parameters)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(' ');
}
