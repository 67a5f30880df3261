import type { Statement } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import { isPlainObject, type Json } from '../../../core/json.ts';
import type { Raw } from '../../../core/schema/operation.ts';
import { statement } from './step.ts';

/** A request in DynamoDB's own words. */
export interface Request {
  readonly action: string;
  readonly input: Json;
}

/** `{ "<Action>": input }` as a statement; its tables are named as svc knows them, without the prefix. */
export function raw({ statement: text, check }: Raw): Statement[] {
  const { action, input } = requestOf(text);
  if (check !== undefined) requestOf(check);
  return [
    {
      ...statement(text, { do: 'raw', action, input }),
      ...(check !== undefined && { check }),
    },
  ];
}

/** Throws `migration_invalid` where the text is not one request. */
export function requestOf(text: string): Request {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw refused(`It is not JSON: ${(error as Error).message}.`);
  }
  const [entry, ...more] = isPlainObject(parsed) ? Object.entries(parsed) : [];
  if (!entry || more.length > 0) throw refused('It is not one object with one action.');
  const [action, input] = entry;
  if (!/^[A-Z][A-Za-z]+$/.test(action)) throw refused(`"${action}" is not the name of an action.`);
  if (!isPlainObject(input)) throw refused(`The input of ${action} is no object.`);
  return { action, input: input as Json };
}

/** The input as the driver wants it: tables under their whole names, bytes as bytes. */
export function inputOf({ input }: Request, tableName: (table: string) => string): Record<string, unknown> {
  return read(input, tableName) as Record<string, unknown>;
}

/** Members by which requests name tables. */
const NAMES = new Set(['TableName', 'SourceTableName', 'TargetTableName']);

function read(value: Json, tableName: (table: string) => string): unknown {
  if (Array.isArray(value)) return (value as readonly Json[]).map((item) => read(item, tableName));
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value as Record<string, Json>).map(([key, one]) => {
      if (NAMES.has(key) && typeof one === 'string') return [key, tableName(one)];
      if (key === 'B' && typeof one === 'string') return [key, new Uint8Array(Buffer.from(one, 'base64'))];
      if (key === 'BS' && Array.isArray(one))
        return [key, one.map((text) => new Uint8Array(Buffer.from(text, 'base64')))];
      if (key !== 'RequestItems' || !isPlainObject(one)) return [key, read(one, tableName)];
      const tables = Object.entries(one as Record<string, Json>);
      return [key, Object.fromEntries(tables.map(([table, inner]) => [tableName(table), read(inner, tableName)]))];
    }),
  );
}

function refused(why: string): SvcError {
  return new SvcError('migration_invalid', 'A raw statement cannot be used as it is.', {
    why,
    next: ['Write one request as AWS documents it: {"PutItem": {"TableName": "users", "Item": {"id": {"S": "1"}}}}'],
  });
}
