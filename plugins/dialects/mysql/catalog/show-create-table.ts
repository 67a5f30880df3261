import { quoteIdentifier } from '../compile/literal.ts';

const PIECES = /'(?:[^'\\]|\\.|'')*'|`(?:[^`]|``)*`|[()]|[^'`()]+/gs;

/** Removes parentheses around the whole expression, which the catalogs add differently. */
export function withoutOuterParentheses(expression: string): string {
  if (!expression.startsWith('(') || !expression.endsWith(')')) return expression;
  let depth = 0;
  let at = 0;
  for (const [piece] of expression.matchAll(PIECES)) {
    depth += piece === '(' ? 1 : piece === ')' ? -1 : 0;
    at += piece.length;
    if (depth === 0) return at === expression.length ? withoutOuterParentheses(expression.slice(1, -1)) : expression;
  }
  return expression;
}

/** A text of the server without the name of the database before other names. */
export function withoutDatabase(text: string, database: string): string {
  const prefix = `${quoteIdentifier(database)}.`;
  return text.replace(/'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`(?:\.)?/gs, (part) =>
    part === prefix ? '' : part,
  );
}

/** The text after a word that is outside quotes and parentheses. */
export function textAfter(word: string, text: string): string | undefined {
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

/** The columns in an expression as the server spells it. */
export function columnsIn(expression: string, columns: readonly string[]): string[] {
  return columns.filter((name) => expression.includes(quoteIdentifier(name))).sort();
}

/** The rest of the line of `SHOW CREATE TABLE` with this beginning. */
export function lineOf(beginning: string, table: string): string {
  const line = table.split('\n').find((one) => one.startsWith(`  ${beginning}`)) ?? '';
  return line.slice(beginning.length + 2).replace(/,$/, '');
}

/**
 * Replaces supplementary characters with unused ones, and `restore` restores them: `SHOW CREATE TABLE` of MySQL returns
 * question marks for them.
 */
export function replaceSupplementary(text: string): { readonly text: string; restore(shown: string): string } {
  const supplementary = [...new Set(text.match(/[\u{10000}-\u{10ffff}]/gu))];
  const replacements = new Map<string, string>();
  for (let code = 0xe000; replacements.size < supplementary.length && code < 0xf900; code += 1) {
    const free = String.fromCharCode(code);
    const letter = supplementary[replacements.size];
    if (letter !== undefined && !text.includes(free)) replacements.set(letter, free);
  }
  const letters = new Map([...replacements].map(([letter, free]) => [free, letter]));
  return {
    text: text.replace(/[\u{10000}-\u{10ffff}]/gu, (letter) => replacements.get(letter) ?? letter),
    restore: (shown) => shown.replace(/[\ue000-\uf8ff]/g, (free) => letters.get(free) ?? free),
  };
}
