import type { Lease } from './lease.ts';
import type { Session } from './session.ts';
import type { Settings } from './settings.ts';

/** What statements run with. */
export interface RunPlace {
  readonly session: Session;
  readonly settings: Settings;
  readonly lease: Lease;
}

/** Stands for no epoch: what runs outside of the lock is neither fenced nor refused. */
export const UNLOCKED = 0;
