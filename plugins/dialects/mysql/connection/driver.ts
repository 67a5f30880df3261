import { isIP, type Socket } from 'node:net';
import type { Connection, FieldPacket, ResultSetHeader, RowDataPacket } from 'mysql2/promise';
import { SvcError } from '../../../../core/errors.ts';
import { assertInstalled, type Driver, loadDriver } from '../../../shared/driver.ts';
import type { Result } from '../../sql/session.ts';
import type { OpenDriver } from '../variant.ts';

const driver: Driver<typeof import('mysql2/promise')> = {
  name: 'The driver of MySQL',
  package: 'mysql2',
  module: 'mysql2/promise',
  load: () => import('mysql2/promise'),
};

export const openMysql2: OpenDriver = async (
  { host, port, user, password, database, socketPath, tls },
  { connectTimeoutMs, root },
) => {
  const verifyIdentity = tls === 'verify';
  if (verifyIdentity && isIP(host) !== 0) throw hostWithoutName(host);
  const { createConnection } = await loadDriver(driver, root);
  const connection = await createConnection({
    ...(socketPath === undefined ? { host, port } : { socketPath }),
    user,
    password,
    database,
    ...(tls !== 'off' && { ssl: { rejectUnauthorized: verifyIdentity, verifyIdentity } }),
    connectTimeout: connectTimeoutMs,
    charset: 'utf8mb4_unicode_ci',
    multipleStatements: true,
    supportBigNumbers: true,
    dateStrings: true,
    jsonStrings: true,
    // A raw statement must not read files of this machine.
    flags: ['-LOCAL_FILES'],
  });
  return {
    async query(text) {
      // With `multipleStatements`, both are lists of lists, which the driver's types leave out.
      const [results, fields] = (await connection.query(text)) as unknown as [
        DriverResult | DriverResult[],
        DriverFields | DriverFields[],
      ];
      return (hasSeveralResults(fields) ? (results as DriverResult[]) : [results as DriverResult]).map(toResult);
    },
    abandon: (error) => (connection as Connection & DriverSocket).connection.stream.destroy(error),
    onLost: (listener) => void connection.on('error', listener),
    close() {
      connection.on('error', () => undefined);
      void connection.end().catch(() => connection.destroy());
    },
  };
};

/** Throws `driver_missing` if a program of the project cannot load the driver. */
export const assertMysql2 = (root: string): Promise<void> => assertInstalled(driver, root);

/** For an IP address, the driver would compare `localhost` with the certificate. */
function hostWithoutName(host: string): SvcError {
  return new SvcError('url_invalid', 'The URL of the database cannot be used.', {
    why: `tls=verify compares the server's name with its certificate, and ${host} is not a name.`,
    next: ["Use the name in the server's certificate."],
  });
}

/** Missing from the driver's types. */
interface DriverSocket {
  readonly connection: { readonly stream: Socket };
}

type DriverResult = ResultSetHeader | RowDataPacket[];
type DriverFields = FieldPacket[] | undefined;

/** A single SELECT has a list of fields; several statements have one list each, or undefined without rows. */
function hasSeveralResults(fields: DriverFields | DriverFields[]): fields is DriverFields[] {
  return Array.isArray(fields) && fields.every((one) => one === undefined || Array.isArray(one));
}

const toResult = (result: DriverResult): Result =>
  Array.isArray(result) ? { rows: result, count: result.length } : { rows: [], count: result.affectedRows };
