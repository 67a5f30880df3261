import { setTimeout as sleep } from 'node:timers/promises';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteLiteral } from '../compile/literal.ts';
import { qualified, qualifiedIn } from '../compile/names.ts';
import type { DropInvalidIndex } from '../compile/step.ts';
import { isTransient } from '../connection/errors.ts';
import { FIRST_POLL_MS, LONGEST_POLL_MS } from '../connection/lock.ts';

/** `schema` is quoted, with its dot. */
export async function dropInvalidIndex(exec: ExecSql, schema: string, step: DropInvalidIndex): Promise<void> {
  const name = qualifiedIn(step.table, step.index, schema);
  const table = qualified(step.table, schema);
  const invalid = `SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(${quoteLiteral(name)}) AND NOT indisvalid AND indrelid = to_regclass(${quoteLiteral(table)})`;
  if ((await rowsOf(exec, invalid)).length === 0) return;
  await waitForIndexBuilds(exec, table);
  // A build releases its lock just before it commits that the index is valid.
  const committing = `${invalid} AND xmax IN (SELECT transactionid FROM pg_locks WHERE locktype = 'transactionid')`;
  while ((await rowsOf(exec, committing)).length > 0) await sleep(FIRST_POLL_MS);
  if ((await rowsOf(exec, invalid)).length > 0) await exec(`DROP INDEX CONCURRENTLY ${name}`);
}

/**
 * Waits until no session builds an index of the table. A build holds this lock, and its index is invalid until it ends.
 * The lock is polled: a session that waits inside the server has a snapshot, for which the build would wait in turn, and
 * the server would end one of the two.
 */
export async function waitForIndexBuilds(exec: ExecSql, table: string): Promise<void> {
  for (let pause = FIRST_POLL_MS; ; pause = Math.min(pause * 2, LONGEST_POLL_MS)) {
    try {
      await exec(`BEGIN; LOCK TABLE ${table} IN SHARE UPDATE EXCLUSIVE MODE NOWAIT; COMMIT`);
      return;
    } catch (error) {
      await exec('ROLLBACK');
      if (!isTransient(error)) throw error;
    }
    await sleep(pause);
  }
}
