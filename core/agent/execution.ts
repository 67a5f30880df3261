import type { CallOutcome } from '../approval/outcome.ts';
import type { Tables } from '../approval/tables.ts';
import type { ErrorCode } from '../errors.ts';
import type { Json } from '../json.ts';
import { anyDefinition, type RecordDefinition } from '../records.ts';

/** @experimental */
export type ExecutionStatus = 'running' | 'completed' | 'failed' | 'cancelled';

/** A row of `_svc_executions`: what resumes is these steps and never the code that made them. */
export interface ExecutionRow {
  readonly executionId: string;
  readonly agentTag: string;
  readonly status: ExecutionStatus;
  /** The worker that runs it; empty when it has ended. */
  readonly owner: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly state: ExecutionState;
}

export interface ExecutionState {
  /** Counts the writes: tells a holder whose answer was lost its own write from another's. */
  write: number;
  /** Of the last takeover: tells two who took it over in one process apart. */
  readonly claim?: string;
  readonly prompt: string;
  readonly limits: { readonly steps: number; readonly durationMs?: number };
  readonly steps: Step[];
  /** Why it did not complete. */
  error?: RunError;
  /** Another process wants it cancelled, and why; whoever runs it ends it. Written by others than its owner too. */
  cancel?: string;
  /** Given with a cancellation. */
  reason?: string;
}

/** @experimental */
export interface RunError {
  readonly code: ErrorCode;
  readonly message: string;
}

/** A turn of the model. */
export interface Step {
  readonly text: string;
  readonly calls: StepCall[];
  readonly usage: Usage;
  /** What the provider wants to see of its turn again. */
  readonly keep?: Json;
}

/** A tool call of a turn, in the model's order. */
export interface StepCall {
  /** The provider's. */
  readonly id: string;
  /** Made before anybody is asked: the identity of the call, whoever runs it. */
  readonly requestId: string;
  readonly tool: string;
  readonly parameters: Json;
  /** Why the parameters that the model wrote cannot be used. */
  readonly malformed?: string;
  /** The model wrote more than any call may have: it was not kept. */
  readonly oversized?: true;
  /** Names of parameters that are shown to nobody but the model and who decides. */
  readonly sensitive?: readonly string[];
  /** A handler that nobody had to approve has begun. */
  started?: true;
  outcome?: Pick<CallOutcome, 'status' | 'result' | 'changed'>;
}

/** @experimental */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export const executions: RecordDefinition<ExecutionRow> = {
  collection: '_svc_executions',
  key: 'executionId',
  columns: {
    executionId: { type: 'string' },
    agentTag: { type: 'string' },
    status: { type: 'string' },
    owner: { type: 'string' },
    createdAt: { type: 'timestamp' },
    updatedAt: { type: 'timestamp' },
    state: { type: 'json' },
  },
  indexes: [
    { name: 'byStatus', equals: ['status'], sort: 'executionId', spread: true },
    { name: 'byAgent', equals: ['status', 'agentTag'], sort: 'executionId', spread: true },
    { name: 'byOwner', equals: ['owner'], sort: 'executionId', spread: true },
  ],
};

/** A process that runs executions. Its beat says that it lives; once it is `dead` it can never beat again. */
export interface WorkerRow {
  readonly workerId: string;
  readonly state: 'alive' | 'dead';
  /** By the store's clock. */
  readonly beatAt: Date;
  readonly beat: number;
  /** Milliseconds after a beat in which nobody takes its executions. */
  readonly leaseMs: number;
  /** For people: host and process. */
  readonly at: string;
}

export const workers: RecordDefinition<WorkerRow> = {
  collection: '_svc_workers',
  key: 'workerId',
  columns: {
    workerId: { type: 'string' },
    state: { type: 'string' },
    beatAt: { type: 'timestamp' },
    beat: { type: 'bigint' },
    leaseMs: { type: 'bigint' },
    at: { type: 'text' },
  },
  indexes: [{ name: 'byState', equals: ['state'], sort: 'beatAt', spread: true }],
};

export const executionTables: Tables = {
  id: 'executions',
  version: 1,
  definitions: [anyDefinition(executions), anyDefinition(workers)],
};
