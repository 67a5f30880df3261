import { isDeepStrictEqual } from 'node:util';
import type { ErrorCode } from '../error-codes.ts';
import { isSvcError, SvcError } from '../errors.ts';
import { canonicalJson } from '../json.ts';
import { isClearlyOversized, isOversized } from '../tool/call-digest.ts';
import type { ParameterValidation, ToolParameters } from '../tool/parameters.ts';
import { MAX_TEXT_LENGTH, storableText } from '../tool/safe-json.ts';
import { type Shape, shapeProblems } from '../validate-shape.ts';
import { applyDecision, mayVote, missingApprovals, ruleOf, voterOf } from './apply-decision.ts';
import { effectiveParameters, requestDigest } from './approved-parameters.ts';
import { PROCESS_NAME } from './call.ts';
import {
  damagedRequest,
  invalidDecision,
  invalidParameters,
  notApplied,
  tooLargeParameters,
  unknownRequest,
  unseenParameters,
  wrongReviewToken,
} from './decision-errors.ts';
import { IDEMPOTENCY_KEY, idempotencyOf, isReplay } from './idempotency.ts';
import { evaluatePolicies, whyRefused } from './policy.ts';
import {
  createPrincipal,
  isVerified,
  type Principal,
  principalProblems,
  type SignalPrincipal,
  unverifiedPrincipal,
} from './principal.ts';
import { hasSensitiveParameters, votesOf } from './public-view.ts';
import type { ApprovalStatus, ApprovalVote } from './request.ts';
import { personKey, type RoleCount } from './rule.ts';
import type { ApprovalRow } from './schema.ts';
import type { ApprovalService, RequestRow } from './service.ts';
import type { DecisionVerdict } from './state.ts';
import { tokensEqual } from './token.ts';

/** A decision on a request. @experimental */
export interface Signal {
  /** The request must belong to it. Omit it where only the id of the request is known, as in a button's callback data. */
  readonly executionId?: string | undefined;
  readonly signal: 'approve' | 'reject';
  readonly payload: {
    readonly requestId: string;
    readonly reason?: string | null | undefined;
    /** With `approve`: a JSON object with only the parameters to change. */
    readonly modifiedParams?: object | null | undefined;
  };
}

/** A `Signal`, also one kept in a variable, where TypeScript has widened `'approve'` to `string`. @experimental */
export type SignalInput<Name extends string> = Omit<Signal, 'signal'> & {
  readonly signal: Name & (string extends Name ? string : Signal['signal']);
};

/** @experimental */
export interface SignalOptions {
  /** Who decides, according to the caller; stored with the decision. Default: the id of the principal. */
  readonly actor?: string | undefined;
  /** The person who decides, if your program has verified who that is. */
  readonly principal?: SignalPrincipal | undefined;
  /**
   * A token of `svc people token create`, of the proxy of `approvals.proxy`, or an ID token of `approvals.oidc`: its owner
   * decides. Not together with `principal`. Throws `token_invalid`.
   */
  readonly token?: string | undefined;
  /**
   * Decides alone, in place of the votes that the rule requires, if the rule lets the person do so. Needs a reason.
   */
  readonly override?: boolean | undefined;
  /** Where the decision comes from, such as an address or a page; stored with it. Default: this process. */
  readonly from?: string | undefined;
  /**
   * The `reviewToken` of `approvals.get(…, { reveal: true })`. Required if the request has sensitive parameters; if given,
   * it must be that of the request.
   */
  readonly reviewToken?: string | undefined;
  /**
   * 1 to 255 characters of printable ASCII. The same decision of the same person with the same key has an effect once, and
   * then returns what became of the request; another one throws `idempotency_key_reused`. Stored with the request.
   */
  readonly idempotencyKey?: string | undefined;
}

/** @experimental */
export interface SignalResult {
  readonly requestId: string;
  readonly executionId: string;
  /** `waiting`: the decision is a vote, and the rule of the request requires more. */
  readonly status: ApprovalStatus;
  /** ISO 8601, UTC. With `waiting`: when the vote was stored. */
  readonly decidedAt: string;
  /** With a rule: the votes so far, oldest first. */
  readonly votes?: readonly ApprovalVote[];
  /** With `waiting`: the approvals that are missing. */
  readonly missing?: readonly RoleCount[];
  /** ISO 8601, UTC: when a process was last seen waiting for the approval, if none does any more. */
  readonly unattendedSince?: string;
}

