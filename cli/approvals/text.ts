import type { DeliveryAttempt } from '../../core/approval/audit.ts';
import { displayed, displayedJson, shortened } from '../../core/approval/display.ts';
import type { ApprovalRecord, ApprovalRequest } from '../../core/approval/request.ts';
import { oneLine } from '../print.ts';

/** Characters of a line in a list. */
const LINE = 100;
/** Of parameters in a line to pick from. */
const CHOICE = 60;

/** A request in a list: who asks, what, with which parameters, and how long it waits. */
export function listed(record: ApprovalRecord, now: Date): string[] {
  const { requestId, agentTag, tool, reason, parameters, status } = record;
  const wanted = shortened(written(parameters), LINE);
  return [
    `${requestId}  ${displayed(agentTag)} → ${displayed(tool)}  ${status === 'waiting' ? timeLeft(record, now) : decidedText(record)}`,
    `  ${shortened(reason, LINE).text}`,
    `  ${wanted.text}${wanted.whole ? '' : `  all of it: svc approvals show ${requestId}`}`,
    ...decision(record).map((line) => `  ${shortened(line, LINE).text}`),
  ];
}

/** That a request was decided, and how. */
export function decided(record: ApprovalRecord): string[] {
  return [`${record.requestId}  ${decidedText(record)}`, ...decision(record).map((line) => `  ${line}`)];
}

/** A request among others to pick from: its line tells it from one that wants the same with other parameters. */
export function choiceText(record: ApprovalRecord, now: Date): string {
  const { requestId, agentTag, tool, parameters } = record;
  const wanted = shortened(written(parameters), CHOICE).text;
  return `${displayed(agentTag)} → ${displayed(tool)}  ${wanted}  ${timeLeft(record, now)}  ${requestId}`;
}

/** What whoever decided changed, and said: the tool runs with the changed parameters. */
export function decision({ parameters, modifiedParams = {}, decisionReason }: ApprovalRecord): string[] {
  const changes = Object.entries(modifiedParams).map(([name, value]) => {
    const asked = Object.hasOwn(parameters, name) ? JSON.stringify(parameters[name]) : 'nothing';
    return `changed    ${displayed(`${name}: ${asked} → ${JSON.stringify(value)}`)}`;
  });
  return [...changes, ...(decisionReason === undefined ? [] : [`reason     ${displayed(decisionReason)}`])];
}

/** Everything a reviewer is to see before deciding: nothing is cut. */
export function whole(record: ApprovalRequest & { readonly description?: string }): string[] {
  const { requestId, executionId, agentTag, tool, description, reason, parameters, timestamp, timeout } = record;
  return [
    `request    ${requestId}`,
    `execution  ${displayed(executionId)}`,
    `agent      ${displayed(agentTag)}`,
    `tool       ${displayed(tool)}${description ? `: ${displayed(description)}` : ''}`,
    `why        ${displayed(reason)}`,
    `asked      ${timestamp}`,
    `until      ${timeout}`,
    'parameters',
    ...displayedJson(parameters)
      .split('\n')
      .map((line) => `  ${line}`),
  ];
}

/** What happened to it, an event a line; attempts of a channel that ended alike share the line of the last one. */
export function history({
  events,
  deliveries,
}: ApprovalRecord & { readonly deliveries: readonly DeliveryAttempt[] }): string[] {
  const happened = events.map(({ at, type, by, from, as }) => ({
    at,
    words: [type, as && `(${displayed(as)})`, by && `by ${displayed(by)}`, from && `from ${displayed(from)}`],
  }));
  const attempts = new Map<string, { readonly last: DeliveryAttempt; readonly times: number }>();
  for (const last of deliveries) {
    const alike = JSON.stringify([last.channel, last.error]);
    attempts.set(alike, { last, times: (attempts.get(alike)?.times ?? 0) + 1 });
  }
  const told = [...attempts.values()].map(({ last: { at, channel, delivered, error }, times }) => ({
    at,
    words: [
      delivered ? 'delivered' : 'not delivered',
      `(${displayed(channel)})`,
      times > 1 && `${times} times`,
      error && oneLine(displayed(error)),
    ],
  }));
  return [...happened, ...told]
    .sort((one, other) => Date.parse(one.at) - Date.parse(other.at))
    .map(({ at, words }) => [at, ...words.filter(Boolean)].join('  '));
}

export function decidedText({ status, cause, decidedBy, run }: ApprovalRecord): string {
  const why =
    cause === 'timeout' ? ' by time-out' : decidedBy === undefined ? '' : ` by ${oneLine(displayed(decidedBy))}`;
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
  const said = units.slice(first, first + 2).flatMap(([size, name]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return count === 0 ? [] : [`${count} ${name}`];
  });
  return `${said.join(' ')} left`;
}

function written(parameters: ApprovalRequest['parameters']): string {
  return Object.entries(parameters)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(' ');
}
