import { SvcError } from '../../../../core/errors.ts';
import { isPlainObject, type Json } from '../../../../core/json.ts';
import type { Raw } from '../../../../core/schema/operation.ts';
import type { Api } from '../connection/api.ts';
import { type Item, itemToJson } from '../data/attribute.ts';
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

/** The input for the SDK: with physical table names, and bytes instead of base64. */
export function requestInput({ input }: RawRequest, tableName: (table: string) => string): Record<string, unknown> {
  return resolveInput(input, tableName) as Record<string, unknown>;
}

const TABLE_NAME_MEMBERS = new Set(['TableName', 'SourceTableName', 'TargetTableName']);

function resolveInput(value: Json, tableName: (table: string) => string): unknown {
  if (Array.isArray(value)) return (value as readonly Json[]).map((item) => resolveInput(item, tableName));
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value as Record<string, Json>).map(([key, one]) => {
      if (TABLE_NAME_MEMBERS.has(key) && typeof one === 'string') return [key, tableName(one)];
      if (key === 'B' && typeof one === 'string') return [key, new Uint8Array(Buffer.from(one, 'base64'))];
      if (key === 'BS' && Array.isArray(one))
        return [key, one.map((text) => new Uint8Array(Buffer.from(text, 'base64')))];
      if (key !== 'RequestItems' || !isPlainObject(one)) return [key, resolveInput(one, tableName)];
      const tables = Object.entries(one as Record<string, Json>);
      return [
        key,
        Object.fromEntries(tables.map(([table, inner]) => [tableName(table), resolveInput(inner, tableName)])),
      ];
    }),
  );
}

function invalidRaw(why: string): SvcError {
  return new SvcError('migration_invalid', 'The raw statement is not valid.', {
    why,
    next: ['Write one request as AWS documents it: {"PutItem": {"TableName": "users", "Item": {"id": {"S": "1"}}}}'],
  });
}

type Row = Readonly<Record<string, unknown>>;

/**
 * Runs a request and returns the items of all pages, or of one page if it has a Limit. A response without items is one
 * row; a count of zero returns no row.
 */
export async function queryRows(api: Api, text: string): Promise<Row[]> {
  const request = parseRequest(text);
  const input = requestInput(request, (table) => api.table(table));
  const rows: Row[] = [];
  let count: number | undefined;
  for (;;) {
    const { $metadata: _, ...response } = await api.sendRaw(request.action, input);
    if (Array.isArray(response.Items)) rows.push(...(response.Items as Item[]).map(itemToJson));
    else if (response.Item !== undefined) rows.push(itemToJson(response.Item as Item));
    else if (typeof response.Count === 'number') count = (count ?? 0) + response.Count;
    else if (Object.keys(response).length > 0 && request.action !== 'GetItem') rows.push(response);
    if (input.Limit !== undefined || (response.LastEvaluatedKey ?? response.NextToken) === undefined) break;
    if (response.LastEvaluatedKey !== undefined) input.ExclusiveStartKey = response.LastEvaluatedKey as Json;
    else input.NextToken = response.NextToken;
  }
  return count === undefined || count === 0 ? rows : [{ Count: count }];
}
