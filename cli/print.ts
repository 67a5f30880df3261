import { createColors } from 'picocolors';
import type { SvcError } from '../core/errors.ts';

export type Colors = ReturnType<typeof createColors>;

/** Colour belongs on a terminal only, and never where NO_COLOR, CI or `--no-color` says otherwise. */
export function colorsFor(
  stream: { readonly isTTY?: boolean },
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Colors {
  const plain = args.includes('--no-color') || env.NO_COLOR || env.CI || env.TERM === 'dumb';
  return createColors(stream.isTTY === true && !plain);
}

/** A refusal in a line each: what, why, state, where; and a line for each of the next steps, to be copied from. */
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

/** A refusal as `--json` prints it. */
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

/** Text of others (engines, files) on one line of a terminal: control characters are shown and not obeyed. */
export function oneLine(text: string): string {
  return visible(text.replace(/\s*\r?\n\s*/g, ' ').replaceAll('\t', ' '));
}

/** The same over several lines. */
export function visible(text: string): string {
  return text.replace(/(?![\n\t])[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, (character) => {
    return `\\u{${character.codePointAt(0)?.toString(16)}}`;
  });
}
