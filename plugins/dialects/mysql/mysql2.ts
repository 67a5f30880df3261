import type { FieldPacket, ResultSetHeader, RowDataPacket } from 'mysql2/promise';
import { type Driver, loadDriver } from '../../driver.ts';
import type { Result } from '../../sql/session.ts';
import type { OpenWire } from './wire.ts';

const driver: Driver<typeof import('mysql2/promise')> = {
  name: 'The driver of MySQL',
  package: 'mysql2',
  load: () => import('mysql2/promise'),
};

export const openMysql2: OpenWire = async (
  { host, port, user, password, database, socketPath, tls },
  connectTimeoutMs,
) => {
  const { createConnection } = await loadDriver(driver);
  const connection = await createConnection({
    ...(socketPath === undefined ? { host, port } : { socketPath }),
    user,
    password,
    database,
    ...(tls !== 'off' && { ssl: { rejectUnauthorized: tls === 'verify' } }),
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

type Answer = ResultSetHeader | RowDataPacket[];
type Fields = FieldPacket[] | undefined;

/** One SELECT has its fields here, several statements a list of fields for each, or nothing for those without rows. */
function isSeveral(fields: Fields | Fields[]): fields is Fields[] {
  return Array.isArray(fields) && fields.every((one) => one === undefined || Array.isArray(one));
}

const result = (answer: Answer): Result =>
  Array.isArray(answer) ? { rows: answer, count: answer.length } : { rows: [], count: answer.affectedRows };
