import { hostname, userInfo } from 'node:os';
import type { Statement } from '../dialect.ts';
import type { RecordDefinition } from '../records.ts';
import type { SerializedCollection } from '../schema/model.ts';
import type { MigrationOperation } from '../schema/operation.ts';
import type { Migration } from './migration.ts';

/** Version 2 added the journal columns, version 3 the `found` column. */
export const HISTORY_VERSION = 3;
/** The same tables, in a database whose plans people approve: an SDK that does not know that must not change it. */
export const APPROVED_HISTORY_VERSION = 4;

export type HistoryOrigin = 'api' | 'engine' | 'file';
export type HistoryStatus = 'applying' | 'completed' | 'failed' | 'rolled_back';

/** A row of `_svc_migrations`. */
export interface HistoryRow {
  readonly tag: string;
  /** Order of application, over all origins: each up gets the next number. */
  readonly seq: number;
  readonly name: string;
  readonly origin: HistoryOrigin;
  readonly status: HistoryStatus;
  readonly applied_at: Date | null;
  readonly rolled_back_at: Date | null;
  readonly duration_ms: number | null;
  readonly checksum: string;
  readonly migration: Migration;
  /** Committed steps of the direction that runs or failed; equal to `steps` when completed. */
  readonly step: number;
  readonly steps: number;
  readonly error: string | null;
  readonly sdk_version: string;
  readonly applied_by: string;
  readonly epoch: number;
  /** What the next run resumes after a crash; null unless the migration is partly applied. */
  readonly journal: Journal | null;
  /** The step after `step` was started; only the catalog shows whether it took effect. */
  readonly started: boolean | null;
  /** Tables of `ifNotExists` operations that existed already; null without such an operation and before version 3. */
  readonly found: readonly string[] | null;
}

/** A recovery runs these compiled steps, even under a newer SDK that would compile others. */
export interface Journal {
  readonly direction: 'up' | 'down';
  readonly steps: readonly JournalStep[];
  /** What runs in place of the operations of the migration, which keeps or restores something. */
  readonly ran?: readonly MigrationOperation[];
  /** The indexes of the operations in the order in which they run; absent if it is that of the migration. */
  readonly order?: readonly number[];
  /** The request under which it runs; absent if it began without approval. */
  readonly approval?: string;
  /** The affected collections before the first operation; absent if an older SDK started the migration. */
  readonly before?: readonly SerializedCollection[];
}

export interface JournalStep {
  /** Index of the operation the statements come from, in the order in which the operations run. */
  readonly operation: number;
  /** How many operations from that one a merged statement makes; absent for one. */
  readonly merged?: number;
  readonly transactional: boolean;
  readonly statements: readonly Statement[];
}

export const historyTable: RecordDefinition<HistoryRow> = {
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
  colocateWithLock: true,
};

/** A row of `_svc_meta`: the row `meta` describes the history, the others the approvals and executions stored here. */
export interface MetaRow {
  readonly id: 'meta' | 'approvals' | 'executions' | 'seals';
  readonly version: number;
  readonly product: string;
  readonly database: string;
  readonly env: string;
}

export const metaTable: RecordDefinition<MetaRow> = {
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
  colocateWithLock: true,
};

/** A person's decision about a migration: `resolve` or `baseline`. */
interface AuditRow {
  readonly id: string;
  readonly at: Date;
  readonly tag: string;
  readonly action: string;
  readonly actor: string;
  readonly before: object | null;
}

export const auditTable: RecordDefinition<AuditRow> = {
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
  colocateWithLock: true,
};

// per copy: a cache.
let cached: string | undefined;

/** The account and machine of this process, as `account@host`. */
export function osActor(): string {
  cached ??= readActor();
  return cached;
}

function readActor(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    // In a container the uid may have no account.
    return `uid ${process.getuid?.() ?? 'unknown'}@${hostname()}`;
  }
}
