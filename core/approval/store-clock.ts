/** How long a reading of the store's clock is extended with the clock of this process. */
const READING_TTL_MS = 1_000;
/** If the monotonic and the wall clock of this process differ by more, one was stopped or set. */
const MAX_DRIFT_MS = 250;
/** A reading that took longer, and twice as long as usual, is too imprecise and repeated up to MAX_READS times. */
const FAST_READ_MS = 20;
const MAX_READS = 3;
/** The usual duration is the fastest recent one; each reading may raise it by this factor. */
const USUAL_GROWTH = 1.5;

interface Reading {
  readonly store: number;
  readonly monotonic: number;
  readonly wall: number;
  /** Round trip in milliseconds. */
  readonly took: number;
}

/** The store's clock. A reading is extended with the monotonic clock for a second, so that few requests read it. */
export class StoreClock {
  readonly #read: () => Promise<Date>;
  #reading: Reading | undefined;
  /** The usual round trip in milliseconds. */
  #usual = 0;
  #pending: Promise<number> | undefined;
  #latest = 0;

  constructor(read: () => Promise<Date>) {
    this.#read = read;
  }

  /** Milliseconds since 1970. What was made first has no later moment, though a reading may be less than an extended one. */
  async now(): Promise<number> {
    const moment = await this.#estimate();
    const isImprecise = moment < this.#latest && this.#latest - moment < MAX_DRIFT_MS;
    if (!isImprecise) this.#latest = moment;
    return this.#latest;
  }

  async #estimate(): Promise<number> {
    const monotonic = performance.now();
    const last = this.#reading;
    if (last) {
      const elapsed = monotonic - last.monotonic;
      const drift = Math.abs(Date.now() - last.wall - elapsed);
      if (elapsed < READING_TTL_MS && drift < MAX_DRIFT_MS) return Math.floor(last.store + monotonic - last.monotonic);
    }
    return this.readNow();
  }

  /** Starts a reading if the next `now` would need one, so that it is sent together with what is read in the meantime. */
  prepare(): void {
    this.now().catch(() => undefined);
  }

  /** Reads the store's clock: the result is never later than it. Concurrent callers share a reading. */
  readNow(): Promise<number> {
    this.#pending ??= this.#readPrecisely().finally(() => {
      this.#pending = undefined;
    });
    return this.#pending;
  }

  /** Milliseconds until a moment, by the last reading. Good enough for a timer that calls `readNow` when it fires. */
  msUntil(moment: number): number {
    const last = this.#reading;
    return last ? moment - (last.store + performance.now() - last.monotonic) : 0;
  }

  async #readPrecisely(): Promise<number> {
    let fastest: Reading | undefined;
    let last: Reading;
    let left = MAX_READS;
    let acceptable: number;
    do {
      acceptable = Math.max(FAST_READ_MS, 2 * this.#usual);
      last = await this.#readOnce();
      if (!fastest || last.took < fastest.took) fastest = last;
      this.#usual = this.#usual === 0 ? last.took : Math.min(last.took, USUAL_GROWTH * this.#usual);
      left -= 1;
    } while (fastest.took > acceptable && left > 0);
    this.#reading = fastest;
    return last.store;
  }

  async #readOnce(): Promise<Reading> {
    const before = performance.now();
    const store = (await this.#read()).getTime();
    const after = performance.now();
    const took = after - before;
    return { store, monotonic: before + took / 2, wall: Date.now() - took / 2, took };
  }
}
