import { setTimeout as wait } from 'node:timers/promises';
import type { LockOptions } from '../core/dialect.ts';
import { SvcError } from '../core/errors.ts';
import { LONGEST_MS } from './settings.ts';

/** How far apart attempts are: twice as far each time. */
export interface Pace {
  readonly firstMs: number;
  readonly longestMs: number;
}

/** One wait for the migration lock, whatever it has to wait for one after the other: its time counts from when it is made. */
export class LockWait {
  readonly #deadline: number;
  readonly #signal: AbortSignal | undefined;
  #onWait: (() => void) | undefined;

  constructor({ timeoutMs = 60_000, onWait, signal }: LockOptions = {}) {
    this.#deadline = performance.now() + timeoutMs;
    this.#onWait = onWait;
    this.#signal = signal;
  }

  get isOver(): boolean {
    return performance.now() > this.#deadline;
  }

  /** That it has to wait, once. */
  tell(): void {
    const tell = this.#onWait;
    this.#onWait = undefined;
    tell?.();
  }

  /** Tries until an attempt gives something. Throws `lock_timeout` and `interrupted`. */
  async until<T>(attempt: () => Promise<T | undefined>, { firstMs, longestMs }: Pace): Promise<T> {
    for (let pause = firstMs; ; pause = Math.min(pause * 2, longestMs)) {
      this.#refuseInterrupted();
      const had = await attempt();
      if (had !== undefined) return had;
      this.tell();
      // Those who wait shall not meet each other every time.
      const nap = pause * (0.5 + Math.random() / 2);
      if (performance.now() + nap > this.#deadline) throw timedOut();
      await wait(nap, undefined, this.#signal ? { signal: this.#signal } : {}).catch(() => undefined);
    }
  }

  /** For those who were here before, in this process. Throws as `until` does. */
  async behind(others: Promise<void>): Promise<void> {
    this.#refuseInterrupted();
    const done = new AbortController();
    const left = Math.min(Math.max(0, this.#deadline - performance.now()), LONGEST_MS);
    const late = wait(left, 'late' as const, {
      signal: this.#signal ? AbortSignal.any([this.#signal, done.signal]) : done.signal,
    }).catch(() => 'late' as const);
    const first = await Promise.race([others, late]);
    done.abort();
    if (first !== 'late') return;
    this.#refuseInterrupted();
    throw timedOut();
  }

  #refuseInterrupted(): void {
    if (!this.#signal?.aborted) return;
    throw new SvcError('interrupted', 'The run was interrupted while it waited for the lock.', {
      state: 'Nothing was changed.',
      next: ['Run the command again.'],
    });
  }
}

function timedOut(): SvcError {
  return new SvcError('lock_timeout', 'Another process is migrating this database.', {
    why: 'It kept the lock for as long as this one waited.',
    state: 'Nothing was changed.',
    next: ['Run the command again when it is done, or wait longer: --lock-timeout 300'],
  });
}
