const WINDOW_MS = 60_000;
/** Names that are remembered; beyond that the oldest are forgotten. */
const MOST_NAMES = 10_000;

/** Lets each name through so many times a minute. */
export class RateLimit {
  readonly #most: number;
  readonly #windows = new Map<string, { readonly since: number; count: number }>();

  constructor(most: number) {
    this.#most = most;
  }

  /** 0 when it may go on, else the seconds until it may. */
  secondsToWait(name: string): number {
    const now = performance.now();
    const window = this.#windows.get(name);
    if (!window || now - window.since >= WINDOW_MS) {
      this.#windows.delete(name);
      this.#windows.set(name, { since: now, count: 1 });
      const [oldest] = this.#windows.keys();
      if (this.#windows.size > MOST_NAMES && oldest !== undefined) this.#windows.delete(oldest);
      return 0;
    }
    window.count += 1;
    return window.count <= this.#most ? 0 : Math.ceil((window.since + WINDOW_MS - now) / 1000);
  }
}
