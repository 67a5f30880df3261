import type { DeliveryAttempt } from '../../../../core/approval/audit.ts';
import type { Principal } from '../../../../core/approval/principal.ts';
import { unattendedText } from '../../../../core/approval/public-view.ts';
import { history, statusText, timeLeft, utcText, voteText } from '../../../../core/approval/record-text.ts';
import type { ApprovalRecord } from '../../../../core/approval/request.ts';
import { personKey } from '../../../../core/approval/rule.ts';
import { DEFAULT_WIDTH } from '../../../../core/display/fold.ts';
import { jsonLines, warningLines } from '../../../../core/display/json.ts';
import { roleText } from '../../../../core/display/role-text.ts';
import { displayText } from '../../../../core/display/text.ts';
import { isPlainObject, type Json } from '../../../../core/json.ts';
import type { ToolParameters } from '../../../../core/tool/parameters.ts';
import type { ApprovalDetails } from '../../approval-details.ts';
import { AGREE, FORM } from '../decision-form.ts';
import { diffJson, renderDiff } from '../form/diff.ts';
import { PROBLEMS, renderQuotation } from '../form/render.ts';
import { type Content, type Html, html } from '../html.ts';
import { page } from '../layout.ts';
import { renderModelText } from '../page.ts';
import { renderPlan } from '../plan.ts';
import { renderJson } from '../render-json.ts';
import { type InboxFrame, inboxBar } from './frame.ts';
import { LIVE_SCRIPT, liveState } from './live.ts';

interface ShownRequest extends InboxFrame {
  readonly request: ApprovalDetails;
  /** By the store's clock. */
  readonly now: Date;
}

interface RequestPage extends ShownRequest {
  /** Other calls of the execution, newest first. */
  readonly others: readonly ApprovalRecord[];
  readonly hasMoreOthers: boolean;
  /** Where sensitive parameters are masked. */
  readonly isMasked: boolean;
  /** The form with which the person decides. */
  readonly form?: Html | undefined;
  /** The request waits for others. */
  readonly isExcluded: boolean;
  /** The person may decide it alone. */
  readonly mayOverride: boolean;
  /** Of the changes that others have voted for, where the person can approve them too. */
  readonly proposal?: string | undefined;
  /** What is wrong in the form. */
  readonly summary?: Content;
  /** Why something was not done. */
  readonly problem?: string | undefined;
}

export function requestPage(context: RequestPage): string {
  const { request, form, summary, isMasked, isExcluded, problem } = context;
  return page(
    titleOf(request),
    html`${problem !== undefined && html`<p class="bad" role="alert">${displayText(problem)}</p>\n`}${summary}<div data-live="state">${standing(context, context.proposal)}</div>
${liveState(context)}${LIVE_SCRIPT}
${facts(request)}
${renderModelText(request.modelText)}${renderPlan(request)}${parameters('Parameters', request.parameters)}<div data-form>${isMasked && maskedNotice(context)}${form}${isExcluded && html`<p class="question">You are not one of the people who decide this request.${context.mayOverride && override(request)}</p>`}</div>
<div data-live="more">${decision(request)}${votes(request)}${others(context)}${events(request)}</div>
${identifiers(request)}`,
    { bar: inboxBar(context) },
  );
}

/** The changes of a reviewer with their form, before the decision. */
export function confirmationPage(context: ShownRequest, form: Html): string {
  const body = html`<div data-live="state">${standing(context)}</div>
${liveState(context)}${LIVE_SCRIPT}
<div data-form><p>Nothing was decided yet.</p>
${form}</div>`;
  return page(`Approve with changes: ${titleOf(context.request)}`, body, { bar: inboxBar(context) });
}

const titleOf = ({ tool, agentTag }: ApprovalDetails): string => `${displayText(tool)} · ${displayText(agentTag)}`;

function standing({ request, now, visitor }: ShownRequest, proposal?: string): Html {
  const { status, timeout, unattendedSince } = request;
  const unattended: Content =
    unattendedSince !== undefined && html`\n<p>${unattendedText(request, utcText(unattendedSince))}</p>`;
  const state =
    status === 'waiting'
      ? html`Waiting, <time datetime="${timeout}" data-left>${timeLeft(request, now)}</time>`
      : html`${displayText(statusText(request, utcText))}`;
  return html`<p class="state ${status}">${state}</p>${unattended}${status === 'waiting' && openVotes(request, visitor.principal, proposal)}`;
}

/** What a person has to know before they vote: that they have, and what others propose. */
function openVotes(
  { parameters: requested, votes: given = [], missing = [] }: ApprovalDetails,
  person: Principal,
  digest: string | undefined,
) {
  const counted = given.filter((vote) => !vote.void);
  const own = counted.find(({ principal }) => personKey(principal) === personKey(person));
  const proposal = counted.find(({ modifiedParams }) => modifiedParams !== undefined);
  return [
    own &&
      html`
<p><strong>Your vote counts: ${own.approved ? 'approve' : 'reject'}.</strong>${missing.length > 0 && ` Missing: ${displayText(roleText(missing))}.`}</p>`,
    proposal &&
      html`
<p>${displayText(proposal.by)} approves with these changes. An approval with other parameters does not count together with theirs.</p>
${renderChanges(requested, proposal.modifiedParams)}${digest !== undefined && !own?.approved && agreeButton(digest)}`,
  ];
}

