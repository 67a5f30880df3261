import type { SignalResult } from '../../../core/approval/decide.ts';
import { unattendedText } from '../../../core/approval/public-view.ts';
import { utcText } from '../../../core/approval/record-text.ts';
import type { ApprovalRecord, ApprovalRequest } from '../../../core/approval/request.ts';
import { DEFAULT_WIDTH } from '../../../core/display/fold.ts';
import { jsonLines, warningLines } from '../../../core/display/json.ts';
import { roleText } from '../../../core/display/role-text.ts';
import { displayText } from '../../../core/display/text.ts';
import { type FormAnswer, type FormView, renderConfirmation, renderDecisionForm } from './decision-form.ts';
import { renderDiff } from './form/diff.ts';
import { renderQuotation, renderSummary } from './form/render.ts';
import { type Content, type Html, html } from './html.ts';
import { page } from './layout.ts';
import { renderPlan } from './plan.ts';
import { renderJson } from './render-json.ts';

/** Who is signed in, where people can sign in. */
export interface Account {
  /** The id of the person; undefined if nobody is signed in. */
  readonly person: string | undefined;
  /** The URL of the request. */
  readonly page: string;
}

/** A request, and where it comes from. */
export interface PageContext {
  readonly request: ApprovalRequest;
  readonly product: string;
  readonly env: string;
  /** Absent where nobody can sign in, or where the person is known without. */
  readonly account?: Account | undefined;
}

interface ShownRequest {
  /** Of the request, shortened. */
  readonly digest: string;
  readonly view: string;
}

type DecidedForm = Extract<FormAnswer, { readonly kind: 'decided' }>;

/** The response to a GET, also for link previews: without parameters and decision form. */
export function summaryPage(context: PageContext): string {
  return page(
    'Approval',
    html`${requestFacts(context)}
<form method="post"><input type="hidden" name="action" value="show"><button class="first">Show the request</button></form>`,
    { bar: accountNotice(context) },
  );
}

/** The whole request with its decision form. `view` proves that the request was shown. */
export function decisionPage(context: PageContext, answer: FormView, { digest, view }: ShownRequest): string {
  const { request, description, modelText } = answer;
  const { parameters, reason } = request;
  const shown = { ...context, request };
  const more: [string, string][] = description === undefined ? [] : [['What it does', description]];
  const warnings = warningLines(parameters);
  const question = html`${renderQuestion(shown, digest)}${ruleNotice(shown)}${unattendedNotice(request, request)}`;
  return page(
    'Approval',
    html`${renderSummary(answer.problems)}${requestFacts(shown, [...more, ['Reason', reason], ['Digest', digest]])}
${renderModelText(modelText)}${renderPlan(request)}<pre>${renderJson(jsonLines(parameters, DEFAULT_WIDTH).join('\n'))}</pre>
${warnings.length > 0 && html`<pre class="warnings">${warnings.join('\n')}</pre>\n`}${renderDecisionForm(answer, { view, hidden: personField(context), question })}`,
    { bar: accountNotice(context) },
  );
}

/** What the model wrote before the call. */
export function renderModelText(modelText: string | undefined): Content {
  return (
    modelText !== undefined &&
    html`<h2>What the model said before the call</h2>
${renderQuotation(modelText)}
`
  );
}

/** The changes of a reviewer, before the decision. */
export function confirmationPage(
  context: PageContext,
  answer: Extract<FormAnswer, { readonly kind: 'confirm' }>,
  { digest }: Pick<ShownRequest, 'digest'>,
): string {
  const question = html`<p class="question">${`${questionOf(context)} with these changes? Digest of the request: ${digest}`}</p>`;
  const body = html`<p>Nothing was decided yet.</p>\n${requestFacts(context)}<h2>Changes</h2>\n${renderConfirmation(answer, question)}`;
  return page('Approve with changes', body, { bar: accountNotice(context) });
}

/** What is decided, above the buttons. `digest`: of the request, shortened. */
export function renderQuestion(context: Omit<PageContext, 'account'>, digest: string): Html {
  return html`<p class="question">${questionOf(context)}? <span>Digest of what is shown: ${digest}</span></p>`;
}

