/** A token of SQL text, as the server's own scanner splits it, without white space. */
interface Token {
  /** `unclosed` extends to the end of the text, and would swallow any text sent after it. */
  readonly kind: 'word' | 'quoted' | 'comment' | 'symbol' | 'unclosed';
  /** Words are in lower case; an `unclosed` token has only its opening characters. */
  readonly text: string;
  /** Where it ends in the whole text. */
  readonly end: number;
}

/*
 * The rules of PostgreSQL's scan.l: every character beyond ASCII is a letter, a carriage return ends a comment, and a
 * number ends with its digits. The session sets `standard_conforming_strings`.
 */
const START =
  /(?<space>[ \t\n\r\f\v]+)|(?<line>--[^\n\r]*)|(?<block>\/\*)|(?<escaped>[eE]')|(?<quote>['"])|(?<dollar>\$(?:[A-Za-z_\u0080-\u{10ffff}][\w\u0080-\u{10ffff}]*)?\$)|(?<word>[A-Za-z_\u0080-\u{10ffff}][\w$\u0080-\u{10ffff}]*)|\d+|[\s\S]/uy;
/** A string literal continues in one that follows on a later line, in the mode of the first. */
const CONTINUATION = /[ \t\f\v]*(?:--[^\n\r]*)?[\n\r](?:[ \t\n\r\f\v]|--[^\n\r]*[\n\r])*'/y;

export function* tokenize(text: string): Generator<Token> {
  let at = 0;
  while (at < text.length) {
    START.lastIndex = at;
    const match = START.exec(text);
    const found = match?.[0] ?? '';
    const { space, line, block, escaped, quote, dollar, word } = match?.groups ?? {};
    const start = at + found.length;
    at = start;
    if (space !== undefined) continue;
    if (line !== undefined) {
      yield { kind: 'comment', text: line, end: at };
      continue;
    }
    if (block ?? escaped ?? quote ?? dollar) {
      at = block ? commentEnd(text, start) : dollar ? dollarEnd(text, start, dollar) : quotedEnd(text, start, found);
      if (at < 0) {
        yield { kind: 'unclosed', text: found, end: text.length };
        return;
      }
      yield { kind: block ? 'comment' : 'quoted', text: text.slice(start - found.length, at), end: at };
      continue;
    }
    yield word === undefined
      ? { kind: 'symbol', text: found, end: at }
      : { kind: 'word', text: word.toLowerCase(), end: at };
  }
}

/** The same, with the parts of a qualified name as one word: `billing.invoices`. */
export function* tokensWithPaths(text: string): Generator<Token> {
  let path: Token | undefined;
  let isOpen = false;
  for (const token of tokenize(text)) {
    if (path && isOpen && isIdentifier(token)) {
      path = { kind: 'word', text: path.text + token.text, end: token.end };
      isOpen = false;
    } else if (path && !isOpen && token.text === '.') {
      path = { ...path, text: `${path.text}.`, end: token.end };
      isOpen = true;
    } else {
      if (path) yield path;
      path = isIdentifier(token) ? token : undefined;
      isOpen = false;
      if (!path) yield token;
    }
  }
  if (path) yield path;
}

const isIdentifier = ({ kind, text }: Token): boolean => kind === 'word' || (kind === 'quoted' && text.startsWith('"'));

function quotedEnd(text: string, start: number, opened: string): number {
  const escapes = opened.length > 1;
  const quote = opened.slice(-1);
  let at = start;
  for (; at < text.length; at += 1) {
    if (escapes && text[at] === '\\') at += 1;
    else if (text[at] === quote) {
      if (text[at + 1] === quote) at += 1;
      else {
        CONTINUATION.lastIndex = at + 1;
        if (!escapes || !CONTINUATION.test(text)) return at + 1;
        at = CONTINUATION.lastIndex - 1;
      }
    }
  }
  return -1;
}

function dollarEnd(text: string, start: number, tag: string): number {
  const end = text.indexOf(tag, start);
  return end < 0 ? -1 : end + tag.length;
}

/** Comments nest. */
function commentEnd(text: string, start: number): number {
  const marks = /\/\*|\*\//g;
  marks.lastIndex = start;
  let depth = 1;
  for (let mark = marks.exec(text); mark; mark = marks.exec(text)) {
    depth += mark[0] === '/*' ? 1 : -1;
    if (depth === 0) return marks.lastIndex;
  }
  return -1;
}