/** Sends the form of the page, with its reason. */
function agreeButton(digest: string): Html {
  return html`<div class="buttons" data-form><button form="${FORM}" name="action" value="${AGREE}${digest}" formaction="#${PROBLEMS}">Approve these changes</button></div>`;
}

/** Who may decide alone does so where a reason is asked for. */
function override({ rule, requestId }: ApprovalDetails): Content {
  const command = `svc approvals approve ${requestId} --override --reason "…"`;
  return (
    rule?.override !== undefined &&
    html` As one of ${displayText(rule.override)} you may decide alone: <code>${command}</code>`
  );
}

function facts({ definition, reason, tool, agentTag, requester, model, timestamp, timeout }: ApprovalDetails): Html {
  return factList([
    ['What it does', definition?.description],
    ['Reason', reason],
    ['Tool', tool],
    ['Agent', agentTag],
    ['Requested by', requester],
    ['Model', model],
    ['Requested at', utcText(timestamp)],
    ['Expires at', utcText(timeout)],
  ]);
}

/** What a program or a colleague asks for, below what people read. */
function identifiers({ requestId, executionId, digest }: ApprovalDetails): Html {
  const rows = factList([
    ['Request', requestId],
    ['Execution', executionId],
    ['Digest', digest],
  ]);
  return html`<h2>Identifiers</h2>
${rows}`;
}

function factList(rows: readonly (readonly [name: string, value: string | undefined])[]): Html {
  const known = rows.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
  return html`<dl>${known.map(([name, value]) => html`<dt>${name}</dt><dd>${displayText(value)}</dd>\n`)}</dl>`;
}

function parameters(title: string, value: Json | object): Html {
  const warnings = warningLines(value);
  return html`<h2>${title}</h2>
<pre>${renderJson(jsonLines(value, DEFAULT_WIDTH).join('\n'))}</pre>
${warnings.length > 0 && html`<pre class="warnings">${warnings.join('\n')}</pre>\n`}`;
}

function maskedNotice({ request, inboxUrl }: RequestPage): Html {
  return html`<form method="post" action="${inboxUrl}/${request.requestId}">
<p>Sensitive parameters are masked. When you show them, the history says so.</p>
<div class="buttons"><button class="first" name="action" value="show">Show all parameters</button></div>
</form>
`;
}

function decision({ parameters: requested, decisionReason, modifiedParams, outcome }: ApprovalDetails): Content {
  const changes = renderChanges(requested, modifiedParams);
  return [
    decisionReason !== undefined && html`<h2>Reason of the decision</h2>\n${renderQuotation(decisionReason)}\n`,
    changes && html`<h2>Changes</h2>\n${changes}`,
    outcome && parameters('Result', outcome),
  ];
}

/** The changes of a reviewer; undefined without any. */
function renderChanges(requested: ToolParameters, modified: ToolParameters | undefined): Html | undefined {
  const changes = diffJson({ ...requested }, { ...requested, ...modified });
  const masked = Object.entries(modified ?? {}).filter(([, value]) => isPlainObject(value) && value.masked === true);
  if (changes.length + masked.length === 0) return undefined;
  return html`${changes.length > 0 && renderDiff(changes)}${masked.map(([name]) => html`<p>${displayText(name)}: changed, and masked here.</p>\n`)}`;
}

function votes({ rule, votes: given = [], missing = [] }: ApprovalDetails): Content {
  if (!rule) return undefined;
  const lines = [
    ...given.map((vote) => voteText(vote, utcText)),
    ...(missing.length === 0 ? [] : [`missing: ${displayText(roleText(missing))}`]),
  ];
  if (lines.length === 0) return undefined;
  return html`<h2>Votes</h2>
<ul>${lines.map((line) => html`<li>${line}</li>\n`)}</ul>
`;
}

function others({ others: calls, hasMoreOthers, request, inboxUrl }: RequestPage): Content {
  if (calls.length === 0) return undefined;
  const { groupId } = request;
  return html`<h2>Other calls of this execution</h2>
<ul>${calls.map((call) => html`<li><a href="${inboxUrl}/${call.requestId}">${displayText(call.tool)}</a>: ${displayText(statusText(call, utcText))}${groupId !== undefined && call.groupId === groupId && ', of the same turn'}</li>\n`)}</ul>
${hasMoreOthers && html`<p class="muted">Older calls are not listed here.</p>\n`}`;
}

function events(request: ApprovalRecord & { readonly deliveries: readonly DeliveryAttempt[] }): Html {
  return html`<h2>History</h2>
<ol class="history">${history(request).map(({ at, words }) => html`<li><time class="muted" datetime="${at}">${utcText(at)}</time> ${words.join(' ')}</li>\n`)}</ol>
`;
}
