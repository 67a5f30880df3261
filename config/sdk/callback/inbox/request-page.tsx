import type { Child } from 'hono/jsx';
import type { DeliveryAttempt } from '../../../../core/approval/audit.ts';
import type { Principal } from '../../../../core/approval/principal.ts';
import { unattendedText } from '../../../../core/approval/public-view.ts';
import { history, statusText, timeLeft, utcText, voteText } from '../../../../core/approval/record-text.ts';
import type { ApprovalRecord } from '../../../../core/approval/request.ts';
import { personKey } from '../../../../core/approval/rule.ts';
import { roleText } from '../../../../core/display/role-text.ts';
import { displayText } from '../../../../core/display/text.ts';
import { isPlainObject } from '../../../../core/json.ts';
import type { ToolParameters } from '../../../../core/tool/parameters.ts';
import type { ApprovalDetails } from '../../approval-details.ts';
import { AGREE, FORM } from '../decision-form.tsx';
import { diffJson, renderDiff } from '../form/diff.tsx';
import { PROBLEMS, renderQuotation } from '../form/render.tsx';
import { page } from '../layout.tsx';
import { renderFacts, renderModelText } from '../page.tsx';
import { renderPlan } from '../plan.tsx';
import { renderJsonBlock } from '../render-json.tsx';
import { type InboxFrame, inboxBar } from './frame.tsx';
import { LIVE_SCRIPT, liveState } from './live.tsx';

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
  readonly form?: Child;
  /** The request waits for others. */
  readonly isExcluded: boolean;
  /** The person may decide it alone. */
  readonly mayOverride: boolean;
  /** Of the changes that others have voted for, where the person can approve them too. */
  readonly proposal?: string | undefined;
  /** What is wrong in the form. */
  readonly summary?: Child;
  /** Why something was not done. */
  readonly problem?: string | undefined;
}

export function requestPage(context: RequestPage): string {
  const { request, form, summary, isMasked, isExcluded, problem } = context;
  return page(
    titleOf(request),
    <>
      {problem !== undefined && (
        <p class="bad" role="alert">
          {displayText(problem)}
        </p>
      )}
      {summary}
      <div data-live="state">{standing(context, context.proposal)}</div>
      {liveState(context)}
      {LIVE_SCRIPT}
      {facts(request)}
      {renderModelText(request.modelText)}
      {renderPlan(request)}
      {parameters('Parameters', request.parameters)}
      <div data-form="">
        {isMasked && maskedNotice(context)}
        {form}
        {isExcluded && (
          <p class="question">
            You are not one of the people who decide this request.{context.mayOverride && override(request)}
          </p>
        )}
      </div>
      <div data-live="more">
        {decision(request)}
        {votes(request)}
        {others(context)}
        {events(request)}
      </div>
      {identifiers(request)}
    </>,
    { bar: inboxBar(context) },
  );
}

/** The changes of a reviewer with their form, before the decision. */
export function confirmationPage(context: ShownRequest, form: Child): string {
  const body = (
    <>
      <div data-live="state">{standing(context)}</div>
      {liveState(context)}
      {LIVE_SCRIPT}
      <div data-form="">
        <p>Nothing was decided yet.</p>
        {form}
      </div>
    </>
  );
  return page(`Approve with changes: ${titleOf(context.request)}`, body, { bar: inboxBar(context) });
}

const titleOf = ({ tool, agentTag }: ApprovalDetails): string => `${displayText(tool)} · ${displayText(agentTag)}`;

function standing({ request, now, visitor }: ShownRequest, proposal?: string): Child {
  const { status, timeout, unattendedSince } = request;
  const isWaiting = status === 'waiting';
  return (
    <>
      <p class={`state ${status}`}>
        {isWaiting ? (
          <>
            Waiting,{' '}
            <time datetime={timeout} data-left="">
              {timeLeft(request, now)}
            </time>
          </>
        ) : (
          displayText(statusText(request, utcText))
        )}
      </p>
      {unattendedSince !== undefined && <p>{unattendedText(request, utcText(unattendedSince))}</p>}
      {isWaiting && openVotes(request, visitor.principal, proposal)}
    </>
  );
}

/** What a person has to know before they vote: that they have, and what others propose. */
function openVotes(
  { parameters: requested, votes: given = [], missing = [] }: ApprovalDetails,
  person: Principal,
  digest: string | undefined,
): Child {
  const counted = given.filter((vote) => !vote.void);
  const own = counted.find(({ principal }) => personKey(principal) === personKey(person));
  const proposal = counted.find(({ modifiedParams }) => modifiedParams !== undefined);
  return [
    own && (
      <p>
        <strong>Your vote counts: {own.approved ? 'approve' : 'reject'}.</strong>
        {missing.length > 0 && ` Missing: ${displayText(roleText(missing))}.`}
      </p>
    ),
    proposal && (
      <>
        <p>
          {displayText(proposal.by)} approves with these changes. An approval with other parameters does not count
          together with theirs.
        </p>
        {renderChanges(requested, proposal.modifiedParams)}
        {digest !== undefined && !own?.approved && agreeButton(digest)}
      </>
    ),
  ];
}

