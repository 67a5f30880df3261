import type { Child } from 'hono/jsx';
import type { SignalResult } from '../../../core/approval/decide.ts';
import { unattendedText } from '../../../core/approval/public-view.ts';
import { utcText } from '../../../core/approval/record-text.ts';
import type { ApprovalRecord, ApprovalRequest } from '../../../core/approval/request.ts';
import { roleText } from '../../../core/display/role-text.ts';
import { displayText } from '../../../core/display/text.ts';
import { type FormAnswer, type FormView, renderConfirmation, renderDecisionForm } from './decision-form.tsx';
import { renderDiff } from './form/diff.tsx';
import { renderQuotation, renderSummary } from './form/render.tsx';
import { page } from './layout.tsx';
import { renderPlan } from './plan.tsx';
import { renderJsonBlock } from './render-json.tsx';

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
    <>
      {requestFacts(context)}
      <form method="post">
        <input type="hidden" name="action" value="show" />
        <button class="first">Show the request</button>
      </form>
    </>,
    { bar: accountNotice(context) },
  );
}

/** The whole request with its decision form. `view` proves that the request was shown. */
export function decisionPage(context: PageContext, answer: FormView, { digest, view }: ShownRequest): string {
  const { request, description, modelText } = answer;
  const { parameters, reason } = request;
  const shown = { ...context, request };
  const more: [string, string][] = description === undefined ? [] : [['What it does', description]];
  const question = (
    <>
      {renderQuestion(shown, digest)}
      {ruleNotice(shown)}
      {unattendedNotice(request, request)}
    </>
  );
  return page(
    'Approval',
    <>
      {renderSummary(answer.problems)}
      {requestFacts(shown, [...more, ['Reason', reason], ['Digest', digest]])}
      {renderModelText(modelText)}
      {renderPlan(request)}
      {renderJsonBlock(parameters)}
      {renderDecisionForm(answer, { view, hidden: personField(context), question })}
    </>,
    { bar: accountNotice(context) },
  );
}

/** What the model wrote before the call. */
export function renderModelText(modelText: string | undefined): Child {
  return (
    modelText !== undefined && (
      <>
        <h2>What the model said before the call</h2>
        {renderQuotation(modelText)}
      </>
    )
  );
}

/** The changes of a reviewer, before the decision. */
export function confirmationPage(
  context: PageContext,
  answer: Extract<FormAnswer, { readonly kind: 'confirm' }>,
  { digest }: Pick<ShownRequest, 'digest'>,
): string {
  const question = (
    <p class="question">
      {questionOf(context)} with these changes? Digest of the request: {digest}
    </p>
  );
  return page(
    'Approve with changes',
    <>
      <p>Nothing was decided yet.</p>
      {requestFacts(context)}
      <h2>Changes</h2>
      {renderConfirmation(answer, question)}
    </>,
    { bar: accountNotice(context) },
  );
}

/** What is decided, above the buttons. `digest`: of the request, shortened. */
export const renderQuestion = (context: Omit<PageContext, 'account'>, digest: string): Child => (
  <p class="question">
    {questionOf(context)}? <span>Digest of what is shown: {digest}</span>
  </p>
);

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
  return page(
    'Approval',
    <>
      <p>
        The request {ended}
        {at}.
      </p>
      {requestFacts(context)}
    </>,
  );
}

/** The response to a decision. */
export function decidedPage(context: PageContext, { result, changes }: DecidedForm): string {
  const { status, decidedAt } = result;
  const isWaiting = status === 'waiting';
  const text = isWaiting
    ? `Your vote was stored at ${utcText(decidedAt)}. Missing: ${roleText(result.missing ?? [])}.`
    : `Decided at ${utcText(decidedAt)}.`;
  return page(
    `The request is ${status}`,
    <>
      <p>{displayText(text)}</p>
      {!isWaiting && unattendedNotice(context.request, result)}
      {requestFacts(context)}
      {changes.length > 0 && (
        <>
          <h2>Changes</h2>
          {renderDiff(changes)}
        </>
      )}
    </>,
  );
}

/** Who must approve, and that this page does not know who the person is. */
function ruleNotice({
  request: { rule, missing = [] },
  account,
}: PageContext & { readonly request: ApprovalRecord }): Child {
  if (!rule) return undefined;
  const needed = `Approvals that are missing: ${roleText(missing)}.`;
  const isCounted = rule.unverified || account?.person !== undefined;
  const text = isCounted
    ? needed
    : `${needed} The rule counts only people who were verified: decide with a token of a person, or where you are logged in.`;
  return <p>{displayText(text)}</p>;
}

const unattendedNotice = (
  request: ApprovalRequest,
  { unattendedSince }: Pick<SignalResult, 'unattendedSince'>,
): Child => unattendedSince !== undefined && <p>{unattendedText(request, utcText(unattendedSince))}</p>;

/** Asks for a sign-in, after something that was not done. */
export function signInPage(message: string, account: Account): string {
  return page(
    'Approval',
    <>
      <p>{displayText(message)}</p>
      <p>
        <a href={account.page}>Back to the page</a>
      </p>
    </>,
    { bar: accountNotice({ account }) },
  );
}

/** Where a person signs in at the provider, to come back to a page. */
export const signInUrl = (page: string): string => `${page}${page.includes('?') ? '&' : '?'}sign-in=1`;

function accountNotice({ account }: Pick<PageContext, 'account'>): Child {
  if (!account) return undefined;
  const { person, page: url } = account;
  if (person === undefined) {
    return (
      <p>
        Nobody is signed in. <a href={signInUrl(url)}>Sign in</a>
      </p>
    );
  }
  return (
    <form method="post" action={url}>
      <input type="hidden" name="action" value="sign-out" />
      <p>
        Signed in as {displayText(person)}. <button>Sign out</button>
      </p>
    </form>
  );
}

/** The form decides as this person only. */
function personField({ account }: Pick<PageContext, 'account'>): Child {
  const person = account?.person;
  return person !== undefined && <input type="hidden" name="person" value={person} />;
}

export function messagePage(title: string, message: string): string {
  return page(title, <p>{displayText(message)}</p>);
}

function requestFacts(context: PageContext, more: readonly (readonly [string, string])[] = []): Child {
  const { requestId, agentTag, tool, timeout } = context.request;
  return renderFacts([
    ['Product and environment', placeText(context)],
    ['Request', requestId],
    ['Agent', agentTag],
    ['Tool', tool],
    ...more,
    ['Expires at', utcText(timeout)],
  ]);
}

/** Names and values, without those that have none. */
export const renderFacts = (rows: readonly (readonly [name: string, value: string | undefined])[]): Child => (
  <dl>
    {rows.map(
      ([name, value]) =>
        value !== undefined && (
          <>
            <dt>{name}</dt>
            <dd>{displayText(value)}</dd>
          </>
        ),
    )}
  </dl>
);

function placeText({ product, env }: Pick<PageContext, 'product' | 'env'>): string {
  return `${displayText(product)}, ${displayText(env)}`;
}
