/** A text as a person sees it, and whether anything was left out. @experimental */
export interface DisplayedText {
  readonly text: string;
  /** False if the text was cut. Do not ask anybody to approve what they cannot see. */
  readonly complete: boolean;
}

/** @experimental */
export interface DisplayLimit {
  /** The longest text that the medium accepts, in UTF-16 code units (`text.length`), including the escapes of `escape`. */
  readonly maxLength: number;
  /** Escapes the markup of the medium. The cut is never inside an escape. */
  readonly escape?: (text: string) => string;
}

/** Cuts text that is safe to show. A cut text ends with its full length. */
export function limitText(text: string, { maxLength, escape: escaped = (part) => part }: DisplayLimit): DisplayedText {
  const whole = escaped(text);
  if (whole.length <= maxLength) return { text: whole, complete: true };
  const characters = [...text];
  const suffix = escaped(lengthText(characters.length));
  let [fits, tooLong] = [0, characters.length];
  while (tooLong - fits > 1) {
    const middle = Math.floor((fits + tooLong) / 2);
    if (escaped(characters.slice(0, middle).join('')).length + suffix.length <= maxLength) fits = middle;
    else tooLong = middle;
  }
  return { text: `${escaped(characters.slice(0, fits).join(''))}${suffix}`.slice(0, maxLength), complete: false };
}

/** Cuts text that is safe to show to a number of characters. */
export function shorten(displayed: string, length: number): DisplayedText {
  const characters = [...displayed];
  if (characters.length <= length) return { text: displayed, complete: true };
  const suffix = lengthText(characters.length);
  return { text: `${characters.slice(0, Math.max(0, length - suffix.length)).join('')}${suffix}`, complete: false };
}

const lengthText = (characters: number): string => ` … (${characters} characters)`;
