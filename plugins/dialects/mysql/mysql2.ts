import { isIP } from 'node:net';
import type { FieldPacket, ResultSetHeader, RowDataPacket } from 'mysql2/promise';
import { SvcError } from '../../../core/errors.ts';
import { type Driver, loadDriver } from '../../driver.ts';
import type { Result } from '../../sql/session.ts';
import type { OpenWire } from './wire.ts';

const driver: Driver<typeof import('mysql2/promise')> = {
  name: 'The driver of MySQL',
  package: 'mysql2',
  module: 'mysql2/promise',
  load: () => import('mysql2/promise'),
};

export const openMysql2: OpenWire = async (
  { host, port, user, password, database, socketPath, tls },
  { connectTimeoutMs, root },
) => {
  const verifyIdentity = tls === 'verify';
  if (verifyIdentity && isIP(host) !== 0) throw unnamed(host);
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
    // A statement of a user must not read files of this machine.
    flags: ['-LOCAL_FILES'],
  });
  return {
    async query(text) {
      const [results, fields] = (await connection.query(text)) as unknown as [Answer | Answer[], Fields | Fields[]];
      return (isSeveral(fields) ? (results as Answer[]) : [results as Answer]).map(result);
    },
    onLost: (listener) => void connection.on('error', listener),
    close() {
      connection.on('error', () => undefined);
      void connection.end().catch(() => connection.destroy());
    },
  };
};

/** The driver would look for `localhost` in the certificate. */
function unnamed(host: string): SvcError {
  return new SvcError('url_invalid', 'The URL of the database cannot be used.', {
    why: `tls=verify compares the server's name with its certificate, and ${host} is no name.`,
    next: ["Write the name that stands in the server's certificate."],
  });
}

type Answer = ResultSetHeader | RowDataPacket[];
type Fields = FieldPacket[] | undefined;

/** One SELECT has its fields here, several statements a list of fields for each, or nothing for those without rows. */
function isSeveral(fields: Fields | Fields[]): fields is Fields[] {
  return Array.isArray(fields) && fields.every((one) => one === undefined || Array.isArray(one));
}

const result = (answer: Answer): Result =>
  Array.isArray(answer) ? { rows: answer, count: answer.length } : { rows: [], count: answer.affectedRows };
