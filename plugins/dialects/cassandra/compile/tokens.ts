/** White space and comments; quoted strings, names and $$ strings; an unclosed quote or comment; a word; any other character. */
const TOKEN =
  /(?<space>\s+|--[^\n]*|\/\/[^\n]*|\/\*[\s\S]*?\*\/)|(?<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*"|\$\$[\s\S]*?\$\$)|(?<open>'|"|\$\$|\/\*)|(?<word>[A-Za-z_]\w*)|(?<number>\d+(?:\.\d+)?)|[\s\S]/y;

export interface Token {
  readonly kind: 'quoted' | 'open' | 'word' | 'number' | 'other';
  readonly text: string;
}

/** The tokens of a CQL text, without white space and comments. */
export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  for (let at = 0; at < text.length; ) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    const found = match?.[0] ?? text.charAt(at);
    at += found.length;
    const { space, quoted, open, word, number } = match?.groups ?? {};
    if (space !== undefined) continue;
    const kind = quoted ? 'quoted' : open ? 'open' : word ? 'word' : number ? 'number' : 'other';
    tokens.push({ kind, text: found });
  }
  return tokens;
}

/** A name as the catalog prints it: without quotes where it needs none. */
export function catalogName({ kind, text }: Token): string {
  if (kind !== 'quoted') return text.toLowerCase();
  const name = text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : '';
  return /^[a-z]\w*$/.test(name) && name === name.toLowerCase() ? name : text;
}

/** The name without its quotes. */
export const nameOf = ({ kind, text }: Token): string =>
  kind === 'quoted' ? text.slice(1, -1).replaceAll(text.charAt(0).repeat(2), text.charAt(0)) : text.toLowerCase();

/** Reads tokens one after the other. */
export class TokenReader {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(text: string) {
    this.#tokens = tokenize(text);
  }

  peek(ahead = 0): Token | undefined {
    return this.#tokens[this.#at + ahead];
  }

  next(): Token | undefined {
    const token = this.peek();
    this.#at += 1;
    return token;
  }

  /** Whether the next tokens are these words, in any letter case; they are then read. */
  take(...words: readonly string[]): boolean {
    const isNext = words.every((word, at) => this.peek(at)?.text.toLowerCase() === word);
    if (isNext) this.#at += words.length;
    return isNext;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#tokens.length;
  }
}
