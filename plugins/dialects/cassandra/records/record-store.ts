import {
  type AnyRecordDefinition,
  anyDefinition,
  CLOCK,
  ELAPSED,
  type Guard,
  type Page,
  type PageQuery,
  pageIndex,
  type RecordDefinition,
  type RecordStore,
  type RecordValues,
  typedStore,
  type Writable,
} from '../../../../core/records.ts';
import { quoteIdentifier } from '../compile/names.ts';
import { waitForSchemaAgreement } from '../connection/schema-agreement.ts';
import { type Row, SELECT_NOW, type Session } from '../connection/session.ts';
import type { Settings } from '../connection/settings.ts';
import { ifMissing, readColumns } from '../connection/system-schema.ts';
import { addIndexRows, createIndexTableCql, indexTable, removeIndexRows } from './index-table.ts';
import { ATTEMPT_COLUMN, createLockTable, LOCK_TABLE, lockTableColumns, VERSION_COLUMN } from './lock-partition.ts';
import { pageFromIndexTable, pageFromLockPartition } from './record-page.ts';
import { recordColumnType } from './record-values.ts';
import {
  applyChanges,
  decodeRecord,
  deleteRecord,
  isEpochCurrent,
  locationOf,
  type RecordLocation,
  readRecord,
  versionOf,
} from './record-writes.ts';

/** Index rows written this long before their record may have been removed as orphans, so they are written again. */
const REWRITE_AFTER_MS = 60_000;

export async function clusterNow(session: Session): Promise<Date> {
  const [row] = await session.rows(SELECT_NOW);
  return row?.now as Date;
}

/** Replaces CLOCK by the cluster's time and ELAPSED by `elapsed`. */
async function resolveEngineValues<T extends Writable<Partial<RecordValues>>>(
  session: Session,
  record: T,
  elapsed = 0,
): Promise<T> {
  const values = Object.entries(record);
  if (!values.some(([, value]) => value === CLOCK || value === ELAPSED)) return record;
  const now = values.some(([, value]) => value === CLOCK) ? await clusterNow(session) : null;
  return Object.fromEntries(
    values.map(([name, value]) => [name, value === CLOCK ? now : value === ELAPSED ? elapsed : value]),
  ) as T;
}

export function recordStore<R extends object>(session: Session, typed: RecordDefinition<R>): RecordStore<R> {
  return typedStore(storeOf(session, locationOf(anyDefinition(typed))));
}

const nullsOf = ({ definition, column }: RecordLocation, row: Row): ReadonlySet<string> =>
  new Set(Object.keys(definition.columns).filter((name) => row[column(name)] == null));

export function storeOf(session: Session, location: RecordLocation): RecordStore<RecordValues> {
  const { definition } = location;
  const indexed = !location.inLockPartition && definition.indexes.length > 0;
  const readCurrent = (key: string): Promise<Row | undefined> =>
    ifMissing(
      session,
      location.table,
      Object.keys(definition.columns).map(location.column),
      () => readRecord(session, location, key),
      async () => undefined,
    );
  return {
    async insert(written) {
      const record = (await resolveEngineValues(session, written)) as RecordValues;
      const key = record[definition.key] as string;
      const startedAt = performance.now();
      if (indexed) await addIndexRows(session, definition, record, 1);
      const applied = await applyChanges(session, [{ location, key, from: 0, to: 1, values: record }]);
      if (applied && indexed && performance.now() - startedAt > REWRITE_AFTER_MS)
        await addIndexRows(session, definition, record, 1);
      return applied ? 'inserted' : 'exists';
    },
    async get(key) {
      const row = await readCurrent(key);
      return row && { record: decodeRecord(location, row), version: versionOf(row) };
    },
    async replace(key, version, written, guard: Guard<RecordValues> = {}) {
      const old = await readCurrent(key);
      if (!old) return 'missing';
      if (versionOf(old) !== version) return 'stale';
      const checkedEpoch = location.inLockPartition ? guard.epoch : undefined;
      if (guard.epoch !== undefined && !location.inLockPartition && !(await isEpochCurrent(session, guard.epoch)))
        return 'stale';
      const record = (await resolveEngineValues(session, written)) as RecordValues;
      const startedAt = performance.now();
      const before = indexed ? decodeRecord(location, old) : undefined;
      if (before) await addIndexRows(session, definition, record, version + 1, before);
      const values = { ...record, [definition.key]: key };
      const applied = await applyChanges(
        session,
        [
          {
            location,
            key,
            from: version,
            to: version + 1,
            values,
            nulls: nullsOf(location, old),
            before: guard.before,
          },
        ],
        checkedEpoch,
      );
      if (!applied) return conflictOf(session, location, key, version, guard);
      if (before) {
        if (performance.now() - startedAt > REWRITE_AFTER_MS)
          await addIndexRows(session, definition, record, version + 1, before);
        await removeIndexRows(session, definition, before, version, record);
      }
      return 'replaced';
    },
    async remove(key, version) {
      const old = await readCurrent(key);
      if (!old) return 'missing';
      if (versionOf(old) !== version) return 'stale';
      if (!(await deleteRecord(session, location, key, version))) return (await readCurrent(key)) ? 'stale' : 'missing';
      if (indexed) await removeIndexRows(session, definition, decodeRecord(location, old), version);
      return 'removed';
    },
    page: (name: string, query: PageQuery<RecordValues>): Promise<Page<RecordValues>> => {
      const index = pageIndex(definition, name, query);
      return location.inLockPartition
        ? ifMissing(
            session,
            location.table,
            Object.keys(definition.columns).map(location.column),
            () => pageFromLockPartition(session, location, index, query),
            async () => ({ records: [] }),
          )
        : pageFromIndexTable(session, location, index, query);
    },
  };
}

