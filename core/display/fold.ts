import { lazy } from './lazy.ts';
import { CONTINUATION } from './misleading.ts';

/** Columns that a line of a request has where the width is unknown. */
export const DEFAULT_WIDTH = 72;
const MIN_WIDTH = 20;

const zeroWidth = lazy(() => /\p{M}|\p{Default_Ignorable_Code_Point}/u);
const wide = lazy(
  () =>
    /[\u1100-\u115f\u2e80-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f000}-\u{1faff}\u{20000}-\u{3fffd}\p{Emoji_Presentation}]/u,
);

/** A character, one that is written out, or an escape of JSON. */
const CHARACTERS = /\\u\{[\da-f]+(?:\u00d7\d+)?\}|\\[ -~]|./gsu;

/**
 * Breaks a line that is wider than `width` columns: `indent` and ↪ begin each line that continues another. Text from a
 * model never contains that arrow, so nobody takes a part of a line for a line of its own.
 */
export function foldLine(line: string, width: number, indent = ''): string[] {
  const columns = Math.max(MIN_WIDTH, width);
  const prefix = `${indent}${CONTINUATION} `;
  if (line.length <= columns && /^[ -~]*$/.test(line)) return [line];
  const lines: string[] = [];
  let current = '';
  let used = 0;
  for (const [character] of line.matchAll(CHARACTERS)) {
    const needed = character.startsWith('\\') ? character.length : columnsOf(character);
    if (used + needed > columns) {
      lines.push(current);
      current = prefix;
      used = prefix.length;
    }
    current += character;
    used += needed;
  }
  return [...lines, current];
}

function columnsOf(character: string): number {
  if (character >= ' ' && character <= '~') return 1;
  return zeroWidth().test(character) ? 0 : wide().test(character) ? 2 : 1;
}
