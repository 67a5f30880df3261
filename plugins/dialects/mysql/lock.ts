import { createHash } from 'node:crypto';
import type { LockOptions } from '../../../core/dialect.ts';
import { LockWait } from '../../lock-wait.ts';
import { type Exec, rowsOf, type Session } from '../../sql/session.ts';
import type { Turns } from '../../sql/turns.ts';
import { EPOCH_TABLE } from './epoch.ts';
import { numberOf, pooled, refusal, unchanged } from './errors.ts';
import type { Greeting } from './session.ts';

/** Seconds a session waits inside the server before it looks whether it was interrupted. MySQL rounds up to whole ones. */
const WAIT_S = 1;
const MISSING_TABLE = 1146;

export interface LockPlace {
  readonly session: Session;
  readonly greeting: Greeting;
  /** Before the lock of the session, which its own holder could take twice. */
  readonly turns: Turns;
}

/** The lock as a bracket. It ends with its session, whatever becomes of the process. */
export async function exclusively<T>(
  place: LockPlace,
  work: (epoch: number) => Promise<T>,
  options: LockOptions = {},
): Promise<T> {
  const { session, turns, greeting } = place;
  const waiting = new LockWait(options);
  const done = await turns.take(waiting);
  try {
    const epoch = await acquire(place, waiting).catch((error) => {
      throw unchanged(refusal(error));
    });
    try {
      return await work(epoch);
    } finally {
      // A session that is gone has let go already.
      await session.exec(`DO RELEASE_LOCK('${lockName(greeting.database)}')`).catch(() => undefined);
    }
  } finally {
    done();
  }
}

function acquire({ session, greeting }: LockPlace, waiting: LockWait): Promise<number> {
  let patience = 0;
  const attempt = async () => {
    const epoch = await session.alone((exec) => tryAcquire(exec, greeting, patience));
    patience = WAIT_S;
    return epoch;
  };
  return waiting.until(attempt, { firstMs: 0, longestMs: 0 });
}

/** One round trip when the row of the epoch is there, which it is but for the first time. */
async function tryAcquire(exec: Exec, greeting: Greeting, patience: number): Promise<number | undefined> {
  const name = lockName(greeting.database);
  const move = `UPDATE ${EPOCH_TABLE} SET epoch = epoch + 1 WHERE @svc_got = 1`;
  const answer = `SELECT @svc_got AS got, connection_id() AS id, (SELECT epoch FROM ${EPOCH_TABLE}) AS epoch`;
  try {
    // Anything but 1 is failure: 0 had to wait too long, NULL is an error.
    const text = `SET @svc_got = GET_LOCK('${name}', ${patience}); ${move}; ${answer}`;
    const epoch = epochOf((await rowsOf(exec, text))[0], greeting);
    if (epoch !== 0) return epoch;
  } catch (error) {
    if (numberOf(error) !== MISSING_TABLE) throw await released(exec, name, error);
  }
  try {
    // Under the lock, which the failed statement before it has taken, or creating would race.
    const [held] = await rowsOf(exec, `SELECT ${lockHeld(greeting.database)} AS held`);
    if (Number(held?.held) !== 1) return undefined;
    await exec(
      `CREATE TABLE IF NOT EXISTS ${EPOCH_TABLE} (one tinyint NOT NULL PRIMARY KEY, epoch bigint NOT NULL) ENGINE = InnoDB; INSERT IGNORE INTO ${EPOCH_TABLE} VALUES (1, 0)`,
    );
    const [row] = await rowsOf(exec, `SET @svc_got = 1; ${move}; ${answer}`);
    return epochOf(row, greeting);
  } catch (error) {
    throw await released(exec, name, error);
  }
}

/** 0 where the lock was had and there is no row to count in. */
function epochOf(row: Readonly<Record<string, unknown>> | undefined, greeting: Greeting): number | undefined {
  if (Number(row?.id) !== greeting.id) throw pooled('Two statements of one connection ran in two sessions.');
  return Number(row?.got ?? 0) === 1 ? Number(row?.epoch ?? 0) : undefined;
}

/** The lock of a session outlives the statement that took it and failed. */
async function released(exec: Exec, name: string, error: unknown): Promise<unknown> {
  await exec(`DO RELEASE_LOCK('${name}')`).catch(() => undefined);
  return error;
}

/** Locks are server-wide; MySQL's ignore case and end at 64 characters, so that two databases may have one: they wait. */
export function lockName(database: string): string {
  return `svc:${createHash('sha256').update(database.toLowerCase()).digest('hex').slice(0, 40)}`;
}

/** A condition: this session holds the lock. */
export function lockHeld(database: string): string {
  return `(IS_USED_LOCK('${lockName(database)}') <=> connection_id())`;
}

/** A condition: any session does. */
export function lockTaken(database: string): string {
  return `(IS_USED_LOCK('${lockName(database)}') IS NOT NULL)`;
}
