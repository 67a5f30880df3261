import type { Assignment, Condition, UpdateJob } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import type { Field } from '../../../core/schema/model.ts';
import type { Grammar } from '../../sql/grammar.ts';
import { quote, text } from './quote.ts';

/** How many rows match, and one statement that changes those whose values it would make others. */
export function updateTexts(grammar: Grammar, job: UpdateJob): { readonly count: string; readonly update: string } {
  const { collection, set, where } = job;
  const table = quote(job.table);
  const fieldOf = (name: string): Field => {
    const field = collection.fields.get(name);
    if (!field) throw new Error(`${job.table} has no field ${name}`);
    return field;
  };
  const conditions = where.map((condition) => conditionText(grammar, condition, fieldOf(condition.field)));
  const matching = conditions.length > 0 ? conditions.join(' AND ') : 'TRUE';
  const values = inOrder(set).map((assignment) => {
    const field = fieldOf(assignment.field);
    return { assignment, field, value: valueText(grammar, assignment, field) };
  });
  // A clock alone makes no row another one, unless nothing else is set.
  const changing = values
    .filter(({ assignment }) => !('now' in assignment))
    .map(({ assignment, field, value }) => `NOT ${same(field, quote(assignment.field), value)}`);
  const changes = changing.length > 0 ? `(${changing.join(' OR ')})` : 'TRUE';
  const assignments = values.map(({ assignment, value }) => `${quote(assignment.field)} = ${value}`);
  return {
    count: `SELECT COUNT(*) AS matched FROM ${table} WHERE ${matching}`,
    update: `UPDATE ${table} SET ${assignments.join(', ')} WHERE (${matching}) AND ${changes}`,
  };
}

/**
 * Both engines assign from left to right and read what they have assigned: who reads a field goes before who sets it.
 * Two fields that read each other have no such order.
 */
function inOrder(set: readonly Assignment[]): Assignment[] {
  const left = [...set];
  const ordered: Assignment[] = [];
  while (left.length > 0) {
    const next = left.findIndex((one) => !left.some((other) => other !== one && reads(other, one.field)));
    const [chosen] = left.splice(Math.max(next, 0), 1);
    if (next < 0 || !chosen) {
      throw new SvcError('update_invalid', 'Fields that read each other cannot be set in one update on this engine.', {
        why: `It assigns one after the other, and these read what another one sets: ${set.map(({ field }) => field).join(', ')}.`,
        state: 'Nothing was changed.',
        next: ['Make two updates of it, by way of a third field.'],
      });
    }
    ordered.push(chosen);
  }
  return ordered;
}

const reads = (assignment: Assignment, field: string): boolean =>
  'concat' in assignment && assignment.concat.some((part) => 'field' in part && part.field === field);

const TEXTS: ReadonlySet<string> = new Set(['string', 'text', 'enum', 'uuid']);
const INTEGERS: ReadonlySet<string> = new Set(['integer', 'bigint', 'smallint']);

/** Equal to the last character, where the collation of a column takes more for equal. */
function same({ type }: Field, column: string, value: string): string {
  return TEXTS.has(type)
    ? `(CAST(${column} AS BINARY) <=> CAST(${value} AS BINARY))`
    : `(${column} <=> ${INTEGERS.has(type) && value.startsWith('CONCAT(') ? `CAST(${value} AS SIGNED)` : value})`;
}

function valueText(grammar: Grammar, assignment: Assignment, field: Field): string {
  if ('now' in assignment) return grammar.now(field.type);
  if ('value' in assignment) return typed(grammar, assignment.value, field);
  // CONCAT, unlike that of PostgreSQL, is NULL where one part is.
  const parts = assignment.concat.map((part) =>
    'field' in part ? `COALESCE(CAST(${quote(part.field)} AS CHAR), '')` : text(part.literal),
  );
  return `CONCAT(${parts.join(', ')})`;
}

const OPERATORS = { gt: '>', gte: '>=', lt: '<', lte: '<=' } as const;

function conditionText(grammar: Grammar, condition: Condition, field: Field): string {
  const column = quote(field.name);
  if (condition.operator === 'in') {
    const values = condition.value.filter((value) => value !== null).map((value) => typed(grammar, value, field));
    const among = values.length > 0 ? `${column} IN (${values.join(', ')})` : 'FALSE';
    return condition.value.includes(null) ? `(${among} OR ${column} IS NULL)` : among;
  }
  const { operator, value } = condition;
  if (operator === 'eq') return value === null ? `${column} IS NULL` : `${column} = ${typed(grammar, value, field)}`;
  if (operator === 'ne')
    return value === null ? `${column} IS NOT NULL` : `NOT (${column} <=> ${typed(grammar, value, field)})`;
  return `${column} ${OPERATORS[operator]} ${typed(grammar, value, field)}`;
}

const typed = (grammar: Grammar, value: Json, field: Field): string =>
  value === null ? 'NULL' : grammar.literal(value, field);
