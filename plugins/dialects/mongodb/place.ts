import { setTimeout as wait } from 'node:timers/promises';
import type { Document } from 'mongodb';
import { isLost } from './errors.ts';
import type { Server } from './open.ts';
import type { Settings } from './settings.ts';

/** Where a statement runs, and who may run it. */
export interface Place {
  readonly server: Server;
  readonly settings: Settings;
  readonly epoch: number;
  /** Told before each command that may change something. */
  readonly onChange?: () => void;
  /** Throws `lock_lost`: asked before every command that changes something. */
  hold(): Promise<void>;
}

/** How often a command is sent again whose answer was lost, and how long in between at most. */
const ATTEMPTS = 6;
const LONGEST_PAUSE_MS = 2000;

/**
 * A command that changes something and may run twice: the driver sends none of these again when the primary steps down
 * or the connection breaks.
 */
export async function again<T>(place: Place, work: () => Promise<T>): Promise<T> {
  return unlessLost(work, async () => {
    await place.hold();
    place.onChange?.();
  });
}

/** Asks once more where the answer was lost, a few times in a row. What `before` throws is not tried again. */
export async function unlessLost<T>(work: () => Promise<T>, before?: () => Promise<void>): Promise<T> {
  for (let attempt = 1, pause = 50; ; attempt += 1, pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    await before?.();
    try {
      return await work();
    } catch (error) {
      if (attempt === ATTEMPTS || !isLost(error)) throw error;
      await wait(pause);
    }
  }
}

export const MAJORITY = { writeConcern: { w: 'majority' } } as object;

export function command(place: Place, document: Document): Promise<Document> {
  return again(place, () => place.server.db.command(document, MAJORITY));
}
