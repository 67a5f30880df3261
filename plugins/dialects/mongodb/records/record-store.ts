import type { Document, Filter } from 'mongodb';
import { isSvcError } from '../../../../core/errors.ts';
import { mergedPage } from '../../../../core/merged-page.ts';
import {
  type AnyRecordDefinition,
  anyDefinition,
  buildPage,
  type Guard,
  type PagePosition,
  pageIndex,
  pageStart,
  type RecordDefinition,
  type RecordStore,
  type RecordValue,
  type Versioned,
} from '../../../../core/records.ts';
import { codeOf, DUPLICATE_KEY, NAMESPACE_EXISTS, withSvcErrors } from '../connection/errors.ts';
import { notAfterEpoch } from '../connection/lease.ts';
import { type MongoServer, TIME_LIMIT } from '../connection/server.ts';
import { buildIndexes } from '../run/build-indexes.ts';
import {
  atVersion,
  noDocument,
  type RecordDocument,
  type RecordUpdate,
  recordCollection,
  recordUpdate,
  updateBefore,
  VERSION,
} from './record-writes.ts';

type Values = Readonly<Record<string, unknown>>;

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

/** `assertLockHeld` throws `lock_lost` if the epoch has ended. */
export function recordStore<R extends object>(
  server: MongoServer,
  typedDefinition: RecordDefinition<R>,
  assertLockHeld: (epoch: number) => Promise<void>,
): RecordStore<R> {
  const definition = anyDefinition(typedDefinition);
  const documents = recordCollection(server, definition.collection);
  const columns = Object.keys(definition.columns);
  const readOptions = { ...TIME_LIMIT, ...(server.clustered && ({ readConcern: { level: 'linearizable' } } as const)) };
  const toVersioned = (document: RecordDocument, names: readonly string[]): Versioned<R> => ({
    record: readRecord(definition, document, names) as R,
    version: document[VERSION],
  });
  const get = async (key: string): Promise<Versioned<R> | undefined> => {
    const found = await documents.findOne({ _id: key }, readOptions);
    return found ? toVersioned(found, columns) : undefined;
  };
  const conflictOf = async (key: string, version: number): Promise<'missing' | 'stale' | undefined> => {
    const current = await get(key);
    if (!current) return 'missing';
    return current.version === version ? undefined : 'stale';
  };
  const updateAtVersion = async (
    key: string,
    version: number,
    update: RecordUpdate,
    { before, epoch }: Guard<R>,
  ): Promise<boolean> => {
    const filter = {
      ...atVersion(key, version),
      ...(epoch !== undefined && notAfterEpoch(epoch)),
    } as Filter<RecordDocument>;
    if (before === undefined) return (await documents.updateOne(filter, update, TIME_LIMIT)).matchedCount > 0;
    const after = await documents.findOneAndUpdate(filter, updateBefore(update, before), {
      projection: { [VERSION]: 1 },
      returnDocument: 'after',
      ...TIME_LIMIT,
    });
    return after?.[VERSION] === version + 1;
  };
  return withErrorMapping<R>({
    async insert(record) {
      try {
        const update = recordUpdate(definition, record as Values, performance.now(), 1);
        const filter = noDocument(String((record as Values)[definition.key]));
        await documents.updateOne(filter, update, { upsert: true, ...TIME_LIMIT });
        return 'inserted';
      } catch (error) {
        if (codeOf(error) === DUPLICATE_KEY) return 'exists';
        throw error;
      }
    },
    get,
    async replace(key, version, record, guard = {}) {
      const { epoch } = guard;
      try {
        if (epoch !== undefined) await assertLockHeld(epoch);
      } catch (error) {
        if (isSvcError(error) && error.code === 'lock_lost') return (await get(key)) ? 'stale' : 'missing';
        throw error;
      }
      const update = recordUpdate(definition, record as Values, performance.now(), version + 1, epoch);
      if (await updateAtVersion(key, version, update, guard)) return 'replaced';
      return (await conflictOf(key, version)) ?? (guard.before === undefined ? 'stale' : 'late');
    },
    async remove(key, version) {
      const { deletedCount } = await documents.deleteOne(atVersion(key, version), TIME_LIMIT);
      return deletedCount > 0 ? 'removed' : ((await conflictOf(key, version)) ?? 'stale');
    },
    async page(name, query) {
      if (query.anyOf) return mergedPage(typedDefinition, name, query, (one) => this.page(name, one));
      const { equals, from, to, direction, limit, columns: wanted = columns as (keyof R & string)[] } = query;
      const index = pageIndex(typedDefinition, name, query);
      const conditions: Document[] = index.equals.map((column) => ({ [column]: equals?.[column] }));
      if (from !== undefined) conditions.push({ [index.sort]: { $gte: from } });
      if (to !== undefined) conditions.push({ [index.sort]: { $lte: to } });
      const descending = direction === 'desc';
      const start = pageStart(typedDefinition, index, query);
      if (start) conditions.push(afterPosition(index.sort, descending, start));
      const names = [...new Set<string>([...wanted, index.sort, definition.key])];
      const found = await documents
        .find((conditions.length > 0 ? { $and: conditions } : {}) as Filter<RecordDocument>, {
          projection: Object.fromEntries([...names, VERSION].map((column) => [column, 1])),
          sort: { [index.sort]: descending ? -1 : 1, _id: descending ? -1 : 1 },
          limit: limit + 1,
          batchSize: limit + 1,
          ...TIME_LIMIT,
          ...(server.clustered && { readConcern: { level: 'majority' } }),
        })
        .toArray();
      return buildPage(
        found,
        limit,
        (document) => toVersioned(document, wanted),
        (document) => ({ sort: document[index.sort] ?? null, key: document._id }),
      );
    },
  });
}

/** A filter for the records after the last one of a page. MongoDB sorts null first, but $lt and $gt never match it. */
function afterPosition(sort: string, descending: boolean, { sort: last, key }: PagePosition): Document {
  const tie = { [sort]: last, _id: { [descending ? '$lt' : '$gt']: key } };
  if (descending) return { $or: [tie, ...(last === null ? [] : [{ [sort]: { $lt: last } }, { [sort]: null }])] };
  return { $or: [tie, { [sort]: last === null ? { $ne: null } : { $gt: last } }] };
}

/** The store with MongoDB's errors as `SvcError`s. */
function withErrorMapping<R extends object>(store: RecordStore<R>): RecordStore<R> {
  return {
    insert: (record) => withSvcErrors(() => store.insert(record)),
    get: (key) => withSvcErrors(() => store.get(key)),
    replace: (key, version, record, guard) => withSvcErrors(() => store.replace(key, version, record, guard)),
    page: (index, query) => withSvcErrors(() => store.page(index, query)),
    remove: (key, version) => withSvcErrors(() => store.remove(key, version)),
  };
}

/** Creates the collections and indexes of records where they do not exist. */
export async function ensureRecordCollections(
  server: MongoServer,
  definitions: readonly AnyRecordDefinition[],
): Promise<void> {
  for (const { collection, indexes } of definitions) {
    if (indexes.length === 0) {
      await server.db.createCollection(collection).catch(unlessExists);
      continue;
    }
    const specs = indexes.map(({ name, equals, sort }) => ({
      name,
      key: Object.fromEntries([...new Set([...equals, sort, '_id'])].map((column) => [column, 1])),
    }));
    await buildIndexes(server, collection, specs);
  }
}

function unlessExists(error: unknown): void {
  if (codeOf(error) !== NAMESPACE_EXISTS) throw error;
}
