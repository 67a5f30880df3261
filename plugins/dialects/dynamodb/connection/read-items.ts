import type { Item } from '../data/attribute.ts';
import type { DynamoClient, Input, Output } from './client.ts';
import { isNotFound, ThrottledError } from './errors.ts';

/** Every page of a strongly consistent scan. */
export async function* scanPages(client: DynamoClient, input: Input<'Scan'>): AsyncGenerator<Output<'Scan'>> {
  let ExclusiveStartKey: Output<'Scan'>['LastEvaluatedKey'];
  do {
    const start = ExclusiveStartKey && { ExclusiveStartKey };
    const page = await client.send('Scan', { ...input, ...start, ConsistentRead: true });
    yield page;
    ExclusiveStartKey = page.LastEvaluatedKey;
  } while (ExclusiveStartKey);
}

const KEYS_PER_REQUEST = 100;

/** Strongly consistent. The items come in no order; keys without an item are left out, as is a missing table. */
export async function batchGet(
  client: DynamoClient,
  table: string,
  keys: readonly Item[],
  projection: {
    readonly ProjectionExpression?: string;
    readonly ExpressionAttributeNames?: Record<string, string>;
  } = {},
): Promise<Item[]> {
  const found: Item[] = [];
  const read = async (from: number): Promise<void> => {
    let left = keys.slice(from, from + KEYS_PER_REQUEST);
    const request = async () => {
      const input = { RequestItems: { [table]: { ...projection, Keys: left as never[], ConsistentRead: true } } };
      const response = await client.sendOnce('BatchGetItem', input);
      found.push(...(response.Responses?.[table] ?? []));
      left = response.UnprocessedKeys?.[table]?.Keys ?? [];
      if (left.length > 0) throw new ThrottledError(`${left.length} keys of a batch were left unread.`);
    };
    await client.retry(request);
  };
  const parts = Array.from({ length: Math.ceil(keys.length / KEYS_PER_REQUEST) }, (_, part) => part * KEYS_PER_REQUEST);
  try {
    await Promise.all(parts.map(read));
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
  return found;
}

const MAX_ITEMS_PER_PAGE = 100_000;

/** The number of items that a filter selects, up to `limit`. */
export async function countItems(
  client: DynamoClient,
  collection: string,
  limit: number,
  filter: Partial<Input<'Scan'>> = {},
): Promise<number> {
  let count = 0;
  const input = {
    ...filter,
    TableName: client.table(collection),
    Select: 'COUNT',
    Limit: Math.min(limit, MAX_ITEMS_PER_PAGE),
  } as const;
  for await (const page of scanPages(client, input)) {
    count += page.Count ?? 0;
    if (count >= limit) return limit;
  }
  return count;
}
