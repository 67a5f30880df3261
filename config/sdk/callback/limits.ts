const WINDOW_MS = 60_000;
/** Beyond this many keys the oldest are dropped. */
const MAX_KEYS = 10_000;

/** Allows each key a number of calls per minute. */
export class RateLimit {
  readonly #maxPerMinute: number;
  readonly #windows = new Map<string, { readonly since: number; count: number }>();

  constructor(maxPerMinute: number) {
    this.#maxPerMinute = maxPerMinute;
  }

  /** Counts calls. Returns 0 if they are allowed, otherwise the seconds until the next one is. */
  secondsToWait(key: string, calls = 1): number {
    const now = performance.now();
    const window = this.#windows.get(key);
    if (!window || now - window.since >= WINDOW_MS) {
      this.#windows.delete(key);
      this.#windows.set(key, { since: now, count: calls });
      const [oldest] = this.#windows.keys();
      if (this.#windows.size > MAX_KEYS && oldest !== undefined) this.#windows.delete(oldest);
      return 0;
    }
    window.count += calls;
    return window.count - calls < this.#maxPerMinute ? 0 : Math.ceil((window.since + WINDOW_MS - now) / 1000);
  }

  /** A call that was counted is one that is not limited. */
  giveBack(key: string): void {
    const window = this.#windows.get(key);
    if (window && window.count > 0) window.count -= 1;
  }
}

export const MAX_BODY_BYTES = 64 * 1024;
