import { SvcError } from '../../../../core/errors.ts';
import type { Constraint } from '../../../../core/schema/model.ts';
import type { Traits } from '../variant.ts';
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

/** Throws `schema_invalid` for anything but the columns of a primary key and what follows another constraint. */
export function assertNativeConstraint(traits: Traits, { type, name, native }: Constraint, table: string): void {
  if (native === undefined) return;
  if (type === 'primaryKey' && native.startsWith('(')) return void nativeIndex(native, table, name);
  if (type === 'check' && traits.hasUnenforcedChecks && /^NOT ENFORCED$/i.test(native)) return;
  if (type === 'foreignKey' && NO_ACTIONS.test(native)) return;
  throw new SvcError('schema_invalid', `"native" of the constraint "${name}" of "${table}" is not valid.`, {
    why: `${traits.title} has no ${type} with ${JSON.stringify(native)}.`,
    next: ['Remove "native" from the constraint.'],
  });
}

/** What a server shows and does not distinguish from a foreign key without actions. */
const NO_ACTIONS = /^ON (?:DELETE|UPDATE) NO ACTION(?: ON UPDATE NO ACTION)?$/i;

/** An index without what the catalog does not have: how it is stored, and the parser of a full text. */
export const withoutStorage = (native: string): string =>
  native.replace(
    /'(?:[^'\\]|\\.|'')*'|`(?:[^`]|``)*`| (?:USING (?:BTREE|HASH)|KEY_BLOCK_SIZE ?=? ?\d+|WITH PARSER (?:`\w+`|\w+))/gis,
    (part) => (part.startsWith(' ') ? '' : part),
  );

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
/** A table of MariaDB whose rows have a history. */
export const VERSIONED = 'WITH SYSTEM VERSIONING';
const EACH = `(?:${OPTION}|${VERSIONED})`;
const TABLE_OPTIONS = new RegExp(`^${EACH}(?: ${EACH})*$`, 'i');
/** As the catalog has it, with quotes of its own. */
const EACH_OPTION = /`?(\w+)`? ?= ?(\w+|'(?:[^'\\]|'')*'|"[^"\\]*")/g;
/** With a secondary engine, a table cannot be changed. */
const SECONDARY = /^SECONDARY_/;

/** The options in an order and a spelling of their own: the catalog has others than who wrote them. */
export const canonicalTableOptions = (native: string): string =>
  [...eachOption(native), ...(/\bWITH SYSTEM VERSIONING\b/i.test(native) ? [VERSIONED] : [])].join(' ');

const eachOption = (native: string): readonly string[] =>
  [...native.matchAll(EACH_OPTION)]
    .map(([, name = '', value = '']) => {
      const quoted = value.replace(/^"(.*)"$/, "'$1'").replace(/^'(\d+)'$/, '$1');
      return { name: name.toUpperCase(), value: quoted.startsWith("'") ? quoted : quoted.toUpperCase() };
    })
    .filter(({ name }) => !SECONDARY.test(name))
    .map(({ name, value }) => `${name}=${value}`)
    .sort();
