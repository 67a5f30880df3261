import type { Collection, Document, Filter } from 'mongodb';
import { isSvcError, SvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import {
  type AnyRecordDefinition,
  CLOCK,
  ELAPSED,
  type Guard,
  type RecordDefinition,
  type RecordStore,
  type RecordValue,
  type Versioned,
} from '../../../core/records.ts';
import { BOUNDED, BY_MAJORITY } from './bounds.ts';
import { buildIndexes } from './build-indexes.ts';
import { codeOf, DUPLICATE_KEY, refusal, refuseTooLarge } from './errors.ts';
import { EPOCH, notLater } from './lease.ts';
import type { Server } from './open.ts';

/** The field that counts the replaces of a record. */
export const VERSION = '_version';

interface RecordDocument extends Document {
  readonly _id: string;
  readonly [VERSION]: number;
}

export function recordsIn({ db }: Pick<Server, 'db'>, collection: string): Collection<RecordDocument> {
  return db.collection<RecordDocument>(collection, BY_MAJORITY);
}

type Values = Readonly<Record<string, unknown>>;

interface RecordUpdate {
  readonly $set: Document;
  readonly $currentDate?: Document;
}

/** What sets the fields that a record says; `$currentDate` is the clock of the server at the moment of the write. */
export function recordUpdate(
  definition: AnyRecordDefinition,
  record: Values,
  began: number,
  version: number,
  epoch?: number,
): RecordUpdate {
  const set: Document = { [VERSION]: version, ...(epoch !== undefined && { [EPOCH]: epoch }) };
  const clock: Document = {};
  for (const [name, column] of Object.entries(definition.columns)) {
    const value = record[name];
    if (value === undefined) continue;
    if (value === CLOCK) clock[name] = true;
    else if (value === ELAPSED) set[name] = performance.now() - began;
    // As text: keys that begin with $ or have dots are no keys of MongoDB, and numbers stay what they are.
    else set[name] = column.type === 'json' && value !== null ? JSON.stringify(value) : value;
  }
  refuseTooLarge(definition.collection, set);
  return { $set: set, ...(Object.keys(clock).length > 0 && { $currentDate: clock }) };
}

/**
 * The same while a date is still to come. The clock stands in the change and not in the filter, where DocumentDB refuses
 * it on a collection that has an index.
 */
function inTime({ $set, $currentDate = {} }: RecordUpdate, before: string): Document[] {
  const clock = Object.fromEntries(Object.keys($currentDate).map((name) => [name, '$$NOW']));
  const changed = { $mergeObjects: ['$$ROOT', { $literal: $set }, clock] };
  return [{ $replaceWith: { $cond: [{ $gt: [`$${before}`, '$$NOW'] }, changed, '$$ROOT'] } }];
}

/** Matches no document: an upsert then inserts, and collides with the record that is there. */
export const nobody = (key: string): Filter<RecordDocument> =>
  ({ _id: key, [VERSION]: { $lt: 0 } }) as Filter<RecordDocument>;

export const atVersion = (key: string, version: number): Filter<RecordDocument> =>
  ({ _id: key, [VERSION]: version }) as Filter<RecordDocument>;

function readRecord(
  definition: AnyRecordDefinition,
  document: Document,
  names: readonly string[],
): Record<string, RecordValue> {
  const record: Record<string, RecordValue> = {};
  for (const name of names) {
    const value: unknown = document[name] ?? null;
    record[name] = (
      definition.columns[name]?.type === 'json' && typeof value === 'string' ? JSON.parse(value) : value
    ) as RecordValue;
  }
  return record;
}

/** `hold` throws `lock_lost` unless that epoch stands. */
export function recordStore<R extends object>(
  server: Server,
  given: RecordDefinition<R>,
  hold: (epoch: number) => Promise<void>,
): RecordStore<R> {
  const definition = given as unknown as AnyRecordDefinition;
  const documents = recordsIn(server, definition.collection);
  const columns = Object.keys(definition.columns);
  const read = { ...BOUNDED, ...(server.clustered && ({ readConcern: { level: 'linearizable' } } as const)) };
  const versioned = (document: RecordDocument, names: readonly string[]): Versioned<R> => ({
    record: readRecord(definition, document, names) as R,
    version: document[VERSION],
  });
  const get = async (key: string): Promise<Versioned<R> | undefined> => {
    const found = await documents.findOne({ _id: key }, read);
    return found ? versioned(found, columns) : undefined;
  };
  const why = async (key: string, asked: number): Promise<'missing' | 'stale' | undefined> => {
    const current = await get(key);
    if (!current) return 'missing';
    return current.version === asked ? undefined : 'stale';
  };
  const changed = async (
    key: string,
    asked: number,
    update: RecordUpdate,
    { before, epoch }: Guard<R>,
  ): Promise<boolean> => {
    const filter = { ...atVersion(key, asked), ...(epoch !== undefined && notLater(epoch)) } as Filter<RecordDocument>;
    if (before === undefined) return (await documents.updateOne(filter, update, BOUNDED)).matchedCount > 0;
    const after = await documents.findOneAndUpdate(filter, inTime(update, before), {
      projection: { [VERSION]: 1 },
      returnDocument: 'after',
      ...BOUNDED,
    });
    return after?.[VERSION] === asked + 1;
  };
  return told({
    async insert(record) {
      try {
        const update = recordUpdate(definition, record as Values, performance.now(), 1);
        const none = nobody(String((record as Values)[definition.key]));
        await documents.updateOne(none, update, { upsert: true, ...BOUNDED });
        return 'inserted';
      } catch (error) {
        if (codeOf(error) === DUPLICATE_KEY) return 'exists';
        throw error;
      }
    },
    get,
    async replace(key, asked, record, guard = {}) {
      const { epoch } = guard;
      try {
        if (epoch !== undefined) await hold(epoch);
      } catch (error) {
        if (isSvcError(error) && error.code === 'lock_lost') return (await get(key)) ? 'stale' : 'missing';
        throw error;
      }
      const update = recordUpdate(definition, record as Values, performance.now(), asked + 1, epoch);
      if (await changed(key, asked, update, guard)) return 'replaced';
      return (await why(key, asked)) ?? (guard.before === undefined ? 'stale' : 'late');
    },
    async remove(key, asked) {
      const { deletedCount } = await documents.deleteOne(atVersion(key, asked), BOUNDED);
      return deletedCount > 0 ? 'removed' : ((await why(key, asked)) ?? 'stale');
    },
    async page(
      name,
      { equals, from, to, direction, limit, cursor, columns: wanted = columns as (keyof R & string)[] },
    ) {
      const index = definition.indexes.find((one) => one.name === name);
      if (!index) throw new Error(`${definition.collection} has no index ${name}`);
      if (!Number.isInteger(limit) || limit < 1 || limit > 1000) {
        throw new SvcError('value_invalid', `A page has 1 to 1,000 records, not ${limit}.`);
      }
      const asked = (equals ?? {}) as Values;
      const conditions: Document[] = index.equals.map((column) => {
        if (asked[column] === undefined) throw new Error(`${name} needs a value for ${column}`);
        return { [column]: asked[column] };
      });
      if (from !== undefined) conditions.push({ [index.sort]: { $gte: from } });
      if (to !== undefined) conditions.push({ [index.sort]: { $lte: to } });
      const down = direction === 'desc';
      if (cursor !== undefined) conditions.push(behind(definition, index.sort, down, cursor));
      const names = [...new Set<string>([...wanted, index.sort, definition.key])];
      const found = await documents
        .find((conditions.length > 0 ? { $and: conditions } : {}) as Filter<RecordDocument>, {
          projection: Object.fromEntries([...names, VERSION].map((column) => [column, 1])),
          sort: { [index.sort]: down ? -1 : 1, _id: down ? -1 : 1 },
          limit: limit + 1,
          batchSize: limit + 1,
          ...BOUNDED,
          ...(server.clustered && { readConcern: { level: 'majority' } }),
        })
        .toArray();
      const records = found.slice(0, limit).map((document) => versioned(document, wanted));
      const last = found.length > limit ? found[limit - 1] : undefined;
      if (!last) return { records };
      const end = JSON.stringify([last[index.sort] ?? null, last._id]);
      return { records, cursor: Buffer.from(end).toString('base64url') };
    },
  });
}

/** What comes behind the last record of a page. MongoDB sorts null first, and compares it with nothing. */
function behind(definition: AnyRecordDefinition, sort: string, down: boolean, cursor: string): Document {
  const [at, id] = cursorValues(cursor);
  const last = at !== null && definition.columns[sort]?.type === 'timestamp' ? new Date(String(at)) : at;
  const tie = { [sort]: last, _id: { [down ? '$lt' : '$gt']: id } };
  if (down) return { $or: [tie, ...(last === null ? [] : [{ [sort]: { $lt: last } }, { [sort]: null }])] };
  return { $or: [tie, { [sort]: last === null ? { $ne: null } : { $gt: last } }] };
}

function cursorValues(cursor: string): readonly [Json, string] {
  try {
    const [at, id, ...more] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as Json[];
    if (at !== undefined && typeof id === 'string' && more.length === 0) return [at, id];
  } catch {
    // Told below, as for a cursor of another shape.
  }
  throw new SvcError('value_invalid', 'The cursor is not one that a page gave.');
}

/** The store with the engine's errors in our words. */
function told<R extends object>(store: RecordStore<R>): RecordStore<R> {
  const guarded =
    <A extends readonly unknown[], T>(work: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      try {
        return await work(...args);
      } catch (error) {
        throw refusal(error);
      }
    };
  return {
    insert: guarded(store.insert),
    get: guarded(store.get),
    replace: guarded(store.replace),
    page: guarded(store.page),
    remove: guarded(store.remove),
  };
}

/** Makes the collections and the indexes of records; both may be there. */
export async function ensureRecords(server: Server, definitions: readonly AnyRecordDefinition[]): Promise<void> {
  for (const { collection, indexes } of definitions) {
    if (indexes.length === 0) {
      await server.db.createCollection(collection).catch(unlessExists);
      continue;
    }
    const wanted = indexes.map(({ name, equals, sort }) => ({
      name,
      key: Object.fromEntries([...new Set([...equals, sort, '_id'])].map((column) => [column, 1])),
    }));
    await buildIndexes(server, collection, wanted);
  }
}

function unlessExists(error: unknown): void {
  if (codeOf(error) !== 48) throw error;
}
