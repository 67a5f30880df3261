import { isDeepStrictEqual } from 'node:util';
import type { Statement } from '../../../core/dialect.ts';
import type { Collection, Field } from '../../../core/schema/model.ts';
import type { FieldType } from '../../../core/schema/types.ts';
import { columnDefinition, defaultText, fieldConstraints, primaryKey } from '../../sql/column.ts';
import { keyAfter } from '../../sql/compile.ts';
import type { Grammar } from '../../sql/grammar.ts';
import { losesSilently } from '../../sql/loses.ts';
import { primaryKeyFields, uniqueName } from '../../sql/names.ts';
import { type AskedAlter, askedAlter, type Modify } from './asked.ts';
import { otherElements } from './elements.ts';
import { has } from './has.ts';
import { bytesOf, quote, text } from './quote.ts';
import type { Traits } from './traits.ts';
import { columnType, isNumbered, UUID } from './types.ts';

const TEXTS: ReadonlySet<FieldType> = new Set(['string', 'text', 'uuid']);

/** MODIFY replaces the whole definition: what changes is told, and what stays is read when it runs. */
export function modifyField(
  grammar: Grammar,
  traits: Traits,
  before: Collection,
  from: Field,
  to: Field,
): readonly Statement[] {
  // An enum becomes a number, and a number an enum, by position and not by name, unless it is a text in between.
  const crossing =
    from.type !== to.type &&
    (from.type === 'enum' || to.type === 'enum') &&
    !TEXTS.has(from.type) &&
    !TEXTS.has(to.type);
  if (!crossing) return modified(grammar, traits, before, from, to);
  // All but the type and what belongs to it changes with the first, and the values are looked at before it: behind it
  // nothing is left to refuse.
  const { enumValues: _, precision: __, scale: ___, length: ____, items: _____, default: ______, ...rest } = to;
  const { autoGenerate: _______, ...plain } = rest;
  const between: Field = { ...plain, type: 'string' };
  const after = { ...before, fields: new Map(before.fields).set(from.name, between) };
  return [
    // A default that only the catalog knows would be refused by the second.
    ...modified(grammar, traits, before, from, between, foreseen(grammar, before.name, from, to), { default: null }),
    ...modified(grammar, traits, after, between, to),
  ].map((statement) => ({
    ...statement,
    ...(isOnlyModify(statement)
      ? { idempotent: true as const }
      : // The second has no clauses: it is the first that makes a text of the column.
        { check: has('columns', before.name, { column_name: from.name, data_type: 'varchar' }) }),
  }));
}

const isOnlyModify = ({ run }: Statement): boolean => (run as unknown as AskedAlter).clauses.length === 0;

/** What rows may not have, before the column is a text. */
function foreseen(grammar: Grammar, table: string, from: Field, to: Field): Partial<AskedAlter> {
  const column = grammar.quote(to.name);
  const refused = refusedValues(`CAST(${column} AS CHAR)`, from, to);
  if (to.type === 'enum') return refused;
  const lines = [`${column} ${columnType(to, table)} NULL`, grammar.columnCheck(to, table)];
  if (to.unique) lines.push(`UNIQUE (${column})`);
  return { ...refused, words: { column: to.name, lines: lines.filter((line) => line !== '') } };
}

/** Values that the server would take for others, or as they are though they are none of the new type. */
function refusedValues(value: string, from: Field, to: Field): Partial<AskedAlter> {
  const { type, enumValues = [], items = 'string' } = to;
  const refused = (rows: string, what: string) => ({ refused: { rows, why: `Values of ${from.name} are ${what}.` } });
  const otherThan = (words: readonly string[], of = value) =>
    refused(`${of} NOT IN (${words.map(text).join(', ')})`, `none of ${words.join(', ')}`);
  if (type === 'enum' && !hasAll(enumValues, from)) return otherThan(enumValues, bytesOf(value));
  if (type === 'array' && isJson(from) && !isSameList(from, to))
    return refused(otherElements(value, items), `no lists of ${items}`);
  // MySQL and MariaDB take another number for it.
  if (from.type === 'float' && type === 'bigint') return refused(`ABS(${value}) >= 9223372036854775808`, 'too large');
  if (from.type === type || !WORDS.has(from.type)) return {};
  if (type === 'boolean') return otherThan(['0', '1']);
  if (type === 'uuid') return refused(`${value} NOT REGEXP '${UUID}'`, 'no UUIDs');
  if (INTEGERS.has(type)) return refused(`${value} NOT REGEXP '${WHOLE}'`, 'no whole numbers');
  return {};
}

const isJson = ({ type }: Field): boolean => type === 'json' || type === 'array';
/** Elements are JSON, which nothing converts. */
const isSameList = (from: Field, to: Field): boolean => from.type === to.type && from.items === to.items;

const hasAll = (words: readonly string[], { type, enumValues = [] }: Field): boolean =>
  type === 'enum' && enumValues.every((word) => words.includes(word));

