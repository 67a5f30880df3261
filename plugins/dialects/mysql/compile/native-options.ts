import { SvcError } from '../../../../core/errors.ts';
import { expressionProblem } from './raw.ts';
import { tokenize } from './tokens.ts';

/** The definition of an index, with its kind before the columns. Throws `schema_invalid` for a text that could be more than that. */
export function nativeIndex(native: string, table: string, index: string): string {
  const why = /^(?:(?:FULLTEXT|SPATIAL) )?\(/i.test(native)
    ? (expressionProblem(native) ?? beyondIndex(native))
    : 'It begins with neither FULLTEXT, SPATIAL nor a parenthesis.';
  if (why === undefined) return native;
  throw new SvcError('schema_invalid', `The definition of the index "${index}" of "${table}" is not valid.`, {
    why,
    next: ["Write the columns and what follows them: (`name`(20)) COMMENT 'why', or FULLTEXT (`body`)."],
  });
}

/** It is a part of ALTER TABLE: after a comma, or with these words, another change of the table could follow. */
function beyondIndex(native: string): string | undefined {
  let depth = 0;
  for (const { kind, text } of tokenize(native)) {
    if (kind === 'symbol') depth += text === '(' ? 1 : text === ')' ? -1 : 0;
    const isOther = kind === 'symbol' ? text === ',' : kind === 'word' && /^(?:partition|remove)$/.test(text);
    if (depth === 0 && isOther) return `It has more than an index: ${text.toUpperCase()} outside of parentheses.`;
  }
  return undefined;
}

/** The options after the columns of a new table, with a space before them. Throws `schema_invalid`. */
export function nativeTableOptions(native: string | undefined, table: string): string {
  if (native === undefined) return '';
  if (TABLE_OPTIONS.test(native)) return ` ${native}`;
  throw new SvcError('schema_invalid', `The options of the table "${table}" are not valid.`, {
    why: `${JSON.stringify(native)} is not a list of options with values.`,
    next: ['Write it as ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8.'],
  });
}

/** Throws `name_invalid` for a text that is more than the name of a collation. */
export function assertCollationName(collation: string, table: string): string {
  if (/^\w+$/.test(collation)) return collation;
  throw new SvcError('name_invalid', `The collation of "${table}" is not valid: ${JSON.stringify(collation)}.`, {
    why: 'The name of a collation contains letters, digits and underscores.',
    next: ['List the collations of the server: SHOW COLLATION'],
  });
}

const OPTION = String.raw`\w+ ?= ?(?:\w+|'(?:[^'\\]|'')*')`;
const TABLE_OPTIONS = new RegExp(`^${OPTION}(?: ${OPTION})*$`);
/** As the catalog has it, with quotes of its own. */
const EACH_OPTION = /`?(\w+)`? ?= ?(\w+|'(?:[^'\\]|'')*'|"[^"\\]*")/g;
/** With a secondary engine, a table cannot be changed. */
const SECONDARY = /^SECONDARY_/;

/** The options in an order and a spelling of their own: the catalog has others than who wrote them. */
export const canonicalTableOptions = (native: string): string =>
  [...native.matchAll(EACH_OPTION)]
    .map(([, name = '', value = '']) => {
      const quoted = value.replace(/^"(.*)"$/, "'$1'").replace(/^'(\d+)'$/, '$1');
      return { name: name.toUpperCase(), value: quoted.startsWith("'") ? quoted : quoted.toUpperCase() };
    })
    .filter(({ name }) => !SECONDARY.test(name))
    .map(({ name, value }) => `${name}=${value}`)
    .sort()
    .join(' ');
