/** The longest that Node's timers wait; a later moment is armed again on the way. */
export const LONGEST_MS = 2 ** 31 - 1;

interface Entry<T> {
  readonly at: number;
  readonly item: T;
}

/** Many moments, one timer. Moments count on `performance.now()`; an item has one at a time. */
export class Alarm<T> {
  readonly #ring: (item: T) => void;
  /** A binary heap, the earliest first; entries that no longer hold are left in it until they are reached. */
  readonly #heap: Entry<T>[] = [];
  readonly #due = new Map<T, number>();
  #timer: NodeJS.Timeout | undefined;
  #armed = Number.POSITIVE_INFINITY;

  constructor(ring: (item: T) => void) {
    this.#ring = ring;
  }

  set(item: T, at: number): void {
    if (this.#due.get(item) === at) return;
    this.#due.set(item, at);
    this.#push({ at, item });
    this.#arm();
  }

  delete(item: T): void {
    if (!this.#due.delete(item)) return;
    if (this.#due.size === 0) this.clear();
    else if (this.#heap.length > 2 * this.#due.size + 64) this.#compact();
  }

  clear(): void {
    this.#due.clear();
    this.#heap.length = 0;
    this.#armed = Number.POSITIVE_INFINITY;
    clearTimeout(this.#timer);
  }

  #arm(): void {
    const first = this.#heap[0];
    if (!first || first.at >= this.#armed) return;
    clearTimeout(this.#timer);
    this.#armed = first.at;
    const wait = Math.min(Math.max(0, Math.ceil(first.at - performance.now())), LONGEST_MS);
    this.#timer = setTimeout(() => this.#fire(), wait);
  }

  #fire(): void {
    this.#armed = Number.POSITIVE_INFINITY;
    const now = performance.now();
    for (let first = this.#heap[0]; first && first.at <= now; first = this.#heap[0]) {
      this.#pop();
      if (this.#due.get(first.item) !== first.at) continue;
      this.#due.delete(first.item);
      this.#ring(first.item);
    }
    this.#arm();
  }

  /** Drops what no longer holds: most deadlines are far away and never reached. */
  #compact(): void {
    this.#heap.length = 0;
    for (const [item, at] of this.#due) this.#push({ at, item });
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
