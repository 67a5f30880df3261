/**
 * The server's clock, as the `Date` of its answers tells it: whole seconds, so each answer gives a range for the
 * difference to ours, and the ranges of all answers together a narrow one. Right to half a second after the first.
 */
export class ServerClock {
  #least = Number.NEGATIVE_INFINITY;
  #most = Number.POSITIVE_INFINITY;

  /** `sent` and `received` by `Date.now()`. */
  heard(date: string | undefined, sent: number, received: number): void {
    const told = date === undefined ? Number.NaN : Date.parse(date);
    if (Number.isNaN(told)) return;
    const least = told - received;
    const most = told + 1000 - sent;
    this.#least = Math.max(this.#least, least);
    this.#most = Math.min(this.#most, most);
    if (this.#least <= this.#most) return;
    // One of the two clocks was set: what was heard before says nothing any more.
    this.#least = least;
    this.#most = most;
  }

  /** Milliseconds since 1970. Before the first answer our own. */
  now(): number {
    const offset = Number.isFinite(this.#least) && Number.isFinite(this.#most) ? (this.#least + this.#most) / 2 : 0;
    return Math.round(Date.now() + offset);
  }
}
