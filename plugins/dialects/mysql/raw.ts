import type { Statement } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import type { Raw } from '../../../core/schema/operation.ts';
import { tokens } from './tokens.ts';

const TRANSACTION_CONTROL = /^(begin|commit|rollback|savepoint|release savepoint|start transaction|xa)\b/;
const AUTOCOMMIT = /^set\b.*\bautocommit\b/;
/** What follows is a body, in which COMMIT is not ours. A table or a view may be called like that too. */
const ROUTINE =
  /^create( or replace)?( definer( (?!view\b|sql\b)\S+){0,2})?( aggregate)? (procedure|function|trigger|event|package)\b/;
/** END IF closes what only a parser could tell from the function IF(). */
const FLOW = /^(if|loop|while|repeat|for)$/;
/** Commits nothing by itself: it can be in a transaction with its history row. */
const DATA = /^(insert|update|delete|replace|select|with|do|values|table)\b/;
/** Says something of the session and commits nothing; MariaDB's SET STATEMENT … FOR does what stands behind it. */
const NEUTRAL = /^set (?!(password|default role|statement)\b)/;

/**
 * A user's text as a statement. Data changes are in a transaction; whatever else there is commits what was before it,
 * even where it fails, and so has to be alone.
 */
export function raw({ statement: text, check, transaction }: Raw): Statement[] {
  const found = refuseUnusable(text);
  if (check !== undefined) refuseUnusable(check);
  if (found.length === 0) return [];
  const committing = found.filter((words) => !DATA.test(words) && !NEUTRAL.test(words));
  if (committing.length > 0 && found.filter((words) => !NEUTRAL.test(words)).length > 1) {
    throw refused(
      `It has several statements, and ${first(committing[0] ?? '')} commits what stands before it: interrupted, nobody could say how far it came.`,
      ['Make each of them a raw statement of its own.'],
    );
  }
  return [
    {
      text,
      // One piece, which `isUsers` knows it by: texts of ours have marks.
      run: [text],
      transactional: committing.length === 0 && transaction !== false,
      // Whether words of a user destroy data is for the user to say.
      destructive: false,
      ...(check !== undefined && { check }),
    },
  ];
}

const first = (words: string): string => words.split(' ').slice(0, 2).join(' ').toUpperCase();

/** The first words of each statement, in lower case. */
function refuseUnusable(text: string): string[] {
  const parts = statements(text);
  for (const words of parts) {
    const control = AUTOCOMMIT.test(words) ? 'set autocommit' : TRANSACTION_CONTROL.exec(words)?.[0];
    if (control !== undefined) {
      throw refused(
        `It contains ${control.toUpperCase()}: svc begins and ends transactions itself, with the history row in them.`,
        ['Remove it.'],
      );
    }
    if (/^(delimiter|source)\b/.test(words)) {
      throw refused(`It contains ${first(words)}, which is a command of the client program and not of the server.`, [
        'Remove it: the body of a routine may contain semicolons.',
      ]);
    }
    if (/^load (data|xml)\b.*\blocal\b/.test(words)) {
      throw refused('It reads a file of the client, which sends none.', ['Write the rows with INSERT.']);
    }
  }
  return parts;
}

function refused(why: string, next: readonly string[]): SvcError {
  return new SvcError('migration_invalid', 'A raw statement cannot be used as it is.', { why, next });
}

/** Words of a statement that are looked at. */
const WORDS = 12;

function statements(text: string): string[] {
  if (text.includes('\0')) throw refused('It contains a NUL character.', ['Remove the character.']);
  const found: string[] = [];
  let words: string[] = [];
  let something = false;
  let depth = 0;
  /** Where a routine begins in `found`, and how many BEGIN and CASE are open in its body. */
  let routine: number | undefined;
  let blocks = 0;
  const all = [...tokens(text)].filter(({ kind }) => kind !== 'comment');
  for (const [at, token] of all.entries()) {
    if (token.kind === 'unclosed') throw refused(`What ${token.text} opens is not closed.`, ['Close it.']);
    if (token.kind === 'executable') {
      throw refused('It has a comment that the server runs, /*! … */, of which svc cannot tell what it does.', [
        'Write what is in it without the comment.',
      ]);
    }
    if (token.text === ';' && blocks === 0) {
      if (something) found.push(words.join(' '));
      words = [];
      something = false;
      continue;
    }
    if (token.kind === 'symbol') depth += token.text === '(' ? 1 : token.text === ')' ? -1 : 0;
    if (token.kind === 'word' && words.length < WORDS) words.push(token.text);
    something = true;
    if (ROUTINE.test(words.join(' '))) routine = found.length;
    if (routine === undefined) continue;
    if (token.text === 'begin' || (token.text === 'case' && all[at - 1]?.text !== 'end')) blocks += 1;
    if (token.text !== 'end') continue;
    if (blocks > 0) {
      if (!FLOW.test(all[at + 1]?.text ?? '')) blocks -= 1;
      continue;
    }
    // What was taken for the end of the body was none.
    words = found[routine]?.split(' ') ?? words;
    found.length = routine;
  }
  if (something) found.push(words.join(' '));
  if (depth > 0) throw refused('It opens a parenthesis that it does not close.', ['Close it.']);
  return found;
}

/** Why a text cannot stand in parentheses as one expression, or nothing. */
export function expressionProblem(text: string): string | undefined {
  if (text.includes('\0')) return 'It contains a NUL character.';
  let depth = 0;
  for (const token of tokens(text)) {
    if (token.kind === 'unclosed') return `What ${token.text} opens is not closed.`;
    if (token.kind === 'comment' || token.kind === 'executable') return 'It contains a comment.';
    if (token.text === ';') return 'It contains a semicolon outside of quotes.';
    depth += token.text === '(' ? 1 : token.text === ')' ? -1 : 0;
    if (depth < 0) return 'It closes a parenthesis that it did not open.';
  }
  return depth > 0 ? 'It opens a parenthesis that it does not close.' : undefined;
}
