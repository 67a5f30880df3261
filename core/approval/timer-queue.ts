/** The longest delay of a Node timer, in milliseconds; a later deadline needs several timers. */
export const MAX_TIMEOUT_MS = 2 ** 31 - 1;

interface Entry<T> {
  readonly at: number;
  readonly item: T;
}

/** Many deadlines on one Node timer. Deadlines count on `performance.now()`; an item has one at a time. */
export class TimerQueue<T> {
  readonly #onDue: (item: T) => void;
  /** A binary heap, earliest first. Entries of deleted or rescheduled items stay until they are reached. */
  readonly #heap: Entry<T>[] = [];
  readonly #deadlines = new Map<T, number>();
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(onDue: (item: T) => void) {
    this.#onDue = onDue;
  }

  set(item: T, at: number): void {
    if (this.#deadlines.get(item) === at) return;
    this.#deadlines.set(item, at);
    this.#push({ at, item });
    this.#schedule();
  }

  delete(item: T): void {
    if (!this.#deadlines.delete(item)) return;
    if (this.#deadlines.size === 0) this.clear();
    else if (this.#heap.length > 2 * this.#deadlines.size + 64) this.#compact();
  }

  clear(): void {
    this.#deadlines.clear();
    this.#heap.length = 0;
    this.#timerAt = Number.POSITIVE_INFINITY;
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    const first = this.#heap[0];
    if (!first || first.at >= this.#timerAt) return;
    clearTimeout(this.#timer);
    this.#timerAt = first.at;
    const wait = Math.min(Math.max(0, Math.ceil(first.at - performance.now())), MAX_TIMEOUT_MS);
    this.#timer = setTimeout(() => this.#fire(), wait);
  }

  #fire(): void {
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = performance.now();
    for (let first = this.#heap[0]; first && first.at <= now; first = this.#heap[0]) {
      this.#pop();
      if (this.#deadlines.get(first.item) !== first.at) continue;
      this.#deadlines.delete(first.item);
      this.#onDue(first.item);
    }
    this.#schedule();
  }

  /** Drops outdated entries: most deadlines are far away and never reached. */
  #compact(): void {
    this.#heap.length = 0;
    for (const [item, at] of this.#deadlines) this.#push({ at, item });
  }

  #push(entry: Entry<T>): void {
    const heap = this.#heap;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const up = (at - 1) >> 1;
      const parent = heap[up];
      if (!parent || parent.at <= entry.at) break;
      heap[at] = parent;
      at = up;
    }
    heap[at] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    let at = 0;
    for (;;) {
      const left = heap[2 * at + 1];
      const right = heap[2 * at + 2];
      const child = right && left && right.at < left.at ? 2 * at + 2 : 2 * at + 1;
      const smaller = heap[child];
      if (!smaller || smaller.at >= last.at) break;
      heap[at] = smaller;
      at = child;
    }
    heap[at] = last;
  }
}
