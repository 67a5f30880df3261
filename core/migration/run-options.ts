import type { PlannedMigration } from './plan.ts';
import type { SessionOptions } from './session.ts';

export type RunEvent =
  | { readonly type: 'waiting' }
  | {
      readonly type: 'planned';
      readonly direction: 'up' | 'down';
      readonly migrations: readonly PlannedMigration[];
      readonly from?: string;
      readonly to?: string;
    }
  | { readonly type: 'started'; readonly tag: string }
  | {
      readonly type: 'finished';
      readonly tag: string;
      readonly status: 'completed' | 'rolled_back';
      readonly durationMs: number;
      readonly statements: readonly string[];
    }
  | { readonly type: 'notice'; readonly message: string };

export interface RunOptions extends Omit<SessionOptions, 'onWait'> {
  /** Up: the last migration to apply. Down: the one to go back to, which stays. */
  readonly to?: string;
  readonly allowDestructive?: boolean;
  readonly onEvent?: (event: RunEvent) => void;
  /** Asked with the plan before the lock is taken; refuses by throwing. */
  readonly confirm?: (plan: readonly PlannedMigration[]) => Promise<void>;
}

export interface RollbackOptions extends RunOptions {
  /** How many of the last ones; default 1. */
  readonly count?: number;
}
