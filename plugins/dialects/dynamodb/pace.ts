import { setTimeout as wait } from 'node:timers/promises';

/** What a throttled table is still asked for. */
const LEAST_PER_SECOND = 25;
const GROWTH_PER_SECOND = 1.2;

/** How many items may be written in a second: a limit of its own, and less for a while after DynamoDB had too much. */
export class Pace {
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
  }

  /** Waits until that many items may be written. */
  async take(items: number): Promise<void> {
    this.#count(items);
    this.#fill();
    if (!Number.isFinite(this.#rate)) return;
    this.#tokens -= items;
    // What was taken too much is waited for: the next one starts from less than nothing.
    if (this.#tokens < 0) await wait((-this.#tokens / this.#rate) * 1000);
  }

  throttled(): void {
    const now = performance.now();
    // Requests that were under way together are one sign, not many.
    if (now - this.#throttledAt < 500) return;
    this.#throttledAt = now;
    const seconds = Math.max(0.1, (now - this.#recentSince) / 1000);
    const current = Number.isFinite(this.#rate) ? this.#rate : this.#recent / seconds;
    this.#rate = Math.max(Math.min(LEAST_PER_SECOND, this.#limit), current / 2);
    this.#tokens = Math.min(this.#tokens, 0);
    this.#filledAt = now;
  }

  #fill(): void {
    const now = performance.now();
    const seconds = (now - this.#filledAt) / 1000;
    this.#filledAt = now;
    if (!Number.isFinite(this.#rate)) return;
    // A second's worth at most is saved up.
    this.#tokens = Math.min(this.#rate, this.#tokens + seconds * this.#rate);
    if (now - this.#throttledAt > 1000) this.#rate = Math.min(this.#limit, this.#rate * GROWTH_PER_SECOND ** seconds);
  }

  #count(items: number): void {
    const now = performance.now();
    if (now - this.#recentSince > 5000) {
      this.#recent = 0;
      this.#recentSince = now;
    }
    this.#recent += items;
  }
}
