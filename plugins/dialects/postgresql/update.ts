import type { Assignment, Condition, UpdateJob } from '../../../core/dialect.ts';
import type { Json } from '../../../core/json.ts';
import type { Field } from '../../../core/schema/model.ts';
import { grammar, quote } from './grammar.ts';
import { literal, text } from './literal.ts';
import { columnType } from './types.ts';

/** One statement: rows that matched, and those of them whose values it changed. */
export function updateText(job: UpdateJob, schema: string): string {
  const { collection, set, where } = job;
  const table = `${schema}${quote(job.table)}`;
  const fieldOf = (name: string): Field => {
    const field = collection.fields.get(name);
    if (!field) throw new Error(`${job.table} has no field ${name}`);
    return field;
  };
  const conditions = where.map((condition) => conditionText(condition, fieldOf(condition.field)));
  const matching = conditions.length > 0 ? conditions.join(' AND ') : 'true';
  const values = set.map((assignment) => ({ assignment, value: valueText(assignment, fieldOf(assignment.field)) }));
  // A clock alone makes no row another one, unless nothing else is set.
  const changing = values
    .filter(({ assignment }) => !('now' in assignment))
    .map(({ assignment, value }) => `${quote(assignment.field)} IS DISTINCT FROM ${value}`);
  const changes = changing.length > 0 ? `(${changing.join(' OR ')})` : 'true';
  const assignments = values.map(({ assignment, value }) => `${quote(assignment.field)} = ${value}`);
  return `WITH changed AS (UPDATE ${table} SET ${assignments.join(', ')} WHERE (${matching}) AND ${changes} RETURNING 1) SELECT (SELECT count(*) FROM ${table} WHERE ${matching}) AS matched, (SELECT count(*) FROM changed) AS modified`;
}

function valueText(assignment: Assignment, field: Field): string {
  if ('now' in assignment) return grammar.now(field.type);
  if ('value' in assignment) return typed(assignment.value, field);
  const parts = assignment.concat.map((part) => ('field' in part ? `${quote(part.field)}::text` : text(part.literal)));
  // concat, unlike ||, takes NULL for nothing.
  return field.type === 'string' || field.type === 'text' || field.type === 'enum'
    ? `concat(${parts.join(', ')})`
    : `concat(${parts.join(', ')})::${columnType(field, '')}`;
}

const OPERATORS = { gt: '>', gte: '>=', lt: '<', lte: '<=' } as const;

function conditionText(condition: Condition, field: Field): string {
  const column = quote(field.name);
  if (condition.operator === 'in') {
    const values = condition.value.filter((value) => value !== null).map((value) => typed(value, field));
    const among = values.length > 0 ? `${column} IN (${values.join(', ')})` : 'false';
    return condition.value.includes(null) ? `(${among} OR ${column} IS NULL)` : among;
  }
  const { operator, value } = condition;
  if (operator === 'eq') return value === null ? `${column} IS NULL` : `${column} = ${typed(value, field)}`;
  if (operator === 'ne')
    return value === null ? `${column} IS NOT NULL` : `${column} IS DISTINCT FROM ${typed(value, field)}`;
  return `${column} ${OPERATORS[operator]} ${typed(value, field)}`;
}

/** A text is not cast to its length, which would cut it: the assignment refuses it. */
function typed(value: Json, field: Field): string {
  if (value === null) return 'NULL';
  const written = literal(value, field);
  return field.type === 'string' || field.type === 'text' || field.type === 'enum' ? `${written}::text` : written;
}
