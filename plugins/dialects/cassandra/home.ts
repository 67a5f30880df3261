import { type AnyRecordDefinition, anyDefinition } from '../../../core/records.ts';
import { agreed } from './agreement.ts';
import { recordType } from './codec.ts';
import { isNotThere, untilKnown } from './known.ts';
import { quote } from './names.ts';
import { registry } from './registry.ts';
import type { Session } from './session.ts';
import type { Settings } from './settings.ts';
import { work } from './work.ts';

/** The one table that holds the lock and, beside it in the same partition, what is written under it. */
export const HOME = '_svc_migrations';
/** The partition of the lock. */
export const SCOPE = 'migrations';
export const OWNER = 'lock_owner';
export const EPOCH = 'lock_epoch';
/** Counts the replaces of a record. */
export const VERSION = '_version';
/** Who wrote a record last: tells a write whose answer was lost from another one's. */
export const ATTEMPT = '_attempt';

/** Where the column of a record is: the history has its own names, what lies beside it those of its kind before them. */
export function homeColumn({ collection }: Pick<AnyRecordDefinition, 'collection'>, column: string): string {
  return collection === HOME ? column : `${collection.replace(/^_svc_/, '')}.${column}`;
}

const BASE: readonly (readonly [name: string, type: string])[] = [
  ['scope', 'text'],
  ['kind', 'text'],
  ['key', 'text'],
  [OWNER, 'text STATIC'],
  [EPOCH, 'bigint STATIC'],
  [VERSION, 'bigint'],
  [ATTEMPT, 'uuid'],
];

export function columnsOf(definition: AnyRecordDefinition): [string, string][] {
  return Object.entries(definition.columns).map(([name, column]) => [homeColumn(definition, name), recordType(column)]);
}

/**
 * Makes the table of the lock. Two who do it at once through two nodes both succeed, with the same columns; each waits
 * for agreement before it writes.
 */
export async function createHome(session: Session, settings: Settings): Promise<void> {
  const columns = [...BASE, ...columnsOf(anyDefinition(registry)), ...columnsOf(anyDefinition(work))];
  await agreed(session, settings.agreementTimeoutMs);
  await session.text(
    `CREATE TABLE IF NOT EXISTS ${quote(HOME)} (${columns.map(([name, type]) => `${quote(name)} ${type}`).join(', ')}, PRIMARY KEY (scope, kind, key))`,
  );
  await agreed(session, settings.agreementTimeoutMs);
}

/** Columns of a table, without quotes; nothing where it does not exist. */
export async function columnsIn(session: Session, table: string): Promise<ReadonlyMap<string, string>> {
  const rows = await session.rows(
    'SELECT column_name, type FROM system_schema.columns WHERE keyspace_name = ? AND table_name = ?',
    [session.keyspace, table],
  );
  return new Map(rows.map((row) => [String(row.column_name), String(row.type)]));
}

/** Those of these tables, and views, that there are. */
export async function existingTables(session: Session, tables: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await session.rows(
    'SELECT table_name FROM system_schema.columns WHERE keyspace_name = ? AND table_name IN ?',
    [session.keyspace, tables],
  );
  return new Set(rows.map((row) => String(row.table_name)));
}

/**
 * The answer, or what `otherwise` gives where neither the table nor any of these columns of it is there. Another process
 * may make them between the question and the look at the catalog, which shows them before the node knows them.
 */
export async function orMissing<T>(
  session: Session,
  table: string,
  columns: readonly string[],
  ask: () => Promise<T>,
  otherwise: () => Promise<T>,
): Promise<T> {
  let isMissing = false;
  // The number of an error does not tell what is missing, the catalog does.
  const lags = async (error: unknown): Promise<boolean> => {
    if (!isNotThere(error)) return false;
    const there = await columnsIn(session, table);
    isMissing = !columns.some((name) => there.has(name));
    return !isMissing;
  };
  try {
    return await untilKnown(ask, lags);
  } catch (error) {
    if (isMissing) return otherwise();
    throw error;
  }
}
