import type { Json } from '../json.ts';
import type { PageQuery, RecordDefinition } from '../records.ts';
import type { ToolIdentity } from '../tool/call-digest.ts';
import type { ToolParameters } from '../tool/parameters.ts';
import type { Principal } from './principal.ts';
import type { ApprovalEvent, ApprovalStatus, Outcome, RejectionCause, ToolRun } from './request.ts';
import type { StoredRules } from './rule.ts';

/** Version of the tables in this file. A store with a higher version belongs to a newer SDK. */
export const APPROVALS_VERSION = 6;

/** The number of shards of the index by expiry. */
export const EXPIRY_SHARDS = 16;

/** A row of `_svc_approvals`. Indexed values are columns; everything else is in `body`. */
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
  /** Digest of the tool's definition when the call was made. */
  readonly toolDigest: string;
  readonly parameters: ToolParameters;
  /** Digest of the `BoundCall`: an approval is valid for exactly that. */
  readonly digest: string;
  readonly reason: string;
  readonly timestamp: string;
  readonly timeoutMs: number;
  /** Milliseconds after an approval in which the call may be claimed; absent in rows of earlier versions. */
  readonly validForMs?: number;
  /** Names of the parameters that deliveries mask. */
  readonly sensitive?: readonly string[];
  /** As in `BoundCall`. Not for readers to whom parameters are masked. */
  readonly salt?: string;
  readonly groupId?: string;
  readonly toolCallId?: string;
  /** The id of the person who made the request, if the program said. */
  readonly requester?: string;
  /** The model that made the call, if the program said. */
  readonly model?: string;
  /** The beginning of what the model wrote before the call, if the program said, with sensitive values masked. */
  readonly modelText?: string;
  /** The rules of the configuration for the call, as they were when it was made; absent if there were none. */
  readonly rules?: StoredRules;
  /** The last vote of each person, the newest last; with a rule only. */
  readonly votes?: readonly StoredVote[];
  readonly decision?: StoredDecision;
  /** Ids of the processes that have waited for the decision, the last one last; absent in rows of earlier versions. */
  readonly waiters?: readonly string[];
  readonly run: ToolRun;
  readonly claim?: Claim;
  readonly outcome?: Outcome;
  /** Events after `requested`. */
  readonly events: readonly ApprovalEvent[];
  /** SHA-256 of the last event, or of the request without one; absent in rows of earlier versions. */
  readonly head?: string;
  /** What was found in place of a body. */
  readonly damaged?: Json;
}

/** A decision of one person where a rule requires those of several. */
export interface StoredVote {
  readonly at: string;
  readonly by: string;
  readonly principal: Principal;
  readonly from: string;
  readonly approved: boolean;
  /** Digest of the call that the vote is for: with its changes, if it has some. */
  readonly digest: string;
  readonly modifiedParams?: ToolParameters;
  readonly reason?: string;
}

export interface StoredDecision {
  readonly at: string;
  readonly by: string;
  readonly cause?: RejectionCause;
  readonly reason?: string;
  readonly modifiedParams?: ToolParameters;
  /** Digest of the merged parameters if the decision modified them. */
  readonly digest?: string;
  /** One person decided alone, in place of the votes that the rule requires. */
  readonly override?: true;
  /** The id of the standing rule that approved it. */
  readonly standing?: string;
  /** The verified people whose decision this is; absent if nobody was verified. */
  readonly deciders?: readonly Principal[];
}

/** The process that runs the tool. A claim whose `beat` does not change for `leaseMs` of an observer's clock has expired. */
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
    { name: 'byStatus', equals: ['status'], sort: 'requestId', sharded: true },
    { name: 'byAgent', equals: ['status', 'agentTag'], sort: 'requestId', sharded: true },
    { name: 'byExecution', equals: ['executionId'], sort: 'requestId' },
    { name: 'byExpiry', equals: ['status', 'shard'], sort: 'expiresAt' },
  ],
  // Only decisions and results: nobody waits for a new request, a claim or a heartbeat.
  notifyOn: ({ status, body }) => status !== 'waiting' && (body as ApprovalBody).run !== 'claimed',
};

/** A query of the index by expiry, for all that waits. */
export const waitingByExpiry = {
  equals: { status: 'waiting' },
  anyOf: Array.from({ length: EXPIRY_SHARDS }, (_, shard) => ({ shard })),
} satisfies Partial<PageQuery<ApprovalRow>>;

/**
 * Maps a caller's `toolCallId` to its request, and the tag of a tool to its first one: a tool without such a row has
 * never been gated. Written before the request, so that every request can be found.
 */
export interface CallRow {
  /** Digest of executionId and toolCallId, or of the tag alone. */
  readonly call: string;
  readonly requestId: string;
}

export const calls: RecordDefinition<CallRow> = {
  collection: '_svc_approval_calls',
  key: 'call',
  columns: { call: { type: 'string' }, requestId: { type: 'string' } },
  indexes: [],
};

/** A tool's definition, for processes that decide without defining the agent. */
export interface ToolRow {
  readonly digest: string;
  readonly tag: string;
  /** With the tag, everything that `digest` covers. */
  readonly definition: Omit<ToolIdentity, 'tag'>;
}

