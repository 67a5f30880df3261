/** How many calls look up or create their request at a time. As many fit in one batch of statements. */
const MAX_ADMITTED = 64;
/** If no call has finished in this time, the store is not responding, and every call waits for it on its own. */
const STALLED_MS = 1_000;

/**
 * Limits how many calls look up or create their request at a time. After a restart thousands are made at once: the first
 * ones reach their claim while the last ones still wait here, so that what is approved runs first.
 */
export class Admission {
  #admitted = 0;
  readonly #waiting: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#admitted >= MAX_ADMITTED) {
      await new Promise<void>((admit) => {
        this.#waiting.push(admit);
        this.#timer ??= setTimeout(() => this.#admitAll(), STALLED_MS);
      });
    }
    this.#admitted += 1;
    try {
      return await work();
    } finally {
      this.#admitted -= 1;
      if (this.#admitted < MAX_ADMITTED) this.#waiting.shift()?.();
      this.#timer?.refresh();
      if (this.#waiting.length === 0) this.#stopTimer();
    }
  }

  #admitAll(): void {
    this.#stopTimer();
    for (const admit of this.#waiting.splice(0)) admit();
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
