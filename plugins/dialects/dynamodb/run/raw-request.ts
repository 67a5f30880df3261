import { isSvcError } from '../../../../core/errors.ts';
import { isPlainObject, type Json } from '../../../../core/json.ts';
import { parseRequest, type RawRequest } from '../compile/raw-request.ts';
import type { DynamoStep } from '../compile/step.ts';
import type { DynamoClient } from '../connection/client.ts';
import { isOutcomeUnknown } from '../connection/errors.ts';
import { waitForTable } from '../connection/wait-for-table.ts';
import { type Item, itemToJson } from '../data/attribute.ts';
import type { RunContext } from './run-context.ts';

const TABLE_ACTIONS = new Set(['CreateTable', 'UpdateTable', 'DeleteTable']);

/** Sent once. If the response is lost, the statement's `check` or a person decides whether it took effect. */
export async function runRawRequest(
  { client, assertLease, onChange }: RunContext,
  { action, input }: DynamoStep & { kind: 'raw' },
): Promise<void> {
  const request = requestInput({ action, input }, (table) => client.table(table));
  try {
    await client.sendRaw(action, request);
    onChange?.();
  } catch (error) {
    if (!isSvcError(error) && isOutcomeUnknown(error)) onChange?.();
    throw error;
  }
  if (TABLE_ACTIONS.has(action) && typeof request.TableName === 'string')
    await waitForTable(client, request.TableName, assertLease);
}

type Row = Readonly<Record<string, unknown>>;

/**
 * Runs a request and returns the items of all pages, or of one page if it has a Limit. A response without items is one
 * row; a count of zero returns no row.
 */
export async function queryRows(client: DynamoClient, text: string): Promise<Row[]> {
  const request = parseRequest(text);
  const input = requestInput(request, (table) => client.table(table));
  const rows: Row[] = [];
  let count: number | undefined;
  for (;;) {
    const { $metadata: _, ...response } = await client.sendRaw(request.action, input);
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

/** The input for the SDK: with physical table names, and bytes instead of base64. */
function requestInput({ input }: RawRequest, tableName: (table: string) => string): Record<string, unknown> {
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
