import type { Child } from 'hono/jsx';
import { needsReason, ruleOf } from '../../../core/approval/apply-decision.ts';
import { decide, mergedParameters, type SignalOptions, type SignalResult } from '../../../core/approval/decide.ts';
import { toApprovalRecord } from '../../../core/approval/public-view.ts';
import type { ApprovalRecord } from '../../../core/approval/request.ts';
import { recordReveal } from '../../../core/approval/reveal.ts';
import type { ApprovalService, RequestRow } from '../../../core/approval/service.ts';
import { tokensEqual } from '../../../core/approval/token.ts';
import { jsonDigest } from '../../../core/json.ts';
import { isPlanRequest } from '../../../core/migration/plan-approver.ts';
import type { ParameterProblem } from '../../../core/tool/json-schema.ts';
import type { ToolParameters } from '../../../core/tool/parameters.ts';
import { type Decision, parseModifiedParams, signalFor } from './decision-body.ts';
import { diffJson, type JsonChange, renderDiff } from './form/diff.tsx';
import {
  inFieldOrder,
  isParameterField,
  OTHER_FORM,
  type ParametersForm,
  parametersForm,
  problemsAtFields,
  problemsOfForm,
  readChanges,
  renderParametersForm,
} from './form/parameters-form.tsx';
import { type FormProblem, PROBLEMS, renderQuotation } from './form/render.tsx';
import { invalidDecision } from './http-errors.ts';

/*
 * A form posts an action. `show` asks for the request with the form. `approve` decides at once if no parameter was changed;
 * otherwise it answers with the changes, and decides when they come back with the digest of what was shown. `reject` never
 * reads the parameters. `agree:<digest>` approves with the changes of another person whose vote has this digest. `edit`, `draw`
 * and the buttons of lists and objects show the form again, and decide nothing.
 */

/** What was posted from the page of a request, and by whom. */
export interface PostedForm {
  readonly approvals: ApprovalService;
  readonly row: RequestRow;
  readonly decider: SignalOptions;
  readonly fields: URLSearchParams;
  /** The field `view` of a page that showed the request: nothing else is decided or shown again. */
  readonly view: string;
}

/** The request with its form. */
export interface FormView {
  readonly kind: 'form';
  readonly request: ApprovalRecord;
  /** What the tool does. */
  readonly description: string | undefined;
  /** What the model wrote before the call. */
  readonly modelText: string | undefined;
  /** Undefined: the parameters cannot be changed. */
  readonly form: ParametersForm | undefined;
  readonly problems: readonly FormProblem[];
  /** What was posted; undefined in a form that is shown first. */
  readonly posted: URLSearchParams | undefined;
}

export type FormAnswer =
  | FormView
  | { readonly kind: 'closed'; readonly request: ApprovalRecord }
  | {
      readonly kind: 'confirm';
      readonly posted: URLSearchParams;
      readonly changes: readonly JsonChange[];
      readonly digest: string;
    }
  | { readonly kind: 'decided'; readonly result: SignalResult; readonly changes: readonly JsonChange[] };

/** The id of the form, for buttons outside of it, and of the field for a reason. */
export const FORM = 'decision';
const REASON = 'reason';
/** The beginning of the action that approves with the changes of another person. */
export const AGREE = 'agree:';
const OTHER_PROPOSAL = 'The changes that were proposed are not those any more. Look at the request again.';

const ACTION = /^(?:approve|reject|edit|draw|(?:agree|mark|remove):.*)$/s;

/** Throws what `decide` throws, and an `HttpError` for what no page of a request posts. */
export async function answerForm(post: PostedForm): Promise<FormAnswer> {
  const { fields, view } = post;
  const action = fields.get('action') ?? '';
  if (action === 'show') return show(post, undefined);
  if (!ACTION.test(action)) throw invalidDecision('The form has no valid action.');
  if (!tokensEqual(fields.get('view') ?? '', view)) {
    throw invalidDecision('The form was not sent from the page of this request.');
  }
  if (action === 'reject') {
    const problems = reasonProblems(post, false);
    return problems.length > 0 ? show(post, fields, problems) : settle(post, undefined, []);
  }
  if (action === 'approve') return approve(post);
  if (action.startsWith(AGREE)) return agree(post, action.slice(AGREE.length));
  return show(post, fields);
}

