import { setTimeout as wait } from 'node:timers/promises';

/** A read that those who need it at about the same time share: each gets one that began after it asked. */
export class SharedRead<T> {
  readonly #read: () => Promise<T>;
  readonly #intervalMs: number;
  /** Of those who ask before it begins. */
  #next: Promise<T> | undefined;
  #began = -Infinity;
  #latest: T | undefined;

  /** One read begins in `intervalMs`. */
  constructor(read: () => Promise<T>, intervalMs: number) {
    this.#read = read;
    this.#intervalMs = intervalMs;
  }

  /** What the last one has found; undefined before the first. */
  get latest(): T | undefined {
    return this.#latest;
  }

  read(): Promise<T> {
    this.#next ??= this.#begin();
    return this.#next;
  }

  async #begin(): Promise<T> {
    const left = this.#began + this.#intervalMs - performance.now();
    await (left > 0 ? wait(left) : undefined);
    this.#next = undefined;
    this.#began = performance.now();
    this.#latest = await this.#read();
    return this.#latest;
  }
}
