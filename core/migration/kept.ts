import { isSvcError, SvcError } from '../errors.ts';
import { allRows, anyDefinition, type RecordDefinition, recordWrite, type Versioned } from '../records.ts';
import { dropLoss } from '../schema/data-risks.ts';
import type { Collection, SchemaModel, SerializedCollection } from '../schema/model.ts';
import type { MutableSchema } from '../schema/mutable-schema.ts';
import { isKeptName } from '../schema/names.ts';
import type { Migration } from './migration.ts';
import type { Target } from './target.ts';

/*
 * `svc db migrate --keep 30d` renames what a migration drops. The catalog says what is kept: whatever has a name that begins
 * with `_svc_kept_`. `_svc_kept` says what it was, and is written before the first statement runs. So a run that is killed
 * leaves a row too many, which nobody reads, and never a table that nobody knows.
 */

/** A row of `_svc_kept`. */
export interface KeptRow {
  /** The name that the table or the field has while it is kept. */
  readonly name: string;
  readonly tag: string;
  readonly collection: string;
  /** Null for a table. */
  readonly field: string | null;
  readonly kept_at: Date;
  readonly kept_until: Date;
  /** Written before the statement that drops it. */
  readonly purged_at: Date | null;
  /** The table as it is kept, or a table with only the field. */
  readonly definition: SerializedCollection;
}

export const keptTable: RecordDefinition<KeptRow> = {
  collection: '_svc_kept',
  key: 'name',
  columns: {
    name: { type: 'string' },
    tag: { type: 'string' },
    collection: { type: 'text' },
    field: { type: 'text', nullable: true },
    kept_at: { type: 'timestamp' },
    kept_until: { type: 'timestamp' },
    purged_at: { type: 'timestamp', nullable: true },
    definition: { type: 'json' },
  },
  indexes: [{ name: 'byTime', equals: [], sort: 'kept_at' }],
  colocateWithLock: true,
};

/** Something that a plan keeps. */
export type Keep = Pick<KeptRow, 'name' | 'tag' | 'collection' | 'field' | 'definition'> & { readonly ms: number };

export interface Kept extends Versioned<KeptRow> {
  /** Whether the catalog still has it. */
  readonly exists: boolean;
  /** The present table of a field that exists. */
  readonly table: string | undefined;
}

/** What was kept at some time, the latest last. */
export async function readKept({ connection }: Pick<Target, 'connection'>): Promise<readonly Kept[]> {
  if (!connection.kept) return [];
  const rows: Versioned<KeptRow>[] = [];
  try {
    for await (const row of allRows(connection.records(keptTable), 'byTime', { limit: 1000 })) rows.push(row);
  } catch (error) {
    // MySQL denies to read a table that does not exist to a user without privileges on the whole database.
    if (!isSvcError(error) || error.code !== 'permission_denied' || (await connection.kept()).size > 0) throw error;
  }
  if (rows.length === 0) return [];
  const names = await connection.kept();
  return rows.map((row) => ({ ...row, exists: names.has(row.record.name), table: names.get(row.record.name) }));
}

/** Throws `not_supported` on an engine that cannot keep what is dropped. */
export function assertKeeps({ connection, dialect, database, keepMs }: Target): void {
  if (connection.kept) return;
  throw new SvcError(
    'not_supported',
    `${keepMs === undefined ? '--keep' : 'keep'} is not possible with the dialect "${dialect.name}".`,
    {
      why: 'The engine cannot rename a table or a field in place, or the dialect cannot find what was renamed.',
      state: 'Nothing was changed.',
      next:
        keepMs === undefined
          ? ['Run the command without --keep, after a backup.']
          : [`Remove databases.${database}.keep from the configuration. What is dropped is then lost.`],
    },
  );
}

/** Called under the lock, before the first statement. */
export async function writeKept(
  { connection }: Pick<Target, 'connection'>,
  epoch: number,
  keeps: readonly Keep[],
): Promise<void> {
  if (keeps.length === 0) return;
  await connection.ensureTables([anyDefinition(keptTable)]);
  const store = connection.records(keptTable);
  const now = await connection.now();
  const writes = [];
  for (const { ms, ...keep } of keeps) {
    // A run that was killed before its first statement left a row of this name.
    const known = await store.get(keep.name);
    const row = { ...keep, kept_at: now, kept_until: new Date(now.getTime() + ms), purged_at: null };
    writes.push(recordWrite(keptTable, row, known?.version));
  }
  const { failure } = await connection.run([{ transactional: true, statements: [], writes }], epoch);
  if (failure) throw failure.error;
}

export function withKeptField(collection: Collection, { name, definition }: KeptRow): Collection {
  const [field] = definition.fields;
  return field ? { ...collection, fields: new Map(collection.fields).set(name, { ...field, name }) } : collection;
}

/** What a migration kept and `svc db migrate purge` has dropped, in words. */
export function purgedBefore({ tag }: Migration, all: readonly Kept[]): readonly string[] {
  const latest = new Map<string, Kept>();
  for (const one of all) {
    const { collection, field } = one.record;
    if (one.record.tag === tag) latest.set(field === null ? `"${collection}"` : `"${collection}.${field}"`, one);
  }
  return [...latest].flatMap(([what, { record, exists }]) =>
    record.purged_at && !exists
      ? [`${what} was purged on ${record.purged_at.toISOString()}: it comes back without its data.`]
      : [],
  );
}

/** What a migration says that it loses, without what is kept. */
export function lossesNotKept({
  migration,
  keeps = [],
}: {
  readonly migration: Pick<Migration, 'lossy'>;
  readonly keeps?: readonly Keep[];
}): readonly string[] {
  const kept = new Set(keeps.map(({ collection, field }) => dropLoss(collection, field ?? undefined)));
  return (migration.lossy ?? []).filter((sentence) => !kept.has(sentence));
}

/** A model without what is kept. */
export function withoutKept(model: SchemaModel): SchemaModel {
  return new Map([...model].filter(([name]) => !isKeptName(name)).map(([name, one]) => [name, withoutKeptFields(one)]));
}

export function withoutKeptFields(collection: Collection): Collection {
  const fields = [...collection.fields].filter(([name]) => !isKeptName(name));
  return fields.length === collection.fields.size ? collection : { ...collection, fields: new Map(fields) };
}

/** Adds the fields that are kept, for an engine with `Capabilities.storesFields`. */
export async function addKeptFields(model: MutableSchema, access: Pick<Target, 'connection'>): Promise<void> {
  for (const { record, table } of await readKept(access)) {
    if (table === undefined || isKeptName(table)) continue;
    const collection = model.get(table) ?? (await access.connection.introspect([table])).get(table);
    if (collection) model.set(table, withKeptField(collection, record));
  }
}

/** Removes from a model what an operation has kept. */
export function forgetKept({ dialect }: Target, model: MutableSchema, { name, collection, field }: Keep): void {
  if (field === null) {
    model.delete(name);
    return;
  }
  const one = dialect.capabilities.storesFields ? undefined : model.get(collection);
  if (one) model.set(collection, withoutKeptFields(one));
}
