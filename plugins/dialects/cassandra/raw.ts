import type { Statement } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import type { Raw } from '../../../core/schema/operation.ts';
import { statement } from './statement.ts';

/** White space and comments; quoted text and names; text between dollars; anything else, one character or word at a time. */
const TOKEN =
  /(?<space>\s+|--[^\n]*|\/\/[^\n]*|\/\*[\s\S]*?\*\/)|(?<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*"|\$\$[\s\S]*?\$\$)|(?<open>'|"|\$\$|\/\*)|(?<word>[A-Za-z_]\w*)|[\s\S]/y;

/** A user's text as a statement: one of CQL, or nothing. */
export function raw({ statement: text, check }: Raw): Statement[] {
  const words = firstWords(text);
  if (check !== undefined) firstWords(check);
  if (words.length === 0) return [];
  if (words[0] === 'use') {
    throw refused('It contains USE: every statement of svc would run in the other keyspace from then on.', [
      'Write the keyspace before the name of the table.',
    ]);
  }
  return [statement(text, { kind: 'words', cql: text }, check === undefined ? {} : { check })];
}

/** The words of the only statement, in lower case. */
function firstWords(text: string): string[] {
  const words: string[] = [];
  let ended = false;
  let batch = false;
  for (let at = 0; at < text.length; ) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    const { space, open, word } = match?.groups ?? {};
    at += match?.[0].length ?? 1;
    if (space !== undefined) continue;
    if (open !== undefined) throw refused(`What ${open} opens is not closed.`, ['Close it.']);
    if (match?.[0] === ';') {
      ended = !batch && words.length > 0;
      continue;
    }
    if (ended)
      throw refused('It has more than one statement, and Cassandra takes one at a time.', ['Write a raw for each.']);
    words.push(word?.toLowerCase() ?? match?.[0] ?? '');
    // The statements of a batch are one.
    batch = words[0] === 'begin' && !(words.at(-2) === 'apply' && words.at(-1) === 'batch');
  }
  return words;
}

function refused(why: string, next: readonly string[]): SvcError {
  return new SvcError('migration_invalid', 'A raw statement cannot be used as it is.', { why, next });
}
