import type { Json } from '../json.ts';

/**
 * Characters that are invisible or misleading: controls (ANSI escapes too), bidirectional and zero-width characters,
 * default-ignorable ones (fillers, variation selectors, tags), lone surrogates, private and unassigned code points, the
 * blank Braille pattern, and every space except U+0020.
 */
const UNSAFE_CHARACTERS = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu;

/**
 * Text from a model, safe to show to a person: invisible and misleading characters are written as `\u{…}`. `lines`
 * preserves line breaks and tabs.
 * @experimental
 */
export function displayText(text: string, { lines = false }: { readonly lines?: boolean } = {}): string {
  return text.replace(UNSAFE_CHARACTERS, (character) => {
    if (lines && (character === '\n' || character === '\t')) return character;
    if (character === '\n') return '\\n';
    return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/** As `displayText`, on one line of at most `length` characters. A cut text ends with its full length. @experimental */
export function shortenText(text: string, length: number): { readonly text: string; readonly complete: boolean } {
  const displayed = displayText(text);
  const characters = [...displayed];
  if (characters.length <= length) return { text: displayed, complete: true };
  const suffix = ` … (${characters.length} characters)`;
  return { text: `${characters.slice(0, Math.max(0, length - suffix.length)).join('')}${suffix}`, complete: false };
}

/** Indented JSON, safe to show to a person and complete. @experimental */
export function displayJson(value: Json | object): string {
  return displayText(JSON.stringify(value, null, 2), { lines: true });
}

/** Escapes invisible and misleading characters in JSON text as `\uXXXX`; its value stays the same. */
export function escapeJson(json: string): string {
  return json.replace(UNSAFE_CHARACTERS, (characters) => {
    // Indentation: JSON strings contain no raw line breaks.
    if (characters === '\n') return characters;
    const units = Array.from({ length: characters.length }, (_, at) => characters.charCodeAt(at));
    return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
  });
}
