/** Reads that those who ask for the same within a short time share. */
export class RecentReads<T> {
  readonly #maxAgeMs: number;
  /** Oldest first. */
  readonly #reads = new Map<string, { readonly began: number; readonly result: Promise<T> }>();

  constructor(maxAgeMs: number) {
    this.#maxAgeMs = maxAgeMs;
  }

  /** The result of `load`, or of an earlier one with this key that began no more than `maxAgeMs` ago and has not failed. */
  read(key: string, load: () => Promise<T>): Promise<T> {
    const now = performance.now();
    for (const [old, { began }] of this.#reads) {
      if (now - began <= this.#maxAgeMs) break;
      this.#reads.delete(old);
    }
    const recent = this.#reads.get(key);
    if (recent) return recent.result;
    const read = { began: now, result: load() };
    this.#reads.set(key, read);
    read.result.catch(() => this.#reads.get(key) === read && this.#reads.delete(key));
    return read.result;
  }

  /** Later reads see what has changed until now. */
  clear(): void {
    this.#reads.clear();
  }
}
