import { AsyncSeriesHook } from 'tapable';
import type { Connection, Dialect } from '../dialect.ts';
import type { Migration } from './migration.ts';

/** A migration about to be applied or rolled back. A tap that throws stops the run before it. */
export interface MigrationStep {
  readonly database: string;
  readonly env: string;
  readonly direction: 'up' | 'down';
  readonly migration: Migration;
}

export function createMigrationHooks() {
  return {
    'migration:up': new AsyncSeriesHook<[MigrationStep]>(['step']),
    'migration:down': new AsyncSeriesHook<[MigrationStep]>(['step']),
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
}