async function conflictOf(
  session: Session,
  location: RecordLocation,
  key: string,
  version: number,
  guard: Guard<RecordValues>,
): Promise<'stale' | 'late' | 'missing'> {
  const row = await readRecord(session, location, key);
  if (!row) return 'missing';
  if (versionOf(row) !== version) return 'stale';
  if (guard.epoch !== undefined && !(await isEpochCurrent(session, guard.epoch))) return 'stale';
  return guard.before === undefined ? 'stale' : 'late';
}

/** Creates missing tables and columns, one statement at a time. */
export async function ensureRecords(
  session: Session,
  settings: Settings,
  definitions: readonly AnyRecordDefinition[],
): Promise<void> {
  const run = async (cql: string) => {
    await waitForSchemaAgreement(session, settings.agreementTimeoutMs);
    await session.execute(cql);
    await waitForSchemaAgreement(session, settings.agreementTimeoutMs);
  };
  const add = async (
    table: string,
    wanted: readonly (readonly [string, string])[],
    existing: ReadonlyMap<string, string>,
  ) => {
    const missing = wanted.filter(([name]) => !existing.has(name));
    if (missing.length === 0) return;
    await run(
      `ALTER TABLE ${quoteIdentifier(table)} ADD (${missing.map(([name, type]) => `${quoteIdentifier(name)} ${type}`).join(', ')})`,
    );
  };
  const colocated = definitions.filter((definition) => definition.colocateWithLock);
  if (colocated.length > 0) {
    if ((await readColumns(session, LOCK_TABLE)).size === 0) await createLockTable(session, settings);
    await add(LOCK_TABLE, colocated.flatMap(lockTableColumns), await readColumns(session, LOCK_TABLE));
  }
  for (const definition of definitions) {
    if (definition.colocateWithLock) continue;
    const columns = [
      ...Object.entries(definition.columns).map(([name, column]) => [name, recordColumnType(column)] as const),
      [VERSION_COLUMN, 'bigint'] as const,
      [ATTEMPT_COLUMN, 'uuid'] as const,
    ];
    const existing = await readColumns(session, definition.collection);
    if (existing.size > 0) await add(definition.collection, columns, existing);
    else
      await run(
        `CREATE TABLE IF NOT EXISTS ${quoteIdentifier(definition.collection)} (${columns.map(([name, type]) => `${quoteIdentifier(name)} ${type}`).join(', ')}, PRIMARY KEY (${quoteIdentifier(definition.key)}))`,
      );
    for (const index of definition.indexes) {
      if ((await readColumns(session, indexTable(definition, index))).size === 0)
        await run(createIndexTableCql(definition, index));
    }
  }
}
