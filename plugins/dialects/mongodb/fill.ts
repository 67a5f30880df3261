import { v4 as uuid } from 'uuid';
import { inBatches, type Update } from './batches.ts';
import { clockOf, fromExtended } from './open.ts';
import type { Place } from './place.ts';
import type { Filling } from './step.ts';
import { toBson } from './value.ts';

/** Those that have a value already keep it; a null is none. */
export async function fill(place: Place, collection: string, field: string, value: Filling): Promise<void> {
  const { server } = place;
  const lacking = { [field]: null };
  if ('uuid' in value) return fillWithUuids(place, collection, field);
  const set =
    'expression' in value
      ? fromExtended(server, { at: value.expression }).at
      : { $literal: toBson(server.bson, value.literal, value.as, await clockOf(server)) };
  await inBatches(place, collection, lacking, () => [{ $set: { [field]: set } }]);
}

async function fillWithUuids(place: Place, collection: string, field: string): Promise<void> {
  await inBatches(place, collection, { [field]: null }, (ids): Update => {
    const made = ids.map(() => uuid());
    return [{ $set: { [field]: { $arrayElemAt: [made, { $indexOfArray: [{ $literal: ids }, '$_id'] }] } } }];
  });
}
