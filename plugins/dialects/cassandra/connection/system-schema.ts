import { isSvcError } from '../../../../core/errors.ts';
import { isObjectUnknown, retryDuringSchemaLag } from './schema-lag.ts';
import type { Session } from './session.ts';

/** The types of a table's columns by name; empty if the table does not exist. */
export async function readColumns(session: Session, table: string): Promise<ReadonlyMap<string, string>> {
  const rows = await session.rows(
    'SELECT column_name, type FROM system_schema.columns WHERE keyspace_name = ? AND table_name = ?',
    [session.keyspace, table],
  );
  return new Map(rows.map((row) => [String(row.column_name), String(row.type)]));
}

/** The tables and views among these names that exist. */
export async function existingTables(session: Session, tables: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await session.rows(
    'SELECT table_name FROM system_schema.columns WHERE keyspace_name = ? AND table_name IN ?',
    [session.keyspace, tables],
  );
  return new Set(rows.map((row) => String(row.table_name)));
}

/**
 * Runs a query, or `otherwise` if the table or all of these columns are missing. Retries while the catalog contains them but
 * the node does not know them yet, as when another process creates them at the same time.
 */
export async function ifMissing<T>(
  session: Session,
  table: string,
  columns: readonly string[],
  query: () => Promise<T>,
  otherwise: () => Promise<T>,
): Promise<T> {
  let isMissing = false;
  // The error code does not identify what is missing, so the catalog is read.
  const isLag = async (error: unknown): Promise<boolean> => {
    if (!isObjectUnknown(error)) return false;
    const existing = await readColumns(session, table);
    isMissing = !columns.some((name) => existing.has(name));
    return !isMissing;
  };
  try {
    return await retryDuringSchemaLag(query, isLag);
  } catch (error) {
    if (isMissing) return otherwise();
    // One table has the records of several collections.
    throw isSvcError(error) ? error.with({ details: { table } }) : error;
  }
}
