import { lazy } from './lazy.ts';
import { lookAlikes } from './look-alikes.ts';

/** Why a character is written out as `\u{…}`. */
export type Misleading = 'invisible' | 'blank' | 'spaces' | 'punctuation' | 'letters' | 'combining' | 'reserved';

/**
 * Controls (ANSI escapes too), bidirectional and zero-width characters, default-ignorable ones (fillers, variation
 * selectors, tags), lone surrogates, private and unassigned code points, and characters that are drawn as nothing.
 */
const invisible = lazy(
  () => /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\ufffc\u{1d159}\u{13441}\u{13442}]/gu,
);
const blank = lazy(() => /(?! )\p{Zs}/gu);
/** Joiners that change the shape of the letters around them, by Unicode TS 31: in Persian, and after a virama. */
const shaping = lazy(
  () =>
    /(?<=(?![\u0622-\u0625\u0627\u0629\u062f-\u0632\u0648])\p{Script=Arabic})\u200c(?=\p{Script=Arabic})|(?<=[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca])[\u200c\u200d](?=\p{L})/gu,
);
/** Emoji that consist of several characters, some of them invisible alone. */
// biome-ignore lint/complexity/useRegexLiterals: the compiler allows the flag v in a literal only for a later target.
const emoji = lazy(() => new RegExp('\\p{RGI_Emoji}', 'gv'));
const EMOJI_PARTS = /[\u200d\ufe0f\u{e007f}]/u;

/** Characters that look like a quotation mark, except those of ordinary typography. */
const quotes = lazy(
  () => /(?<!\p{Script=Hebrew})\u05f4|[\u02ba\u02dd\u02ee\u02f6\u1cd3\u2036\u3003\uff02]|(?<!\d)\u2033/gu,
);
/** Typographic ones look like those of JSON where a colon follows. */
const typographic = lazy(() => /[\u201c-\u201f\u275d\u275e\u301d-\u301f\u2033\u05f4]/gu);
const typographicKey = lazy(
  () =>
    /[\u201c-\u201f\u275d\u275e\u301d-\u301f\u2033\u05f4]\s*[:\u02d0\u02f8\u0589\u05c3\u2236\ua789\ufe13\ufe55\uff1a]/u,
);
/** Characters that look like those of an address, inside one. */
const address = lazy(
  () =>
    /(?<=[a-z0-9])[\u2024\u2044\u2215\u2236\u29f8\ua789\ufe52\ufe55\ufe6b\uff0e\uff0f\uff1a\uff20](?=[a-z/\u2044\u2215\u29f8\uff0f])/giu,
);

/** What this folder writes itself. */
export const CONTINUATION = '↪';
const RESERVED = /\u21aa/gu;
const OWN_MARK = /\\(?=u\{)/g;

const SPACES = / {2,}/g;
const SPACES_IN_LINE = /(?<=[^\n ]) {2,}/g;

const cluster = lazy(() => /(\P{M}?)(\p{M}+)/gu);
/** Marks that are drawn over or around a letter, such as a line through it. */
const overlays = lazy(() => /[\u0334-\u0338]|[\u0488-\u0489]|[\u20d0-\u20f0]|\u1abe/u);
/** The most marks on one letter: Vietnamese and Greek need two, apart from precomposed ones, TS 39 allows four. */
const MAX_INHERITED = 2;
const MAX_MARKS = 4;

/** Text that needs no further look: most text. */
const NEEDS_NO_LOOK = /^(?!.*(?: {2}|\\u\{))[ -~]*$/;

/**
 * Where text is shown: on one `line`, on `lines` of its own (which keeps line breaks, tabs and indentation), or in a
 * string of `json` (which escapes line breaks, tabs and backslashes).
 */
export type Place = 'line' | 'lines' | 'json';

/** The misleading characters of a text, by the index of their first code unit. */
export function misleadingCharacters(text: string, place: Place): ReadonlyMap<number, Misleading> {
  const found = new Map<number, Misleading>();
  if (NEEDS_NO_LOOK.test(text)) return found;
  const add = (kind: Misleading, pattern: RegExp): void => {
    for (const { 0: part, index } of text.matchAll(pattern)) {
      let at = index;
      for (const character of part) {
        found.set(at, kind);
        at += character.length;
      }
    }
  };
  add('spaces', place === 'lines' ? SPACES_IN_LINE : SPACES);
  if (place !== 'json') add('reserved', OWN_MARK);
  if (/[^\n\t -~]/.test(text)) {
    add('punctuation', quotes());
    if (typographicKey().test(text)) add('punctuation', typographic());
    add('punctuation', address());
    add('reserved', RESERVED);
    for (const start of lookAlikes(text)) found.set(start, 'letters');
    addCombining(text, found);
    add('blank', blank());
  }
  add('invisible', invisible());
  if (/[^\n\t -~]/.test(text)) {
    remove(text, shaping(), found);
    if (EMOJI_PARTS.test(text)) remove(text, emoji(), found);
  }
  if (place !== 'line') remove(text, place === 'json' ? /[\b\t\n\f\r]/g : /[\t\n]/g, found);
  return found;
}

/** Whether text that a person reads still has invisible characters. */
export function hasInvisible(text: string): boolean {
  return [...misleadingCharacters(text, 'lines').values()].some((kind) => kind === 'invisible' || kind === 'blank');
}

function remove(text: string, pattern: RegExp, found: Map<number, Misleading>): void {
  for (const { 0: part, index } of text.matchAll(pattern)) {
    if (part.startsWith(CONTINUATION)) continue;
    for (let at = index; at < index + part.length; at += 1) found.delete(at);
  }
}

function addCombining(text: string, found: Map<number, Misleading>): void {
  for (const { 1: base = '', 2: marks = '', index } of text.matchAll(cluster())) {
    if (!found.has(index) && isOrdinary(base, marks)) continue;
    let at = index + base.length;
    for (const mark of marks) {
      found.set(at, 'combining');
      at += mark.length;
    }
  }
}

/** Whether marks on a letter are those of ordinary spelling. */
function isOrdinary(base: string, marks: string): boolean {
  if (base === '') return false;
  const composed = [...(base + marks).normalize('NFC')];
  if (composed.length === 1) return true;
  const rest = composed.slice(1).filter((mark) => /[\p{Mn}\p{Me}]/u.test(mark));
  if (rest.length === 0) return true;
  if (!/\p{L}/u.test(base) || overlays().test(marks)) return false;
  if (rest.some((mark, at) => mark === rest[at - 1])) return false;
  return rest.length <= (rest.some((mark) => /\p{Script=Inherited}/u.test(mark)) ? MAX_INHERITED : MAX_MARKS);
}
