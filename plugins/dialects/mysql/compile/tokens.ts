/** A token of SQL as the server's own lexer splits it, without white space. */
export interface Token {
  /** `executable`: a comment whose content the server runs. `unclosed`: extends to the end and would swallow any text sent after it. */
  readonly kind: 'word' | 'quoted' | 'comment' | 'executable' | 'symbol' | 'unclosed';
  /** A word is in lower case; an `unclosed` token is only its opening character. */
  readonly text: string;
  /** Where it begins in the SQL. */
  readonly at: number;
}

/* Backslashes escape in ' and ", not in `. The session has neither ANSI_QUOTES nor NO_BACKSLASH_ESCAPES. */
const START =
  /(?<space>\s+)|(?<line>#[^\n]*|--(?=[\s\p{Cc}]|$)[^\n]*)|(?<block>\/\*)|(?<quote>['"`])|(?<word>[\p{L}\p{N}_$\u0080-\uffff]+)|[\s\S]/uy;

export function* tokenize(text: string): Generator<Token> {
  let end = 0;
  while (end < text.length) {
    const at = end;
    START.lastIndex = at;
    const match = START.exec(text);
    const found = match?.[0] ?? '';
    const { space, line, block, quote, word } = match?.groups ?? {};
    const start = at + found.length;
    end = start;
    if (space !== undefined) continue;
    if (line !== undefined) {
      yield { kind: 'comment', text: line, at };
      continue;
    }
    if (block ?? quote) {
      end = block ? text.indexOf('*/', start) + 2 : quotedEnd(text, start, found);
      if (end < start) {
        yield { kind: 'unclosed', text: found, at };
        return;
      }
      const whole = text.slice(at, end);
      if (quote) yield { kind: 'quoted', text: whole, at };
      else yield { kind: /^\/\*M?!/.test(whole) ? 'executable' : 'comment', text: whole, at };
      continue;
    }
    yield word === undefined ? { kind: 'symbol', text: found, at } : { kind: 'word', text: word.toLowerCase(), at };
  }
}

function quotedEnd(text: string, start: number, quote: string): number {
  for (let at = start; at < text.length; at += 1) {
    if (quote !== '`' && text[at] === '\\') at += 1;
    else if (text[at] === quote) {
      if (text[at + 1] !== quote) return at + 1;
      at += 1;
    }
  }
  return -1;
}
