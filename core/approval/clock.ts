/** Milliseconds for which a reading of the store's clock is carried on with this process's own. */
const FRESH_MS = 1_000;
/** Own clocks that disagree by more have been stopped or set in between. */
const DRIFT_MS = 250;

/** The store's clock. Between two readings it is carried on monotonically, so that not every request asks. */
export class StoreClock {
  readonly #read: () => Promise<Date>;
  #reading: { readonly store: number; readonly own: number; readonly wall: number } | undefined;
  #asking: Promise<number> | undefined;

  constructor(read: () => Promise<Date>) {
    this.#read = read;
  }

  /** Milliseconds since 1970. */
  async now(): Promise<number> {
    const own = performance.now();
    const last = this.#reading;
    if (last && own - last.own < FRESH_MS && Math.abs(Date.now() - last.wall - (own - last.own)) < DRIFT_MS) {
      return Math.floor(last.store + own - last.own);
    }
    return this.asked();
  }

  /** As the store says it: never later than it is. Callers at the same time share an answer. */
  asked(): Promise<number> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  /** Milliseconds until a moment, by the last reading; exact enough for a timer, whose end asks again. */
  until(moment: number): number {
    const last = this.#reading;
    return last ? moment - (last.store + performance.now() - last.own) : 0;
  }

  async #ask(): Promise<number> {
    const before = performance.now();
    const store = (await this.#read()).getTime();
    const after = performance.now();
    this.#reading = { store, own: (before + after) / 2, wall: Date.now() - (after - before) / 2 };
    return store;
  }
}
