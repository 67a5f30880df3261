import type { BlockingSession, Statement } from '../../../../core/dialect.ts';
import { MAX_QUERY, namesIn, toBlockingSessions, withBlockingSessions } from '../../sql/blocking-sessions.ts';
import { type ExecSql, rowsOf, type Session } from '../../sql/session.ts';
import { quoteLiteral } from '../compile/literal.ts';

/** The sessions that block these statements. A failure to find them never hides the error of the statement. */
export async function blockersOf(
  { session, schema }: { readonly session: Session; readonly schema: string },
  statements: readonly Pick<Statement, 'text'>[] = [],
): Promise<readonly BlockingSession[]> {
  const texts = statements.map(({ text }) => text);
  return session.exclusive((exec) => blockingSessions(exec, schema, texts)).catch(() => []);
}

/** The other sessions that hold a lock on a table which the statements name. `schema` is quoted, with its dot. */
async function blockingSessions(
  exec: ExecSql,
  schema: string,
  statements: readonly string[],
): Promise<BlockingSession[]> {
  const names = namesIn(statements.join('\n')).map(quoteLiteral);
  if (names.length === 0) return [];
  const home = `${quoteLiteral(schema.slice(0, -1))}::regnamespace`;
  const rows = await rowsOf(
    exec,
    `SELECT CASE WHEN c.relnamespace = ${home} THEN '' ELSE c.relnamespace::regnamespace || '.' END || c.relname AS t, a.pid, a.usename AS user, a.application_name AS application, a.state,
  extract(epoch FROM clock_timestamp() - coalesce(a.xact_start, a.state_change)) AS seconds, left(a.query, ${MAX_QUERY}) AS query
  FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_class c ON c.oid = l.relation JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
  WHERE l.granted AND l.pid <> pg_backend_pid() AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
  AND c.relkind IN ('r', 'p') AND c.relname IN (${names.join(', ')})
  AND (c.relnamespace = ${home} OR c.relnamespace IN (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname IN (${names.join(', ')})))
  ORDER BY a.xact_start NULLS LAST, a.pid LIMIT 20`,
  );
  return toBlockingSessions(rows);
}

export const withBlockers = (error: unknown, sessions: readonly BlockingSession[]): unknown =>
  withBlockingSessions(error, sessions, 'SELECT pg_terminate_backend(?)');
