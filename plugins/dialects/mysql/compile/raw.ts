import type { Statement } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import type { Raw } from '../../../../core/schema/operation.ts';
import type { RawSql } from '../../sql/statement.ts';
import { tokensProblem } from '../../sql/validate.ts';
import { tokenize } from './tokens.ts';

const TRANSACTION_CONTROL = /^(begin|commit|rollback|savepoint|release savepoint|start transaction|xa)\b/;
const AUTOCOMMIT = /^set\b.*\bautocommit\b/;
/** A body follows, in which COMMIT is allowed. The words may also be the name of a table or view. */
const ROUTINE =
  /^create( or replace)?( definer( (?!view\b|sql\b)\S+){0,2})?( aggregate)? (procedure|function|trigger|event|package)\b/;
/** END IF: only a full parser could match it with IF, which is also a function. */
const FLOW = /^(if|loop|while|repeat|for)$/;
/** Does not commit, so it can be in a transaction with its history row. */
const DATA_CHANGE = /^(insert|update|delete|replace|select|with|do|values|table)\b/;
/** Only changes the session and does not commit. MariaDB's SET STATEMENT … FOR runs the statement that follows. */
const SESSION_ONLY = /^set (?!(password|default role|statement)\b)/;

/** Data changes run in a transaction. Any other statement commits the earlier ones, even if it fails, and must be alone. */
export function compileRaw({ statement: text, check, transaction }: Raw): Statement<RawSql>[] {
  const { found, separators } = splitUsable(text);
  if (check !== undefined) assertUsable(check);
  if (found.length === 0) return [];
  const committing = found.filter((words) => !DATA_CHANGE.test(words) && !SESSION_ONLY.test(words));
  if (committing.length > 0 && found.filter((words) => !SESSION_ONLY.test(words)).length > 1) {
    throw unusable(
      `It has several statements, and ${firstWords(committing[0] ?? '')} commits those before it: after an interruption, the progress would be unknown.`,
      ['Use a separate raw statement for each.'],
    );
  }
  return [
    {
      text,
      run: { kind: 'raw', sql: blank(text, separators) },
      transactional: committing.length === 0 && transaction !== false,
      // svc cannot know whether raw text destroys data.
      destructive: false,
      ...(check !== undefined && { check }),
    },
  ];
}

/** With a space in place of each character. */
const blank = (text: string, positions: readonly number[]): string =>
  positions.reduce((sql, at) => `${sql.slice(0, at)} ${sql.slice(at + 1)}`, text);

const firstWords = (words: string): string => words.split(' ').slice(0, 2).join(' ').toUpperCase();

/** The first words of each statement, in lower case. Throws `migration_invalid` for text that svc cannot run. */
export const assertUsable = (text: string): string[] => splitUsable(text).found;

function splitUsable(text: string): Split {
  const split = splitStatements(text);
  for (const words of split.found) {
    const control = AUTOCOMMIT.test(words) ? 'set autocommit' : TRANSACTION_CONTROL.exec(words)?.[0];
    if (control !== undefined) {
      throw unusable(
        `It contains ${control.toUpperCase()}: svc manages transactions itself, so that they include the history row.`,
        ['Remove it.'],
      );
    }
    if (/^(delimiter|source)\b/.test(words)) {
      throw unusable(`It contains ${firstWords(words)}, which is a command of the client program, not of the server.`, [
        'Remove it: the body of a routine may contain semicolons.',
      ]);
    }
    if (/^load (data|xml)\b.*\blocal\b/.test(words)) {
      throw unusable('It reads a file of the client, which svc does not send.', ['Insert the rows with INSERT.']);
    }
  }
  return split;
}

function unusable(why: string, next: readonly string[]): SvcError {
  return new SvcError('migration_invalid', 'A raw statement is not allowed.', { why, next });
}

/** The number of first words that the patterns read. */
const MAX_WORDS = 12;

interface Split {
  /** The first words of each statement. */
  readonly found: string[];
  /** Where semicolons are that separate nothing. The server rejects an empty statement, also between this text and what is sent after it. */
  readonly separators: readonly number[];
}

function splitStatements(text: string): Split {
  if (text.includes('\0')) throw unusable('It contains a NUL character.', ['Remove the character.']);
  const found: string[] = [];
  const separators: number[] = [];
  let lastSeparator: number | undefined;
  let words: string[] = [];
  let hasToken = false;
  let depth = 0;
  /** The index in `found` of a routine, and the number of open BEGIN and CASE in its body. */
  let routine: number | undefined;
  let blocks = 0;
  const all = [...tokenize(text)].filter(({ kind }) => kind !== 'comment');
  for (const [at, token] of all.entries()) {
    if (token.kind === 'unclosed') throw unusable(`It has an unclosed ${token.text}.`, ['Close it.']);
    if (token.kind === 'executable') {
      throw unusable('It contains a comment that the server executes, /*! … */, which svc cannot analyze.', [
        'Write its content without the comment.',
      ]);
    }
    if (token.text === ';' && blocks === 0) {
      if (hasToken) {
        found.push(words.join(' '));
        lastSeparator = token.at;
      } else separators.push(token.at);
      words = [];
      hasToken = false;
      continue;
    }
    if (token.kind === 'symbol') depth += token.text === '(' ? 1 : token.text === ')' ? -1 : 0;
    if (token.kind === 'word' && words.length < MAX_WORDS) words.push(token.text);
    hasToken = true;
    if (ROUTINE.test(words.join(' '))) routine = found.length;
    if (routine === undefined) continue;
    if (token.text === 'begin' || (token.text === 'case' && all[at - 1]?.text !== 'end')) blocks += 1;
    if (token.text !== 'end') continue;
    if (blocks > 0) {
      if (!FLOW.test(all[at + 1]?.text ?? '')) blocks -= 1;
      continue;
    }
    // An earlier END did not end the body.
    words = found[routine]?.split(' ') ?? words;
    found.length = routine;
  }
  if (hasToken) found.push(words.join(' '));
  else if (lastSeparator !== undefined) separators.push(lastSeparator);
  if (depth > 0) throw unusable('It has an unclosed parenthesis.', ['Close it.']);
  return { found, separators };
}

/** Why a text is not a single expression, or undefined if it is. */
export const expressionProblem = (text: string): string | undefined =>
  text.includes('\0') ? 'It contains a NUL character.' : tokensProblem(tokenize(text));
