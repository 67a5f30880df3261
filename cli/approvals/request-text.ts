import type { DeliveryAttempt } from '../../core/approval/audit.ts';
import { unattendedText } from '../../core/approval/public-view.ts';
import { history, parametersText, statusText, timeLeft, voteText } from '../../core/approval/record-text.ts';
import type { ApprovalRecord, ApprovalRequest } from '../../core/approval/request.ts';
import { durationText } from '../../core/approval/rule.ts';
import { foldLine } from '../../core/display/fold.ts';
import { inlineJson, jsonLines, warningLines } from '../../core/display/json.ts';
import { shorten } from '../../core/display/limit.ts';
import { roleText } from '../../core/display/role-text.ts';
import { displayText, shortenText } from '../../core/display/text.ts';
import type { Json } from '../../core/json.ts';
import { migrationTitle, planTitle, requestedPlan } from '../../core/migration/requested-plan.ts';

/** Maximum characters of a line in a list. */
const MAX_LINE = 100;
/** Maximum characters of a tag in a line with other text. */
const MAX_TAG = 40;
/** As wide as the labels of a request. */
const LABEL = ' '.repeat(11);

/** A request in a list: the agent, the tool, the parameters, and the time left. Lines have at most `width` columns. */
export function listLines(record: ApprovalRecord, now: Date, width: number): string[] {
  const { requestId, reason, status } = record;
  const max = Math.min(MAX_LINE, width - 2);
  const shortened = shorten(parametersText(record), max);
  return [
    `${requestId}  ${callText(record)}  ${status === 'waiting' ? timeLeft(record, now) : statusText(record)}`,
    `  ${shortenText(reason, max).text}`,
    `  ${shortened.text}`,
    ...(shortened.complete ? [] : [`  full request: svc approvals show ${requestId}`]),
    ...(status === 'waiting' ? [...voteLines(record), ...escalationLines(record)] : []).map(
      (line) => `  ${shorten(line, max).text}`,
    ),
    ...decisionLines(record).map((line) => `  ${shorten(line, max).text}`),
    ...unattendedLines(record).map((line) => `  ${line}`),
  ].flatMap((line) => foldLine(line, width, '  '));
}

/** How a request was decided. */
export function decidedLines(record: ApprovalRecord, width: number): string[] {
  const lines = [`${record.requestId}  ${statusText(record)}`, ...decisionLines(record).map((line) => `  ${line}`)];
  return lines.flatMap((line) => foldLine(line, width, '  '));
}

/** A request in a prompt: one line of at most `width` columns. The parameters distinguish similar requests. */
export function choiceText(record: ApprovalRecord, now: Date, width: number): string {
  const start = `${callText(record)}  ${timeLeft(record, now)}  `;
  const end = `  ${record.requestId}`;
  const room = width - start.length - end.length;
  if (room >= MIN_CHOICE) return `${start}${shorten(parametersText(record), room).text}${end}`;
  return `${start}${shorten(parametersText(record), Math.max(MIN_CHOICE, width - start.length)).text}`;
}

/** Minimum characters of the parameters in a choice. */
const MIN_CHOICE = 30;

/** `payouts → refund` */
function callText({ agentTag, tool }: ApprovalRequest): string {
  return `${shortenText(agentTag, MAX_TAG).text} → ${shortenText(tool, MAX_TAG).text}`;
}

/** The parameters that the reviewer changed, and the reason. */
export function decisionLines({ parameters, modifiedParams = {}, decisionReason }: ApprovalRecord): string[] {
  const changes = Object.entries(modifiedParams).map(([name, value]) => {
    const requested = Object.hasOwn(parameters, name) ? inlineJson(parameters[name] as Json) : 'nothing';
    return `changed    ${displayText(name)}: ${requested} → ${inlineJson(value)}`;
  });
  return [...changes, ...(decisionReason === undefined ? [] : [`reason     ${displayText(decisionReason)}`])];
}

