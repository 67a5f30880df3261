import type { ListQuery } from '../../../../core/approval/list-approvals.ts';
import { describeError, isSvcError } from '../../../../core/errors.ts';
import type { HttpError } from '../response.ts';

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

function fieldValue(field: Field, value: string): string | number | boolean | Date {
  switch (field) {
    case 'since':
    case 'before':
      return ISO.test(value) ? new Date(value) : value;
    case 'limit':
      return /^\d+$/.test(value) ? Number(value) : value;
    case 'newestFirst':
      return value === 'true' || (value !== 'false' && value);
    default:
      return value;
  }
}

/** Rejects with an `HttpError` if the query of the list is not valid. */
export function orInvalidQuery<T>(listed: Promise<T>): Promise<T> {
  return listed.catch((error: unknown) => {
    throw isSvcError(error) && error.code === 'value_invalid' ? invalidQuery(describeError(error)) : error;
  });
}

function invalidQuery(message: string): HttpError {
  return { status: 400, error: 'value_invalid', message };
}
