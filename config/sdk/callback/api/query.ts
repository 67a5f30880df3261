import type { ListQuery } from '../../../../core/approval/list-approvals.ts';
import { parseDecision } from '../../../../core/approval/parse-decision.ts';
import { problemText, type Shape, shapeProblems } from '../../../../core/validate-shape.ts';
import { invalidQuery } from '../http-errors.ts';

const ISO = /^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d))?$/;
const LIST = ['status', 'agentTag', 'executionId', 'cursor', 'since', 'before', 'limit', 'newestFirst'] as const;
type Field = (typeof LIST)[number];

/**
 * The query of a list. What is not valid is left to `listApprovals`, but for a name that is unknown or occurs twice: that
 * throws an `HttpError`.
 */
export function listQuery(fields: URLSearchParams, known: readonly Field[] = LIST): ListQuery {
  const query: Record<string, string | number | boolean | Date> = {};
  for (const [key, value] of fields) {
    const field = known.find((one) => one === key);
    if (field === undefined) throw invalidQuery(`The query has "${key}", which is not known.`);
    if (Object.hasOwn(query, field)) throw invalidQuery(`The query has "${field}" twice.`);
    query[field] = fieldValue(field, value);
  }
  return query;
}

/** A moment in ISO 8601; undefined for any other text. The date may still be none. */
const parseMoment = (text: string): Date | undefined => (ISO.test(text) ? new Date(text) : undefined);

/** A body of this shape. Throws an `HttpError`. */
export function readInput<Input>(body: Uint8Array, shape: Shape): Input {
  const input = parseDecision(body);
  const problems = shapeProblems(input, shape);
  if (problems.length > 0) throw invalidQuery(problems.map(problemText).join(' '));
  return input as Input;
}

/** The `until` of a body. Throws an `HttpError`. */
export function readUntil(text: string): Date {
  const until = parseMoment(text);
  if (!until) throw invalidQuery('until is not a date and time in ISO 8601.');
  return until;
}

function fieldValue(field: Field, value: string): string | number | boolean | Date {
  switch (field) {
    case 'since':
    case 'before':
      return parseMoment(value) ?? value;
    case 'limit':
      return /^\d+$/.test(value) ? Number(value) : value;
    case 'newestFirst':
      return value === 'true' || (value !== 'false' && value);
    default:
      return value;
  }
}
