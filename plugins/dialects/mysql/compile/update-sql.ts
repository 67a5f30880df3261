import type { Assignment, Condition, UpdateJob } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import type { Json } from '../../../../core/json.ts';
import type { Field } from '../../../../core/schema/model.ts';
import type { Grammar } from '../../sql/grammar.ts';
import { float32Literal } from '../../sql/update-sql.ts';
import { isBefore, type Traits, type Version } from '../variant.ts';
import { bytesSql, quoteIdentifier, quoteLiteral } from './literal.ts';
import { UUID } from './types.ts';

export interface UpdateContext {
  readonly grammar: Grammar;
  readonly traits: Traits;
  /** The version of the server. */
  readonly version: Version;
}

/** Counts the matching rows and updates those whose values change. */
export function updateSql(context: UpdateContext, job: UpdateJob): { readonly count: string; readonly update: string } {
  const { grammar } = context;
  const { collection, set, where } = job;
  const table = quoteIdentifier(job.table);
  const fieldOf = (name: string): Field => {
    const field = collection.fields.get(name);
    if (!field) throw new Error(`${job.table} has no field ${name}`);
    return field;
  };
  const conditions = where.map((condition) => conditionSql(context, condition, fieldOf(condition.field)));
  const matching = conditions.length > 0 ? conditions.join(' AND ') : 'TRUE';
  const values = orderAssignments(set).map((assignment) => {
    const field = fieldOf(assignment.field);
    return { assignment, field, value: valueSql(grammar, assignment, field) };
  });
  // The current time alone does not change a row, unless nothing else is set.
  const changing = values
    .filter(({ assignment }) => !('now' in assignment))
    .map(({ assignment, field, value }) => `NOT ${isUnchangedSql(context, assignment, field, value)}`);
  const changes = changing.length > 0 ? `(${changing.join(' OR ')})` : 'TRUE';
  const assignments = values.map(({ assignment, value }) => `${quoteIdentifier(assignment.field)} = ${value}`);
  return {
    count: `SELECT COUNT(*) AS matched FROM ${table} WHERE ${matching}`,
    update: `UPDATE ${table} SET ${assignments.join(', ')} WHERE (${matching}) AND ${changes}`,
  };
}

/**
 * Both engines assign from left to right and read assigned values: an assignment that reads a field precedes the one
 * that sets it. Two fields that read each other have no such order.
 */
function orderAssignments(set: readonly Assignment[]): Assignment[] {
  const left = [...set];
  const ordered: Assignment[] = [];
  while (left.length > 0) {
    const next = left.findIndex((one) => !left.some((other) => other !== one && reads(other, one.field)));
    const [chosen] = left.splice(Math.max(next, 0), 1);
    if (next < 0 || !chosen) {
      throw new SvcError('update_invalid', 'Fields that read each other cannot be set in one update on this engine.', {
        why: `The engine assigns one after the other, and each of these reads a field that another one sets: ${set.map(({ field }) => field).join(', ')}.`,
        state: 'Nothing was changed.',
        next: ['Use two updates and a third field.'],
      });
    }
    ordered.push(chosen);
  }
  return ordered;
}

const reads = (assignment: Assignment, field: string): boolean =>
  'concat' in assignment && assignment.concat.some((part) => 'field' in part && part.field === field);

const TEXT_TYPES: ReadonlySet<string> = new Set(['string', 'text', 'enum', 'uuid']);
const INTEGER_TYPES: ReadonlySet<string> = new Set(['integer', 'bigint', 'smallint']);

/** Compares strings byte by byte: the column's collation may ignore case or accents. */
function isUnchangedSql(context: UpdateContext, assignment: Assignment, field: Field, value: string): string {
  const column = quoteIdentifier(field.name);
  if (TEXT_TYPES.has(field.type)) return `(CAST(${column} AS BINARY) <=> CAST(${value} AS BINARY))`;
  // An older server stores JSON as it was written and compares it as a string.
  if ('value' in assignment && !(isJson(field) && lacksJsonEquality(context)))
    return equalsSql(context, assignment.value, field);
  return `(${column} <=> ${INTEGER_TYPES.has(field.type) && 'concat' in assignment ? `CAST(${value} AS SIGNED)` : value})`;
}

