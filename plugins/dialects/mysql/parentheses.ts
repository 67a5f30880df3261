const PIECES = /'(?:[^'\\]|\\.|'')*'|`(?:[^`]|``)*`|[()]|[^'`()]+/gs;

/** Without parentheses around the whole, which every catalog adds in its own way. */
export function withoutOuter(expression: string): string {
  if (!expression.startsWith('(') || !expression.endsWith(')')) return expression;
  let depth = 0;
  let at = 0;
  for (const [piece] of expression.matchAll(PIECES)) {
    depth += piece === '(' ? 1 : piece === ')' ? -1 : 0;
    at += piece.length;
    if (depth === 0) return at === expression.length ? withoutOuter(expression.slice(1, -1)) : expression;
  }
  return expression;
}

/** What stands behind a word that is in no quotes and no parentheses. */
export function behind(word: string, text: string): string | undefined {
  let depth = 0;
  let at = 0;
  for (const [piece] of text.matchAll(PIECES)) {
    depth += piece === '(' ? 1 : piece === ')' ? -1 : 0;
    const found = depth === 0 && !/^['`]/.test(piece) ? piece.indexOf(word) : -1;
    if (found >= 0) return text.slice(at + found + word.length);
    at += piece.length;
  }
  return undefined;
}
