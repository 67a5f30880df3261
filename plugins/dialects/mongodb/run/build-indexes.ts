import type { Document } from 'mongodb';
import type { MongoServer } from '../connection/server.ts';

/** Builds indexes on a majority of members. By default the server waits for all voting members, even if one is down. */
export async function buildIndexes(
  { db, clustered }: MongoServer,
  collection: string,
  indexes: readonly Document[],
  options: object = {},
): Promise<void> {
  const command = { createIndexes: collection, indexes };
  try {
    await db.command({ ...command, ...(clustered && { commitQuorum: 'majority' }) }, options);
  } catch (error) {
    // Other servers with MongoDB's protocol may not support the option.
    if (!(error instanceof Error && /commitQuorum/.test(error.message))) throw error;
    await db.command(command, options);
  }
}