const isJson = ({ type }: Field): boolean => type === 'json' || type === 'array';
const lacksJsonEquality = ({ traits: { json }, version }: UpdateContext): boolean =>
  json.equalsSince !== undefined && isBefore(version, json.equalsSince);

/** Never NULL, even if one of the two values is. */
function equalsSql({ grammar, traits }: UpdateContext, value: Json, field: Field): string {
  const column = quoteIdentifier(field.name);
  if (value === null) return `(${column} IS NULL)`;
  return isJson(field)
    ? `COALESCE(${traits.json.equals(column, grammar.literal(value, field))}, FALSE)`
    : `(${column} <=> ${comparableSql(grammar, value, field)})`;
}

/** A literal that can be compared with the field. */
function comparableSql(grammar: Grammar, value: Json, field: Field): string {
  const sql = grammar.literal(value, field);
  return field.type === 'float' ? float32Literal(sql) : sql;
}

function valueSql(grammar: Grammar, assignment: Assignment, field: Field): string {
  if ('now' in assignment) return grammar.now(field);
  if ('value' in assignment) return literalOrNull(grammar, assignment.value, field);
  // CONCAT is NULL if one part is.
  const parts = assignment.concat.map((part) =>
    'field' in part ? `COALESCE(CAST(${quoteIdentifier(part.field)} AS CHAR), '')` : quoteLiteral(part.literal),
  );
  return invalidValueGuardSql(`CONCAT(${parts.join(', ')})`, field);
}

/** Replaces a string that the server would convert to another value with one that it rejects. */
function invalidValueGuardSql(value: string, { type, enumValues = [] }: Field): string {
  if (type === 'uuid') return `CASE WHEN ${value} REGEXP '${UUID}' THEN LOWER(${value}) ELSE REPEAT('?', 37) END`;
  if (type !== 'enum') return value;
  // The server reads a string of digits as the position of a value.
  const labels = enumValues.map(quoteLiteral).join(', ');
  const invalid = '?'.repeat(1 + Math.max(0, ...enumValues.map(({ length }) => length)));
  return `CASE WHEN ${bytesSql(value)} IN (${labels}) THEN ${value} ELSE ${quoteLiteral(invalid)} END`;
}

const OPERATORS = { gt: '>', gte: '>=', lt: '<', lte: '<=' } as const;

function conditionSql(context: UpdateContext, condition: Condition, field: Field): string {
  const { grammar, traits } = context;
  const column = quoteIdentifier(field.name);
  const json = isJson(field);
  if (json && lacksJsonEquality(context) && condition.value !== null)
    throw incomparable(field, `It can compare JSON since version ${traits.json.equalsSince?.join('.')}.`);
  if (condition.operator === 'in') {
    const values = condition.value.filter((value) => value !== null);
    const texts = values.map((value) =>
      json ? equalsSql(context, value, field) : comparableSql(grammar, value, field),
    );
    const found = json ? `(${texts.join(' OR ')})` : `${column} IN (${texts.join(', ')})`;
    const matchesAny = values.length > 0 ? found : 'FALSE';
    return condition.value.includes(null) ? `(${matchesAny} OR ${column} IS NULL)` : matchesAny;
  }
  const { operator, value } = condition;
  if (operator === 'ne') return `NOT ${equalsSql(context, value, field)}`;
  if (operator === 'eq')
    return value === null || json
      ? equalsSql(context, value, field)
      : `${column} = ${comparableSql(grammar, value, field)}`;
  if (json && !traits.json.orderable) throw incomparable(field, 'It stores JSON as a string, which sorts differently.');
  const sql = value === null ? 'NULL' : comparableSql(grammar, value, field);
  return `${column} ${OPERATORS[operator]} ${json ? traits.json.orderable?.(sql) : sql}`;
}

function incomparable({ name, type }: Field, why: string): SvcError {
  return new SvcError('not_supported', `${name}: this server cannot compare a field of type ${type} this way.`, {
    why,
    state: 'Nothing was changed.',
    next: ['Select the rows by another field.'],
  });
}

const literalOrNull = (grammar: Grammar, value: Json, field: Field): string =>
  value === null ? 'NULL' : grammar.literal(value, field);
