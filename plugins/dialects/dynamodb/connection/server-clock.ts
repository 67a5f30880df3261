/**
 * The server's clock, derived from the `Date` header of responses. The header has whole seconds, so each response gives a
 * range for the offset; the ranges are intersected. Accurate to half a second after the first response.
 */
export class ServerClock {
  #minOffset = Number.NEGATIVE_INFINITY;
  #maxOffset = Number.POSITIVE_INFINITY;

  /** `sent` and `received` are local times from `Date.now()`. */
  observe(date: string | undefined, sent: number, received: number): void {
    const serverTime = date === undefined ? Number.NaN : Date.parse(date);
    if (Number.isNaN(serverTime)) return;
    const min = serverTime - received;
    const max = serverTime + 1000 - sent;
    this.#minOffset = Math.max(this.#minOffset, min);
    this.#maxOffset = Math.min(this.#maxOffset, max);
    if (this.#minOffset <= this.#maxOffset) return;
    // One of the clocks was adjusted: earlier ranges are no longer valid.
    this.#minOffset = min;
    this.#maxOffset = max;
  }

  /** Milliseconds since 1970; the local time before the first response. */
  now(): number {
    const offset =
      Number.isFinite(this.#minOffset) && Number.isFinite(this.#maxOffset)
        ? (this.#minOffset + this.#maxOffset) / 2
        : 0;
    return Math.round(Date.now() + offset);
  }
}
