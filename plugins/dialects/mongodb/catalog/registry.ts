import type { Collection as MongoCollection } from 'mongodb';
import {
  type Collection,
  deserializeCollection,
  type SerializedCollection,
  serializeCollection,
} from '../../../../core/schema/model.ts';
import { lockLostError } from '../../shared/errors.ts';
import { codeOf, DUPLICATE_KEY } from '../connection/errors.ts';
import { EPOCH, notAfterEpoch } from '../connection/lease.ts';
import { MAJORITY_WITH_TIME_LIMIT, type MongoServer, TIME_LIMIT } from '../connection/server.ts';
import { type RunContext, runRepeatable } from '../run/run-context.ts';

/** The properties of a collection that a validator cannot describe: field types, defaults, names of constraints. */
export interface RegistryDocument {
  readonly _id: string;
  /** The collection as JSON. */
  readonly entry: string;
  /** The epoch of the last write; writes of an earlier one fail. */
  readonly [EPOCH]: number;
  /** The collection is being created, perhaps by an interrupted attempt. */
  readonly creating: boolean;
}

const REGISTRY = '_svc_registry';

export function registryCollection({ db }: Pick<MongoServer, 'db'>): MongoCollection<RegistryDocument> {
  return db.collection<RegistryDocument>(REGISTRY, MAJORITY_WITH_TIME_LIMIT);
}

export interface RegistryEntry {
  readonly collection: string;
  readonly entry: string;
  readonly creating: boolean;
}

/** Writes entries in order. Throws `lock_lost` at the first that a later owner of the lock has written. */
export async function writeEntries(context: RunContext, entries: readonly RegistryEntry[]): Promise<void> {
  if (entries.length === 0) return;
  await assertNotOverwritten(context, async () => {
    await registryCollection(context.server).bulkWrite(
      entries.map(({ collection, entry, creating }) => ({
        updateOne: {
          filter: { _id: collection, ...notAfterEpoch(context.epoch) },
          update: { $set: { entry, creating, [EPOCH]: context.epoch } },
          upsert: true,
        },
      })),
      TIME_LIMIT,
    );
  });
}

export async function deleteEntry(context: RunContext, collection: string): Promise<void> {
  await assertNotOverwritten(context, async () => {
    await registryCollection(context.server).deleteOne(
      { _id: collection, ...notAfterEpoch(context.epoch) },
      TIME_LIMIT,
    );
  });
}

/** An upsert does not match an entry of a later epoch, and fails with a duplicate key. */
async function assertNotOverwritten(context: RunContext, work: () => Promise<void>): Promise<void> {
  try {
    await runRepeatable(context, work);
  } catch (error) {
    if (codeOf(error) === DUPLICATE_KEY)
      throw lockLostError(error, 'A later owner of the lock has changed the registry.');
    throw error;
  }
}

/** The entry of a collection in the registry. */
export function registryEntry(collection: Collection): string {
  const { name: _, ...entry } = serializeCollection(collection);
  return JSON.stringify(entry);
}

export const collectionFromEntry = (name: string, entry: string): Collection =>
  deserializeCollection({ name, ...(JSON.parse(entry) as Omit<SerializedCollection, 'name'>) });
