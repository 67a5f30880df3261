import type { Document } from 'mongodb';
import type { Server } from './open.ts';

/** Waits for a majority of the members: by itself a server waits for all that vote, for ever where one of them is down. */
export async function buildIndexes(
  { db, clustered }: Server,
  collection: string,
  indexes: readonly Document[],
  options: object = {},
): Promise<void> {
  const words = { createIndexes: collection, indexes };
  try {
    await db.command({ ...words, ...(clustered && { commitQuorum: 'majority' }) }, options);
  } catch (error) {
    // A server of another make that has no members may not know the word.
    if (!(error instanceof Error && /commitQuorum/.test(error.message))) throw error;
    await db.command(words, options);
  }
}
