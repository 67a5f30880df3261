/** Quoted texts and names, comments, and what else can hide the end of an expression. */
const TOKENS = /'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|--|\/\*|[()';"`;]|[^'"`[\]();/-]+|./gs;

/** Why a text cannot stand in parentheses as one expression of standard SQL, or nothing. */
export function expressionProblem(text: string): string | undefined {
  let depth = 0;
  for (const [token] of text.matchAll(TOKENS)) {
    if (token === '(') depth += 1;
    if (token === ')') depth -= 1;
    if (depth < 0) return 'It closes a parenthesis that it does not open.';
    if (token === ';') return 'It has a semicolon.';
    if (token === '--' || token === '/*') return 'It has a comment.';
    if (token === "'" || token === '"' || token === '`') return `It has a ${token} that is not closed.`;
  }
  return depth > 0 ? 'It opens a parenthesis that it does not close.' : undefined;
}
