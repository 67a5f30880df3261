import type { LockOptions } from '../../../core/dialect.ts';
import { LockWait } from './lock-wait.ts';

/** Serializes the callers of one session. */
export class Mutex {
  #last: Promise<void> = Promise.resolve();
  #busy = 0;

  /** Returns the function that releases the mutex. Throws `lock_timeout` and `interrupted`. */
  async acquire(waiting: LockWait): Promise<() => void> {
    const before = this.#last;
    let resolveOwn = () => {};
    const own = new Promise<void>((resolve) => {
      resolveOwn = resolve;
    });
    this.#last = before.then(() => own);
    if (this.#busy > 0) waiting.notifyWaiting();
    this.#busy += 1;
    const release = () => {
      this.#busy -= 1;
      resolveOwn();
    };
    try {
      await waiting.after(before);
      return release;
    } catch (error) {
      release();
      throw error;
    }
  }
}

/** Runs `work` under a lock of a session. `acquire` returns the epoch. A lost session has released the lock. */
export async function withSessionLock<T>(
  mutex: Mutex,
  options: LockOptions | undefined,
  acquire: (wait: LockWait) => Promise<number>,
  release: () => Promise<unknown>,
  work: (epoch: number) => Promise<T>,
): Promise<T> {
  const wait = new LockWait(options);
  const done = await mutex.acquire(wait);
  try {
    const epoch = await acquire(wait);
    try {
      return await work(epoch);
    } finally {
      await release().catch(() => undefined);
    }
  } finally {
    done();
  }
}
