import type { Collection, Document, Filter } from 'mongodb';
import { type AnyRecordDefinition, CLOCK, ELAPSED } from '../../../../core/records.ts';
import { assertDocumentSize } from '../connection/errors.ts';
import { EPOCH } from '../connection/lease.ts';
import { MAJORITY_WITH_TIME_LIMIT, type MongoServer } from '../connection/server.ts';

/** The field with the version of a record. */
export const VERSION = '_version';

export interface RecordDocument extends Document {
  readonly _id: string;
  readonly [VERSION]: number;
}

export function recordCollection({ db }: Pick<MongoServer, 'db'>, collection: string): Collection<RecordDocument> {
  return db.collection<RecordDocument>(collection, MAJORITY_WITH_TIME_LIMIT);
}

export interface RecordUpdate {
  readonly $set: Document;
  readonly $currentDate?: Document;
}

/** The update that sets the fields of a record. `$currentDate` is the server's clock at the time of the write. */
export function recordUpdate(
  definition: AnyRecordDefinition,
  record: Readonly<Record<string, unknown>>,
  startedAt: number,
  version: number,
  epoch?: number,
): RecordUpdate {
  const set: Document = { [VERSION]: version, ...(epoch !== undefined && { [EPOCH]: epoch }) };
  const clock: Document = {};
  for (const [name, column] of Object.entries(definition.columns)) {
    const value = record[name];
    if (value === undefined) continue;
    if (value === CLOCK) clock[name] = true;
    else if (value === ELAPSED) set[name] = performance.now() - startedAt;
    // JSON is stored as text: MongoDB restricts keys with $ or dots, and would change the types of numbers.
    else set[name] = column.type === 'json' && value !== null ? JSON.stringify(value) : value;
  }
  assertDocumentSize(definition.collection, set);
  return { $set: set, ...(Object.keys(clock).length > 0 && { $currentDate: clock }) };
}

/**
 * The update, applied only before the date in the field `before`. The clock is compared in the update, not in the filter:
 * DocumentDB rejects `$$NOW` in a filter on a collection with an index.
 */
export function updateBefore({ $set, $currentDate = {} }: RecordUpdate, before: string): Document[] {
  const clock = Object.fromEntries(Object.keys($currentDate).map((name) => [name, '$$NOW']));
  const changed = { $mergeObjects: ['$$ROOT', { $literal: $set }, clock] };
  return [{ $replaceWith: { $cond: [{ $gt: [`$${before}`, '$$NOW'] }, changed, '$$ROOT'] } }];
}

/** A filter that matches no document: an upsert inserts, or fails if the record exists. */
export const noDocument = (key: string): Filter<RecordDocument> =>
  ({ _id: key, [VERSION]: { $lt: 0 } }) as Filter<RecordDocument>;

export const atVersion = (key: string, version: number): Filter<RecordDocument> =>
  ({ _id: key, [VERSION]: version }) as Filter<RecordDocument>;
