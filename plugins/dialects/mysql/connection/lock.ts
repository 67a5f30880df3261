import { createHash } from 'node:crypto';
import type { LockOptions } from '../../../../core/dialect.ts';
import { withNothingChanged } from '../../shared/errors.ts';
import { LockWait } from '../../shared/lock-wait.ts';
import { type Mutex, withSessionLock } from '../../shared/mutex.ts';
import { type ExecSql, rowsOf, type Session } from '../../sql/session.ts';
import { errorNumber, poolerError, toSvcError } from './errors.ts';
import type { ServerInfo } from './session.ts';

/** One row counts how often the migration lock was acquired. A session with an older number has lost it. */
export const EPOCH_TABLE = '`_svc_lock`';

/** Seconds to wait inside the server between checks for an interruption. MySQL rounds up to whole seconds. */
const WAIT_S = 1;
const MISSING_TABLE = 1146;

export interface LockContext {
  readonly session: Session;
  readonly serverInfo: ServerInfo;
  /** Acquired first: a session can acquire the same server lock twice. */
  readonly mutex: Mutex;
}

/** Runs `work` under the lock. The lock ends with its session, even if the process dies. */
export function withMigrationLock<T>(
  context: LockContext,
  work: (epoch: number) => Promise<T>,
  options?: LockOptions,
): Promise<T> {
  const { session, mutex, serverInfo } = context;
  const acquireLock = (wait: LockWait) =>
    acquire(context, wait).catch((error) => {
      throw withNothingChanged(toSvcError(error));
    });
  const release = () => session.exec(`DO RELEASE_LOCK('${lockName(serverInfo.database)}')`);
  return withSessionLock(mutex, options, acquireLock, release, work);
}

/** Runs `work` while no other session migrates; undefined if one does. Writes nothing. */
export async function ifLockFree<T>(
  { session, mutex, serverInfo }: LockContext,
  work: () => Promise<T>,
): Promise<T | undefined> {
  const name = lockName(serverInfo.database);
  const done = await mutex.acquire(new LockWait({}));
  try {
    const [row] = await rowsOf(session.exec, `SELECT GET_LOCK('${name}', 0) AS got`);
    if (Number(row?.got ?? 0) !== 1) return undefined;
    try {
      return await work();
    } finally {
      await session.exec(`DO RELEASE_LOCK('${name}')`).catch(() => undefined);
    }
  } finally {
    done();
  }
}

function acquire({ session, serverInfo }: LockContext, waiting: LockWait): Promise<number> {
  let waitS = 0;
  const attempt = async () => {
    const epoch = await session.exclusive((exec) => tryAcquire(exec, serverInfo, waitS));
    waitS = WAIT_S;
    return epoch;
  };
  return waiting.poll(attempt, { firstMs: 0, maxMs: 0 });
}

/** One round trip, except the first time, when the epoch table does not exist. */
async function tryAcquire(exec: ExecSql, serverInfo: ServerInfo, waitS: number): Promise<number | undefined> {
  const name = lockName(serverInfo.database);
  const increment = `UPDATE ${EPOCH_TABLE} SET epoch = epoch + 1 WHERE @svc_got = 1`;
  const read = `SELECT @svc_got AS got, connection_id() AS id, (SELECT epoch FROM ${EPOCH_TABLE}) AS epoch`;
  try {
    // GET_LOCK returns 1 for success, 0 for a time-out and NULL for an error.
    const text = `SET @svc_got = GET_LOCK('${name}', ${waitS}); ${increment}; ${read}`;
    const epoch = readEpoch((await rowsOf(exec, text))[0], serverInfo);
    if (epoch !== 0) return epoch;
  } catch (error) {
    if (errorNumber(error) !== MISSING_TABLE) throw await releaseAfter(exec, name, error);
  }
  try {
    // The failed text has acquired the lock; creating the table without the lock would race.
    const [lock] = await rowsOf(exec, `SELECT ${sessionHoldsLock(serverInfo.database)} AS is_held`);
    if (Number(lock?.is_held) !== 1) return undefined;
    await exec(
      `CREATE TABLE IF NOT EXISTS ${EPOCH_TABLE} (one tinyint NOT NULL PRIMARY KEY, epoch bigint NOT NULL) ENGINE = InnoDB; INSERT IGNORE INTO ${EPOCH_TABLE} VALUES (1, 0)`,
    );
    const [row] = await rowsOf(exec, `SET @svc_got = 1; ${increment}; ${read}`);
    return readEpoch(row, serverInfo);
  } catch (error) {
    throw await releaseAfter(exec, name, error);
  }
}

/** 0 if the session has the lock and the epoch row is missing; undefined without the lock. */
function readEpoch(row: Readonly<Record<string, unknown>> | undefined, serverInfo: ServerInfo): number | undefined {
  if (Number(row?.id) !== serverInfo.id) throw poolerError('Two statements of one connection ran in two sessions.');
  return Number(row?.got ?? 0) === 1 ? Number(row?.epoch ?? 0) : undefined;
}

/** The session keeps the lock if the text that acquired it fails. */
async function releaseAfter(exec: ExecSql, name: string, error: unknown): Promise<unknown> {
  await exec(`DO RELEASE_LOCK('${name}')`).catch(() => undefined);
  return error;
}

/** Locks are server-wide. MySQL's ignore case and have 64 characters at most, so two databases may share a lock. */
function lockName(database: string): string {
  return `svc:${createHash('sha256').update(database.toLowerCase()).digest('hex').slice(0, 40)}`;
}

/** An SQL condition. */
export function sessionHoldsLock(database: string): string {
  return `(IS_USED_LOCK('${lockName(database)}') <=> connection_id())`;
}

/** An SQL condition: any session holds the lock. */
export function isLockTaken(database: string): string {
  return `(IS_USED_LOCK('${lockName(database)}') IS NOT NULL)`;
}

/** In a write, it locks the row in share mode: the next holder waits for the end of this transaction. */
export function isCurrentEpoch(epoch: number): string {
  return `EXISTS (SELECT 1 FROM ${EPOCH_TABLE} WHERE epoch = ${epoch})`;
}

/** SQL for the value, or NULL once the epoch has ended, which makes a write to a NOT NULL column fail. */
export function ifCurrentEpoch(epoch: number, value: string): string {
  return `(SELECT ${value} FROM ${EPOCH_TABLE} WHERE epoch = ${epoch})`;
}
