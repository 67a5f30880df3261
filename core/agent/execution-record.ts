import type { StorageBackend, TableSet } from '../approval/backend.ts';
import type { CallResult } from '../approval/outcome.ts';
import type { ErrorCode } from '../error-codes.ts';
import type { Json } from '../json.ts';
import { anyDefinition, type RecordDefinition } from '../records.ts';

/** @experimental */
export type ExecutionStatus = 'running' | 'completed' | 'failed' | 'cancelled';

/** A row of `_svc_executions`. An execution resumes from these steps alone. */
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
  /** Counts the writes, so that an owner can identify its own write if the response was lost. */
  write: number;
  /** Identifies the last takeover: two attempts of one process have the same owner. */
  readonly claim?: string;
  readonly prompt: string;
  /** The id of the person who started it, if the program said. */
  readonly requester?: string;
  readonly limits: { readonly steps: number; readonly durationMs?: number };
  readonly steps: ExecutionStep[];
  /** Why it did not complete. */
  error?: RunError;
  /** The reason of a cancellation that another process requested. Any process may write it. */
  cancel?: string;
  /** Why it was cancelled. */
  reason?: string;
}

/** @experimental */
export interface RunError {
  readonly code: ErrorCode;
  readonly message: string;
}

/** A model turn. */
export interface ExecutionStep {
  readonly text: string;
  readonly calls: StepCall[];
  readonly usage: Usage;
  /** Returned by the provider, and sent back to it unchanged in later turns. */
  readonly providerState?: Json;
}

/** A tool call of a model turn. */
export interface StepCall {
  /** The provider's id of the call. */
  readonly id: string;
  /** Identifies the call in every process. Reserved before it is known whether the call needs approval. */
  readonly requestId: string;
  readonly tool: string;
  readonly parameters: Json;
  /** Why the model's parameters are not valid JSON. */
  readonly malformed?: string;
  /** The parameters exceeded the size limit and were not stored. */
  readonly oversized?: true;
  /** Parameters that only the model and the reviewer may see. */
  readonly sensitive?: readonly string[];
  /** The handler of a call without approval has started. */
  started?: true;
  outcome?: Pick<CallResult, 'status' | 'result' | 'changed' | 'executedWith'>;
}

/** @experimental */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export const executionRecords: RecordDefinition<ExecutionRow> = {
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
    { name: 'byStatus', equals: ['status'], sort: 'executionId', sharded: true },
    { name: 'byAgent', equals: ['status', 'agentTag'], sort: 'executionId', sharded: true },
    { name: 'byOwner', equals: ['owner'], sort: 'executionId', sharded: true },
  ],
};

/** A process that runs executions. A dead worker never becomes alive again. */
export interface WorkerRow {
  readonly workerId: string;
  readonly state: 'alive' | 'dead';
  /** Time of the last heartbeat, by the store's clock. */
  readonly beatAt: Date;
  /** Counts the heartbeats. */
  readonly beat: number;
  /** Milliseconds after a heartbeat during which no other process takes over its executions. */
  readonly leaseMs: number;
  /** Host and process id, for people. */
  readonly at: string;
}

export const workerRecords: RecordDefinition<WorkerRow> = {
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
  indexes: [{ name: 'byState', equals: ['state'], sort: 'beatAt', sharded: true }],
};

export const executionTables: TableSet = {
  id: 'executions',
  version: 1,
  definitions: [anyDefinition(executionRecords), anyDefinition(workerRecords)],
};

/** Whether an execution is running. False for an executionId that only a gate used. */
export function isRunningIn(backend: StorageBackend): (executionId: string) => Promise<boolean> {
  const rows = backend.records(executionRecords);
  return async (executionId) => (await rows.get(executionId))?.record.status === 'running';
}
