import type { Statement } from '../dialect.ts';
import type { RecordDefinition } from '../records.ts';
import type { Migration } from './migration.ts';

export const HISTORY_VERSION = 1;

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
  },
  indexes: [{ name: 'bySeq', equals: [], sort: 'seq' }],
};

/** The one row of `_svc_meta`. The epoch is moved by the lock; the rest is written when a database is first used. */
export interface MetaRow {
  readonly id: 'meta';
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
};

/** A migration that cannot commit as one: its compiled steps are what a resume runs, even under a newer SDK. */
export interface JournalRow {
  readonly tag: string;
  readonly direction: 'up' | 'down';
  readonly steps: readonly JournalStep[];
  /** Steps known to be done. */
  readonly done: number;
  /** The step at index `done` was started: whether it took effect is for the catalog to say. */
  readonly started: boolean;
}

export interface JournalStep {
  /** Index of the operation the statements come from. */
  readonly operation: number;
  readonly transactional: boolean;
  readonly statements: readonly Statement[];
}

export const journal: RecordDefinition<JournalRow> = {
  collection: '_svc_journal',
  key: 'tag',
  columns: {
    tag: { type: 'string' },
    direction: { type: 'string' },
    steps: { type: 'json' },
    done: { type: 'integer' },
    started: { type: 'boolean' },
  },
  indexes: [],
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
};
