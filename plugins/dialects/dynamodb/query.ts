import type { Json } from '../../../core/json.ts';
import type { Api } from './api.ts';
import { type Item, plainItem } from './attribute.ts';
import { inputOf, requestOf } from './raw.ts';

type Row = Readonly<Record<string, unknown>>;

/**
 * The rows of a request in a user's words: items, on all pages unless it says how many, or what else it answers. A
 * count of nothing is no row.
 */
export async function rowsOf(api: Api, text: string): Promise<Row[]> {
  const request = requestOf(text);
  const input = inputOf(request, (table) => api.table(table));
  const rows: Row[] = [];
  let count: number | undefined;
  for (;;) {
    const { $metadata: _, ...answer } = await api.foreign(request.action, input);
    if (Array.isArray(answer.Items)) rows.push(...(answer.Items as Item[]).map(plainItem));
    else if (answer.Item !== undefined) rows.push(plainItem(answer.Item as Item));
    else if (typeof answer.Count === 'number') count = (count ?? 0) + answer.Count;
    else if (Object.keys(answer).length > 0 && request.action !== 'GetItem') rows.push(answer);
    if (input.Limit !== undefined || (answer.LastEvaluatedKey ?? answer.NextToken) === undefined) break;
    if (answer.LastEvaluatedKey !== undefined) input.ExclusiveStartKey = answer.LastEvaluatedKey as Json;
    else input.NextToken = answer.NextToken;
  }
  return count === undefined || count === 0 ? rows : [{ Count: count }];
}
