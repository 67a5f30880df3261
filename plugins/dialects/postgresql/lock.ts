import type { LockOptions } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import { LockWait } from '../../lock-wait.ts';
import { type Exec, rowsOf, type Session } from '../../sql/session.ts';
import type { Turns } from '../../sql/turns.ts';
import { epochTable, lockKey } from './epoch.ts';
import { codeOf, pooled, refusal, unchanged } from './errors.ts';

export const FIRST_POLL_MS = 5;
export const LONGEST_POLL_MS = 200;

export interface LockPlace {
  readonly session: Session;
  /** Quoted, with its dot. */
  readonly schema: string;
  /** Quoted, where it did not exist when the session began. */
  readonly missingSchema?: string | undefined;
  /** Of the session as it began: another one means that a pooler hands statements around. */
  readonly backend: number;
  /** Before the lock of the session, which its own holder could take twice. */
  readonly turns: Turns;
}

/**
 * The lock as a bracket. It is polled: a session that waits inside the server deadlocks with a concurrent index
 * build of the holder. It ends with its session, whatever becomes of the process.
 */
export async function exclusively<T>(
  place: LockPlace,
  work: (epoch: number) => Promise<T>,
  options: LockOptions = {},
): Promise<T> {
  const { session, turns } = place;
  const key = lockKey(place.schema);
  const waiting = new LockWait(options);
  const done = await turns.take(waiting);
  try {
    const epoch = await waiting.until(
      () =>
        place.session
          .alone((exec) => tryAcquire(exec, place, key))
          .catch((error) => {
            throw unchanged(refusal(error));
          }),
      { firstMs: FIRST_POLL_MS, longestMs: LONGEST_POLL_MS },
    );
    try {
      return await work(epoch);
    } finally {
      // A session that is gone has let go already.
      await session.exec(`SELECT pg_advisory_unlock(${key})`).catch(() => undefined);
    }
  } finally {
    done();
  }
}

/** One round trip when the row of the epoch is there, which it is but for the first time. */
async function tryAcquire(
  exec: Exec,
  { schema, backend, missingSchema }: LockPlace,
  key: string,
): Promise<number | undefined> {
  const table = epochTable(schema);
  const moved = `UPDATE ${table} SET epoch = epoch + 1 FROM lock WHERE lock.got RETURNING epoch`;
  const lock = `SELECT pg_try_advisory_lock(${key}) AS got`;
  const told = (row: Readonly<Record<string, unknown>> | undefined) => {
    if (Number(row?.backend) !== backend)
      throw pooled('Two statements of one connection ran in two sessions of the server.');
    return row?.got === true;
  };
  try {
    const text = `WITH lock AS MATERIALIZED (${lock}), moved AS (${moved}) SELECT got, pg_backend_pid() AS backend, (SELECT epoch FROM moved) AS epoch FROM lock`;
    const [row] = await rowsOf(exec, text);
    if (!told(row)) return undefined;
    if (row?.epoch !== null) return Number(row?.epoch);
  } catch (error) {
    if (codeOf(error) !== '42P01') {
      // The lock of a session outlives the statement that took it and failed.
      await exec(`SELECT pg_advisory_unlock(${key})`).catch(() => undefined);
      throw error;
    }
    const [row] = await rowsOf(exec, `${lock}, pg_backend_pid() AS backend`);
    if (!told(row)) return undefined;
  }
  try {
    // Under the lock, or creating it would race.
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

/** What a FROM names to have a row while this session holds the lock. */
export function lockHeld(schema: string): string {
  return `${lockTaken(schema)} AND pid = pg_backend_pid()`;
}

/** And while any session does. */
export function lockTaken(schema: string): string {
  const here = '(SELECT oid FROM pg_database WHERE datname = current_database())';
  return `pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND database = ${here} AND ((classid::bigint << 32) | objid::bigint) = ${lockKey(schema)}`;
}

export function lockGivenUp(): SvcError {
  return new SvcError('lock_lost', 'The migration lock was lost.', {
    why: 'A raw statement gave it up, as pg_advisory_unlock_all() does.',
    next: ['Leave the advisory locks of others alone in raw statements.'],
  });
}
