import type { Statement } from '../dialect.ts';
import type { RecordDefinition } from '../records.ts';
import type { PlainCollection } from '../schema/plain.ts';
import type { Migration } from './migration.ts';

/** 2: the journal stands in the row. 3: so do the tables that were there already. */
export const HISTORY_VERSION = 3;

export type Origin = 'api' | 'engine' | 'file';
export type Status = 'applying' | 'completed' | 'failed' | 'rolled_back';

/** A row of `_svc_migrations`. */
export interface HistoryRow {
  readonly tag: string;
  /** Order of application: grows with each up, over all origins. */
  readonly seq: number;
  readonly name: string;
  readonly origin: Origin;
  readonly status: Status;
  readonly applied_at: Date | null;
  readonly rolled_back_at: Date | null;
  readonly duration_ms: number | null;
  readonly checksum: string;
  readonly migration: Migration;
  /** Steps done of the direction that runs or failed; equal to `steps` when completed. */
  readonly step: number;
  readonly steps: number;
  readonly error: string | null;
  readonly sdk_version: string;
  readonly applied_by: string;
  readonly epoch: number;
  /** What a migration that cannot commit as one goes on with when its process died; absent once it is through. */
  readonly journal: Journal | null;
  /** What comes after `step` was started: whether it took effect is for the catalog to say. */
  readonly started: boolean | null;
  /** Of the tables it was to create if they were not there, those that were; absent where it had none, and before version 3. */
  readonly found: readonly string[] | null;
}

/** The compiled steps are what a resume runs, even under a newer SDK. */
export interface Journal {
  readonly direction: 'up' | 'down';
  readonly steps: readonly JournalStep[];
  /** What the operations touch, as it was before the first of them; absent where an older SDK began. */
  readonly before?: readonly PlainCollection[];
}

export interface JournalStep {
  /** Index of the operation the statements come from. */
  readonly operation: number;
  readonly transactional: boolean;
  readonly statements: readonly Statement[];
}

export const history: RecordDefinition<HistoryRow> = {
  collection: '_svc_migrations',
  key: 'tag',
  columns: {
    tag: { type: 'string' },
    seq: { type: 'bigint' },
    name: { type: 'text' },
    origin: { type: 'string' },
    status: { type: 'string' },
    applied_at: { type: 'timestamp', nullable: true },
    rolled_back_at: { type: 'timestamp', nullable: true },
    duration_ms: { type: 'double', nullable: true },
    checksum: { type: 'string' },
    migration: { type: 'json' },
    step: { type: 'integer' },
    steps: { type: 'integer' },
    error: { type: 'text', nullable: true },
    sdk_version: { type: 'string' },
    applied_by: { type: 'text' },
    epoch: { type: 'bigint' },
    journal: { type: 'json', nullable: true },
    started: { type: 'boolean', nullable: true },
    found: { type: 'json', nullable: true },
  },
  indexes: [{ name: 'bySeq', equals: [], sort: 'seq' }],
  together: true,
};

/** A row of `_svc_meta`: `meta` is that of the history; approvals and executions have one each where they live. */
export interface MetaRow {
  readonly id: 'meta' | 'approvals' | 'executions';
  readonly version: number;
  readonly product: string;
  readonly database: string;
  readonly env: string;
}

export const meta: RecordDefinition<MetaRow> = {
  collection: '_svc_meta',
  key: 'id',
  columns: {
    id: { type: 'string' },
    version: { type: 'integer' },
    product: { type: 'text' },
    database: { type: 'text' },
    env: { type: 'text' },
  },
  indexes: [],
  together: true,
};

/** What a person decided about a migration: `resolve`, `baseline`, `adopt`. */
export interface AuditRow {
  readonly id: string;
  readonly at: Date;
  readonly tag: string;
  readonly action: string;
  readonly actor: string;
  readonly before: object | null;
}

export const audit: RecordDefinition<AuditRow> = {
  collection: '_svc_audit',
  key: 'id',
  columns: {
    id: { type: 'string' },
    at: { type: 'timestamp' },
    tag: { type: 'string' },
    action: { type: 'string' },
    actor: { type: 'text' },
    before: { type: 'json', nullable: true },
  },
  indexes: [],
  together: true,
};
