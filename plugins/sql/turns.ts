import { setTimeout as wait } from 'node:timers/promises';
import { SvcError } from '../../core/errors.ts';

/** Callers of one session, one after the other. */
export class Turns {
  #last: Promise<void> = Promise.resolve();
  #busy = 0;

  /** Gives what ends the turn. */
  async take(deadline: number, told: () => void, signal?: AbortSignal): Promise<() => void> {
    const before = this.#last;
    let end = () => {};
    const mine = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#last = before.then(() => mine);
    if (this.#busy > 0) told();
    this.#busy += 1;
    const done = () => {
      this.#busy -= 1;
      end();
    };
    const late = new AbortController();
    const gone = wait(Math.max(0, deadline - performance.now()), 'late' as const, {
      signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal,
    }).catch(() => 'late' as const);
    const first = await Promise.race([before, gone]);
    late.abort();
    if (first !== 'late') return done;
    done();
    throw lockTimedOut();
  }
}

export function lockTimedOut(): SvcError {
  return new SvcError('lock_timeout', 'Another process is migrating this database.', {
    why: 'It kept the lock for as long as this one waited.',
    state: 'Nothing was changed.',
    next: ['Run the command again when it is done, or wait longer: --lock-timeout 300'],
  });
}

/** Calls it the first time only. */
export function once(tell: (() => void) | undefined): () => void {
  let told = false;
  return () => {
    if (!told) tell?.();
    told = true;
  };
}
