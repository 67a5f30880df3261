import type { Collection, Document, Filter, FindCursor, UpdateFilter } from 'mongodb';
import { again, type Place, unlessLost } from './place.ts';

export type Update = UpdateFilter<Document> | Document[];

export interface BatchOptions {
  /** The validator has its say; else old documents may break the rules of other fields, which are not what is changed. */
  readonly checked?: boolean;
  /** Documents that all of it is about, changed already or not; else those of the collection. */
  readonly total?: number;
}

/**
 * Changes every document that a filter matches, so many at a time, until none does: the change must take a document
 * out of the filter. Killed in between, the same call goes on. Ids are streamed and not compared, because a
 * comparison skips ids of other types.
 */
export async function inBatches(
  place: Place,
  collection: string,
  filter: Filter<Document>,
  updateOf: (ids: readonly unknown[]) => Update,
  { checked, total }: BatchOptions = {},
): Promise<number> {
  const documents = place.server.db.collection(collection);
  const { batchSize, onProgress } = place.settings;
  const options = checked ? {} : { bypassDocumentValidation: true };
  let all = 0;
  let earlier = 0;
  let done = 0;
  for (;;) {
    let changed = 0;
    for await (const ids of idsOf(documents, filter, batchSize)) {
      if (onProgress && done === 0 && ids.length === batchSize) {
        // An estimate may be above what there is, and more would seem done than is.
        all = total ?? (await documents.countDocuments({}));
        earlier = Math.max(0, all - (await documents.countDocuments(filter)));
      }
      const some = { $and: [{ _id: { $in: ids } } as Filter<Document>, filter] };
      const update = updateOf(ids);
      const { modifiedCount } = await again(place, () => documents.updateMany(some, update, options));
      changed += modifiedCount;
      done += modifiedCount;
      onProgress?.({ collection, done: earlier + done, ...(all > 0 && { total: Math.max(all, earlier + done) }) });
    }
    // The next pass takes what others wrote in the meantime.
    if (changed === 0) return done;
  }
}

/** Ids in lists: one list in memory at a time. */
async function* idsOf(
  documents: Collection<Document>,
  filter: Filter<Document>,
  size: number,
): AsyncGenerator<readonly unknown[]> {
  const find = () => documents.find(filter, { projection: { _id: 1 }, batchSize: size });
  let cursor = find();
  const next = async () => {
    try {
      return await taken(cursor, size);
    } catch (error) {
      // A cursor is lost with its server. What it gave has been changed since, and is not found once more.
      await cursor.close();
      cursor = find();
      throw error;
    }
  };
  try {
    for (;;) {
      const ids = await unlessLost(next);
      if (ids.length > 0) yield ids;
      if (ids.length < size) return;
    }
  } finally {
    await cursor.close();
  }
}

async function taken(cursor: FindCursor<Document>, size: number): Promise<readonly unknown[]> {
  const ids: unknown[] = [];
  while (ids.length < size) {
    const found = await cursor.next();
    if (!found) break;
    ids.push(found._id);
  }
  return ids;
}
