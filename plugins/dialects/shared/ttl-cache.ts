const TTL_MS = 5_000;

/** Caches the result of a lookup for 5 seconds, for all callers. */
export class TtlCache<T> {
  readonly #find: () => Promise<T>;
  #last: { readonly found: Promise<T>; readonly at: number } | undefined;

  constructor(find: () => Promise<T>) {
    this.#find = find;
  }

  get(): Promise<T> {
    const now = performance.now();
    if (!this.#last || now - this.#last.at > TTL_MS) this.#last = { found: this.#find(), at: now };
    return this.#last.found;
  }
}