export const tools: RecordDefinition<ToolRow> = {
  collection: '_svc_approval_tools',
  key: 'digest',
  columns: { digest: { type: 'string' }, tag: { type: 'text' }, definition: { type: 'json' } },
  indexes: [],
};

/** One delivery attempt; never updated. */
export interface DeliveryRow {
  readonly id: string;
  readonly requestId: string;
  readonly channel: string;
  readonly at: Date;
  readonly delivered: boolean;
  readonly error: string | null;
  /** What the channel returned for itself, in an object as every JSON column. Never listed: it may be a credential. */
  readonly receipt: { readonly value: Json } | null;
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
    receipt: { type: 'json', nullable: true },
  },
  indexes: [{ name: 'byRequest', equals: ['requestId'], sort: 'at' }],
};

/** Calls that are approved because one like them was. */
export interface StandingRow {
  readonly standingId: string;
  readonly state: 'active' | 'ended' | 'revoked';
  /** Digest of the agent, the tool with its definition, and the rule. */
  readonly call: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly body: {
    readonly requestId: string;
    readonly agentTag: string;
    readonly tool: string;
    /** Those of the request as it was approved. */
    readonly parameters: ToolParameters;
    readonly atMost: { readonly [parameter: string]: number };
    /** Who made it. */
    readonly principal: Principal;
    readonly uses: number;
    readonly used: number;
    readonly revokedAt?: string;
  };
}

export const standingRules: RecordDefinition<StandingRow> = {
  collection: '_svc_approval_standing',
  key: 'standingId',
  columns: {
    standingId: { type: 'string' },
    state: { type: 'string' },
    call: { type: 'string' },
    createdAt: { type: 'timestamp' },
    expiresAt: { type: 'timestamp' },
    body: { type: 'json' },
  },
  indexes: [
    { name: 'byCall', equals: ['state', 'call'], sort: 'standingId' },
    { name: 'byState', equals: ['state'], sort: 'standingId', sharded: true },
  ],
};

/** A person decides in the place of another. */
export interface DelegationRow {
  readonly delegationId: string;
  readonly state: 'active' | 'revoked';
  /** A digest of the key of the person who decides. */
  readonly person: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly body: {
    readonly from: string;
    readonly groups: readonly string[];
    readonly to: string;
    /** The token with which it was made. */
    readonly tokenId?: string;
    readonly revokedAt?: string;
  };
}

export const delegations: RecordDefinition<DelegationRow> = {
  collection: '_svc_approval_delegations',
  key: 'delegationId',
  columns: {
    delegationId: { type: 'string' },
    state: { type: 'string' },
    person: { type: 'string' },
    createdAt: { type: 'timestamp' },
    expiresAt: { type: 'timestamp' },
    body: { type: 'json' },
  },
  indexes: [
    { name: 'byPerson', equals: ['state', 'person'], sort: 'delegationId' },
    { name: 'byState', equals: ['state'], sort: 'delegationId', sharded: true },
  ],
};

/** When the channels are next notified of a request that still waits; removed with its last notice. */
export interface NoticeRow {
  readonly requestId: string;
  readonly agentTag: string;
  readonly state: 'due';
  /** By the store's clock. A process that notifies the channels moves it ahead first, so that no other does. */
  readonly dueAt: Date;
}

export const notices: RecordDefinition<NoticeRow> = {
  collection: '_svc_approval_notices',
  key: 'requestId',
  columns: {
    requestId: { type: 'string' },
    agentTag: { type: 'string' },
    state: { type: 'string' },
    dueAt: { type: 'timestamp' },
  },
  indexes: [{ name: 'byState', equals: ['state'], sort: 'dueAt', sharded: true }],
};

/** A process that waits for decisions. Requests name it. */
export interface WaiterRow {
  readonly waiterId: string;
  readonly state: 'waiting' | 'gone';
  /** When it last said so, by the store's clock. */
  readonly seenAt: Date;
  /** Milliseconds after `seenAt` in which it counts as waiting. */
  readonly leaseMs: number;
  /** Host and process id, for people. */
  readonly at: string;
}

export const waiters: RecordDefinition<WaiterRow> = {
  collection: '_svc_approval_waiters',
  key: 'waiterId',
  columns: {
    waiterId: { type: 'string' },
    state: { type: 'string' },
    seenAt: { type: 'timestamp' },
    leaseMs: { type: 'bigint' },
    at: { type: 'text' },
  },
  indexes: [{ name: 'byState', equals: ['state'], sort: 'seenAt', sharded: true }],
};

/** The token of a person. A hash of it is stored, never the token. */
export interface PersonTokenRow {
  readonly tokenId: string;
  readonly state: 'active' | 'revoked' | 'approvers' | 'revocation';
  /** SHA-256 of the token, base64url. */
  readonly hash: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly body: { readonly principal: string; readonly groups: readonly string[]; readonly revokedAt?: string };
}

export const personTokens: RecordDefinition<PersonTokenRow> = {
  collection: '_svc_approval_tokens',
  key: 'tokenId',
  columns: {
    tokenId: { type: 'string' },
    state: { type: 'string' },
    hash: { type: 'string' },
    createdAt: { type: 'timestamp' },
    expiresAt: { type: 'timestamp' },
    body: { type: 'json' },
  },
  indexes: [{ name: 'byState', equals: ['state'], sort: 'tokenId', sharded: true }],
};
