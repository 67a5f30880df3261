/** A piece of SQL text as the server's own scanner cuts it, without white space. */
export interface Token {
  /** `unclosed` runs to the end of the text: whatever is sent behind it would be swallowed. */
  readonly kind: 'word' | 'quoted' | 'comment' | 'symbol' | 'unclosed';
  /** A word in lower case; of what is `unclosed` only what opens it. */
  readonly text: string;
}

/*
 * As scan.l has it: every character beyond ASCII is a letter, a carriage return ends a comment, and a number ends
 * with its digits. `standard_conforming_strings` is on, which the session sees to.
 */
const START =
  /(?<space>[ \t\n\r\f\v]+)|(?<line>--[^\n\r]*)|(?<block>\/\*)|(?<escaped>[eE]')|(?<quote>['"])|(?<dollar>\$(?:[A-Za-z_\u0080-\u{10ffff}][\w\u0080-\u{10ffff}]*)?\$)|(?<word>[A-Za-z_\u0080-\u{10ffff}][\w$\u0080-\u{10ffff}]*)|\d+|[\s\S]/uy;
/** A string goes on, in the mode it began with, where another one follows on a later line. */
const CONTINUED = /[ \t\f\v]*(?:--[^\n\r]*)?[\n\r](?:[ \t\n\r\f\v]|--[^\n\r]*[\n\r])*'/y;

export function* tokens(text: string): Generator<Token> {
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
      yield { kind: 'comment', text: line };
      continue;
    }
    if (block ?? escaped ?? quote ?? dollar) {
      at = block ? commentEnd(text, start) : dollar ? dollarEnd(text, start, dollar) : quotedEnd(text, start, found);
      if (at < 0) {
        yield { kind: 'unclosed', text: found };
        return;
      }
      yield { kind: block ? 'comment' : 'quoted', text: text.slice(start - found.length, at) };
      continue;
    }
    yield word === undefined ? { kind: 'symbol', text: found } : { kind: 'word', text: word.toLowerCase() };
  }
}

function quotedEnd(text: string, start: number, opened: string): number {
  const escapes = opened.length > 1;
  const quote = opened.slice(-1);
  let at = start;
  for (; at < text.length; at += 1) {
    if (escapes && text[at] === '\\') at += 1;
    else if (text[at] === quote) {
      if (text[at + 1] === quote) at += 1;
      else {
        CONTINUED.lastIndex = at + 1;
        if (!escapes || !CONTINUED.test(text)) return at + 1;
        at = CONTINUED.lastIndex - 1;
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
