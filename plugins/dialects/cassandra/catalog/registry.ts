import { anyDefinition } from '../../../../core/records.ts';
import { quoteIdentifier } from '../compile/names.ts';
import type { Registered } from '../compile/step.ts';
import type { Session } from '../connection/session.ts';
import { ifMissing } from '../connection/system-schema.ts';
import { createLockTable, LOCK_SCOPE, LOCK_TABLE, registryTable, VERSION_COLUMN } from '../records/lock-partition.ts';
import {
  decodeRecord,
  deleteRecord,
  locationOf,
  type RecordChange,
  readRecord,
  versionOf,
} from '../records/record-writes.ts';
import type { RunContext } from '../run/run-context.ts';

const location = locationOf(anyDefinition(registryTable));

/** The write of a table's entry, which shares a batch with the journal's entry for the statement. */
export async function registryWrite(
  context: RunContext,
  table: string,
  definition: Registered,
  knownVersion?: number,
): Promise<RecordChange> {
  const version = knownVersion ?? versionOf(await readEntry(context, table));
  return { location: location, key: table, from: version, to: version + 1, values: { table, definition } };
}

/** If the removal fails, the remaining entry has no effect: it names the id of the dropped table. */
export async function removeEntry(context: RunContext, table: string): Promise<void> {
  const version = versionOf(await readEntry(context, table));
  if (version > 0) await deleteRecord(context.session, location, table, version);
}

function readEntry(context: RunContext, table: string) {
  return orCreateLockTable(context, () => readRecord(context.session, location, table), undefined);
}

/** The versions of these tables' entries. */
export function entryVersions(context: RunContext, tables: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const { session } = context;
  const cql = `SELECT key, ${quoteIdentifier(VERSION_COLUMN)} FROM ${quoteIdentifier(location.table)} WHERE scope = ? AND kind = ? AND key IN ?`;
  const query = async () => {
    const rows = await session.readSerial(cql, [LOCK_SCOPE, registryTable.collection, tables]);
    return new Map(rows.map((row) => [String(row.key), versionOf(row)]));
  };
  return orCreateLockTable(context, query, new Map());
}

function orCreateLockTable<T>({ session, settings }: RunContext, query: () => Promise<T>, fallback: T): Promise<T> {
  const columns = Object.keys(registryTable.columns).map(location.column);
  return ifMissing(session, location.table, columns, query, async () => {
    await createLockTable(session, settings);
    return fallback;
  });
}

export async function readRegistry(session: Session): Promise<ReadonlyMap<string, Registered>> {
  const columns = Object.keys(registryTable.columns).map(location.column);
  const cql = `SELECT ${[...columns, VERSION_COLUMN].map(quoteIdentifier).join(', ')} FROM ${quoteIdentifier(LOCK_TABLE)} WHERE scope = ? AND kind = ?`;
  const rows = await ifMissing(
    session,
    LOCK_TABLE,
    columns,
    () => session.readQuorum(cql, [LOCK_SCOPE, registryTable.collection]),
    async () => [],
  );
  return new Map(
    rows.map((row) => {
      const { table, definition } = decodeRecord(location, row);
      return [String(table), definition as Registered];
    }),
  );
}
