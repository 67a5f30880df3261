import { storable } from '../agent/own-json.ts';
import type { ParameterProblem } from '../agent/parameters.ts';
import { type ErrorCode, isSvcError, SvcError } from '../errors.ts';
import { canonicalJson } from '../json.ts';
import { type Problem, problemText, type Shape, shapeProblems } from '../schema/shape.ts';
import type { ApprovalDesk } from './desk.ts';
import { callDigest, tooLarge } from './digest.ts';
import { PROCESS } from './passage.ts';
import { rule } from './policy.ts';
import type { ApprovalStatus, Parameters } from './request.ts';
import { DecisionReview } from './review.ts';
import type { ApprovalRow } from './rows.ts';
import { decided, effective, type Verdict } from './transition.ts';
import { frozen, recordOf } from './view.ts';
import { LONGEST_WORDS } from './words.ts';

/** SPEC 2.6. @experimental */
export interface Signal {
  readonly executionId: string;
  readonly signal: 'approve' | 'reject';
  readonly payload: {
    readonly requestId: string;
    readonly reason?: string;
    /** The parameters to change, and no others. */
    readonly modifiedParams?: Parameters;
  };
}

/** @experimental */
export interface SignalOptions {
  /** Who decides, as far as the caller knows; kept with the decision. */
  readonly actor?: string;
  /** From where: an address, a page; kept with the decision. Default: this process. */
  readonly from?: string;
  /** The `shown` of a view with sensitive parameters: who did not see them cannot decide. */
  readonly shown?: string;
}

/** @experimental */
export interface SignalAnswer {
  readonly requestId: string;
  readonly executionId: string;
  readonly status: ApprovalStatus;
  /** ISO 8601, UTC. */
  readonly decidedAt: string;
}

/** What `decide` has against a decision. Whatever else it throws says nothing of it. */
const REFUSALS = [
  'decision_invalid',
  'decision_refused',
  'approval_unseen',
  'approval_unknown',
  'approval_decided',
  'approval_expired',
  'approval_stale',
  'approval_parameters_invalid',
  'parameters_too_large',
] as const satisfies readonly ErrorCode[];
export type DecisionRefusal = (typeof REFUSALS)[number];

export function isDecisionRefusal(error: unknown): error is SvcError & { readonly code: DecisionRefusal } {
  return isSvcError(error) && REFUSALS.some((code) => code === error.code);
}

const SIGNAL: Shape = {
  properties: {
    executionId: 'string',
    signal: { oneOf: ['approve', 'reject'] },
    payload: {
      properties: { requestId: 'string', reason: 'string', modifiedParams: { map: 'json' } },
      required: ['requestId'],
    },
  },
  required: ['executionId', 'signal', 'payload'],
};

const OPTIONS: Shape = { properties: { actor: 'string', from: 'string', shown: 'string' } };

/**
 * Decides a request. The same decision again is answered alike. Throws `decision_invalid`, `approval_unknown`,
 * `approval_decided` with the decision that stands, `approval_expired`, `decision_refused`, `approval_unseen`, `approval_parameters_invalid`,
 * `parameters_too_large`; the request is then what it was.
 */
export async function decide(desk: ApprovalDesk, signal: Signal, options: SignalOptions = {}): Promise<SignalAnswer> {
  const problems = [...shapeProblems(signal, SIGNAL), ...shapeProblems(options, OPTIONS)];
  if (problems.length > 0) throw malformed(problems);
  const { executionId, payload } = signal;
  const approved = signal.signal === 'approve';
  if (!approved && payload.modifiedParams !== undefined) {
    throw malformed([{ path: ['payload', 'modifiedParams'], text: 'goes with an approval only' }]);
  }
  for (const [words, at] of [
    [payload.reason, ['payload', 'reason']],
    [options.actor, ['actor']],
    [options.from, ['from']],
  ] as const) {
    if (words !== undefined && words.length > LONGEST_WORDS)
      throw malformed([{ path: at, text: `has more than ${LONGEST_WORDS} characters` }]);
  }
  for (;;) {
    const row = await desk.read(payload.requestId);
    if (!row || row.record.executionId !== executionId) throw unknown(payload.requestId);
    const { record } = row;
    if (record.status !== 'waiting') return standing(record, signal);
    if (desk.clock.until(record.expiresAt.getTime()) <= 0) {
      await desk.expire(row);
      continue;
    }
    const verdict = await judged(desk, record, signal, options);
    const written = await desk.decide(row, decided(record, verdict, await desk.clock.now()), 'before the deadline');
    if (written === 'late') await desk.expire(row);
    else if (written) return answer(written.record);
  }
}

