import type { Json } from '../json.ts';

/** @experimental */
export type Parameters = { readonly [name: string]: Json };

/** What a human is asked (SPEC 2.4). @experimental */
export interface ApprovalRequest {
  readonly requestId: string;
  readonly executionId: string;
  readonly agentTag: string;
  readonly tool: string;
  readonly parameters: Parameters;
  readonly reason: string;
  /** ISO 8601, UTC. */
  readonly timestamp: string;
  /** ISO 8601, UTC: the moment the request expires. */
  readonly timeout: string;
}

/** @experimental */
export type ApprovalStatus = 'waiting' | 'approved' | 'rejected' | 'cancelled';

/** A time-out is never recorded as a human's no. @experimental */
export type RejectionCause = 'human' | 'timeout' | 'policy';

/** `unknown`: whoever ran the tool died or went silent before its result was stored. @experimental */
export type ToolRun = 'none' | 'claimed' | 'done' | 'unknown';

/** A request with what became of it. @experimental */
export interface ApprovalRecord extends ApprovalRequest {
  readonly status: ApprovalStatus;
  readonly cause?: RejectionCause;
  /** What became of the tool, which is another question than what was decided. */
  readonly run: ToolRun;
  /** Shared by the calls of one turn; a call that is alone in its turn has none. */
  readonly groupId?: string;
  readonly toolCallId?: string;
  readonly decidedAt?: string;
  readonly decidedBy?: string;
  readonly decisionReason?: string;
  readonly modifiedParams?: Parameters;
  /** What the agent was told once the call was over. */
  readonly outcome?: Outcome;
  /** Everything that happened to it, oldest first. */
  readonly events: readonly ApprovalEvent[];
}

/** How a call ended, and what the model sees of it. @experimental */
export interface Outcome {
  readonly status: OutcomeStatus;
  readonly result: Json;
}

/** @experimental */
export type OutcomeStatus =
  | 'completed'
  | 'rejected'
  | 'cancelled'
  | 'denied'
  | 'failed'
  | 'interrupted'
  | 'stale'
  | 'invalid';

/** @experimental */
export interface ApprovalEvent {
  readonly type:
    | 'requested'
    | 'approved'
    | 'rejected'
    | 'cancelled'
    | 'claimed'
    | 'interrupted'
    | 'finished'
    | 'closed';
  /** ISO 8601, UTC, by the store's clock. */
  readonly at: string;
  /** Who decided, or which process ran the tool. */
  readonly by?: string;
  /** Of a human's decision: from where it came, or the process that took it. */
  readonly from?: string;
  /** The cause of a rejection, the status of an outcome. */
  readonly as?: string;
}
