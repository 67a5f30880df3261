import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteIdentifier } from '../compile/literal.ts';
import { orderOfTriggers, type TriggerPlace, triggerPlace } from '../compile/trigger-place.ts';

/*
 * Several triggers of one event run in an order that the text of none of them has. svc creates them by name, so a trigger that
 * runs elsewhere than after those of an earlier name says where.
 */

/** With other quotes, a text is another one here. */
export const IS_READABLE = "sql_mode NOT LIKE '%ANSI_QUOTES%'";

const TRIGGERS = `
SELECT trigger_name AS name, event_object_table AS t, action_timing AS timing, event_manipulation AS event
FROM information_schema.triggers WHERE trigger_schema = DATABASE() AND trigger_name NOT LIKE '\\_svc\\_%' AND ${IS_READABLE} ORDER BY action_order`;

/** The triggers of each event, in the order in which they run. */
export async function readTriggerGroups(exec: ExecSql): Promise<readonly (readonly string[])[]> {
  const groups = new Map<string, string[]>();
  for (const { name, t, timing, event } of await rowsOf(exec, TRIGGERS)) {
    const key = JSON.stringify([t, timing, event]);
    groups.set(key, [...(groups.get(key) ?? []), String(name)]);
  }
  return [...groups.values()];
}

/** `FOLLOWS a` or `PRECEDES a`, by the name of the trigger. */
export const readTriggerOrders = async (exec: ExecSql): Promise<ReadonlyMap<string, string>> =>
  new Map((await readTriggerGroups(exec)).flatMap(ordersOf));

/** The names of the triggers that run in the places that the texts give them. */
export function triggersInPlace(
  groups: readonly (readonly string[])[],
  definitionOf: (name: string) => string | undefined,
): ReadonlySet<string> {
  return new Set(
    groups.flatMap((names) => {
      const places = names.flatMap((name): [string, TriggerPlace][] => {
        const place = triggerPlace(definitionOf(name) ?? '');
        return place ? [[name, place]] : [];
      });
      const order = orderOfTriggers(new Map(places));
      return names.length === order.length && names.every((name, index) => name === order[index]) ? names : [];
    }),
  );
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
