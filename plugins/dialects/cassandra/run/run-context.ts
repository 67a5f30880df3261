import type { Lease } from '../connection/lease.ts';
import type { Session } from '../connection/session.ts';
import type { Settings } from '../connection/settings.ts';

export interface RunContext {
  readonly session: Session;
  readonly settings: Settings;
  readonly lease: Lease;
}

/** The epoch of statements that run without the lock, and therefore without epoch checks. */
export const UNLOCKED = 0;
