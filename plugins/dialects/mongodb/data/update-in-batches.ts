import type { Collection, Document, Filter, FindCursor, UpdateFilter } from 'mongodb';
import { type RunContext, retryWhenLost, runRepeatable } from '../run/run-context.ts';

export type Update = UpdateFilter<Document> | Document[];

interface BatchOptions {
  /** Applies the validator. Without it, old documents may violate the rules of fields that are not changed. */
  readonly validate?: boolean;
  /** The number of matching documents, changed or not. Default: all documents of the collection. */
  readonly total?: number;
}

/**
 * Updates every document that a filter matches, one batch after another, until none matches: the update must take a
 * document out of the filter. After a crash, the same call continues. Ids are streamed rather than compared, because a
 * comparison skips ids of other types.
 */
export async function updateInBatches(
  context: RunContext,
  collection: string,
  filter: Filter<Document>,
  updateOf: (ids: readonly unknown[]) => Update,
  { validate, total }: BatchOptions = {},
): Promise<number> {
  const documents = context.server.db.collection(collection);
  const { batchSize, onProgress } = context.settings;
  const options = validate ? {} : { bypassDocumentValidation: true };
  let totalCount = 0;
  let doneBefore = 0;
  let done = 0;
  for (;;) {
    let changed = 0;
    for await (const ids of idBatches(documents, filter, batchSize)) {
      if (onProgress && done === 0 && ids.length === batchSize) {
        // An estimated count may be too high, which would inflate the progress.
        totalCount = total ?? (await documents.countDocuments({}));
        doneBefore = Math.max(0, totalCount - (await documents.countDocuments(filter)));
      }
      const batchFilter = { $and: [{ _id: { $in: ids } } as Filter<Document>, filter] };
      const update = updateOf(ids);
      const { modifiedCount } = await runRepeatable(context, () => documents.updateMany(batchFilter, update, options));
      changed += modifiedCount;
      done += modifiedCount;
      const doneAll = doneBefore + done;
      onProgress?.({ collection, done: doneAll, ...(totalCount > 0 && { total: Math.max(totalCount, doneAll) }) });
    }
    // Another pass updates documents that were written during this one.
    if (changed === 0) return done;
  }
}

/** Streams ids in batches, with one batch in memory at a time. */
async function* idBatches(
  documents: Collection<Document>,
  filter: Filter<Document>,
  size: number,
): AsyncGenerator<readonly unknown[]> {
  const find = () => documents.find(filter, { projection: { _id: 1 }, batchSize: size });
  let cursor = find();
  const next = async () => {
    try {
      return await takeIds(cursor, size);
    } catch (error) {
      // A cursor is lost with its server. A new one does not return documents that were updated already.
      await cursor.close();
      cursor = find();
      throw error;
    }
  };
  try {
    for (;;) {
      const ids = await retryWhenLost(next);
      if (ids.length > 0) yield ids;
      if (ids.length < size) return;
    }
  } finally {
    await cursor.close();
  }
}

async function takeIds(cursor: FindCursor<Document>, size: number): Promise<readonly unknown[]> {
  const ids: unknown[] = [];
  while (ids.length < size) {
    const found = await cursor.next();
    if (!found) break;
    ids.push(found._id);
  }
  return ids;
}
