import { createColors } from 'picocolors';
import { escapeJson } from '../core/display/escape-json.ts';
import { escapeInvisible } from '../core/display/text.ts';
import type { SvcError } from '../core/errors.ts';

export type Colors = ReturnType<typeof createColors>;

/**
 * Colors on a terminal, and not with CI or TERM=dumb; with FORCE_COLOR always, unless it is 0 or false. `--no-color` and
 * NO_COLOR come before FORCE_COLOR.
 */
export function colorsFor(
  stream: { readonly isTTY?: boolean },
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Colors {
  const { FORCE_COLOR: forced, NO_COLOR, CI, TERM } = env;
  if (args.includes('--no-color') || NO_COLOR) return createColors(false);
  if (forced) return createColors(forced !== '0' && forced !== 'false');
  return createColors(stream.isTTY === true && !CI && TERM !== 'dumb');
}

/** Whether a line of the stream can be replaced: a terminal that is not read by a program. */
export const isInteractive = (stream: object, colors: Colors): boolean =>
  'isTTY' in stream &&
  stream.isTTY === true &&
  colors.isColorSupported &&
  !process.env.CI &&
  process.env.TERM !== 'dumb';

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

/** The one object that `--json` prints. */
export const resultText = (value: Readonly<Record<string, unknown>>): string =>
  `${escapeJson(JSON.stringify(value, wholeMilliseconds, 2))}\n`;

const wholeMilliseconds = (key: string, value: unknown): unknown =>
  key === 'durationMs' && typeof value === 'number' ? Math.round(value) : value;

/** Untrusted text on one terminal line, with control and other invisible characters escaped. */
export function oneLine(text: string): string {
  return escapeControls(text.replace(/\s*\r?\n\s*/g, ' ').replaceAll('\t', ' '));
}

/** Like `oneLine`, but with line breaks. */
export function escapeControls(text: string): string {
  return escapeInvisible(text);
}

/** Moves to the start of the line and clears it. */
export const ERASE_LINE = '\r\u001b[K';

/** The columns of a terminal; undefined for a file or a pipe. */
export function columnsOf(stream: object): number | undefined {
  return 'columns' in stream && typeof stream.columns === 'number' && stream.columns > 0 ? stream.columns : undefined;
}

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
  const rounded = Math.round(duration);
  return rounded < 10_000 ? `${rounded} ms` : `${(duration / 1000).toFixed(1)} s`;
}

/** `2026-11-20 10:30`, in UTC like the tags. */
export function formatMinute(at: Date): string {
  return at.toISOString().slice(0, 16).replace('T', ' ');
}
