/** The maximum number of keys that are read at once. */
const MAX_KEYS = 64;

interface Waiting<Row> {
  readonly resolve: (row: Row | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** Reads of one row each: those of one turn of the event loop are one read of all their keys. */
export class ReadsByKey<Row> {
  readonly #read: (keys: readonly string[]) => Promise<ReadonlyMap<string, Row>>;
  /** By key. */
  #waiting = new Map<string, Waiting<Row>[]>();

  constructor(read: (keys: readonly string[]) => Promise<ReadonlyMap<string, Row>>) {
    this.#read = read;
  }

  get(key: string): Promise<Row | undefined> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.size === 0) process.nextTick(() => this.#readAll());
      const same = this.#waiting.get(key) ?? [];
      same.push({ resolve, reject });
      this.#waiting.set(key, same);
    });
  }

  #readAll(): void {
    const waiting = [...this.#waiting];
    this.#waiting = new Map();
    for (let first = 0; first < waiting.length; first += MAX_KEYS) {
      void this.#readSome(waiting.slice(first, first + MAX_KEYS));
    }
  }

  /** If it fails, each key is read on its own: the error may be about one of them. */
  async #readSome(waiting: readonly (readonly [key: string, readonly Waiting<Row>[]])[]): Promise<void> {
    try {
      const rows = await this.#read(waiting.map(([key]) => key));
      for (const [key, same] of waiting) for (const { resolve } of same) resolve(rows.get(key));
    } catch (error) {
      if (waiting.length > 1) for (const one of waiting) void this.#readSome([one]);
      else for (const [, same] of waiting) for (const { reject } of same) reject(error);
    }
  }
}
