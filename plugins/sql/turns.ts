import type { LockWait } from '../lock-wait.ts';

/** Callers of one session, one after the other. */
export class Turns {
  #last: Promise<void> = Promise.resolve();
  #busy = 0;

  /** Gives what ends the turn. Throws `lock_timeout` and `interrupted`. */
  async take(waiting: LockWait): Promise<() => void> {
    const before = this.#last;
    let end = () => {};
    const mine = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#last = before.then(() => mine);
    if (this.#busy > 0) waiting.tell();
    this.#busy += 1;
    const done = () => {
      this.#busy -= 1;
      end();
    };
    try {
      await waiting.behind(before);
      return done;
    } catch (error) {
      done();
      throw error;
    }
  }
}
