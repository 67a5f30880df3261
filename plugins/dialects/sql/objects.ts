import { SvcError } from '../../../core/errors.ts';
import { type DatabaseObject, objectKey } from '../../../core/schema/database-object.ts';

export type ObjectName = Pick<DatabaseObject, 'kind' | 'name'>;

/** `CREATE OR REPLACE …`, after comments. */
export const orReplace = (definition: string): string =>
  definition.replace(/^((?:\s|--[^\n]*\n|\/\*[\s\S]*?\*\/)*create\s+)(?:or\s+replace\s+)?/i, '$1OR REPLACE ');

/** The words of a text without its comments. */
export const wordsWithoutComments = (tokens: Iterable<{ readonly kind: string; readonly text: string }>): string[] =>
  [...tokens].filter(({ kind }) => kind !== 'comment').map(({ text }) => text);

/** The table of an object whose name is `table.name`. */
export const tablePart = (name: string): string => name.slice(0, Math.max(0, name.indexOf('.')));

export interface Creation {
  /** The words of the text, quoted names in their quotes. */
  readonly words: readonly string[];
  /** Where its name is; undefined if the text begins otherwise. */
  readonly start: number | undefined;
  readonly unquote: (word: string) => string;
  /** What the text should begin with. */
  readonly example: string;
  /** The name, and the word before the table that the object belongs to. */
  readonly expected: { readonly name: string; readonly table?: string; readonly tableWord?: string };
}

/** Throws `migration_invalid` if the text does not create the object. */
export function assertCreates(object: ObjectName, { words, start, unquote, example, expected }: Creation): void {
  const invalid = (why: string, next = `Begin it with: ${example}`): SvcError =>
    new SvcError('migration_invalid', `The definition of "${objectKey(object)}" does not create it.`, {
      why,
      next: [next],
    });
  const { name, table, tableWord = 'on' } = expected;
  if (table === '' || name === '') throw invalid('A file is named <table>.<name>.sql.');
  if (start === undefined) throw invalid(`It begins with: ${words.slice(0, 4).join(' ')}`);
  if (words[start + 1] === '.') throw invalid('Its name has a schema. Leave it out: svc adds the one of the tables.');
  const written = unquote(words[start] ?? '');
  if (written.endsWith(`.${name}`))
    throw invalid('Its name has a schema. Leave it out: its file is named without one.');
  if (written !== name) throw invalid(`It names "${written}", and its file "${name}".`);
  if (table === undefined) return;
  const event = words.indexOf(tableWord, start + 1);
  const on = unquote(words[event + (words[event + 1] === 'only' ? 2 : 1)] ?? '');
  if (on !== table)
    throw invalid(
      `It is on "${on}", and its file says "${table}": a file is named <table>.<name>.sql.`,
      `Rename the file to ${on}${object.name.slice(table.length)}.sql, or edit the table in its text.`,
    );
}
