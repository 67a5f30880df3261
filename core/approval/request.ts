import type { Json } from '../json.ts';

export type Parameters = { readonly [name: string]: Json };

/** What a human is asked (SPEC 2.4). */
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

export type ApprovalStatus = 'waiting' | 'approved' | 'rejected' | 'cancelled';

/** A request with what became of it. */
export interface ApprovalRecord extends ApprovalRequest {
  readonly status: ApprovalStatus;
  /** Why it is rejected: a time-out is never recorded as a human's no. */
  readonly cause?: 'human' | 'timeout' | 'policy';
  /** What became of the tool, which is another question than what was decided. */
  readonly run: 'none' | 'claimed' | 'done' | 'unknown';
  readonly decidedAt?: string;
  readonly decidedBy?: string;
  readonly decisionReason?: string;
  readonly modifiedParams?: Parameters;
}
