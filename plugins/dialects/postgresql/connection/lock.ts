import { createHash } from 'node:crypto';
import type { LockOptions } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { withNothingChanged } from '../../shared/errors.ts';
import { type Mutex, withSessionLock } from '../../shared/mutex.ts';
import { type ExecSql, rowsOf, type Session } from '../../sql/session.ts';
import { quoteIdentifier } from '../compile/names.ts';
import { codeOf, poolerError, toSvcError } from './errors.ts';

export const FIRST_POLL_MS = 5;
export const LONGEST_POLL_MS = 200;

export interface LockContext {
  readonly session: Session;
  /** Quoted, with its dot. */
  readonly schema: string;
  /** Quoted; set if the schema did not exist when the session began. */
  readonly missingSchema?: string | undefined;
  /** The backend's process id when the session began: another one means that a pooler distributes the statements. */
  readonly backend: number;
  /** Acquired before the advisory lock, which one session could acquire twice. */
  readonly mutex: Mutex;
}

/**
 * Runs `work` under the migration lock, an advisory lock of the session: it ends with the session. The lock is polled,
 * because a session that waits inside the server deadlocks with a concurrent index build of the holder.
 */
export function withMigrationLock<T>(
  context: LockContext,
  work: (epoch: number) => Promise<T>,
  options?: LockOptions,
): Promise<T> {
  const { session, mutex } = context;
  const key = lockKey(context.schema);
  const attempt = () =>
    session
      .exclusive((exec) => tryAcquire(exec, context, key))
      .catch((error) => {
        throw withNothingChanged(toSvcError(error));
      });
  return withSessionLock(
    mutex,
    options,
    (wait) => wait.poll(attempt, { firstMs: FIRST_POLL_MS, maxMs: LONGEST_POLL_MS }),
    () => session.exec(`SELECT pg_advisory_unlock(${key})`),
    work,
  );
}

/** Returns the new epoch, or undefined if another session has the lock. One round trip, except the first time ever. */
async function tryAcquire(
  exec: ExecSql,
  { schema, backend, missingSchema }: LockContext,
  key: string,
): Promise<number | undefined> {
  const table = epochTable(schema);
  const nextEpoch = `UPDATE ${table} SET epoch = epoch + 1 FROM lock WHERE lock.got RETURNING epoch`;
  const tryLock = `SELECT pg_try_advisory_lock(${key}) AS got`;
  const isAcquired = (row: Readonly<Record<string, unknown>> | undefined) => {
    if (Number(row?.backend) !== backend)
      throw poolerError('Two statements of one connection ran in two sessions of the server.');
    return row?.got === true;
  };
  try {
    const text = `WITH lock AS MATERIALIZED (${tryLock}), next AS (${nextEpoch}) SELECT got, pg_backend_pid() AS backend, (SELECT epoch FROM next) AS epoch FROM lock`;
    const [row] = await rowsOf(exec, text);
    if (!isAcquired(row)) return undefined;
    if (row?.epoch !== null) return Number(row?.epoch);
  } catch (error) {
    if (codeOf(error) !== '42P01') {
      // An advisory lock of a session outlives the failed statement that acquired it.
      await exec(`SELECT pg_advisory_unlock(${key})`).catch(() => undefined);
      throw error;
    }
    const [row] = await rowsOf(exec, `${tryLock}, pg_backend_pid() AS backend`);
    if (!isAcquired(row)) return undefined;
  }
  try {
    // Under the lock: without it, concurrent sessions would race to create the schema.
    if (missingSchema !== undefined) await exec(`CREATE SCHEMA IF NOT EXISTS ${missingSchema}`);
    await exec(
      `CREATE TABLE IF NOT EXISTS ${table} (one boolean PRIMARY KEY DEFAULT true CHECK (one), epoch bigint NOT NULL)`,
    );
    await exec(`INSERT INTO ${table} (epoch) VALUES (0) ON CONFLICT DO NOTHING`);
    const [row] = await rowsOf(exec, `UPDATE ${table} SET epoch = epoch + 1 RETURNING epoch`);
    return Number(row?.epoch);
  } catch (error) {
    await exec(`SELECT pg_advisory_unlock(${key})`).catch(() => undefined);
    throw error;
  }
}

/** The text after FROM in a query that returns a row while this session holds the lock. */
export function lockHeldBySession(schema: string): string {
  return `${lockHeldByAnySession(schema)} AND pid = pg_backend_pid()`;
}

/** The text after FROM in a query that returns a row while any session holds the lock. */
export function lockHeldByAnySession(schema: string): string {
  const databaseOid = '(SELECT oid FROM pg_database WHERE datname = current_database())';
  return `pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND database = ${databaseOid} AND ((classid::bigint << 32) | objid::bigint) = ${lockKey(schema)}`;
}

export function lockReleasedError(): SvcError {
  return new SvcError('lock_lost', 'The migration lock was lost.', {
    why: 'A raw statement released it, for example with pg_advisory_unlock_all().',
    next: ['In raw statements, release only advisory locks that they have acquired.'],
  });
}

/** One row counts how often the migration lock was acquired. A session with an older number has lost it. */
const EPOCH_TABLE = '_svc_lock';

export const epochTable = (schema: string): string => `${schema}${quoteIdentifier(EPOCH_TABLE)}`;

/** A condition that locks the row in share mode: no other session gets the lock before this transaction ends. */
export function epochIsCurrent(schema: string, epoch: number): string {
  return `EXISTS (SELECT 1 FROM ${epochTable(schema)} WHERE epoch = ${epoch} FOR SHARE)`;
}

/** SQL for the value, or NULL once the epoch has ended, which makes a write to a NOT NULL column fail. */
export function valueIfEpochCurrent(schema: string, epoch: number, value: string): string {
  return `(SELECT ${value} FROM ${epochTable(schema)} WHERE epoch = ${epoch} FOR SHARE)`;
}

/** A 64-bit key of the advisory lock: the same in every process for one schema. */
function lockKey(schema: string): string {
  return createHash('sha256').update(`svc migrations ${schema}`).digest().readBigInt64BE(0).toString();
}
