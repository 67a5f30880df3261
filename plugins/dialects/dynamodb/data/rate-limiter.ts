import { setTimeout as wait } from 'node:timers/promises';

/** The rate does not fall below this, however often the table is throttled. */
const MIN_PER_SECOND = 25;
const GROWTH_PER_SECOND = 1.2;
/** So much of a second is there at the start: a small table need not wait. */
const START = 0.25;

/** Limits the units, or items, used per second: a fixed limit, and a lower one for a while after DynamoDB throttles. */
export class RateLimiter {
  readonly #limit: number;
  #rate: number;
  #tokens = 0;
  #filledAt = performance.now();
  #throttledAt = 0;
  #recent = 0;
  #recentSince = performance.now();

  constructor(limit = Number.POSITIVE_INFINITY) {
    this.#limit = limit;
    this.#rate = limit;
    this.#tokens = Number.isFinite(limit) ? limit * START : 0;
  }

  /** Per second, at this moment. */
  get rate(): number {
    return this.#rate;
  }

  /** Waits until that many may be used. */
  async acquire(count: number): Promise<void> {
    this.charge(count);
    // The tokens may go negative: the next caller then waits longer.
    if (this.#tokens < 0) await wait((-this.#tokens / this.#rate) * 1000);
  }

  /** What was used without being acquired; the next caller waits for it. */
  charge(count: number): void {
    this.#count(count);
    this.#fill();
    if (Number.isFinite(this.#rate)) this.#tokens -= count;
  }

  slowDown(): void {
    const now = performance.now();
    // Requests that were in flight together count as one.
    if (now - this.#throttledAt < 500) return;
    this.#throttledAt = now;
    const seconds = Math.max(0.1, (now - this.#recentSince) / 1000);
    const current = Number.isFinite(this.#rate) ? this.#rate : this.#recent / seconds;
    this.#rate = Math.max(Math.min(MIN_PER_SECOND, this.#limit), current / 2);
    this.#tokens = Math.min(this.#tokens, 0);
    this.#filledAt = now;
  }

  #fill(): void {
    const now = performance.now();
    const seconds = (now - this.#filledAt) / 1000;
    this.#filledAt = now;
    if (!Number.isFinite(this.#rate)) return;
    // At most one second's worth accumulates.
    this.#tokens = Math.min(this.#rate, this.#tokens + seconds * this.#rate);
    if (now - this.#throttledAt > 1000) this.#rate = Math.min(this.#limit, this.#rate * GROWTH_PER_SECOND ** seconds);
  }

  #count(count: number): void {
    const now = performance.now();
    if (now - this.#recentSince > 5000) {
      this.#recent = 0;
      this.#recentSince = now;
    }
    this.#recent += count;
  }
}
