import { currentDigest, mayOverride } from '../../../../core/approval/apply-decision.ts';
import { isDecisionRefusal } from '../../../../core/approval/decide.ts';
import { mayDecide } from '../../../../core/approval/inbox.ts';
import { listApprovals } from '../../../../core/approval/list-approvals.ts';
import { hasSensitiveParameters } from '../../../../core/approval/public-view.ts';
import type { ApprovalService, RequestRow } from '../../../../core/approval/service.ts';
import { viewToken } from '../../../../core/approval/token.ts';
import { describeError } from '../../../../core/errors.ts';
import { shortDigest } from '../../../../core/tool/call-digest.ts';
import { detailsOf } from '../../approval-details.ts';
import { answerForm, type FormView, renderConfirmation, renderDecisionForm } from '../decision-form.tsx';
import { renderSummary } from '../form/render.tsx';
import { questionOf, renderQuestion } from '../page.tsx';
import { htmlResponse, httpErrorOf, redirectResponse } from '../response.ts';
import { tokenClaims } from '../token.ts';
import type { InboxFrame } from './frame.tsx';
import { LIVE_HEADERS } from './live.tsx';
import { confirmationPage, requestPage } from './request-page.tsx';

export interface RequestContext {
  readonly approvals: ApprovalService;
  readonly product: string;
  readonly env: string;
  /** Signs what a form proves. */
  readonly key: string;
}

const MAX_OTHERS = 50;
const FROM = 'inbox';

interface Shown {
  /** What the person has posted, drawn again. */
  readonly answer?: FormView | undefined;
  /** Shows sensitive parameters. */
  readonly reveal?: boolean;
  readonly status?: number;
  /** Why something was not done. */
  readonly problem?: string;
}

/** The page of a request. */
export async function showRequest(
  context: RequestContext,
  frame: InboxFrame,
  row: RequestRow,
  { answer, reveal = answer !== undefined, status = 200, problem }: Shown = {},
): Promise<Response> {
  const { approvals } = context;
  const { decider, principal } = frame.visitor;
  const { requestId, executionId } = row.record;
  const isMasked = !reveal && hasSensitiveParameters(row.record.body);
  const reader = { ...decider, from: FROM };
  const request = await detailsOf(approvals, row, { reveal, ...reader });
  const { records, cursor } = await listApprovals(approvals, { executionId, newestFirst: true, limit: MAX_OTHERS });
  const isOpen = request.status === 'waiting';
  const canDecide = isOpen && (await mayDecide(approvals, principal))(row.record);
  const now = await approvals.clock.now();
  const shown = answer ?? (canDecide && !isMasked ? await draw(context, frame, row) : undefined);
  const page = requestPage({
    ...frame,
    request,
    others: records.filter((one) => one.requestId !== requestId),
    hasMoreOthers: cursor !== undefined,
    isMasked,
    form: canDecide && shown ? renderForm(context, frame, row, shown) : undefined,
    summary: answer && renderSummary(answer.problems),
    isExcluded: isOpen && !canDecide,
    mayOverride: mayOverride(row.record, principal, now),
    proposal: canDecide && shown ? currentDigest(row.record) : undefined,
    problem,
    now: new Date(now),
  });
  return htmlResponse(status, page, LIVE_HEADERS);
}

/** The form as it is shown first; undefined for a request that has ended. */
async function draw(context: RequestContext, frame: InboxFrame, row: RequestRow): Promise<FormView | undefined> {
  const answer = await answerForm(postOf(context, frame, row, new URLSearchParams({ action: 'show' })));
  return answer.kind === 'form' ? answer : undefined;
}

function renderForm(context: RequestContext, frame: InboxFrame, row: RequestRow, shown: FormView) {
  const { product, env } = context;
  const digest = shortDigest(row.record.body.digest);
  return renderDecisionForm(shown, {
    view: viewOf(context, row),
    hidden: <input type="hidden" name="person" value={frame.visitor.principal.id} />,
    question: renderQuestion({ request: shown.request, product, env }, digest),
  });
}

const viewOf = (context: RequestContext, row: RequestRow): string => viewToken(context.key, tokenClaims(context, row));

const postOf = (context: RequestContext, { visitor }: InboxFrame, row: RequestRow, fields: URLSearchParams) => ({
  approvals: context.approvals,
  row,
  decider: { ...visitor.decider, from: FROM },
  fields,
  view: viewOf(context, row),
});

/** The answer to a form. What was decided is shown by the page that the browser is sent to, and can load again. */
export async function answerRequest(
  context: RequestContext,
  frame: InboxFrame,
  row: RequestRow,
  fields: URLSearchParams,
): Promise<Response> {
  const { id } = frame.visitor.principal;
  const { requestId, status } = row.record;
  if (fields.get('action') === 'show' && status !== 'waiting')
    return showRequest(context, frame, row, { reveal: true });
  if (fields.get('action') !== 'show' && fields.get('person') !== id) {
    const problem = `You are signed in as ${id} now. Nothing was decided: look at the request again.`;
    return showRequest(context, frame, row, { status: 401, problem });
  }
  try {
    const answer = await answerForm(postOf(context, frame, row, fields));
    if (answer.kind === 'form') {
      return showRequest(context, frame, row, { answer, status: answer.problems.length > 0 ? 422 : 200 });
    }
    if (answer.kind !== 'confirm') return redirectResponse(`${frame.inboxUrl}/${requestId}`);
    const { product, env } = context;
    const request = await detailsOf(context.approvals, row);
    const question = <p class="question">{questionOf({ request, product, env })} with these changes?</p>;
    const shown = { ...frame, request, now: new Date(await context.approvals.clock.now()) };
    return htmlResponse(200, confirmationPage(shown, renderConfirmation(answer, question)), LIVE_HEADERS);
  } catch (error) {
    if (!isDecisionRefusal(error)) throw error;
    const current = (await context.approvals.getExpiringIfDue(requestId)) ?? row;
    const shown = { status: httpErrorOf(error).status, problem: describeError(error) };
    const posted = new URLSearchParams(fields);
    posted.set('action', 'draw');
    const answer = fields.has('view') ? await answerForm(postOf(context, frame, current, posted)) : undefined;
    return showRequest(context, frame, current, { ...shown, answer: answer?.kind === 'form' ? answer : undefined });
  }
}
