import type { LockShortage } from '../../../../core/dialect.ts';
import { rowsOf, type Session } from '../../sql/session.ts';
import { codeOf, OUT_OF_MEMORY } from '../connection/errors.ts';

const NOMINAL = "current_setting('max_locks_per_transaction')::int * current_setting('max_connections')::int";

/**
 * Whether the server has room for this many locks, tried with as many advisory locks, which are kept in the same table.
 * It has at least `max_locks_per_transaction * max_connections`, and how much more depends on the rest of its memory.
 */
export function lockShortage(session: Session, locks: number): Promise<LockShortage | undefined> {
  return session.exclusive(async (exec) => {
    const [row] = await rowsOf(
      exec,
      `SELECT ${NOMINAL} AS nominal, current_setting('max_locks_per_transaction') AS setting, current_setting('max_connections') AS connections`,
    );
    if (locks <= Number(row?.nominal)) return undefined;
    await exec('BEGIN');
    try {
      // A lock that another session holds is not waited for.
      await exec(
        `SELECT count(pg_try_advisory_xact_lock_shared(1937138475, n)) FROM generate_series(1, ${locks}) AS n`,
      );
      return undefined;
    } catch (error) {
      if (codeOf(error) !== OUT_OF_MEMORY) throw error;
      const needed = Math.ceil(locks / Number(row?.connections));
      return {
        why: `The server has no room for ${locks} locks: max_locks_per_transaction is ${row?.setting}, max_connections ${row?.connections}.`,
        next: [
          `Or let the server hold more: set max_locks_per_transaction to ${needed} or more, and restart the server.`,
        ],
      };
    } finally {
      await exec('ROLLBACK');
    }
  });
}
