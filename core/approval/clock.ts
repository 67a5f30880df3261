/** Milliseconds for which a reading of the store's clock is carried on with this process's own. */
const FRESH_MS = 1_000;
/** Own clocks that disagree by more have been stopped or set in between. */
const DRIFT_MS = 250;
/** An answer that was longer on its way, and twice as long as is usual, says too little about now: it is asked for again, so often. */
const CLOSE_MS = 20;
const TRIES = 3;
/** What is usual is the fastest of late: it may grow so fast. */
const GROWTH = 1.5;

interface Reading {
  readonly store: number;
  readonly own: number;
  readonly wall: number;
  /** How long the answer was on its way, or waited for this process to look. */
  readonly took: number;
}

/** The store's clock. Between two readings it is carried on monotonically, so that not every request asks. */
export class StoreClock {
  readonly #read: () => Promise<Date>;
  #reading: Reading | undefined;
  /** Milliseconds that an answer takes. */
  #usual = 0;
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
    let closest: Reading | undefined;
    let last: Reading;
    let left = TRIES;
    let enough: number;
    do {
      enough = Math.max(CLOSE_MS, 2 * this.#usual);
      last = await this.#once();
      if (!closest || last.took < closest.took) closest = last;
      this.#usual = this.#usual === 0 ? last.took : Math.min(last.took, GROWTH * this.#usual);
      left -= 1;
    } while (closest.took > enough && left > 0);
    this.#reading = closest;
    return last.store;
  }

  async #once(): Promise<Reading> {
    const before = performance.now();
    const store = (await this.#read()).getTime();
    const after = performance.now();
    const took = after - before;
    return { store, own: before + took / 2, wall: Date.now() - took / 2, took };
  }
}
