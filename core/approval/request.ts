import { v7 } from 'uuid';
import type { Json } from '../json.ts';
import type { ToolParameters } from '../tool/parameters.ts';
import type { Principal } from './principal.ts';
import type { ApprovalRule, RoleCount } from './rule.ts';

/** A tool call that waits for a decision. @experimental */
export interface ApprovalRequest {
  readonly requestId: string;
  readonly executionId: string;
  readonly agentTag: string;
  readonly tool: string;
  readonly parameters: ToolParameters;
  readonly reason: string;
  /** ISO 8601, UTC. */
  readonly timestamp: string;
  /** ISO 8601, UTC: when the request expires. */
  readonly timeout: string;
  /** The caller's name for the call; absent if `gate.run` was given none, and for calls of agents that svc runs. */
  readonly toolCallId?: string;
}

export const APPROVAL_STATUSES = ['waiting', 'approved', 'rejected', 'cancelled'] as const;

/** @experimental */
export type ApprovalStatus = (typeof APPROVAL_STATUSES)[number];

/** Who rejected a request: a person, its deadline or a policy. @experimental */
export type RejectionCause = 'human' | 'timeout' | 'policy';

/** `unknown`: the process that ran the tool stopped before it stored a result. @experimental */
export type ToolRun = 'none' | 'claimed' | 'done' | 'unknown';

/** A request with its decision, its result and its history. @experimental */
export interface ApprovalRecord extends ApprovalRequest {
  readonly status: ApprovalStatus;
  readonly cause?: RejectionCause;
  /** Whether the tool ran. Independent of `status`, which is the decision. */
  readonly run: ToolRun;
  /** Shared by the calls of one turn; absent if the turn has only this call. */
  readonly groupId?: string;
  /** The id of the person who made the request, if the program said. */
  readonly requester?: string;
  /** The model that made the call, such as `openai/gpt-5`, if the program said. */
  readonly model?: string;
  /** Digest of the definition of the tool when the call was made: of its schema, description and settings. */
  readonly toolDigest: string;
  /** Who must approve; absent if no rule applies, and one decision is enough. */
  readonly rule?: ApprovalRule;
  /** With a rule: the last vote of each person, oldest first. */
  readonly votes?: readonly ApprovalVote[];
  /** With a rule, while the request waits: the approvals that it lacks. */
  readonly missing?: readonly RoleCount[];
  readonly decidedAt?: string;
  readonly decidedBy?: string;
  /** One person decided alone, in place of the votes that the rule requires. */
  readonly override?: true;
  /** The id of the standing rule that approved it, in place of a decision about this call. */
  readonly standing?: string;
  /** The verified people whose decision it is; absent if nobody was verified. */
  readonly deciders?: readonly Principal[];
  /** ISO 8601, UTC: if approved and not taken up by then, the call no longer runs. */
  readonly validUntil?: string;
  /**
   * ISO 8601, UTC: when a process was last seen waiting for the decision, if none does any more. The tool then runs only
   * if another process takes the call up.
   */
  readonly unattendedSince?: string;
  readonly decisionReason?: string;
  readonly modifiedParams?: ToolParameters;
  /** The result that the agent received. */
  readonly outcome?: Outcome;
  /** Oldest first. */
  readonly events: readonly ApprovalEvent[];
}

/** The decision of one person where a rule requires those of several. @experimental */
export interface ApprovalVote {
  readonly principal: Principal;
  /** As `decidedBy`. */
  readonly by: string;
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly approved: boolean;
  /** The beginning of the digest of the call that the vote is for. */
  readonly digest: string;
  readonly modifiedParams?: ToolParameters;
  readonly reason?: string;
  /** The vote does not count: it is for other parameters than the last approval, or than the decision. */
  readonly void?: true;
}

/** How a call ended, and the result that the model sees. @experimental */
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
  | 'lapsed'
  | 'invalid';

/** @experimental */
export interface ApprovalEvent {
  readonly type:
    | 'requested'
    | 'reminded'
    | 'escalated'
    | 'revealed'
    | 'voted'
    | 'approved'
    | 'rejected'
    | 'cancelled'
    | 'claimed'
    | 'interrupted'
    | 'finished'
    | 'closed';
  /** ISO 8601, UTC, by the store's clock. */
  readonly at: string;
  /** Who decided or read sensitive parameters, or which process ran the tool or notified the channels. */
  readonly by?: string;
  /** With what a person did: its origin, or the process that accepted it. */
  readonly from?: string;
  /**
   * The cause of a rejection, `override`, `standing`, the status of an outcome, with `voted`: `approve` or `reject`, or with
   * `escalated`: the roles.
   */
  readonly as?: string;
  /** With what a person did: who that is and how it was verified; absent if it was not. */
  readonly principal?: Principal;
  /** With a decision that had an idempotency key: digests of the key, and of who decided what with it. */
  readonly idempotency?: { readonly key: string; readonly decision: string };
  /** SHA-256 of the event before it, or of the request, as canonical JSON (RFC 8785), in base64url. */
  readonly prev?: string;
  /** SHA-256 of what this event found, if that is not what the one before it left: it was changed by other means than svc. */
  readonly was?: string;
  /** SHA-256 of what events change of the request, as it was after this one. */
  readonly state?: string;
}

/** Ids sort by time and cannot be derived from one another. */
export const newRequestId = (): string => `apr_${v7()}`;
export const newExecutionId = (): string => `exe_${v7()}`;

const REQUEST_ID = /^apr_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Some stores reject any other text as a key. */
export const isRequestId = (text: string): boolean => REQUEST_ID.test(text);

/** Ids have the time of the process that made them, and its clock may differ from the store's by this much. */
const ID_CLOCK_MARGIN_MS = 86_400_000;

/** Bounds of the ids, for page queries, of everything created in this range by the store's clock, and of more around it. */
export function idRange(
  kind: 'apr' | 'exe',
  since?: Date,
  before?: Date,
): { readonly from?: string; readonly to?: string } {
  return {
    ...(since && { from: minIdAt(kind, since.getTime() - ID_CLOCK_MARGIN_MS) }),
    ...(before && { to: minIdAt(kind, before.getTime() + ID_CLOCK_MARGIN_MS) }),
  };
}

/** The smallest possible id of a moment, in milliseconds since 1970. */
export function minIdAt(kind: 'apr' | 'exe', moment: number): string {
  const time = Math.max(0, moment).toString(16).padStart(12, '0');
  return `${kind}_${time.slice(0, 8)}-${time.slice(8)}`;
}

/** Whether a request was created, at `timestamp` (ISO 8601), within `marginMs` of the time that its id has. */
export function createdNear(requestId: string, timestamp: string, marginMs: number): boolean {
  const [, high = '', low = ''] = /^apr_([0-9a-f]{8})-([0-9a-f]{4})-/.exec(requestId) ?? [];
  return Math.abs(Number.parseInt(`${high}${low}`, 16) - Date.parse(timestamp)) <= marginMs;
}

/** Whether something created at `timestamp` (ISO 8601) is in the range. */
export function isCreatedIn(timestamp: string, since?: Date, before?: Date): boolean {
  const createdAt = Date.parse(timestamp);
  return (!since || createdAt >= since.getTime()) && (!before || createdAt < before.getTime());
}
