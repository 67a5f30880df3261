import { isDeepStrictEqual } from 'node:util';
import { SvcError } from '../../../../core/errors.ts';
import { primaryKeyFields } from '../../../../core/schema/keys.ts';
import type { Collection, Field, FieldType } from '../../../../core/schema/model.ts';
import { columnDefinition, defaultExpression, fieldConstraints, primaryKeyConstraint } from '../../sql/column.ts';
import { primaryKeyAfter } from '../../sql/compile.ts';
import type { Grammar } from '../../sql/grammar.ts';
import { isLossyCast } from '../../sql/lossy-casts.ts';
import { uniqueName } from '../../sql/names.ts';
import type { Traits } from '../variant.ts';
import { RANDOM_UUID } from './generated-uuid.ts';
import { bytesSql, quoteIdentifier, quoteLiteral } from './literal.ts';
import {
  type AlterClause,
  type AlterTable,
  alterStatement,
  existsQuery,
  type ModifyColumn,
  type MysqlStatement,
  type PlainClause,
} from './step.ts';
import { columnType, isAutoIncrement, isShorter, nativeAttributes, STRING_LENGTH, UUID } from './types.ts';
import { isWidening } from './widening.ts';

const TEXT_TYPES: ReadonlySet<FieldType> = new Set(['string', 'text', 'uuid']);

/** MODIFY replaces the whole definition. The plan contains only the changes; the rest is read from the catalog at run time. */
export function modifyField(
  grammar: Grammar,
  traits: Traits,
  before: Collection,
  from: Field,
  to: Field,
): readonly MysqlStatement[] {
  // The server converts between enums and numbers by position, and by value only if the column is a string in between.
  const isCrossing =
    from.type !== to.type &&
    (from.type === 'enum' || to.type === 'enum') &&
    !TEXT_TYPES.has(from.type) &&
    !TEXT_TYPES.has(to.type);
  if (!isCrossing) return modifyStatements(grammar, traits, before, from, to);
  // The first statement changes everything except the type and its attributes, and checks every value for both, so that
  // the second cannot fail.
  const { enumValues: _, precision: __, scale: ___, length: ____, items: _____, default: ______, ...rest } = to;
  const { autoGenerate: _______, ...plain } = rest;
  const between: Field = { ...plain, type: 'string' };
  const after = { ...before, fields: new Map(before.fields).set(from.name, between) };
  return [
    // The second statement would reject a default that only the catalog knows.
    ...modifyStatements(
      grammar,
      traits,
      before,
      from,
      between,
      conversionChecks(grammar, traits, before.name, from, to),
      {
        default: null,
      },
    ),
    ...modifyStatements(grammar, traits, after, between, to),
  ].map((statement) => ({
    ...statement,
    ...(isOnlyModify(statement)
      ? { idempotent: true as const }
      : // Only the first statement changes keys, and it makes the column a varchar.
        { check: existsQuery('columns', before.name, { column_name: from.name, data_type: 'varchar' }) }),
  }));
}

function isOnlyModify({ run }: MysqlStatement): boolean {
  return run.kind === 'alterTable' && run.clauses.every(({ kind }) => MODIFY_CLAUSES.has(kind));
}

const MODIFY_CLAUSES: ReadonlySet<AlterClause['kind']> = new Set(['modifyColumn', 'dropArrayCheck', 'addArrayCheck']);

type RowChecks = Pick<AlterTable, 'rejectRows' | 'convertEnum'>;

/** Checks of the rows before the column becomes a string. */
function conversionChecks(grammar: Grammar, traits: Traits, table: string, from: Field, to: Field): RowChecks {
  const column = grammar.quoteIdentifier(to.name);
  const checks = rejectValues(traits, `CAST(${column} AS CHAR)`, from, to);
  if (to.type === 'enum') return checks;
  const lines = [`${column} ${columnType(to, table)} NULL`, grammar.columnCheck(to, table)];
  if (to.unique) lines.push(`UNIQUE (${column})`);
  return { ...checks, convertEnum: { column: to.name, lines: lines.filter((line) => line !== '') } };
}

