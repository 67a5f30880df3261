import type { Collection, Document, Filter, FindCursor, UpdateFilter } from 'mongodb';
import { restAfter } from '../../shared/pace.ts';
import { type RunContext, retryWhenLost, runRepeatable } from '../run/run-context.ts';

export type Update = UpdateFilter<Document> | Document[];

/** How long a batch may keep other writers of its documents waiting. */
const BATCH_MS = 100;

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
  let size = batchSize;
  let totalCount = 0;
  let doneBefore = 0;
  let done = 0;
  for (;;) {
    let changed = 0;
    for await (const ids of idBatches(documents, filter, batchSize, () => size)) {
      if (onProgress && done === 0 && ids.length === batchSize) {
        // An estimated count may be too high, which would inflate the progress.
        totalCount = total ?? (await documents.countDocuments({}));
        doneBefore = Math.max(0, totalCount - (await documents.countDocuments(filter)));
      }
      const batchFilter = { $and: [{ _id: { $in: ids } } as Filter<Document>, filter] };
      const update = updateOf(ids);
      const isFull = ids.length === size;
      const startedAt = performance.now();
      const { modifiedCount } = await runRepeatable(context, () => documents.updateMany(batchFilter, update, options));
      const tookMs = performance.now() - startedAt;
      size = nextSize(size, tookMs, batchSize);
      changed += modifiedCount;
      done += modifiedCount;
      const doneAll = doneBefore + done;
      onProgress?.({ collection, done: doneAll, ...(totalCount > 0 && { total: Math.max(totalCount, doneAll) }) });
      // The last batch of a pass has nothing after it.
      if (isFull) await restAfter(tookMs);
    }
    // Another pass updates documents that were written during this one.
    if (changed === 0) return done;
  }
}

/** At most twice as many as before, because one batch may have been fast by chance. */
function nextSize(size: number, tookMs: number, most: number): number {
  const fitting = Math.floor((size * BATCH_MS) / Math.max(1, tookMs));
  return Math.max(1, Math.min(most, size * 2, fitting));
}

/** Streams ids in batches of `sizeNow()`, with one batch in memory at a time. */
async function* idBatches(
  documents: Collection<Document>,
  filter: Filter<Document>,
  batchSize: number,
  sizeNow: () => number,
): AsyncGenerator<readonly unknown[]> {
  const find = () => documents.find(filter, { projection: { _id: 1 }, batchSize });
  let cursor = find();
  const next = async () => {
    try {
      return await takeIds(cursor, sizeNow());
    } catch (error) {
      // A cursor is lost with its server. A new one does not return documents that were updated already.
      await cursor.close();
      cursor = find();
      throw error;
    }
  };
  try {
    for (;;) {
      const size = sizeNow();
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
