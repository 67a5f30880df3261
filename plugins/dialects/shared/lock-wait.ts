import { setTimeout as wait } from 'node:timers/promises';
import type { LockOptions } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import { MAX_TIMER_MS } from './settings.ts';

/** The pause between attempts. It doubles each time. */
export interface Backoff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** One wait for the migration lock with one deadline, counted from its construction, for all steps of the wait. */
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

  /** Calls `onWait` the first time. */
  notifyWaiting(): void {
    const onWait = this.#onWait;
    this.#onWait = undefined;
    onWait?.();
  }

  /** Repeats `attempt` until it returns a value. Throws `lock_timeout` and `interrupted`. */
  async poll<T>(attempt: () => Promise<T | undefined>, { firstMs, maxMs }: Backoff): Promise<T> {
    for (let pause = firstMs; ; pause = Math.min(pause * 2, maxMs)) {
      this.#assertNotInterrupted();
      const result = await attempt();
      if (result !== undefined) return result;
      this.notifyWaiting();
      // Jitter, so that waiting processes do not retry at the same time.
      const delayMs = pause * (0.5 + Math.random() / 2);
      if (performance.now() + delayMs > this.#deadline) throw lockTimeout();
      await wait(delayMs, undefined, this.#signal ? { signal: this.#signal } : {}).catch(() => undefined);
    }
  }

  /** Waits for earlier callers in this process. Throws like `poll`. */
  async after(others: Promise<void>): Promise<void> {
    this.#assertNotInterrupted();
    const done = new AbortController();
    const remainingMs = Math.min(Math.max(0, this.#deadline - performance.now()), MAX_TIMER_MS);
    const late = wait(remainingMs, 'late' as const, {
      signal: this.#signal ? AbortSignal.any([this.#signal, done.signal]) : done.signal,
    }).catch(() => 'late' as const);
    const first = await Promise.race([others, late]);
    done.abort();
    if (first !== 'late') return;
    this.#assertNotInterrupted();
    throw lockTimeout();
  }

  #assertNotInterrupted(): void {
    if (!this.#signal?.aborted) return;
    throw new SvcError('interrupted', 'The run was interrupted while it waited for the lock.', {
      state: 'Nothing was changed.',
      next: ['Run the command again.'],
    });
  }
}

function lockTimeout(): SvcError {
  return new SvcError('lock_timeout', 'Another process is migrating this database.', {
    why: 'It held the lock during the whole wait.',
    state: 'Nothing was changed.',
    next: ['Run the command again when the other process is done, or wait longer: --lock-timeout 300'],
  });
}

/** Keeps the lease in `leases`, by its epoch, while `work` runs. */
export const registeredWhile =
  <L extends { readonly epoch: number }, T>(leases: Map<number, L>, work: (epoch: number) => Promise<T>) =>
  async (lease: L): Promise<T> => {
    leases.set(lease.epoch, lease);
    try {
      return await work(lease.epoch);
    } finally {
      leases.delete(lease.epoch);
    }
  };

/** A point in time on two clocks: the monotonic one stops while the machine sleeps, the wall clock can be changed. */
export interface ClockReading {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export const readClocks = (): ClockReading => ({ monotonicMs: performance.now(), wallMs: Date.now() });

/** Milliseconds since a reading, by the clock that advanced further, so that a lease expires by the earlier one. */
export const elapsedMs = ({ monotonicMs, wallMs }: ClockReading): number =>
  Math.max(performance.now() - monotonicMs, Date.now() - wallMs);
