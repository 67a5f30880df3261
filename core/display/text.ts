import { type DisplayedText, shorten } from './limit.ts';
import { type Misleading, misleadingCharacters, type Place } from './misleading.ts';

/**
 * Text from a model, safe to show to a person. What is invisible or misleads is written as `\u{…}`, and `\u{…×n}` for n
 * times: control, bidirectional and zero-width characters, runs of spaces, letters that look like others, such as those of
 * a Latin word in Cyrillic, look-alike quotation marks, and combining marks beyond ordinary spelling. `lines` preserves
 * line breaks, tabs and indentation.
 * @experimental
 */
export function displayText(text: string, { lines = false }: { readonly lines?: boolean } = {}): string {
  return writeOut(text, lines ? 'lines' : 'line');
}

/** As `displayText`, on one line of at most `length` characters. A cut text ends with its full length. @experimental */
export function shortenText(text: string, length: number): DisplayedText {
  return shorten(displayText(text), length);
}

/** Writes out what cannot be seen, in text of our own that quotes other text: it may have line breaks and several spaces. */
export function escapeInvisible(text: string): string {
  return writeOut(text, 'lines', undefined, (kind) => kind === 'invisible');
}

/** `literal` escapes the parts that are not written out. */
export function writeOut(
  text: string,
  place: Place,
  literal = (part: string): string => part,
  includes = (_kind: Misleading): boolean => true,
): string {
  const misleading = new Map([...misleadingCharacters(text, place)].filter(([, kind]) => includes(kind)));
  if (misleading.size === 0) return literal(text);
  return parts(text, misleading)
    .map(({ part, kind, times }) => (kind === undefined ? literal(part) : mark(part, times)))
    .join('');
}

function mark(character: string, times: number): string {
  if (character === '\n' && times === 1) return '\\n';
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}${times === 1 ? '' : `×${times}`}}`;
}

interface Part {
  part: string;
  readonly kind: Misleading | undefined;
  times: number;
}

/** Ordinary parts, and misleading characters with how often they are repeated. */
function parts(text: string, misleading: ReadonlyMap<number, Misleading>): Part[] {
  const found: Part[] = [];
  let at = 0;
  for (const character of text) {
    const kind = misleading.get(at);
    const last = found.at(-1);
    if (last === undefined || last.kind !== kind || (kind !== undefined && last.part !== character)) {
      found.push({ part: character, kind, times: 1 });
    } else if (kind === undefined) last.part += character;
    else last.times += 1;
    at += character.length;
  }
  return found;
}
