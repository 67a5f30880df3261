import type { Connection, FieldInfo, UpsertResult } from 'mariadb';
import { type Driver, loadDriver } from '../../driver.ts';
import type { Result } from '../../sql/session.ts';
import type { OpenWire } from '../mysql/wire.ts';

const driver: Driver<typeof import('mariadb')> = {
  name: 'The driver of MariaDB',
  package: 'mariadb',
  load: () => import('mariadb'),
};

export const openMariadb: OpenWire = async (
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
    // A JSON text that is not valid JSON would throw where nobody can catch it.
    autoJsonMap: false,
    insertIdAsNumber: true,
    ...BITS,
    // Its errors would carry the statement, and with it values.
    logParam: false,
  });
  /** The driver sends its good-bye behind a statement under way and forgets that one: its caller would wait for ever. */
  let abandon: ((error: Error) => void) | undefined;
  const ask = (text: string) =>
    new Promise<Answer | readonly Answer[]>((resolve, reject) => {
      abandon = reject;
      connection.query<Answer | readonly Answer[]>(text).then(resolve, reject);
    });
  return {
    async query(text) {
      const answered = await ask(text);
      // The rows of a single statement carry a description of their columns; the list of several results does not.
      const several = Array.isArray(answered) && !('meta' in answered);
      return (several ? (answered as readonly Answer[]) : [answered as Answer]).map(result);
    },
    onLost: (listener) => void connection.on('error', listener),
    close() {
      connection.on('error', () => undefined);
      void connection.end().catch(() => connection.destroy());
      abandon?.(Object.assign(new Error('The connection was closed.'), { fatal: true }));
    },
  };
};

/** A bit is no boolean: the driver knows the word, its types do not. */
const BITS = { bitOneIsBoolean: false };

type Rows = readonly Record<string, unknown>[] & { readonly meta?: readonly FieldInfo[] };
type Answer = UpsertResult | Rows;

const result = (answer: Answer): Result =>
  Array.isArray(answer)
    ? { rows: exact(answer as Rows), count: answer.length }
    : { rows: [], count: Number((answer as UpsertResult).affectedRows) };

/**
 * As mysql2 has it: an integer is a number where that is exact, else a string. A `typeCast` of ours would be asked for
 * every value, and double the time of reading a row.
 */
function exact(rows: Rows): Result['rows'] {
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
