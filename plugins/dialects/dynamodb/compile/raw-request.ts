import { SvcError } from '../../../../core/errors.ts';
import { isPlainObject, type Json } from '../../../../core/json.ts';
import type { Raw } from '../../../../core/schema/operation.ts';
import { type DynamoStatement, statementFor } from './step.ts';

export interface RawRequest {
  readonly action: string;
  readonly input: Json;
}

/** Compiles `{ "<Action>": input }`, with table names without a prefix. */
export function compileRaw({ statement: text, check }: Raw): DynamoStatement[] {
  const { action, input } = parseRequest(text);
  if (check !== undefined) parseRequest(check);
  return [
    {
      ...statementFor(text, { kind: 'raw', action, input }),
      ...(check !== undefined && { check }),
    },
  ];
}

/** Throws `migration_invalid` unless the text is exactly one request. */
export function parseRequest(text: string): RawRequest {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw invalidRaw(`It is not JSON: ${(error as Error).message}.`);
  }
  const [entry, ...more] = isPlainObject(parsed) ? Object.entries(parsed) : [];
  if (!entry || more.length > 0) throw invalidRaw('It is not an object with exactly one action.');
  const [action, input] = entry;
  if (!/^[A-Z][A-Za-z]+$/.test(action)) throw invalidRaw(`"${action}" is not the name of an action.`);
  if (!isPlainObject(input)) throw invalidRaw(`The input of ${action} is not an object.`);
  return { action, input: input as Json };
}

function invalidRaw(why: string): SvcError {
  return new SvcError('migration_invalid', 'The raw statement is not valid.', {
    why,
    next: ['Write one request as AWS documents it: {"PutItem": {"TableName": "users", "Item": {"id": {"S": "1"}}}}'],
  });
}
