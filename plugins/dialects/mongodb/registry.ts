import type { Collection } from 'mongodb';
import { BOUNDED, BY_MAJORITY } from './bounds.ts';
import { codeOf, DUPLICATE_KEY } from './errors.ts';
import { EPOCH, lockLost, notLater } from './lease.ts';
import type { Server } from './open.ts';
import { again, type Place } from './place.ts';

/** What no validator can say of a collection: field types as they were written, defaults, names of constraints. */
export interface RegistryDocument {
  readonly _id: string;
  /** The collection as JSON. */
  readonly entry: string;
  /** Of whoever wrote it last: an older one loses. */
  readonly [EPOCH]: number;
  /** The collection is being made, by whoever goes on with it after a crash too. */
  readonly making: boolean;
}

const NAME = '_svc_registry';

export function registryOf({ db }: Pick<Server, 'db'>): Collection<RegistryDocument> {
  return db.collection<RegistryDocument>(NAME, BY_MAJORITY);
}

/** What the registry is to say of a collection. */
export interface Said {
  readonly collection: string;
  readonly entry: string;
  readonly making: boolean;
}

/** In that order; what comes behind one that a later owner has written is not said. */
export async function describe(place: Place, said: readonly Said[]): Promise<void> {
  if (said.length === 0) return;
  await write(place, async () => {
    await registryOf(place.server).bulkWrite(
      said.map(({ collection, entry, making }) => ({
        updateOne: {
          filter: { _id: collection, ...notLater(place.epoch) },
          update: { $set: { entry, making, [EPOCH]: place.epoch } },
          upsert: true,
        },
      })),
      BOUNDED,
    );
  });
}

export async function forget(place: Place, collection: string): Promise<void> {
  await write(place, async () => {
    await registryOf(place.server).deleteOne({ _id: collection, ...notLater(place.epoch) }, BOUNDED);
  });
}

/** An entry of a later epoch is not matched: the upsert then collides with it. */
async function write(place: Place, work: () => Promise<void>): Promise<void> {
  try {
    await again(place, work);
  } catch (error) {
    if (codeOf(error) === DUPLICATE_KEY) throw lockLost('A later owner of the lock has changed the registry.', error);
    throw error;
  }
}