/** The codes with which `decide` rejects a decision; any other error is a failure. */
const REFUSAL_CODES = [
  'decision_invalid',
  'decision_refused',
  'approval_unseen',
  'approval_unknown',
  'approval_decided',
  'approval_expired',
  'approval_stale',
  'approval_parameters_invalid',
  'parameters_too_large',
  'idempotency_key_reused',
  'token_invalid',
] as const satisfies readonly ErrorCode[];
export type DecisionRefusal = (typeof REFUSAL_CODES)[number];

export function isDecisionRefusal(error: unknown): error is SvcError & { readonly code: DecisionRefusal } {
  return isSvcError(error) && REFUSAL_CODES.some((code) => code === error.code);
}

const SIGNAL: Shape = {
  properties: {
    executionId: 'string',
    signal: { oneOf: ['approve', 'reject'] },
    payload: {
      properties: {
        requestId: 'string',
        reason: { nullable: 'string' },
        modifiedParams: { nullable: { map: 'json' } },
      },
      required: ['requestId'],
    },
  },
  required: ['signal', 'payload'],
};

const OPTIONS: Shape = {
  properties: {
    actor: 'string',
    from: 'string',
    reviewToken: 'string',
    principal: 'any',
    token: 'string',
    override: 'boolean',
    idempotencyKey: 'string',
  },
};

/**
 * Decides a request. Repeating the same decision returns the same result. Throws `decision_invalid`,
 * `token_invalid`, `approval_unknown`, `approval_decided` (with the existing decision), `approval_expired`,
 * `decision_refused`, `approval_unseen`, `approval_parameters_invalid`, `parameters_too_large` or `idempotency_key_reused`;
 * the request is then unchanged. `found` is the row if the caller has read it.
 */
export async function decide(
  service: ApprovalService,
  signal: Signal,
  options: SignalOptions = {},
  found?: RequestRow,
): Promise<SignalResult> {
  const decision = toDecision(signal, options);
  const { requestId, executionId } = decision;
  const { idempotencyKey, override, reviewToken } = options;
  const sent = { ...decision, override, reviewToken };
  service.clock.prepare();
  for (let known = found; ; known = undefined) {
    const decider = await deciderOf(service, options);
    const row = known ?? (await service.read(requestId));
    if (!row || (executionId !== undefined && row.record.executionId !== executionId)) throw unknownRequest(decision);
    const { record } = row;
    const idempotency = idempotencyKey === undefined ? undefined : idempotencyOf(record, idempotencyKey, decider, sent);
    if (idempotency && isReplay(record, idempotency)) return signalResult(service, record, decider.principal);
    if (record.status !== 'waiting') return existingDecision(service, record, decision);
    if (service.clock.msUntil(record.expiresAt.getTime()) <= 0) {
      await service.expire(row);
      continue;
    }
    const voter = await voterFor(service, record, decider, options);
    const verdict = { ...(await validateDecision(service, record, decision, voter, options)), idempotency };
    // Hooks may take long: a token or a delegation that has ended in the meantime gives no vote.
    if (service.hooks.beforeDecision.isUsed() || decision.modifiedParams !== undefined) {
      const current = await voterFor(service, record, await deciderOf(service, options), options);
      if (!isDeepStrictEqual(current, voter)) continue;
    }
    const applied = applyDecision(record, verdict, await service.clock.now());
    if ('refused' in applied) throw notApplied(applied);
    if ('unchanged' in applied) return signalResult(service, record, verdict.principal);
    const { next, isFinal } = applied;
    // Read together with the write, in one round trip.
    const unattended = service.presence.unattendedSince(next);
    const result = isFinal
      ? await service.writeDecision(row, next, 'before the deadline')
      : await service.write(row, next, 'before the deadline');
    if (result.written) return signalResult(service, result.written.record, verdict.principal, unattended);
    if (result.failure === 'late') await service.expire(row);
  }
}

/** A valid signal. */
interface Decision {
  readonly requestId: string;
  readonly executionId: string | undefined;
  readonly approved: boolean;
  readonly reason: string | undefined;
  readonly modifiedParams: object | undefined;
}