/** Browsers send line breaks as CRLF. */
const reasonOf = (fields: URLSearchParams): string => (fields.get(REASON) ?? '').replaceAll('\r\n', '\n').trim();

/** A missing reason that the rule of a request requires. */
function reasonProblems({ row: { record }, fields }: PostedForm, approved: boolean): FormProblem[] {
  const rule = ruleOf(record);
  if (!rule || !needsReason(rule, approved) || reasonOf(fields) !== '') return [];
  return [{ field: REASON, path: '', text: 'The rule of the request requires a reason.' }];
}

/** Approves with what another person has voted for. */
async function agree(post: PostedForm, digest: string): Promise<FormAnswer> {
  const { row, fields } = post;
  const { votes = [], parameters } = row.record.body;
  const proposal = votes.find((vote) => vote.approved && vote.modifiedParams && vote.digest === digest)?.modifiedParams;
  const problems = proposal ? reasonProblems(post, true) : [{ path: '', text: OTHER_PROPOSAL }];
  if (!proposal || problems.length > 0) return show(post, fields, problems);
  return settle(post, proposal, diffJson({ ...parameters }, { ...parameters, ...proposal }));
}

/** The form, first or with what was posted. Links end up in logs and chats, so a decided request is no longer shown. */
async function show(
  { approvals, row, decider }: PostedForm,
  posted: URLSearchParams | undefined,
  problems: readonly FormProblem[] = [],
): Promise<FormAnswer> {
  const found = await approvals.expireIfDue(row);
  const { record } = found;
  if (isClosed(approvals, found)) return { kind: 'closed', request: toApprovalRecord(record) };
  const definition = await approvals.getToolDefinition(record.body.toolDigest);
  const unattendedSince = await approvals.presence.unattendedSince(record);
  const { record: shown } = await recordReveal(approvals, found, decider);
  const form = isChangeable(row) ? parametersForm(definition?.schema, record.body.parameters, posted) : undefined;
  return {
    kind: 'form',
    request: toApprovalRecord(shown, true, unattendedSince),
    description: definition?.description,
    modelText: shown.body.modelText,
    form,
    problems: problems.length === 0 && form ? problemsOfForm(form) : problems,
    posted,
  };
}

const isClosed = (approvals: ApprovalService, { record }: RequestRow): boolean =>
  record.status !== 'waiting' || approvals.isDue(record);

/** The plan of a migration is approved as it is. */
function isChangeable({ record: { agentTag, body } }: RequestRow): boolean {
  return body.damaged === undefined && !isPlanRequest({ agentTag, tool: body.tool });
}

async function approve(post: PostedForm): Promise<FormAnswer> {
  const { approvals, row, fields } = post;
  const { record } = row;
  const { parameters, toolDigest } = record.body;
  const missing = reasonProblems(post, true);
  if (!fields.has('form') && ![...fields.keys()].some(isParameterField)) {
    if (missing.length > 0) return show(post, fields, missing);
    const text = fields.get('modifiedParams')?.trim();
    return settle(post, text ? parseModifiedParams(text) : {}, []);
  }
  if (!isChangeable(row)) return show(post, fields, [{ path: '', text: OTHER_FORM }]);
  const definition = await approvals.getToolDefinition(toolDigest);
  const form = parametersForm(definition?.schema, parameters, fields);
  const { changes, problems } = readChanges(form, parameters);
  if (problems.length + missing.length > 0) {
    // What can be read is validated too, so that one answer names everything.
    const readable = await mergedParameters(approvals, record, changes);
    const invalid = readable.ok ? [] : problemsAtFields(form, readable.problems, problems);
    return show(post, fields, [...inFieldOrder(form, [...problems, ...invalid]), ...missing]);
  }
  // `decide` answers for a request that is decided or has expired.
  if (Object.keys(changes).length === 0 || isClosed(approvals, row)) return settle(post, changes, []);
  const validated = await mergedParameters(approvals, record, changes);
  if (!validated.ok) return showProblems(post, validated.problems);
  const differences = diffJson({ ...parameters }, { ...validated.parameters });
  const digest = jsonDigest(validated.parameters);
  if (!tokensEqual(fields.get('confirmed') ?? '', digest)) {
    return { kind: 'confirm', posted: fields, changes: differences, digest };
  }
  return settle(post, changes, differences);
}

