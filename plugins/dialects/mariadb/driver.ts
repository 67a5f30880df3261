import type { Connection, FieldInfo, UpsertResult } from 'mariadb';
import { type Driver, loadDriver } from '../../shared/driver.ts';
import type { OpenDriver } from '../mysql/variant.ts';
import type { Result } from '../sql/session.ts';

const driver: Driver<typeof import('mariadb')> = {
  name: 'The driver of MariaDB',
  package: 'mariadb',
  load: () => import('mariadb'),
};

export const openMariadb: OpenDriver = async (
  { host, port, user, password, database, socketPath, tls },
  { connectTimeoutMs, root },
) => {
  const { createConnection } = await loadDriver(driver, root);
  const connection: Connection = await createConnection({
    ...(socketPath === undefined ? { host, port } : { socketPath }),
    user,
    password,
    database,
    ...(tls !== 'off' && { ssl: { rejectUnauthorized: tls === 'verify' } }),
    connectTimeout: connectTimeoutMs,
    collation: 'utf8mb4_unicode_ci',
    multipleStatements: true,
    dateStrings: true,
    // Parsing invalid JSON would throw where nothing can catch it.
    autoJsonMap: false,
    insertIdAsNumber: true,
    ...BIT_OPTIONS,
    // Errors would contain the statement with its values.
    logParam: false,
  });
  /** `end()` queues its packet after a running statement and never settles that statement's promise; `destroy()` settles it late. */
  let rejectQuery: ((error: Error) => void) | undefined;
  const send = (text: string) =>
    new Promise<DriverResult | readonly DriverResult[]>((resolve, reject) => {
      rejectQuery = reject;
      connection.query<DriverResult | readonly DriverResult[]>(text).then(resolve, reject);
    });
  return {
    async query(text) {
      const results = await send(text);
      // The rows of a single statement have `meta`; a list of several results does not.
      const isList = Array.isArray(results) && !('meta' in results);
      return (isList ? (results as readonly DriverResult[]) : [results as DriverResult]).map(toResult);
    },
    abandon(error) {
      rejectQuery?.(error);
      connection.destroy();
    },
    onLost: (listener) => void connection.on('error', listener),
    close() {
      connection.on('error', () => undefined);
      void connection.end().catch(() => connection.destroy());
      rejectQuery?.(Object.assign(new Error('The connection was closed.'), { fatal: true }));
    },
  };
};

/** Returns bits as bits. The option is missing from the driver's types. */
const BIT_OPTIONS = { bitOneIsBoolean: false };

type DriverRows = readonly Record<string, unknown>[] & { readonly meta?: readonly FieldInfo[] };
type DriverResult = UpsertResult | DriverRows;

const toResult = (result: DriverResult): Result =>
  Array.isArray(result)
    ? { rows: withExactIntegers(result as DriverRows), count: result.length }
    : { rows: [], count: Number((result as UpsertResult).affectedRows) };

/**
 * As mysql2 returns it: an integer is a number if that is exact, else a string. A `typeCast` function would run for every
 * value and double the time to read a row.
 */
function withExactIntegers(rows: DriverRows): Result['rows'] {
  for (const column of rows.meta ?? []) {
    if (column.type !== 'BIGINT') continue;
    const name = column.name();
    for (const row of rows) {
      const value = row[name];
      if (typeof value === 'bigint') row[name] = Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
    }
  }
  return rows;
}
