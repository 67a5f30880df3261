import type { Api } from './api.ts';
import type { Item } from './attribute.ts';
import { isMissing, TooMuch } from './errors.ts';

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
    const ask = async () => {
      const input = { RequestItems: { [table]: { ...projection, Keys: left as never[], ConsistentRead: true } } };
      const answer = await api.once('BatchGetItem', input);
      found.push(...(answer.Responses?.[table] ?? []));
      left = answer.UnprocessedKeys?.[table]?.Keys ?? [];
      if (left.length > 0) throw new TooMuch(`${left.length} keys of a batch were left unread.`);
    };
    try {
      await api.persist(ask);
    } catch (error) {
      if (isMissing(error)) return [];
      throw error;
    }
  }
  return found;
}