/** Who has voted, with changes, and whose approvals are missing. */
export function voteLines({ votes = [], missing = [] }: Pick<ApprovalRecord, 'votes' | 'missing'>): string[] {
  const lines = votes.map((vote) => `vote       ${voteText(vote)}`);
  return [...lines, ...(missing.length === 0 ? [] : [`missing    ${displayText(roleText(missing))}`])];
}

/** Who may decide too, and from when on. */
export function escalationLines({ rule, timestamp }: Pick<ApprovalRecord, 'rule' | 'timestamp'>): string[] {
  return (rule?.escalate ?? []).map(({ role, afterMs }) => {
    const from = new Date(Date.parse(timestamp) + afterMs).toISOString();
    return `escalates  to ${displayText(role)}, ${durationText(afterMs)} after the request: from ${from}`;
  });
}

/** Says so if no process waits for the decision. */
export function unattendedLines(record: ApprovalRecord): string[] {
  const { unattendedSince } = record;
  return unattendedSince === undefined ? [] : [`unattended ${unattendedText(record, unattendedSince)}`];
}

/** A request as a reviewer sees it. */
export interface ShownRequest extends ApprovalRequest {
  readonly product: string;
  readonly env: string;
  /** Of what is shown, shortened. */
  readonly digest: string;
  readonly description?: string;
  readonly modelText?: string;
}

/**
 * Everything that a reviewer must see before deciding, in lines of at most `width` columns; nothing is truncated. What
 * misleads is named at the end, next to the question.
 */
export function requestLines(request: ShownRequest, width: number): string[] {
  const { requestId, executionId, agentTag, tool, description, reason, modelText, parameters } = request;
  const facts = [
    `request    ${requestId}`,
    `product    ${displayText(request.product)}`,
    `env        ${displayText(request.env)}`,
    `execution  ${displayText(executionId)}`,
    `agent      ${displayText(agentTag)}`,
    `tool       ${displayText(tool)}${description ? `: ${displayText(description)}` : ''}`,
    `reason     ${displayText(reason)}`,
    ...(modelText === undefined ? [] : [`model said ${displayText(modelText)}`]),
    `requested  ${request.timestamp}`,
    `expires    ${request.timeout}`,
    `digest     ${request.digest}`,
    ...planLines(request),
    'parameters',
  ];
  const room = width - 2;
  return [
    ...facts.flatMap((line) => foldLine(line, width, LABEL)),
    ...[...jsonLines(parameters, room), ...warningLines(parameters, room)].map((line) => `  ${line}`),
  ];
}

/** A plan as SQL and sentences: the parameters say the same as JSON. */
function planLines(request: ApprovalRequest): string[] {
  const plan = requestedPlan(request);
  if (!plan) return [];
  const { losses, warnings, migrations } = plan;
  return [
    `plan       ${displayText(planTitle(plan))}`,
    ...losses.map((line) => `lost       ${displayText(line)}`),
    ...warnings.map((line) => `warning    ${displayText(line)}`),
    ...migrations.flatMap((migration) => [
      `migration  ${displayText(migrationTitle(migration))}`,
      ...migration.statements
        .flatMap((text) => displayText(text, { lines: true }).split('\n'))
        .map((line) => `${LABEL}${line}`),
      ...(migration.rollback === undefined ? [] : [`rollback   ${displayText(migration.rollback)}`]),
    ]),
  ];
}

/** The question about a request that was shown: the parameters may have moved everything else off the screen. */
export function questionText(verb: 'Approve' | 'Reject', request: ShownRequest): string {
  const [tool, agent, product, env] = [request.tool, request.agentTag, request.product, request.env].map(
    (name) => shortenText(name, MAX_TAG).text,
  );
  return `${verb} ${tool} for ${agent} in ${product}, ${env} (digest ${request.digest})`;
}

/** The history, one event per line. */
export function historyLines(record: ApprovalRecord & { readonly deliveries: readonly DeliveryAttempt[] }): string[] {
  return history(record).map(({ at, words }) => [at, ...words].join('  '));
}