/** `Let payouts call refund in shop, dev` */
export function questionOf(context: Omit<PageContext, 'account'>): string {
  const { agentTag, tool } = context.request;
  return `Let ${displayText(agentTag)} call ${displayText(tool)} in ${placeText(context)}`;
}

/** The outcome of a request, without parameters or a form. */
export function closedPage(context: PageContext & { readonly request: ApprovalRecord }): string {
  const { status, cause, decidedAt } = context.request;
  const ended = status === 'waiting' || cause === 'timeout' ? 'has expired' : `was ${status}`;
  const at = decidedAt === undefined ? '' : ` at ${utcText(decidedAt)}`;
  return page('Approval', html`<p>The request ${ended}${at}.</p>\n${requestFacts(context)}`);
}

/** The response to a decision. */
export function decidedPage(context: PageContext, { result, changes }: DecidedForm): string {
  const { status, decidedAt } = result;
  const diff = changes.length > 0 && html`\n<h2>Changes</h2>\n${renderDiff(changes)}`;
  if (status === 'waiting') {
    const text = `Your vote was stored at ${utcText(decidedAt)}. Missing: ${roleText(result.missing ?? [])}.`;
    return page('The request is waiting', html`<p>${displayText(text)}</p>\n${requestFacts(context)}${diff}`);
  }
  const decided = html`<p>Decided at ${utcText(decidedAt)}.</p>${unattendedNotice(context.request, result)}`;
  return page(`The request is ${status}`, html`${decided}\n${requestFacts(context)}${diff}`);
}

/** Who must approve, and that this page does not know who the person is. */
function ruleNotice({
  request: { rule, missing = [] },
  account,
}: PageContext & { readonly request: ApprovalRecord }): Content {
  if (!rule) return undefined;
  const needed = `Approvals that are missing: ${roleText(missing)}.`;
  const isCounted = rule.unverified || account?.person !== undefined;
  const text = isCounted
    ? needed
    : `${needed} The rule counts only people who were verified: decide with a token of a person, or where you are logged in.`;
  return html`\n<p>${displayText(text)}</p>`;
}

function unattendedNotice(
  request: ApprovalRequest,
  { unattendedSince }: Pick<SignalResult, 'unattendedSince'>,
): Content {
  return unattendedSince !== undefined && html`\n<p>${unattendedText(request, utcText(unattendedSince))}</p>`;
}

/** Asks for a sign-in, after something that was not done. */
export function signInPage(message: string, account: Account): string {
  const back = html`<p><a href="${account.page}">Back to the page</a></p>`;
  return page('Approval', html`<p>${displayText(message)}</p>\n${back}`, { bar: accountNotice({ account }) });
}

/** Where a person signs in at the provider, to come back to a page. */
export const signInUrl = (page: string): string => `${page}${page.includes('?') ? '&' : '?'}sign-in=1`;

function accountNotice({ account }: Pick<PageContext, 'account'>): Html | undefined {
  if (!account) return undefined;
  const { person, page: url } = account;
  if (person === undefined) return html`<p>Nobody is signed in. <a href="${signInUrl(url)}">Sign in</a></p>\n`;
  return html`<form method="post" action="${url}"><input type="hidden" name="action" value="sign-out"><p>Signed in as ${displayText(person)}. <button>Sign out</button></p></form>\n`;
}

/** The form decides as this person only. */
function personField({ account }: Pick<PageContext, 'account'>): Html | undefined {
  const person = account?.person;
  return person === undefined ? undefined : html`\n<input type="hidden" name="person" value="${person}">`;
}

export function messagePage(title: string, message: string): string {
  return page(title, html`<p>${displayText(message)}</p>`);
}

function requestFacts(context: PageContext, more: readonly (readonly [string, string])[] = []): Html {
  const { requestId, agentTag, tool, timeout } = context.request;
  const rows = [
    ['Product and environment', placeText(context)],
    ['Request', requestId],
    ['Agent', agentTag],
    ['Tool', tool],
    ...more,
    ['Expires at', utcText(timeout)],
  ] as const;
  return html`<dl>${rows.map(([name, value]) => html`<dt>${name}</dt><dd>${displayText(value)}</dd>\n`)}</dl>`;
}

function placeText({ product, env }: Pick<PageContext, 'product' | 'env'>): string {
  return `${displayText(product)}, ${displayText(env)}`;
}