/** Rejects values that the server would silently change, or keep although they are invalid for the new type. */
function rejectValues(traits: Traits, value: string, from: Field, to: Field): RowChecks {
  const { type, enumValues = [], items = 'string', length = STRING_LENGTH } = to;
  const reject = (condition: string, what: string): RowChecks => ({
    rejectRows: { condition, why: `Values of ${from.name} are ${what}.` },
  });
  const rejectOthers = (labels: readonly string[], of = value) =>
    reject(`${of} NOT IN (${labels.map(quoteLiteral).join(', ')})`, `not one of ${labels.join(', ')}`);
  if (type === 'enum' && !hasAll(enumValues, from)) return rejectOthers(enumValues, bytesSql(value));
  if (type === 'array' && isJson(from) && !isSameList(from, to))
    return reject(otherElementsSql(value, items), `not lists of ${items}`);
  // The servers clamp it instead.
  if (from.type === 'float' && type === 'bigint') return reject(`ABS(${value}) >= 9223372036854775808`, 'too large');
  if (from.type === 'decimal' && type === 'json') {
    if (!traits.jsonRoundsDecimals || (from.precision ?? Infinity) <= DOUBLE_DIGITS) return {};
    const asDouble = `CAST(${value} + 0e0 AS DECIMAL(65,${from.scale ?? 0}))`;
    return reject(`${asDouble} <> ${value}`, 'numbers with more digits than JSON keeps here');
  }
  // A column that svc did not create may have microseconds.
  if (DATE_TIME_TYPES.has(from.type) && DATE_TIME_TYPES.has(type) && from.type !== type)
    return reject(`MICROSECOND(${value}) % 1000 <> 0`, 'more precise than milliseconds');
  if (!LABEL_TYPES.has(from.type)) return {};
  // Trailing spaces beyond the length are removed without an error.
  if (type === 'string' && isShorter(from, to) && !fits(from, length))
    return reject(`CHAR_LENGTH(${value}) > ${length}`, `longer than ${length} characters`);
  if (type === 'binary' && to.length !== undefined)
    return reject(`LENGTH(CONVERT(${value} USING utf8mb4)) > ${to.length}`, `longer than ${to.length} bytes`);
  if (from.type === type) return {};
  if (type === 'boolean') return rejectOthers(['0', '1'], bytesSql(value));
  if (type === 'uuid') return reject(`${value} NOT REGEXP '${UUID}'`, 'not UUIDs');
  if (INTEGER_TYPES.has(type))
    return reject(otherTextSql(value), 'not whole numbers, or have leading zeros, spaces or a plus sign');
  return {};
}

const fits = ({ type, enumValues = [] }: Field, length: number): boolean =>
  type === 'enum' && enumValues.every((label) => [...label].length <= length);

/** The digits that every double keeps. */
const DOUBLE_DIGITS = 15;
const DATE_TIME_TYPES: ReadonlySet<FieldType> = new Set(['datetime', 'timestamp']);

/** True for a text that is not the one of an integer. `$` also matches before a newline at the end. */
const otherTextSql = (value: string): string =>
  `${value} NOT REGEXP '^(0|-?[1-9][0-9]*)$' OR ${value} REGEXP '[^-0-9]'`;

const isJson = ({ type }: Field): boolean => type === 'json' || type === 'array';
/** The server does not convert elements: they are JSON. */
const isSameList = (from: Field, to: Field): boolean => from.type === to.type && from.items === to.items;

const hasAll = (labels: readonly string[], { type, enumValues = [] }: Field): boolean =>
  type === 'enum' && enumValues.every((label) => labels.includes(label));

/** A table copy sets a required timestamp without a value to the current time, in strict mode too. */
export function rejectMissingTimestamps({ name, type }: Field): RowChecks {
  if (type !== 'timestamp') return {};
  const why = `A row without a value of ${name}, which becomes required, would get the time of the change.`;
  return { rejectRows: { condition: `${quoteIdentifier(name)} IS NULL`, why, online: true } };
}

