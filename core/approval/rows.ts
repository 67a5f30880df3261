import type { Json } from '../json.ts';
import type { RecordDefinition } from '../records.ts';
import type { ApprovalEvent, ApprovalStatus, Outcome, Parameters, RejectionCause, ToolRun } from './request.ts';

/** Of the tables in this file; a store with a greater one belongs to a newer SDK. */
export const APPROVALS_VERSION = 1;

/** Requests that expire at the same time are spread over that many ranges of the index. */
export const EXPIRY_SHARDS = 16;

/** A row of `_svc_approvals`. Columns are what an index needs; the rest is one value, written as one. */
export interface ApprovalRow {
  readonly requestId: string;
  readonly status: ApprovalStatus;
  readonly agentTag: string;
  readonly executionId: string;
  readonly shard: number;
  readonly expiresAt: Date;
  readonly body: ApprovalBody;
}

export interface ApprovalBody {
  readonly tool: string;
  /** Of the tool's definition, as it was when the call was made. */
  readonly toolDigest: string;
  readonly parameters: Parameters;
  /** Of execution, tool and parameters: what an approval is bound to. */
  readonly digest: string;
  readonly reason: string;
  readonly timestamp: string;
  readonly timeoutMs: number;
  /** Names of parameters that deliveries do not show. */
  readonly sensitive?: readonly string[];
  readonly groupId?: string;
  readonly toolCallId?: string;
  readonly decision?: StoredDecision;
  readonly run: ToolRun;
  readonly claim?: Claim;
  readonly outcome?: Outcome;
  /** What came after it was requested. */
  readonly events: readonly ApprovalEvent[];
}

export interface StoredDecision {
  readonly at: string;
  readonly by: string;
  readonly cause?: RejectionCause;
  readonly reason?: string;
  readonly modifiedParams?: Parameters;
  /** Of the parameters that are to run, where they are not those of the request. */
  readonly digest?: string;
}

/** Who runs the tool. A claim whose beat stands still for `leaseMs` of an observer's own clock is a dead one's. */
export interface Claim {
  readonly token: string;
  readonly by: string;
  readonly beat: number;
  readonly leaseMs: number;
}

export const approvals: RecordDefinition<ApprovalRow> = {
  collection: '_svc_approvals',
  key: 'requestId',
  columns: {
    requestId: { type: 'string' },
    status: { type: 'string' },
    agentTag: { type: 'string' },
    executionId: { type: 'string' },
    shard: { type: 'integer' },
    expiresAt: { type: 'timestamp' },
    body: { type: 'json' },
  },
  indexes: [
    { name: 'byStatus', equals: ['status'], sort: 'requestId', spread: true },
    { name: 'byAgent', equals: ['status', 'agentTag'], sort: 'requestId', spread: true },
    { name: 'byExecution', equals: ['executionId'], sort: 'requestId' },
    { name: 'byExpiry', equals: ['status', 'shard'], sort: 'expiresAt' },
  ],
  // Decided, or run: nobody waits for a request to be made, for its claim or for a beat of it.
  tells: ({ status, body }) => status !== 'waiting' && (body as ApprovalBody).run !== 'claimed',
};

/** Which request a caller's own name of a tool call stands for: written first, so that no request is without it. */
export interface CallRow {
  /** Digest of executionId and toolCallId. */
  readonly call: string;
  readonly requestId: string;
}

export const calls: RecordDefinition<CallRow> = {
  collection: '_svc_approval_calls',
  key: 'call',
  columns: { call: { type: 'string' }, requestId: { type: 'string' } },
  indexes: [],
};

/** A tool as reviewers see it, for processes that decide and do not define the agent. */
export interface ToolRow {
  readonly digest: string;
  readonly tag: string;
  readonly definition: { readonly description: string; readonly schema: Json };
}

export const tools: RecordDefinition<ToolRow> = {
  collection: '_svc_approval_tools',
  key: 'digest',
  columns: { digest: { type: 'string' }, tag: { type: 'text' }, definition: { type: 'json' } },
  indexes: [],
};

/** One attempt to tell somebody; never changed. */
export interface DeliveryRow {
  readonly id: string;
  readonly requestId: string;
  readonly channel: string;
  readonly at: Date;
  readonly delivered: boolean;
  readonly error: string | null;
}

export const deliveries: RecordDefinition<DeliveryRow> = {
  collection: '_svc_approval_deliveries',
  key: 'id',
  columns: {
    id: { type: 'string' },
    requestId: { type: 'string' },
    channel: { type: 'text' },
    at: { type: 'timestamp' },
    delivered: { type: 'boolean' },
    error: { type: 'text', nullable: true },
  },
  indexes: [{ name: 'byRequest', equals: ['requestId'], sort: 'at' }],
};
