import type { Statement } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import type { Raw } from '../../../core/schema/operation.ts';

const TRANSACTION_CONTROL =
  /^(begin|commit|rollback|end|abort|savepoint|release|start transaction|prepare transaction)\b/;

/** A user's text as a statement. Refuses what would end or begin a transaction behind the engine's back. */
export function raw({ statement: text, check, transaction }: Raw): Statement[] {
  const parts = statements(text);
  const control = parts
    .map((words) => TRANSACTION_CONTROL.exec(words.join(' '))?.[0])
    .find((word) => word !== undefined);
  if (control !== undefined) {
    throw refused(
      `It contains ${control.toUpperCase()}: a migration is one transaction with its history row, and its text may not end it.`,
      ['Remove it.', 'Where the text cannot be in a transaction: transaction: false, and a `check`.'],
    );
  }
  if (parts.length === 0) return [];
  return [
    {
      text,
      run: [text],
      transactional: transaction !== false,
      // Whether words of a user destroy data is for the user to say.
      destructive: false,
      ...(check !== undefined && { check }),
    },
  ];
}

function refused(why: string, next: readonly string[]): SvcError {
  return new SvcError('migration_invalid', 'A raw statement cannot be used as it is.', { why, next });
}

const TOKEN =
  /--[^\n]*|\/\*|[eE]'(?:[^'\\]|\\[\s\S]|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$|[\p{L}_][\p{L}\p{N}_$]*|\d[\p{L}\p{N}_$.]*|\s+|[\s\S]/uy;

/** The first words of every statement in a text, in lower case; comments, literals and bodies are passed over. */
export function statements(text: string): string[][] {
  if (text.includes('\0')) throw refused('It contains a NUL character.', ['Remove the character.']);
  const found: string[][] = [];
  let words: string[] = [];
  let something = false;
  /** Depth inside the body of a function in standard SQL: BEGIN ATOMIC … END. */
  let body = 0;
  const close = () => {
    if (something) found.push(words.slice(0, 2));
    words = [];
    something = false;
  };
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const start = TOKEN.lastIndex;
    const token = TOKEN.exec(text)?.[0] ?? '';
    if (token.startsWith('--') || token.trim() === '') continue;
    if (token === '/*') {
      TOKEN.lastIndex = commentEnd(text, start);
      continue;
    }
    if (token === ';' && body === 0) {
      close();
      continue;
    }
    something = true;
    if (token.length > 1 && token.startsWith('$') && token.endsWith('$')) {
      const end = text.indexOf(token, TOKEN.lastIndex);
      if (end < 0) throw refused(`What ${token} opens is not closed.`, ['Close it.']);
      TOKEN.lastIndex = end + token.length;
    } else if (token === "'" || token === '"') {
      throw refused(`A ${token} is not closed.`, ['Close it.']);
    } else if (/^[\p{L}_]/u.test(token) && !token.endsWith("'")) {
      const word = token.toLowerCase();
      if (body > 0) body += word === 'case' ? 1 : word === 'end' ? -1 : 0;
      else if (word === 'atomic' && words.at(-1) === 'begin') body = 1;
      words.push(word);
    }
  }
  close();
  return found;
}

/** Comments nest. */
function commentEnd(text: string, start: number): number {
  const marks = /\/\*|\*\//g;
  marks.lastIndex = start;
  let depth = 0;
  for (let mark = marks.exec(text); mark; mark = marks.exec(text)) {
    depth += mark[0] === '/*' ? 1 : -1;
    if (depth === 0) return marks.lastIndex;
  }
  throw refused('A comment is not closed.', ['Close it.']);
}