/** A copy of the table takes the moment of it for the value of a timestamp that has none, however strict it is. */
export function refusedMoments({ name, type }: Field): Partial<AskedAlter> {
  if (type !== 'timestamp') return {};
  const why = `Without a value of ${name}, which becomes required, a row would get the moment of the change.`;
  return { refused: { rows: `${quote(name)} IS NULL`, why, online: true } };
}

/** Or the next number: the server gives rows of them what it would give new ones, or all of them 0. */
function refusedMissing(field: Field): Partial<AskedAlter> {
  if (!isNumbered(field)) return refusedMoments(field);
  const why = `Without a value of ${field.name}, which the server is to count up, a row would get one that nobody gave it.`;
  return { refused: { rows: `${quote(field.name)} IS NULL`, why } };
}

function either(one: Partial<AskedAlter>, other: Partial<AskedAlter>): Partial<AskedAlter> {
  if (!one.refused || !other.refused) return { ...one, ...other };
  const rows = `${one.refused.rows} OR ${other.refused.rows}`;
  return { refused: { rows, why: `${one.refused.why} ${other.refused.why}` } };
}

const WORDS: ReadonlySet<FieldType> = new Set(['string', 'text', 'enum']);
const INTEGERS: ReadonlySet<FieldType> = new Set(['smallint', 'integer', 'bigint']);
const WHOLE = '^[[:space:]]*[+-]?[0-9]+[[:space:]]*$';

function modified(
  grammar: Grammar,
  traits: Traits,
  before: Collection,
  from: Field,
  to: Field,
  first: Partial<AskedAlter> = {},
  told: Partial<Modify> = {},
): Statement[] {
  const { quote } = grammar;
  const table = before.name;
  const clauses: string[] = [];
  const rekeyed = from.primaryKey !== to.primaryKey;
  const loosened = from.unique === true && !to.unique;
  const key = keyAfter(before, to);
  if (rekeyed && primaryKeyFields(before).length > 0) clauses.push(grammar.dropPrimaryKey(before));
  if (loosened) clauses.push(`DROP INDEX ${quote(uniqueName(table, from.name))}`);
  if (!from.unique) for (const constraint of fieldConstraints(grammar, to, table)) clauses.push(`ADD ${constraint}`);
  if (rekeyed && key.length > 0) clauses.push(`ADD ${primaryKey(grammar, key, table)}`);

  const modify = modification(grammar, traits, table, from, to);
  if (!modify && clauses.length === 0) return [];
  const column = quote(to.name);
  const checked = traits.ownsColumnChecks || from.type === to.type ? undefined : { column: to.name };
  const ask: AskedAlter = {
    table,
    clauses,
    ...(modify && { modify: { ...modify, ...told } }),
    ...(loosened && { dropsIndexes: [uniqueName(table, from.name)] }),
    ...(checked && {
      arrayCheck: { ...checked, drop: from.type === 'array', add: grammar.columnCheck(to, table) },
    }),
    ...either(refusedValues(column, from, to), isRequired(to) && !isRequired(from) ? refusedMissing(to) : {}),
    ...first,
  };
  const shown = [...(modify ? [`MODIFY COLUMN ${columnDefinition(grammar, to, table)}`] : []), ...clauses];
  const loses = losesSilently(from, to) || (from.type === 'float' && WRITES_SIX_DIGITS.has(to.type));
  const destructive = (modify?.type !== undefined || from.type !== to.type) && loses;
  // Nothing in the catalog tells of elements.
  const again = from.type === 'array' && !isSameList(from, to) && clauses.length === 0;
  return [askedAlter(ask, { destructive, ...(again && { idempotent: true }) }, shown)];
}

/** As which the server writes six digits of a number of single precision. */
const WRITES_SIX_DIGITS: ReadonlySet<FieldType> = new Set(['text', 'json']);

function modification(grammar: Grammar, traits: Traits, table: string, from: Field, to: Field): Modify | undefined {
  const type = columnType(to, table);
  const retyped = type !== columnType(from, table) || from.type !== to.type || from.items !== to.items;
  const was = defaultOf(grammar, from, table);
  const is = defaultOf(grammar, to, table);
  // The catalog has it as the old type spells or rounds it.
  const respelled = from.type !== to.type || from.scale !== to.scale;
  const required = isRequired(to);
  const numbered = isNumbered(to);
  const changes: Omit<Modify, 'column'> = {
    ...(required !== isRequired(from) && { required }),
    ...(numbered !== isNumbered(from) && { numbered }),
    ...(retyped && { type }),
    ...(retyped && traits.ownsColumnChecks && { check: grammar.columnCheck(to, table) }),
    ...((was !== is || (is !== undefined && respelled)) && { default: is ?? null }),
  };
  return isDeepStrictEqual(changes, {}) ? undefined : { column: to.name, ...changes };
}

function defaultOf(grammar: Grammar, field: Field, table: string): string | undefined {
  if (isNumbered(field)) return undefined;
  return field.autoGenerate ? grammar.generated(field)?.replace(/^DEFAULT /, '') : defaultText(grammar, field, table);
}

const isRequired = (field: Field): boolean => field.required === true || isNumbered(field);