/** The decision as it will stand, or the refusal of it. */
async function judged(
  desk: ApprovalDesk,
  record: ApprovalRow,
  { signal, payload }: Signal,
  { actor = 'unknown', from = PROCESS, shown }: SignalOptions,
): Promise<Verdict> {
  const { body } = record;
  const hidden = body.sensitive?.some((name) => Object.hasOwn(body.parameters, name));
  if (hidden && shown !== body.digest) {
    throw new SvcError('approval_unseen', 'The request has sensitive parameters that the decider was not shown.', {
      why: 'Deliveries and lists mask them.',
      state: 'The request keeps waiting.',
      next: ['Read them with svc.approvals.get(requestId, { reveal: true }) and hand on its `shown`.'],
    });
  }
  const approved = signal === 'approve';
  const by = storable(actor);
  const { modifiedParams } = payload;
  const verdict: Verdict = {
    approved,
    by,
    from: storable(from),
    ...(payload.reason !== undefined && { reason: storable(payload.reason) }),
    ...(modifiedParams !== undefined && (await modified(desk, record, modifiedParams))),
  };
  const { beforeDecision } = desk.kernel.hooks;
  if (!beforeDecision.isUsed()) return verdict;
  const review = new DecisionReview(frozen(recordOf(record)), {
    approved,
    actor: by,
    ...(verdict.modifiedParams && { modifiedParams: frozen(verdict.modifiedParams) }),
  });
  try {
    await beforeDecision.promise(review);
  } catch {
    review.refuse('A check of the decider failed.');
  }
  if (review.refusal === undefined) return verdict;
  throw new SvcError('decision_refused', 'The decision is not accepted.', {
    why: review.refusal,
    state: 'The request keeps waiting.',
  });
}

async function modified(
  desk: ApprovalDesk,
  { executionId, agentTag, body }: ApprovalRow,
  given: Parameters,
): Promise<Pick<Verdict, 'modifiedParams' | 'digest'>> {
  const modifiedParams = JSON.parse(JSON.stringify(given)) as Parameters;
  const merged = effective({ parameters: body.parameters, decision: { at: '', by: '', modifiedParams } });
  const checked = await desk.check(body.toolDigest, merged);
  if (!checked.ok) throw unfit(checked.problems);
  const { parameters } = checked;
  if (tooLarge(parameters)) {
    throw new SvcError('parameters_too_large', 'The parameters are too large.', {
      state: 'The request keeps waiting.',
      next: ['Change them to less than 256 KiB.'],
    });
  }
  const ruling = await rule(desk.kernel.hooks, { agentTag, executionId, tool: body.tool, parameters });
  if (ruling.verdict === 'deny') {
    throw new SvcError('decision_refused', 'A policy does not allow the modified parameters.', {
      ...(ruling.reason !== undefined && { why: ruling.reason }),
      state: 'The request keeps waiting.',
    });
  }
  return { modifiedParams, digest: callDigest(executionId, body.toolDigest, parameters) };
}

/** What was decided already: told to who decides the same, refused to who decides otherwise. */
function standing(record: ApprovalRow, { signal, payload }: Signal): SignalAnswer {
  const { status, body } = record;
  const { decision } = body;
  if (decision?.cause === 'timeout') {
    throw new SvcError('approval_expired', 'The request has expired.', {
      why: `Its time was over at ${record.expiresAt.toISOString()}.`,
      state: 'The tool call was rejected by the system.',
      details: { status, decidedAt: decision.at },
    });
  }
  const verdict = signal === 'approve' ? 'approved' : 'rejected';
  const byHuman = status === 'approved' || decision?.cause === 'human';
  const same = (one: Parameters | undefined, other: Parameters | undefined) =>
    canonicalJson(one ?? {}) === canonicalJson(other ?? {});
  if (byHuman && status === verdict && same(decision?.modifiedParams, payload.modifiedParams)) return answer(record);
  throw new SvcError('approval_decided', `The request is ${status} already.`, {
    why: `${decision?.by ?? 'Somebody'} decided at ${decision?.at ?? 'an unknown time'}.`,
    state: 'That decision stands.',
    details: { status, ...(decision && { decidedAt: decision.at, decidedBy: decision.by }) },
  });
}

function answer({ requestId, executionId, status, body }: ApprovalRow): SignalAnswer {
  return { requestId, executionId, status, decidedAt: body.decision?.at ?? '' };
}

function malformed(problems: readonly Problem[]): SvcError {
  return new SvcError('decision_invalid', 'The decision cannot be understood.', {
    why: problems.map(problemText).join(' '),
    state: 'Nothing was decided.',
    details: { problems: problems.map(problemText) },
  });
}

function unfit(problems: readonly ParameterProblem[]): SvcError {
  const said = problems.map(({ parameter, why }) => (parameter === '' ? why : `${parameter} ${why}`));
  return new SvcError('approval_parameters_invalid', 'The modified parameters do not fit the tool.', {
    why: `${said.join('; ')}.`,
    state: 'The request keeps waiting.',
    details: { problems },
  });
}

/** The same for a request that does not exist and for one of another execution: neither is told apart by guessing. */
function unknown(requestId: string): SvcError {
  return new SvcError('approval_unknown', 'No request of that id belongs to that execution.', {
    state: 'Nothing was decided.',
    details: { requestId },
  });
}
