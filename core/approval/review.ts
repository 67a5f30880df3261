import type { ApprovalRecord, Parameters } from './request.ts';

/** @experimental */
export interface ToolCall {
  readonly agentTag: string;
  readonly executionId: string;
  readonly tool: string;
  readonly parameters: Parameters;
}

/** @experimental */
export type Verdict = 'allow' | 'approval' | 'deny';

const strictness: Record<Verdict, number> = { allow: 0, approval: 1, deny: 2 };

/**
 * What taps on `beforeToolCall` see. They can only restrict: the strictest verdict wins, whatever their order.
 * @experimental
 */
export class ToolCallReview {
  readonly call: ToolCall;
  #verdict: Verdict = 'allow';
  #reason: string | undefined;

  constructor(call: ToolCall) {
    this.call = call;
  }

  get verdict(): Verdict {
    return this.#verdict;
  }

  /** The reason of the first tap that gave the verdict that stands. */
  get reason(): string | undefined {
    return this.#reason;
  }

  deny(why: string): void {
    this.#restrict('deny', why);
  }

  requireApproval(why: string): void {
    this.#restrict('approval', why);
  }

  #restrict(verdict: Verdict, why: string): void {
    if (strictness[verdict] <= strictness[this.#verdict]) return;
    this.#verdict = verdict;
    this.#reason = why;
  }
}

/** What taps on `beforeDecision` see: they may refuse who decides. @experimental */
export class DecisionReview {
  readonly request: ApprovalRecord;
  readonly decision: { readonly approved: boolean; readonly actor: string; readonly modifiedParams?: Parameters };
  #refusal: string | undefined;

  constructor(request: ApprovalRecord, decision: DecisionReview['decision']) {
    this.request = request;
    this.decision = decision;
  }

  get refusal(): string | undefined {
    return this.#refusal;
  }

  refuse(why: string): void {
    this.#refusal ??= why;
  }
}
