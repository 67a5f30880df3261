import type { Assignment, Condition, UpdateJob } from '../../core/dialect.ts';
import type { Json } from '../../core/json.ts';
import type { Field } from '../../core/schema/model.ts';
import type { FieldType } from '../../core/schema/types.ts';

/** What differs between engines that know IS DISTINCT FROM. */
export interface UpdateWords {
  quote(name: string): string;
  /** A literal that is compared with the field or assigned to it; never null. */
  typed(value: Json, field: Field): string;
  /** The field where it is compared with such a literal, if more than its name has to be said. */
  compared?(field: Field): string;
  now(type: FieldType): string;
  /** Texts and fields, one behind the other, null for nothing, as a value of the field. */
  concat(parts: readonly ({ readonly field: Field } | { readonly literal: string })[], field: Field): string;
}

export interface UpdateParts {
  /** True for rows that the job is about. */
  readonly matching: string;
  /** True for rows of which it would make others. */
  readonly changing: string;
  /** What follows SET. */
  readonly assignments: string;
}

/** An update in SQL. */
export function updateParts(job: UpdateJob, words: UpdateWords): UpdateParts {
  const { quote } = words;
  const compared = (field: Field) => words.compared?.(field) ?? quote(field.name);
  const fieldOf = (name: string): Field => {
    const field = job.collection.fields.get(name);
    if (!field) throw new Error(`${job.table} has no field ${name}`);
    return field;
  };
  const typed = (value: Json, field: Field) => (value === null ? 'NULL' : words.typed(value, field));
  const valueText = (assignment: Assignment): string => {
    const field = fieldOf(assignment.field);
    if ('now' in assignment) return words.now(field.type);
    if ('value' in assignment) return typed(assignment.value, field);
    return words.concat(
      assignment.concat.map((part) => ('field' in part ? { field: fieldOf(part.field) } : part)),
      field,
    );
  };
  const conditions = job.where.map((condition) => conditionText(compared, condition, fieldOf(condition.field), typed));
  const values = job.set.map((assignment) => ({ assignment, value: valueText(assignment) }));
  // A clock alone makes no row another one, unless nothing else is set.
  const changes = values
    .filter(({ assignment }) => !('now' in assignment))
    .map(({ assignment, value }) => `${compared(fieldOf(assignment.field))} IS DISTINCT FROM ${value}`);
  return {
    matching: conditions.length > 0 ? conditions.join(' AND ') : 'true',
    changing: changes.length > 0 ? `(${changes.join(' OR ')})` : 'true',
    assignments: values.map(({ assignment, value }) => `${quote(assignment.field)} = ${value}`).join(', '),
  };
}

const OPERATORS = { gt: '>', gte: '>=', lt: '<', lte: '<=' } as const;

function conditionText(
  compared: (field: Field) => string,
  condition: Condition,
  field: Field,
  typed: (value: Json, field: Field) => string,
): string {
  const column = compared(field);
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