/** A new AUTO_INCREMENT column would number rows without a value, or set all of them to 0. */
function rejectMissing(field: Field): RowChecks {
  if (!isAutoIncrement(field)) return rejectMissingTimestamps(field);
  const why = `A row without a value of ${field.name}, which becomes auto-increment, would get a number.`;
  return { rejectRows: { condition: `${quoteIdentifier(field.name)} IS NULL`, why } };
}

function rejectEither(one: RowChecks, other: RowChecks): RowChecks {
  if (!one.rejectRows || !other.rejectRows) return { ...one, ...other };
  const condition = `${one.rejectRows.condition} OR ${other.rejectRows.condition}`;
  return { rejectRows: { condition, why: `${one.rejectRows.why} ${other.rejectRows.why}` } };
}

const LABEL_TYPES: ReadonlySet<FieldType> = new Set(['string', 'text', 'enum']);
const INTEGER_TYPES: ReadonlySet<FieldType> = new Set(['smallint', 'integer', 'bigint']);

export const addPrimaryKey = (grammar: Grammar, columns: readonly string[], table: string): PlainClause => ({
  kind: 'addConstraint',
  type: 'primaryKey',
  sql: primaryKeyConstraint(grammar, columns, table),
});

export const addUnique = (grammar: Grammar, field: Field, table: string): PlainClause[] =>
  fieldConstraints(grammar, field, table).map((sql) => ({ kind: 'addConstraint', type: 'unique', sql }));

function modifyStatements(
  grammar: Grammar,
  traits: Traits,
  before: Collection,
  from: Field,
  to: Field,
  checks: RowChecks = {},
  overrides: Pick<ModifyColumn, 'default'> = {},
): MysqlStatement[] {
  const table = before.name;
  const keyChanges = from.primaryKey !== to.primaryKey;
  const key = primaryKeyAfter(before, to);
  const keys: PlainClause[] = [];
  if (keyChanges && primaryKeyFields(before).length > 0) keys.push({ kind: 'dropPrimaryKey' });
  if (from.unique && !to.unique) keys.push({ kind: 'dropIndex', name: uniqueName(table, from.name) });
  if (!from.unique) keys.push(...addUnique(grammar, to, table));
  if (keyChanges && key.length > 0) keys.push(addPrimaryKey(grammar, key, table));

  assertSameAttributes(table, from, to);
  const modify = columnChanges(grammar, traits, table, from, to);
  if (!modify && keys.length === 0) return [];
  const hasTableCheck = !traits.hasColumnChecks && from.type !== to.type;
  const check = hasTableCheck ? grammar.columnCheck(to, table) : '';
  const clauses: AlterClause[] = [
    ...(hasTableCheck && from.type === 'array' ? [{ kind: 'dropArrayCheck', column: to.name } as const] : []),
    ...(modify ? [{ ...modify, ...overrides }] : []),
    ...keys,
    ...(check === '' ? [] : [{ kind: 'addArrayCheck', sql: check } as const]),
  ];
  const losesValues =
    ((to.native !== undefined || from.type === to.type) && !isWidening(from, to)) ||
    isLossyCast(from, to) ||
    (from.type === 'float' && FLOAT_LOSES_DIGITS.has(to.type));
  const destructive = (modify?.type !== undefined || from.type !== to.type) && losesValues;
  // The catalog does not know the types of elements.
  const idempotent = from.type === 'array' && !isSameList(from, to) && keys.length === 0;
  return [
    alterStatement(
      traits,
      table,
      clauses,
      { destructive, ...(idempotent && { idempotent }) },
      {
        ...rejectEither(
          rejectValues(traits, quoteIdentifier(to.name), from, to),
          isRequired(to) && !isRequired(from) ? rejectMissing(to) : {},
        ),
        ...checks,
      },
      `MODIFY COLUMN ${columnDefinition(grammar, to, table)}`,
    ),
  ];
}

/** The server converts a single-precision number to text with six digits. */
const FLOAT_LOSES_DIGITS: ReadonlySet<FieldType> = new Set(['text', 'json']);

