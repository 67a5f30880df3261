import { createColors } from 'picocolors';
import type { SvcError } from '../core/errors.ts';

export type Colors = ReturnType<typeof createColors>;

/** Colors only on a terminal, and not with NO_COLOR, CI or `--no-color`. */
export function colorsFor(
  stream: { readonly isTTY?: boolean },
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Colors {
  const plain = args.includes('--no-color') || env.NO_COLOR || env.CI || env.TERM === 'dumb';
  return createColors(stream.isTTY === true && !plain);
}

/** An error as lines: message, why, state, where, and each next step on its own line for copying. */
export function errorLines(error: SvcError, colors: Colors): string[] {
  const lines = [`${colors.red('error')} ${colors.bold(oneLine(error.message))} ${colors.dim(`(${error.code})`)}`];
  const fact = (label: string, text: string | undefined): void => {
    if (text) lines.push(`  ${colors.dim(label.padEnd(5))} ${oneLine(text)}`);
  };
  fact('why', error.why);
  fact('state', error.state);
  fact('where', error.where);
  for (const [index, action] of error.next.entries()) fact(index === 0 ? 'next' : '', action);
  return lines;
}

/** An error, for `--json`. */
export function errorObject(error: SvcError): Record<string, unknown> {
  return {
    ok: false,
    code: error.code,
    message: error.message,
    why: error.why ?? null,
    state: error.state ?? null,
    nextActions: error.next,
    where: error.where ?? null,
    details: error.details,
  };
}

/** Untrusted text on one terminal line, with control characters escaped. */
export function oneLine(text: string): string {
  return escapeControls(text.replace(/\s*\r?\n\s*/g, ' ').replaceAll('\t', ' '));
}

/** Like `oneLine`, but with line breaks. */
export function escapeControls(text: string): string {
  return text.replace(/(?![\n\t])[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, (character) => {
    return `\\u{${character.codePointAt(0)?.toString(16)}}`;
  });
}

/** Moves to the start of the line and clears it. */
export const ERASE_LINE = '\r\u001b[K';

type Stream = { write(text: string): unknown; readonly columns?: number };

/** The last line of a terminal, for progress; other output replaces it. */
export class StatusLine {
  /** False if the stream cannot overwrite a line; then nothing is shown. */
  readonly isVisible: boolean;
  readonly #stream: Stream;
  #isShown = false;

  constructor(stream: Stream, isVisible: boolean) {
    this.#stream = stream;
    this.isVisible = isVisible;
  }

  show(text: string): void {
    if (!this.isVisible) return;
    // A line as wide as the terminal would wrap.
    this.#stream.write(`${ERASE_LINE}${text.slice(0, (this.#stream.columns ?? 80) - 1)}`);
    this.#isShown = true;
  }

  clear(): void {
    if (!this.#isShown) return;
    this.#stream.write(ERASE_LINE);
    this.#isShown = false;
  }
}

/** `1 migration`, `3 migrations` */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

export function formatDuration(duration: number): string {
  return duration < 10_000 ? `${Math.round(duration)} ms` : `${(duration / 1000).toFixed(1)} s`;
}

/** `2026-11-20 10:30`, in UTC like the tags. */
export function formatMinute(at: Date): string {
  return at.toISOString().slice(0, 16).replace('T', ' ');
}