function toDecision(signal: Signal, options: SignalOptions): Decision {
  if (isClearlyOversized(signal?.payload?.modifiedParams)) throw tooLargeParameters();
  const problems = [...shapeProblems(signal, SIGNAL), ...shapeProblems(options, OPTIONS)];
  if (problems.length === 0 && options.principal !== undefined) {
    problems.push(...principalProblems(options.principal));
    if (options.token !== undefined) problems.push({ path: ['token'], text: 'is not allowed with a principal' });
  }
  if (options.idempotencyKey !== undefined && !IDEMPOTENCY_KEY.test(options.idempotencyKey)) {
    problems.push({ path: ['idempotencyKey'], text: 'is not 1 to 255 characters of printable ASCII' });
  }
  if (problems.length > 0) throw invalidDecision(problems);
  const { executionId, payload } = signal;
  const approved = signal.signal === 'approve';
  // Forms and typed clients send null for an absent field.
  const reason = payload.reason ?? undefined;
  const modifiedParams = payload.modifiedParams ?? undefined;
  if (!approved && modifiedParams !== undefined) {
    throw invalidDecision([{ path: ['payload', 'modifiedParams'], text: 'is only allowed with an approval' }]);
  }
  for (const [text, path] of [
    [reason, ['payload', 'reason']],
    [options.actor, ['actor']],
    [options.from, ['from']],
  ] as const) {
    if (text !== undefined && text.length > MAX_TEXT_LENGTH)
      throw invalidDecision([{ path, text: `has more than ${MAX_TEXT_LENGTH} characters` }]);
  }
  return { requestId: payload.requestId, executionId, approved, reason, modifiedParams };
}

/** Who decides. */
interface Decider {
  readonly by: string;
  readonly principal: Principal;
}

/** Throws `token_invalid`: a token that is not valid never counts as none. */
export async function deciderOf(
  service: ApprovalService,
  { actor, principal, token }: Pick<SignalOptions, 'actor' | 'principal' | 'token'>,
): Promise<Decider> {
  if (token !== undefined) {
    const owner = await service.verifyToken(token);
    return { by: owner.id, principal: owner };
  }
  const by = storableText(actor ?? principal?.id ?? 'unknown');
  return { by, principal: principal === undefined ? unverifiedPrincipal(by) : createPrincipal(principal, 'signal') };
}

/** The same person, in the place of one who has delegated to them if they may not decide themselves. */
async function voterFor(
  service: ApprovalService,
  record: ApprovalRow,
  decider: Decider,
  { override }: SignalOptions,
): Promise<Decider> {
  const { by, principal } = decider;
  const now = await service.clock.now();
  if (override || !isVerified(principal) || mayVote(record, principal, now)) return decider;
  const voter = voterOf(record, principal, await service.delegations.delegatorsOf(principal), now);
  return voter.for ? { by: `${by} for ${voter.for.id}`, principal: voter } : decider;
}

/** The decision to store. Throws if it is rejected. */
async function validateDecision(
  service: ApprovalService,
  record: ApprovalRow,
  { approved, reason, modifiedParams }: Decision,
  { by, principal }: Decider,
  { from = PROCESS_NAME, reviewToken, override }: SignalOptions,
): Promise<DecisionVerdict> {
  const { body } = record;
  if (approved && body.damaged !== undefined) throw damagedRequest();
  if (reviewToken === undefined ? hasSensitiveParameters(body) : !tokensEqual(reviewToken, body.digest)) {
    throw reviewToken === undefined ? unseenParameters() : wrongReviewToken();
  }
  const verdict: DecisionVerdict = {
    approved,
    by,
    principal,
    ...(override && { override }),
    from: storableText(from),
    ...(reason !== undefined && { reason: storableText(reason) }),
    ...(modifiedParams !== undefined && (await validateModifiedParams(service, record, modifiedParams))),
  };
  const { modifiedParams: changes } = verdict;
  const alone = verdict.override ? { override: true as const } : {};
  const decision = { approved, actor: by, principal, ...alone, ...(changes && { modifiedParams: changes }) };
  const refusal = await whyRefused(service.hooks, record, decision);
  if (refusal === undefined) return verdict;
  throw new SvcError('decision_refused', 'The decision was not accepted.', {
    why: refusal,
    state: 'The request is still waiting.',
  });
}

