import type { BlockingSession, Statement } from '../../../../core/dialect.ts';
import { MAX_QUERY, namesIn, toBlockingSessions, withBlockingSessions } from '../../sql/blocking-sessions.ts';
import { type ExecSql, rowsOf, type Session } from '../../sql/session.ts';
import { quoteLiteral } from '../compile/literal.ts';
import { errorNumber } from '../connection/errors.ts';

/** A transaction's start in the time zone of the server, whatever that of the session. */
const SECONDS = "TIMESTAMPDIFF(SECOND, CONVERT_TZ(x.trx_started, 'SYSTEM', @@session.time_zone), NOW()) AS seconds";

/** The sessions that block these statements. A failure to find them never hides the error of the statement. */
export async function blockersOf(
  { session }: { readonly session: Session },
  statements: readonly Pick<Statement, 'text'>[] = [],
): Promise<readonly BlockingSession[]> {
  const texts = statements.map(({ text }) => text);
  return session.exclusive((exec) => blockingSessions(exec, texts)).catch(() => []);
}

/**
 * The other sessions that hold a lock on a table which the statements name. A server that shows no locks, as MariaDB
 * does by default, shows the open transactions in the database; a user without the privileges sees none.
 */
async function blockingSessions(exec: ExecSql, statements: readonly string[]): Promise<BlockingSession[]> {
  const names = namesIn(statements.join('\n')).map(quoteLiteral).join(', ');
  if (names === '') return [];
  for (const query of [lockQuery(names), transactionQuery(names)]) {
    try {
      const rows = await rowsOf(exec, query);
      if (rows.length > 0) return toBlockingSessions(rows);
    } catch (error) {
      // The server or the user lacks what this query reads.
      if (errorNumber(error) === undefined) throw error;
    }
  }
  return [];
}

const lockQuery = (
  names: string,
): string => `SELECT m.object_name AS t, t.processlist_id AS pid, t.processlist_user AS user,
  a.attr_value AS application, IF(t.processlist_command = 'Sleep', 'idle in transaction', LOWER(t.processlist_command)) AS state,
  ${SECONDS}, LEFT(COALESCE(s.sql_text, t.processlist_info), ${MAX_QUERY}) AS query
  FROM performance_schema.metadata_locks m JOIN performance_schema.threads t ON t.thread_id = m.owner_thread_id
  LEFT JOIN performance_schema.session_connect_attrs a ON a.processlist_id = t.processlist_id AND a.attr_name = 'program_name'
  LEFT JOIN performance_schema.events_statements_current s ON s.thread_id = t.thread_id
  LEFT JOIN information_schema.innodb_trx x ON x.trx_mysql_thread_id = t.processlist_id
  WHERE m.object_type = 'TABLE' AND m.object_schema = DATABASE() AND m.lock_status = 'GRANTED' AND m.object_name IN (${names})
  AND t.processlist_id <> CONNECTION_ID() ORDER BY x.trx_started IS NULL, x.trx_started LIMIT 20`;

/** Which tables a transaction has locked is not shown: it is listed under the first table of the statement. */
const transactionQuery = (names: string): string => `SELECT (SELECT table_name FROM information_schema.tables
  WHERE table_schema = DATABASE() AND table_name IN (${names}) ORDER BY FIELD(table_name, ${names}) LIMIT 1) AS t, p.id AS pid, p.user AS user,
  NULL AS application, IF(p.command = 'Sleep', 'idle in transaction', LOWER(p.command)) AS state, ${SECONDS}, LEFT(p.info, ${MAX_QUERY}) AS query
  FROM information_schema.processlist p JOIN information_schema.innodb_trx x ON x.trx_mysql_thread_id = p.id
  WHERE p.db = DATABASE() AND p.id <> CONNECTION_ID() ORDER BY x.trx_started LIMIT 20`;

export const withBlockers = (error: unknown, sessions: readonly BlockingSession[]): unknown =>
  withBlockingSessions(error, sessions, 'KILL ?');
