import type { AsyncSeriesHook } from 'tapable';
import { createHook } from '../hook.ts';
import type { ToolParameters } from '../tool/parameters.ts';
import { frozenClone, truncatedText } from '../tool/safe-json.ts';
import type { Principal } from './principal.ts';
import { toApprovalRecord } from './public-view.ts';
import type { ApprovalRecord, ApprovalRequest } from './request.ts';
import type { ApprovalRow } from './schema.ts';

/** @experimental */
export interface ToolCall {
  readonly agentTag: string;
  readonly executionId: string;
  readonly tool: string;
  readonly parameters: ToolParameters;
}

/** @experimental */
export type PolicyVerdict = 'allow' | 'approval' | 'deny';

const STRICTNESS: Record<PolicyVerdict, number> = { allow: 0, approval: 1, deny: 2 };

/**
 * Passed to taps on `beforeToolCall`. A tap can only restrict: the strictest verdict wins, in any order.
 * @experimental
 */
export interface ToolCallReview {
  readonly call: ToolCall;
  readonly verdict: PolicyVerdict;
  /** The reason of the first tap that returned the current verdict. */
  readonly reason: string | undefined;
  deny(reason: string): void;
  requireApproval(reason: string): void;
}

class OpenToolCallReview implements ToolCallReview {
  readonly call: ToolCall;
  #verdict: PolicyVerdict = 'allow';
  #reason: string | undefined;

  constructor(call: ToolCall) {
    this.call = call;
    Object.freeze(this);
  }

  get verdict(): PolicyVerdict {
    return this.#verdict;
  }

  get reason(): string | undefined {
    return this.#reason;
  }

  deny(reason: string): void {
    this.#restrict('deny', reason);
  }

  requireApproval(reason: string): void {
    this.#restrict('approval', reason);
  }

  #restrict(verdict: PolicyVerdict, reason: string): void {
    if (STRICTNESS[verdict] <= STRICTNESS[this.#verdict]) return;
    this.#verdict = verdict;
    this.#reason = reason;
  }
}

/** Passed to taps on `beforeDecision`, which may reject a decision because of who makes it. @experimental */
export interface DecisionReview {
  readonly request: ApprovalRecord;
  readonly decision: {
    readonly approved: boolean;
    readonly actor: string;
    /** Who decides, and how that was verified: by `nobody` if it is only what the caller claims. */
    readonly principal: Principal;
    /** The person decides alone, in place of the votes that the rule requires. */
    readonly override?: true;
    /** The id of the standing rule that approves it: nobody decides about this call. */
    readonly standing?: string;
    readonly modifiedParams?: ToolParameters;
  };
  readonly refusal: string | undefined;
  refuse(reason: string): void;
}

class OpenDecisionReview implements DecisionReview {
  readonly request: ApprovalRecord;
  readonly decision: DecisionReview['decision'];
  #refusal: string | undefined;

  constructor(request: ApprovalRecord, decision: DecisionReview['decision']) {
    this.request = request;
    this.decision = decision;
    Object.freeze(this);
  }

  get refusal(): string | undefined {
    return this.#refusal;
  }

  refuse(reason: string): void {
    this.#refusal ??= reason;
  }
}

export function createApprovalHooks() {
  return {
    beforeToolCall: createHook<ToolCallReview>('review'),
    approvalRequested: createHook<ApprovalRequest>('request'),
    beforeDecision: createHook<DecisionReview>('review'),
    approvalDecided: createHook<ApprovalRecord>('record'),
  } as const;
}

export type ApprovalHooks = ReturnType<typeof createApprovalHooks>;

interface PolicyResult {
  readonly verdict: PolicyVerdict;
  readonly reason: string | undefined;
}

const ALLOWED: PolicyResult = { verdict: 'allow', reason: undefined };

/** Runs every tap on `beforeToolCall`. A tap that throws denies the call. */
export async function evaluatePolicies(
  { beforeToolCall }: { readonly beforeToolCall: AsyncSeriesHook<[ToolCallReview]> },
  call: ToolCall,
): Promise<PolicyResult> {
  if (!beforeToolCall.isUsed()) return ALLOWED;
  const review = new OpenToolCallReview(frozenClone(call));
  try {
    await beforeToolCall.promise(review);
  } catch {
    // The model sees the reason, and the error may contain anything.
    return { verdict: 'deny', reason: 'A policy failed while evaluating the call.' };
  }
  const { verdict, reason } = review;
  return { verdict, reason: reason === undefined ? undefined : truncatedText(reason) };
}

/** Runs every tap on `beforeDecision`. A tap that throws refuses the decision. */
export async function whyRefused(
  { beforeDecision }: Pick<ApprovalHooks, 'beforeDecision'>,
  row: ApprovalRow,
  decision: DecisionReview['decision'],
): Promise<string | undefined> {
  if (!beforeDecision.isUsed()) return undefined;
  const review = new OpenDecisionReview(frozenClone(toApprovalRecord(row)), frozenClone(decision));
  try {
    await beforeDecision.promise(review);
  } catch {
    return 'A beforeDecision hook failed.';
  }
  return review.refusal;
}