async function validateModifiedParams(
  service: ApprovalService,
  record: ApprovalRow,
  changes: object,
): Promise<Pick<DecisionVerdict, 'modifiedParams' | 'digest'>> {
  const { executionId, agentTag, body } = record;
  const validated = await mergedParameters(service, record, changes);
  if (!validated.ok) throw invalidParameters(validated.problems);
  const { parameters } = validated;
  if (isOversized(parameters)) throw tooLargeParameters();
  const policy = await evaluatePolicies(service.hooks, { agentTag, executionId, tool: body.tool, parameters });
  if (policy.verdict === 'deny') {
    throw new SvcError('decision_refused', 'A policy does not allow the modified parameters.', {
      ...(policy.reason !== undefined && { why: policy.reason }),
      state: 'The request is still waiting.',
    });
  }
  // Including what a changed parameter adds by default.
  const isChanged = (name: string) =>
    Object.hasOwn(changes, name) || canonicalJson(parameters[name]) !== canonicalJson(body.parameters[name]);
  const modifiedParams = Object.fromEntries(Object.entries(parameters).filter(([name]) => isChanged(name)));
  return { modifiedParams, digest: requestDigest(record, { parameters }) };
}

/** The parameters of a request with changes, validated, and with defaults. */
export function mergedParameters(
  service: ApprovalService,
  { body: { parameters, toolDigest } }: ApprovalRow,
  changes: object,
): Promise<ParameterValidation> {
  const modifiedParams = JSON.parse(JSON.stringify(changes)) as ToolParameters;
  const merged = effectiveParameters({ parameters, decision: { at: '', by: '', modifiedParams } });
  return service.validateParameters(toolDigest, merged);
}

async function areSameChanges(service: ApprovalService, record: ApprovalRow, changes: object = {}): Promise<boolean> {
  const { decision } = record.body;
  if (canonicalJson(decision?.modifiedParams ?? {}) === canonicalJson(changes)) return true;
  if (decision?.digest === undefined) return false;
  const merged = await mergedParameters(service, record, changes);
  return merged.ok && requestDigest(record, { parameters: merged.parameters }) === decision.digest;
}

/** The result of the existing decision if it is the same; throws if it differs. */
async function existingDecision(
  service: ApprovalService,
  record: ApprovalRow,
  { approved, modifiedParams }: Decision,
): Promise<SignalResult> {
  const { status, body } = record;
  const { decision } = body;
  if (decision?.cause === 'timeout') {
    throw new SvcError('approval_expired', 'The request has expired.', {
      why: `Its deadline was ${record.expiresAt.toISOString()}.`,
      state: 'The system rejected the tool call.',
      details: { status, decidedAt: decision.at },
    });
  }
  const verdict = approved ? 'approved' : 'rejected';
  const byHuman = status === 'approved' || decision?.cause === 'human';
  if (byHuman && status === verdict && (await areSameChanges(service, record, modifiedParams)))
    return signalResult(service, record);
  throw new SvcError('approval_decided', `The request is already ${status}.`, {
    why: `${decision?.by ?? 'Someone'} decided at ${decision?.at ?? 'an unknown time'}.`,
    state: 'The existing decision is unchanged.',
    details: { status, ...(decision && { decidedAt: decision.at, decidedBy: decision.by }) },
  });
}

/** `voter`: the person whose vote was stored, now or before. */
async function signalResult(
  { presence, clock }: ApprovalService,
  row: ApprovalRow,
  voter?: Principal,
  unattended = presence.unattendedSince(row),
): Promise<SignalResult> {
  const { requestId, executionId, status, body } = row;
  const unattendedSince = await unattended;
  const own = voter && body.votes?.findLast(({ principal }) => personKey(principal) === personKey(voter));
  const decidedAt = body.decision?.at ?? own?.at ?? '';
  const missing = status === 'waiting' ? missingApprovals(row, await clock.now()) : undefined;
  return {
    requestId,
    executionId,
    status,
    decidedAt,
    ...(ruleOf(row) && { votes: votesOf(row) }),
    ...(missing && { missing }),
    ...(unattendedSince !== undefined && { unattendedSince }),
  };
}
