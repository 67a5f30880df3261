import type { Field } from '../../../core/schema/model.ts';
import type { Server } from './open.ts';
import { NEAREST, nearest } from './read-rule.ts';
import { names } from './refuses.ts';

/** Documents that are looked at. */
const SAMPLE = 100;

/** The fields of a collection that has no validator, as its documents show them; none of them is required. */
export async function sampledFields(
  { db }: Pick<Server, 'db'>,
  collection: string,
): Promise<{ fields: Map<string, Field>; odd: string[] }> {
  const seen = await db
    .collection(collection)
    .aggregate([
      { $limit: SAMPLE },
      { $project: { pairs: { $objectToArray: '$$ROOT' } } },
      { $unwind: '$pairs' },
      { $group: { _id: { name: '$pairs.k', type: { $type: '$pairs.v' } } } },
    ])
    .toArray();
  const types = new Map<string, string[]>();
  for (const { _id } of seen as unknown as readonly { _id: { name: string; type: string } }[]) {
    if (_id.name === '_id') continue;
    types.set(_id.name, [...(types.get(_id.name) ?? []), ...(_id.type === 'null' ? [] : [_id.type])]);
  }
  const fields = new Map<string, Field>();
  const odd: string[] = [];
  for (const [name, found] of [...types].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (names.problem?.(name, 'field') === undefined) fields.set(name, { name, type: nearest(found) });
    if (found.length > 1 || found.some((type) => NEAREST[type] === undefined)) odd.push(name);
  }
  return { fields, odd };
}
