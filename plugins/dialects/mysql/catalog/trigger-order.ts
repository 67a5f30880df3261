import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteIdentifier } from '../compile/literal.ts';

/*
 * Several triggers of one event run in an order that the text of none of them has. svc creates them by name, so a trigger that
 * runs elsewhere than after those of an earlier name says where.
 */

const TRIGGERS = `
SELECT trigger_name AS name, event_object_table AS t, action_timing AS timing, event_manipulation AS event
FROM information_schema.triggers WHERE trigger_schema = DATABASE() AND trigger_name NOT LIKE '\\_svc\\_%' ORDER BY action_order`;

/** `FOLLOWS a` or `PRECEDES a`, by the name of the trigger. */
export async function readTriggerOrders(exec: ExecSql): Promise<ReadonlyMap<string, string>> {
  const groups = new Map<string, string[]>();
  for (const { name, t, timing, event } of await rowsOf(exec, TRIGGERS)) {
    const key = JSON.stringify([t, timing, event]);
    groups.set(key, [...(groups.get(key) ?? []), String(name)]);
  }
  return new Map([...groups.values()].flatMap(ordersOf));
}

/** `names` are in the order in which they run. */
function ordersOf(names: readonly string[]): readonly (readonly [string, string])[] {
  return names.flatMap((name, at): readonly (readonly [string, string])[] => {
    const isEarlier = (other: string): boolean => other < name;
    const next = names.slice(at + 1).find(isEarlier);
    if (next === undefined) return [];
    const previous = names.slice(0, at).findLast(isEarlier);
    return [
      [name, previous === undefined ? `PRECEDES ${quoteIdentifier(next)}` : `FOLLOWS ${quoteIdentifier(previous)}`],
    ];
  });
}

export const withOrder = (definition: string, order: string | undefined): string =>
  order === undefined
    ? definition
    : definition.replace(/^((?:`(?:[^`]|``)*`|[^`])*?\bfor\s+each\s+row)\b/i, (head) => `${head} ${order}`);

/** The words of a trigger without the place among others of its event. */
export const withoutOrder = (words: string): string => words.replace(/(\bfor each row) (?:follows|precedes) \S+/, '$1');
