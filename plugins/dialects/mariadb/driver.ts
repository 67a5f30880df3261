import type { Connection, FieldInfo, TypeCastNextFunction, TypeCastResult, UpsertResult } from 'mariadb';
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
  connectTimeoutMs,
) => {
  const { createConnection } = await loadDriver(driver);
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
    // Its errors would carry the statement, and with it values.
    logParam: false,
    typeCast,
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

type Answer = UpsertResult | readonly Readonly<Record<string, unknown>>[];

/** As mysql2 has it: an integer is a number where that is exact, else a string; a bit is no boolean. */
function typeCast(column: FieldInfo, next: TypeCastNextFunction): TypeCastResult {
  if (column.type === 'BIT') return column.buffer();
  if (column.type !== 'BIGINT') return next();
  const text = column.string();
  const number = Number(text);
  return text === null || Number.isSafeInteger(number) ? (text === null ? null : number) : text;
}

const result = (answer: Answer): Result =>
  Array.isArray(answer)
    ? { rows: answer, count: answer.length }
    : { rows: [], count: Number((answer as UpsertResult).affectedRows) };
