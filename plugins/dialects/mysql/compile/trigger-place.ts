import { inPlaces } from '../../../../core/schema/in-places.ts';
import { tokenize } from './tokens.ts';

/** Where a trigger runs among those of its table, time and event. */
export interface TriggerPlace {
  readonly table: string;
  readonly event: string;
  readonly relation?: 'follows' | 'precedes';
  /** The trigger that it follows or precedes. */
  readonly other?: string;
}

/** Undefined for a text that does not create a trigger. */
export function triggerPlace(definition: string): TriggerPlace | undefined {
  const tokens = [...tokenize(definition)].filter(({ kind }) => kind !== 'comment');
  const words = tokens.map(({ text }) => text);
  const on = words.indexOf('on');
  const name = words.indexOf('trigger');
  const row = words.indexOf('row', on);
  if (name < 0 || on < name || row < 0) return undefined;
  /** Without quotes, in the case that it has in the text. */
  const nameAt = (index: number): string => {
    const { at = 0, text = '' } = tokens[index] ?? {};
    const written = definition.slice(at, at + text.length);
    return written.startsWith('`') ? written.slice(1, -1).replaceAll('``', '`') : written;
  };
  const start = words.findIndex((word, index) => index > name + 1 && (word === 'before' || word === 'after'));
  const relation = words[row + 1];
  return {
    table: nameAt(on + 1),
    event: words.slice(start, on).join(' '),
    ...((relation === 'follows' || relation === 'precedes') && { relation, other: nameAt(row + 2) }),
  };
}

/** The names in the order in which they run once svc has created them all. */
export function orderOfTriggers(places: ReadonlyMap<string, TriggerPlace>): readonly string[] {
  const order: string[] = [];
  const created = inPlaces(
    [...places.keys()].sort(),
    (name) => name,
    (name) => places.get(name)?.other,
  );
  for (const name of created) {
    const { relation, other = '' } = places.get(name) ?? {};
    const at = order.indexOf(other);
    if (at < 0) order.push(name);
    else order.splice(relation === 'follows' ? at + 1 : at, 0, name);
  }
  return order;
}
