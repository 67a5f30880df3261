import { setTimeout as sleep } from 'node:timers/promises';
import type { Document } from 'mongodb';
import { isLost } from '../connection/errors.ts';
import { MAJORITY, type MongoServer } from '../connection/server.ts';
import type { Settings } from '../connection/settings.ts';

/** The server a step runs on, and the lock it runs under. */
export interface RunContext {
  readonly server: MongoServer;
  readonly settings: Settings;
  readonly epoch: number;
  /** Called for each command that may have changed something. */
  readonly onChange?: () => void;
  /** Throws `lock_lost`. Called before every command that changes something. */
  assertLockHeld(): Promise<void>;
}

const MAX_ATTEMPTS = 6;
const MAX_PAUSE_MS = 2000;

/**
 * Runs a change that may run twice, and retries it if its response is lost: the driver does not resend such commands when
 * the primary steps down or the connection breaks.
 */
export async function runRepeatable<T>(context: RunContext, work: () => Promise<T>): Promise<T> {
  return retryWhenLost(work, async () => {
    await context.assertLockHeld();
    context.onChange?.();
  });
}

/** `runRepeatable` for one command that changes everything or, if the server rejects it, nothing. */
export async function runAtomic<T>(context: RunContext, work: () => Promise<T>): Promise<T> {
  const tracked = async () => {
    try {
      const result = await work();
      context.onChange?.();
      return result;
    } catch (error) {
      if (isLost(error)) context.onChange?.();
      throw error;
    }
  };
  return retryWhenLost(tracked, () => context.assertLockHeld());
}

/** Retries work whose response was lost, a few times. Errors of `before` are not retried. */
export async function retryWhenLost<T>(work: () => Promise<T>, before?: () => Promise<void>): Promise<T> {
  for (let attempt = 1, pause = 50; ; attempt += 1, pause = Math.min(pause * 2, MAX_PAUSE_MS)) {
    await before?.();
    try {
      return await work();
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || !isLost(error)) throw error;
      await sleep(pause);
    }
  }
}

export function runAtomicCommand(context: RunContext, document: Document): Promise<Document> {
  return runAtomic(context, () => context.server.db.command(document, MAJORITY));
}
