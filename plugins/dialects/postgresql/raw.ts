import type { Statement } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import type { Raw } from '../../../core/schema/operation.ts';
import { tokens } from './tokens.ts';

const TRANSACTION_CONTROL =
  /^(begin|commit|rollback|end|abort|savepoint|release|start transaction|prepare transaction)\b/;
const ROUTINE = /^create (or replace )?(function|procedure)\b/;

/** A user's text as a statement. Refuses what would end or begin a transaction behind the engine's back. */
export function raw({ statement: text, check, transaction }: Raw): Statement[] {
  const empty = !refuseUnusable(text);
  if (check !== undefined) refuseUnusable(check);
  if (empty) return [];
  return [
    {
      text,
      // One piece, which `isUsers` knows it by: texts of ours have marks.
      run: [text],
      transactional: transaction !== false,
      // Whether words of a user destroy data is for the user to say.
      destructive: false,
      ...(check !== undefined && { check }),
    },
  ];
}

/** Says whether there is a statement at all. */
function refuseUnusable(text: string): boolean {
  const parts = statements(text);
  for (const { words, copiesToClient } of parts) {
    const beginning = words.join(' ');
    const control = TRANSACTION_CONTROL.exec(beginning)?.[0];
    if (control !== undefined) {
      throw refused(
        `It contains ${control.toUpperCase()}: a migration is one transaction with its history row, and its text may not end it.`,
        ['Remove it.', 'Where the text cannot be in a transaction: transaction: false, and a `check`.'],
      );
    }
    if (beginning.startsWith('discard all')) {
      throw refused('It contains DISCARD ALL, which gives up the migration lock.', ['Remove it.']);
    }
    if (copiesToClient) {
      throw refused(
        'It copies from or to the client, which sends and takes nothing: the session would wait for good.',
        ['Write the rows with INSERT.'],
      );
    }
  }
  return parts.length > 0;
}

function refused(why: string, next: readonly string[]): SvcError {
  return new SvcError('migration_invalid', 'A raw statement cannot be used as it is.', { why, next });
}

interface Part {
  /** The first ones, in lower case; the END of a body is none. */
  readonly words: readonly string[];
  readonly copiesToClient: boolean;
}

/** What stands between semicolons, those inside parentheses and bodies of functions too. */
function statements(text: string): Part[] {
  if (text.includes('\0')) throw refused('It contains a NUL character.', ['Remove the character.']);
  const found: Part[] = [];
  let words: string[] = [];
  let something = false;
  let copiesToClient = false;
  let previous = '';
  let depth = 0;
  /** In the body of a function in standard SQL, BEGIN ATOMIC … END: a last statement of it begins with END. */
  let body = false;
  const close = () => {
    if (something) found.push({ words, copiesToClient });
    words = [];
    something = false;
    copiesToClient = false;
  };
  for (const token of tokens(text)) {
    if (token.kind === 'comment') continue;
    if (token.kind === 'unclosed') throw refused(`What ${token.text} opens is not closed.`, ['Close it.']);
    const last = previous;
    previous = token.kind === 'quoted' ? '' : token.text;
    if (token.text === ';') {
      close();
      continue;
    }
    if (token.kind === 'symbol') depth += token.text === '(' ? 1 : token.text === ')' ? -1 : 0;
    if (token.kind === 'word') {
      const ends = token.text === 'end' && body && (!something || last === 'atomic');
      if (ends) body = false;
      else if (depth === 0 && token.text === 'atomic' && last === 'begin' && ROUTINE.test(words.join(' '))) body = true;
      if (words[0] === 'copy' && depth === 0 && /^(from|to)$/.test(last) && /^std(in|out)$/.test(token.text)) {
        copiesToClient = true;
      }
      if (words.length < 4 && !ends) words.push(token.text);
    }
    something = true;
  }
  close();
  if (body) throw refused('What BEGIN ATOMIC opens is not closed.', ['Close it with END.']);
  if (depth > 0) throw refused('It opens a parenthesis that it does not close.', ['Close it.']);
  return found;
}

/** Why a text cannot stand in parentheses as one expression, or nothing. */
export function expressionProblem(text: string): string | undefined {
  if (text.includes('\0')) return 'It contains a NUL character.';
  let depth = 0;
  for (const token of tokens(text)) {
    if (token.kind === 'unclosed') return `What ${token.text} opens is not closed.`;
    if (token.kind === 'comment') return 'It contains a comment.';
    if (token.text === ';') return 'It contains a semicolon outside of quotes.';
    depth += token.text === '(' ? 1 : token.text === ')' ? -1 : 0;
    if (depth < 0) return 'It closes a parenthesis that it did not open.';
  }
  return depth > 0 ? 'It opens a parenthesis that it does not close.' : undefined;
}
