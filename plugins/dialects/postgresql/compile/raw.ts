import type { Statement } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import type { Raw } from '../../../../core/schema/operation.ts';
import type { RawSql } from '../../sql/statement.ts';
import { tokensProblem } from '../../sql/validate.ts';
import { tokenize } from './tokens.ts';

const TRANSACTION_CONTROL =
  /^(begin|commit|rollback|end|abort|savepoint|release|start transaction|prepare transaction)\b/;
const ROUTINE = /^create (or replace )?(function|procedure)\b/;

/** Raw SQL as a statement. Throws `migration_invalid` for text that would begin or end a transaction. */
export function compileRaw({ statement: text, check, transaction }: Raw): Statement<RawSql>[] {
  const statements = assertUsable(text);
  if (check !== undefined) assertUsable(check);
  if (statements.length === 0) return [];
  return [
    {
      text,
      run: { kind: 'raw', sql: text },
      transactional: transaction !== false,
      // svc cannot know whether raw text destroys data.
      destructive: false,
      ...(check !== undefined && { check }),
    },
  ];
}

/** Throws `migration_invalid` for text that would begin or end a transaction, or that has unclosed quotes. */
export function assertUsable(text: string): readonly ParsedStatement[] {
  const parsed = parseStatements(text);
  for (const { words, copiesToClient } of parsed) {
    const prefix = words.join(' ');
    const control = TRANSACTION_CONTROL.exec(prefix)?.[0];
    if (control !== undefined) {
      throw invalidRawError(
        `It contains ${control.toUpperCase()}: svc manages transactions itself, so that they include the history row.`,
        ['Remove it.', 'For text that cannot run in a transaction, set transaction: false and a `check`.'],
      );
    }
    if (prefix.startsWith('discard all')) {
      throw invalidRawError('It contains DISCARD ALL, which releases the migration lock.', ['Remove it.']);
    }
    if (copiesToClient) {
      throw invalidRawError('It copies from or to the client, which is not supported.', [
        'Insert the rows with INSERT.',
      ]);
    }
  }
  return parsed;
}

function invalidRawError(why: string, next: readonly string[]): SvcError {
  return new SvcError('migration_invalid', 'A raw statement is not allowed.', { why, next });
}

interface ParsedStatement {
  /** The first four words in lower case, without the END of a routine's body. */
  readonly words: readonly string[];
  readonly copiesToClient: boolean;
}

/** The parts between semicolons, including those inside parentheses and routine bodies. */
function parseStatements(text: string): ParsedStatement[] {
  if (text.includes('\0')) throw invalidRawError('It contains a NUL character.', ['Remove the character.']);
  const statements: ParsedStatement[] = [];
  let words: string[] = [];
  let isEmpty = true;
  let copiesToClient = false;
  let previous = '';
  let depth = 0;
  /** Inside BEGIN ATOMIC … END, the body of a routine in standard SQL. */
  let inBody = false;
  const endStatement = () => {
    if (!isEmpty) statements.push({ words, copiesToClient });
    words = [];
    isEmpty = true;
    copiesToClient = false;
  };
  for (const token of tokenize(text)) {
    if (token.kind === 'comment') continue;
    if (token.kind === 'unclosed') throw invalidRawError(`It has an unclosed ${token.text}.`, ['Close it.']);
    const last = previous;
    previous = token.kind === 'quoted' ? '' : token.text;
    if (token.text === ';') {
      endStatement();
      continue;
    }
    if (token.kind === 'symbol') depth += token.text === '(' ? 1 : token.text === ')' ? -1 : 0;
    if (token.kind === 'word') {
      const endsBody = token.text === 'end' && inBody && (isEmpty || last === 'atomic');
      if (endsBody) inBody = false;
      else if (depth === 0 && token.text === 'atomic' && last === 'begin' && ROUTINE.test(words.join(' ')))
        inBody = true;
      if (words[0] === 'copy' && depth === 0 && /^(from|to)$/.test(last) && /^std(in|out)$/.test(token.text)) {
        copiesToClient = true;
      }
      if (words.length < 4 && !endsBody) words.push(token.text);
    }
    isEmpty = false;
  }
  endStatement();
  if (inBody) throw invalidRawError('It has an unclosed BEGIN ATOMIC.', ['Close it with END.']);
  if (depth > 0) throw invalidRawError('It has an unclosed parenthesis.', ['Close it.']);
  return statements;
}

/** Why a text is not a single expression, or undefined if it is. */
export const expressionProblem = (text: string): string | undefined =>
  text.includes('\0') ? 'It contains a NUL character.' : tokensProblem(tokenize(text));
