import type { Assignment, Condition, UpdateJob } from '../../../core/dialect.ts';
import type { Json } from '../../../core/json.ts';
import type { Field } from '../../../core/schema/model.ts';

/** The differences between engines that support IS DISTINCT FROM. */
export interface UpdateSyntax {
  quoteIdentifier(name: string): string;
  /** A non-null literal to compare with the field or assign to it. */
  typedLiteral(value: Json, field: Field): string;
  /** The field in a comparison with a typed literal. Default: its quoted name. */
  comparisonColumn?(field: Field): string;
  now(field: Field): string;
  /** The concatenation of plain texts and fields as a value of `field`: `literal` is not SQL. Null counts as an empty string. */
  concat(parts: readonly ({ readonly field: Field } | { readonly literal: string })[], field: Field): string;
}

export interface UpdateParts {
  /** A condition that matches the rows of the job. */
  readonly matching: string;
  /** A condition that matches those of them that the job would change: it contains `matching`. */
  readonly changing: string;
  /** The SET clause. */
  readonly assignments: string;
}

/** The SQL of an update. */
export function updateParts(job: UpdateJob, syntax: UpdateSyntax): UpdateParts {
  const { quoteIdentifier } = syntax;
  const compared = (field: Field) => syntax.comparisonColumn?.(field) ?? quoteIdentifier(field.name);
  const fieldOf = (name: string): Field => {
    const field = job.collection.fields.get(name);
    if (!field) throw new Error(`${job.table} has no field ${name}`);
    return field;
  };
  const typed = (value: Json, field: Field) => (value === null ? 'NULL' : syntax.typedLiteral(value, field));
  const valueText = (assignment: Assignment): string => {
    const field = fieldOf(assignment.field);
    if ('now' in assignment) return syntax.now(field);
    if ('value' in assignment) return typed(assignment.value, field);
    return syntax.concat(
      assignment.concat.map((part) => ('field' in part ? { field: fieldOf(part.field) } : part)),
      field,
    );
  };
  const conditions = job.where.map((condition) => conditionText(compared, condition, fieldOf(condition.field), typed));
  const values = job.set.map((assignment) => ({ assignment, value: valueText(assignment) }));
  // A new current time alone does not count as a change, unless nothing else is set.
  const changes = values
    .filter(({ assignment }) => !('now' in assignment))
    .map(({ assignment, value }) => `${compared(fieldOf(assignment.field))} IS DISTINCT FROM ${value}`);
  const all = (parts: readonly string[]) => (parts.length > 0 ? parts.join(' AND ') : 'true');
  return {
    matching: all(conditions),
    changing: all([...conditions, ...(changes.length > 0 ? [`(${changes.join(' OR ')})`] : [])]),
    assignments: values.map(({ assignment, value }) => `${quoteIdentifier(assignment.field)} = ${value}`).join(', '),
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
    const inList = values.length > 0 ? `${column} IN (${values.join(', ')})` : 'false';
    return condition.value.includes(null) ? `(${inList} OR ${column} IS NULL)` : inList;
  }
  const { operator, value } = condition;
  if (operator === 'eq') return value === null ? `${column} IS NULL` : `${column} = ${typed(value, field)}`;
  if (operator === 'ne')
    return value === null ? `${column} IS NOT NULL` : `${column} IS DISTINCT FROM ${typed(value, field)}`;
  return `${column} ${OPERATORS[operator]} ${typed(value, field)}`;
}

/**
 * A numeric literal rounded to single precision. A single-precision column stores 1.1 as 1.10000002, so a comparison with
 * the literal 1.1 is never true. Other literals are returned unchanged.
 */
export function float32Literal(literal: string): string {
  const nearest = String(Math.fround(Number(literal)));
  if (!/^-?\d/.test(nearest)) return literal;
  return nearest.includes('e') ? nearest : `${nearest}e0`;
}