async function showProblems(post: PostedForm, problems: readonly ParameterProblem[]): Promise<FormAnswer> {
  const answer = await show(post, post.fields);
  if (answer.kind !== 'form' || !answer.form) return answer;
  return { ...answer, problems: problemsAtFields(answer.form, problems) };
}

/** Decides. Without `changes` it rejects. */
async function settle(
  { approvals, row: { record }, row, decider, fields }: PostedForm,
  changes: ToolParameters | undefined,
  differences: readonly JsonChange[],
): Promise<FormAnswer> {
  const reason = reasonOf(fields);
  const hasChanges = changes !== undefined && Object.keys(changes).length > 0;
  const decision: Decision = {
    approved: changes !== undefined,
    ...(reason && { reason }),
    ...(hasChanges && { modifiedParams: changes }),
  };
  const options = { ...decider, reviewToken: record.body.digest };
  const result = await decide(approvals, signalFor(record.requestId, decision), options, row);
  return { kind: 'decided', result, changes: differences };
}

interface FormFrame {
  /** The field `view`. */
  readonly view: string;
  /** Of the site: further hidden fields. */
  readonly hidden?: Child;
  /** What is asked, above the buttons. */
  readonly question: Child;
}

/** The form of a decision. Enter in a one-line field presses its first button, which only shows it again. */
export function renderDecisionForm(
  { request, form, problems, posted }: FormView,
  { view, hidden, question }: FormFrame,
): Child {
  const isMissing = problems.some(({ field }) => field === REASON);
  const hint = reasonHint(request);
  const described = [...(hint ? [`${REASON}-hint`] : []), ...(isMissing ? [`${REASON}-problem`] : [])].join(' ');
  return (
    <form method="post" id={FORM}>
      {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: it cannot be reached with the keyboard */}
      <button class="default" name="action" value="draw" tabindex={-1} aria-hidden="true">
        Show the form again
      </button>
      <input type="hidden" name="view" value={view} />
      {hidden}
      {form && renderParametersForm(form, problems, posted !== undefined)}
      {question}
      <div class="field">
        <label for={REASON}>Reason</label>
        {hint && (
          <p class="hint" id={`${REASON}-hint`}>
            {hint}
          </p>
        )}
        {isMissing && (
          <p class="bad" id={`${REASON}-problem`}>
            Write a reason.
          </p>
        )}
        <textarea
          id={REASON}
          name="reason"
          rows={1}
          maxlength={2000}
          dir="auto"
          aria-describedby={described || undefined}
          aria-invalid={isMissing ? 'true' : undefined}
        >
          {'\n'}
          {posted?.get('reason') ?? ''}
        </textarea>
      </div>
      <div class="buttons">
        <button name="action" value="approve" formaction={`#${PROBLEMS}`}>
          Approve
        </button>
        <button name="action" value="reject" formaction={`#${PROBLEMS}`}>
          Reject
        </button>
      </div>
    </form>
  );
}

function reasonHint({ rule }: ApprovalRecord): string | undefined {
  switch (rule?.reason) {
    case undefined:
      return undefined;
    case 'always':
      return 'Required.';
    case 'approve':
      return 'Required to approve.';
    case 'reject':
      return 'Required to reject.';
  }
}

/** The changes and the reason, with what was posted: it comes back as it is. */
export function renderConfirmation(
  { posted, changes, digest }: Extract<FormAnswer, { readonly kind: 'confirm' }>,
  question: Child,
): Child {
  const kept = [...posted].filter(([name]) => name !== 'action' && name !== 'confirmed');
  const reason = reasonOf(posted);
  return (
    <>
      {renderDiff(changes)}
      {reason !== '' && (
        <>
          <h2>Your reason</h2>
          {renderQuotation(reason)}
        </>
      )}
      <form method="post">
        {kept.map(([name, value]) => (
          <input type="hidden" name={name} value={value} />
        ))}
        <input type="hidden" name="confirmed" value={digest} />
        {question}
        <div class="buttons">
          <button name="action" value="approve">
            Approve with these changes
          </button>
          <button name="action" value="edit">
            Back to the form
          </button>
        </div>
      </form>
    </>
  );
}
