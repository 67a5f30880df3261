/** Back to the beginning of the line, and the rest of it away. */
export const ERASE = '\r\u001b[K';

type Stream = { write(text: string): unknown; readonly columns?: number };

/** The last line of a terminal, for what changes all the time: whatever else is written takes its place. */
export class StatusLine {
  /** False where nothing can be written over: nothing is shown there. */
  readonly isSeen: boolean;
  readonly #stream: Stream;
  #shown = false;

  constructor(stream: Stream, isSeen: boolean) {
    this.#stream = stream;
    this.isSeen = isSeen;
  }

  show(text: string): void {
    if (!this.isSeen) return;
    // A line that is as wide as the terminal would begin another one.
    this.#stream.write(`${ERASE}${text.slice(0, (this.#stream.columns ?? 80) - 1)}`);
    this.#shown = true;
  }

  clear(): void {
    if (!this.#shown) return;
    this.#stream.write(ERASE);
    this.#shown = false;
  }
}
