/** What was found longer ago is not relied on. */
const FRESH_MS = 5_000;

/** Something that is looked up once for many who ask, and again once the answer is old. */
export class Fresh<T> {
  readonly #find: () => Promise<T>;
  #last: { readonly found: Promise<T>; readonly at: number } | undefined;

  constructor(find: () => Promise<T>) {
    this.#find = find;
  }

  found(): Promise<T> {
    const now = performance.now();
    if (!this.#last || now - this.#last.at > FRESH_MS) this.#last = { found: this.#find(), at: now };
    return this.#last.found;
  }
}