/** Only the type of a native definition can change: the rest is read from the catalog. */
function assertSameAttributes(table: string, from: Field, to: Field): void {
  if (nativeAttributes(from).toLowerCase() === nativeAttributes(to).toLowerCase()) return;
  throw new SvcError(
    'not_supported',
    `The definition of "${table}.${to.name}" cannot become ${to.native ?? to.type}.`,
    {
      why: 'svc changes the type of a field, but not how its values are computed, updated or shown.',
      next: ['Change it with a raw statement that says in "makes" what it makes.'],
    },
  );
}

function columnChanges(
  grammar: Grammar,
  traits: Traits,
  table: string,
  from: Field,
  to: Field,
): ModifyColumn | undefined {
  const type = columnType(to, table);
  const typeChanges = type !== columnType(from, table) || from.type !== to.type || from.items !== to.items;
  const newDefault = defaultOf(grammar, to, table);
  // The catalog stores the default as the old type spells or rounds it.
  const spellingChanges = newDefault !== null && (from.type !== to.type || from.scale !== to.scale);
  const required = isRequired(to);
  const autoIncrement = isAutoIncrement(to);
  const changes: Omit<ModifyColumn, 'kind' | 'column'> = {
    ...(required !== isRequired(from) && { required }),
    ...(autoIncrement !== isAutoIncrement(from) && { autoIncrement }),
    ...(typeChanges && { type }),
    ...(from.comment !== to.comment && { comment: to.comment ?? '' }),
    ...(typeChanges && traits.hasColumnChecks && { check: grammar.columnCheck(to, table) }),
    ...((spellingChanges || !isDeepStrictEqual(defaultOf(grammar, from, table), newDefault)) && {
      default: newDefault,
    }),
  };
  return isDeepStrictEqual(changes, {}) ? undefined : { kind: 'modifyColumn', column: to.name, ...changes };
}

function defaultOf(grammar: Grammar, field: Field, table: string): NonNullable<ModifyColumn['default']> | null {
  if (isAutoIncrement(field)) return null;
  if (field.autoGenerate) return { sql: RANDOM_UUID };
  if (field.default === 'now' && (field.type === 'datetime' || field.type === 'timestamp')) return 'currentTimestamp';
  const sql = defaultExpression(grammar, field, table);
  return sql === undefined ? null : { sql };
}

const isRequired = (field: Field): boolean => field.required === true || isAutoIncrement(field);

const INTEGER_KINDS = ['INTEGER', 'UNSIGNED INTEGER'];
const NUMBER_KINDS = [...INTEGER_KINDS, 'DOUBLE', 'DECIMAL'];

/** The results of JSON_TYPE for elements: STRING for a type that is not listed, anything for JSON. */
const JSON_KINDS: Readonly<Partial<Record<FieldType, readonly string[]>>> = {
  smallint: INTEGER_KINDS,
  integer: INTEGER_KINDS,
  bigint: INTEGER_KINDS,
  float: NUMBER_KINDS,
  double: NUMBER_KINDS,
  decimal: [...NUMBER_KINDS, 'STRING'],
  boolean: ['BOOLEAN'],
};

/** True for JSON that is not an array of elements of this type. */
function otherElementsSql(column: string, items: FieldType): string {
  const isNotArray = `JSON_TYPE(${column}) <> 'ARRAY'`;
  if (items === 'json') return isNotArray;
  const kinds = [...(JSON_KINDS[items] ?? ['STRING']), 'NULL'].map((kind) => `'${kind}'`).join(', ');
  // MySQL and MariaDB return different values in a JSON_TABLE column for a string element.
  const element = `JSON_TYPE(JSON_EXTRACT(${column}, CONCAT('$[', svc_element.n - 1, ']')))`;
  const each = `JSON_TABLE(${column}, '$[*]' COLUMNS (n FOR ORDINALITY)) AS svc_element`;
  return `${isNotArray} OR EXISTS (SELECT 1 FROM ${each} WHERE ${element} NOT IN (${kinds}))`;
}
