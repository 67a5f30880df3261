import type { Api } from './api.ts';
import type { Item } from './attribute.ts';
import { isMissing } from './errors.ts';

const AT_ONCE = 100;

/** The items of these keys that there are, in no order; none where there is no table. Consistent. */
export async function readMany(
  api: Api,
  table: string,
  keys: readonly Item[],
  projection: {
    readonly ProjectionExpression?: string;
    readonly ExpressionAttributeNames?: Record<string, string>;
  } = {},
): Promise<Item[]> {
  const found: Item[] = [];
  for (let from = 0; from < keys.length; from += AT_ONCE) {
    let left = keys.slice(from, from + AT_ONCE);
    while (left.length > 0) {
      const input = { RequestItems: { [table]: { ...projection, Keys: left as never[], ConsistentRead: true } } };
      const answer = await api.send('BatchGetItem', input).catch((error) => {
        if (isMissing(error)) return undefined;
        throw error;
      });
      if (!answer) return [];
      found.push(...(answer.Responses?.[table] ?? []));
      left = answer.UnprocessedKeys?.[table]?.Keys ?? [];
    }
  }
  return found;
}
