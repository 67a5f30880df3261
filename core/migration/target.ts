import type { Connection, Dialect } from '../dialect.ts';
import { createHook } from '../hook.ts';
import type { Migration } from './migration.ts';
import type { PlanApprover, PlanReview } from './plan-approver.ts';

/** A migration about to be applied or rolled back. A tap that throws stops the run before it. */
export interface MigrationStep {
  readonly database: string;
  readonly env: string;
  readonly direction: 'up' | 'down';
  readonly migration: Migration;
}

export function createMigrationHooks() {
  return {
    'migration:plan': createHook<PlanReview>('review'),
    'migration:up': createHook<MigrationStep>('step'),
    'migration:down': createHook<MigrationStep>('step'),
  } as const;
}

type MigrationHooks = ReturnType<typeof createMigrationHooks>;

/** A connected database with its product and environment, as returned by `db.getAdapter()`. */
export interface Target {
  /** The database's tag in the configuration. */
  readonly database: string;
  readonly product: string;
  readonly env: string;
  readonly dialect: Dialect;
  readonly connection: Connection;
  readonly hooks: MigrationHooks;
  /** The names of the dialects that the project knows. Absent for a target that no configuration opened. */
  readonly dialects?: readonly string[];
  /** How long what is dropped is kept, as the configuration of the database says. */
  readonly keepMs?: number;
  /** Who approves plans, in an environment with `approval`. */
  readonly approver?: PlanApprover;
}

/** What reading a schema needs of a target. */
export type DatabaseAccess = Pick<Target, 'connection' | 'dialect'>;
