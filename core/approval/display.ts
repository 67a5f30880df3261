import type { Json } from '../json.ts';

/**
 * Characters that show nothing or something else than they are: controls (ANSI begins with one), bidirectional and
 * zero-width ones, what Unicode lets a screen ignore (fillers, variation selectors, tags), lone surrogates, what is
 * private or unassigned, the empty pattern of Braille, and spaces that are none.
 */
const DECEIVING = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu;

/**
 * A model's text as a person may safely be shown it: what deceives stands as `\u{…}`. Line breaks and tabs too, unless
 * `lines`.
 * @experimental
 */
export function displayed(text: string, { lines = false }: { readonly lines?: boolean } = {}): string {
  return text.replace(DECEIVING, (character) => {
    if (lines && (character === '\n' || character === '\t')) return character;
    if (character === '\n') return '\\n';
    return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/** The same on a line of `length` characters at most; what was cut is counted. @experimental */
export function shortened(text: string, length: number): { readonly text: string; readonly whole: boolean } {
  const shown = displayed(text);
  const characters = [...shown];
  if (characters.length <= length) return { text: shown, whole: true };
  const mark = ` … (${characters.length} characters)`;
  return { text: `${characters.slice(0, Math.max(0, length - mark.length)).join('')}${mark}`, whole: false };
}

/** Parameters, one value over as many lines as it needs; nothing is left out. @experimental */
export function displayedJson(value: Json | object): string {
  return displayed(JSON.stringify(value, null, 2), { lines: true });
}

/** JSON text in which nothing deceives and that still says the same: escaped as JSON escapes. */
export function harmlessJson(json: string): string {
  return json.replace(DECEIVING, (characters) => {
    // Strings hold none: it is between the lines of the text.
    if (characters === '\n') return characters;
    const units = Array.from({ length: characters.length }, (_, at) => characters.charCodeAt(at));
    return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
  });
}