/** Sends the form of the page, with its reason. */
const agreeButton = (digest: string): Child => (
  <div class="buttons" data-form="">
    <button form={FORM} name="action" value={`${AGREE}${digest}`} formaction={`#${PROBLEMS}`}>
      Approve these changes
    </button>
  </div>
);

/** Who may decide alone does so where a reason is asked for. */
function override({ rule, requestId }: ApprovalDetails): Child {
  const command = `svc approvals approve ${requestId} --override --reason "…"`;
  return (
    rule?.override !== undefined && (
      <>
        {' '}
        As one of {displayText(rule.override)} you may decide alone: <code>{command}</code>
      </>
    )
  );
}

function facts({ definition, reason, tool, agentTag, requester, model, timestamp, timeout }: ApprovalDetails): Child {
  return renderFacts([
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
const identifiers = ({ requestId, executionId, digest }: ApprovalDetails): Child => (
  <>
    <h2>Identifiers</h2>
    {renderFacts([
      ['Request', requestId],
      ['Execution', executionId],
      ['Digest', digest],
    ])}
  </>
);

const parameters = (title: string, value: object): Child => (
  <>
    <h2>{title}</h2>
    {renderJsonBlock(value)}
  </>
);

const maskedNotice = ({ request, inboxUrl }: RequestPage): Child => (
  <form method="post" action={`${inboxUrl}/${request.requestId}`}>
    <p>Sensitive parameters are masked. When you show them, the history says so.</p>
    <div class="buttons">
      <button class="first" name="action" value="show">
        Show all parameters
      </button>
    </div>
  </form>
);

function decision({ parameters: requested, decisionReason, modifiedParams, outcome }: ApprovalDetails): Child {
  const changes = renderChanges(requested, modifiedParams);
  return [
    decisionReason !== undefined && (
      <>
        <h2>Reason of the decision</h2>
        {renderQuotation(decisionReason)}
      </>
    ),
    changes && (
      <>
        <h2>Changes</h2>
        {changes}
      </>
    ),
    outcome && parameters('Result', outcome),
  ];
}

/** The changes of a reviewer; undefined without any. */
function renderChanges(requested: ToolParameters, modified: ToolParameters | undefined): Child {
  const changes = diffJson({ ...requested }, { ...requested, ...modified });
  const masked = Object.entries(modified ?? {}).filter(([, value]) => isPlainObject(value) && value.masked === true);
  if (changes.length + masked.length === 0) return undefined;
  return (
    <>
      {changes.length > 0 && renderDiff(changes)}
      {masked.map(([name]) => (
        <p>{displayText(name)}: changed, and masked here.</p>
      ))}
    </>
  );
}

function votes({ rule, votes: given = [], missing = [] }: ApprovalDetails): Child {
  if (!rule) return undefined;
  const lines = [
    ...given.map((vote) => voteText(vote, utcText)),
    ...(missing.length === 0 ? [] : [`missing: ${displayText(roleText(missing))}`]),
  ];
  if (lines.length === 0) return undefined;
  return (
    <>
      <h2>Votes</h2>
      <ul>
        {lines.map((line) => (
          <li>{line}</li>
        ))}
      </ul>
    </>
  );
}

function others({ others: calls, hasMoreOthers, request, inboxUrl }: RequestPage): Child {
  if (calls.length === 0) return undefined;
  const { groupId } = request;
  return (
    <>
      <h2>Other calls of this execution</h2>
      <ul>
        {calls.map((call) => (
          <li>
            <a href={`${inboxUrl}/${call.requestId}`}>{displayText(call.tool)}</a>:{' '}
            {displayText(statusText(call, utcText))}
            {groupId !== undefined && call.groupId === groupId && ', of the same turn'}
          </li>
        ))}
      </ul>
      {hasMoreOthers && <p class="muted">Older calls are not listed here.</p>}
    </>
  );
}

const events = (request: ApprovalRecord & { readonly deliveries: readonly DeliveryAttempt[] }): Child => (
  <>
    <h2>History</h2>
    <ol class="history">
      {history(request).map(({ at, words }) => (
        <li>
          <time class="muted" datetime={at}>
            {utcText(at)}
          </time>{' '}
          {words.join(' ')}
        </li>
      ))}
    </ol>
  </>
);
