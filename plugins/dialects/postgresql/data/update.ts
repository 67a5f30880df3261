import type { UpdateJob, UpdateResult } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { withNothingChanged } from '../../shared/errors.ts';
import { type Result, retryTransient, rowsOf, type Session } from '../../sql/session.ts';
import { updateSql } from '../compile/update-sql.ts';
import { codeOf, isTransient, LOCK_NOT_AVAILABLE, toSvcError } from '../connection/errors.ts';

/** Longer than for a schema change: waiting for a row does not block other sessions. */
const ROW_LOCK_TIMEOUT = '60s';

/** `undefined_function`: also the error of comparing a type without an equality operator, such as xml. */
const UNDEFINED_FUNCTION = '42883';

/** `schema` is quoted, with its dot. */
export async function runUpdate(
  session: Session,
  job: UpdateJob,
  schema: string,
  retries: number,
): Promise<UpdateResult> {
  const text = `SET LOCAL lock_timeout = '${ROW_LOCK_TIMEOUT}'; ${updateSql(job, schema)}`;
  const [row] = await sendUpdate(session, text, retries);
  const modified = Number(row?.modified);
  // Matches are counted on an older snapshot than the changes: other sessions may have changed rows in between.
  return { matched: Math.max(Number(row?.matched), modified), modified };
}

async function sendUpdate(session: Session, text: string, retries: number): Promise<Result['rows']> {
  const isDeadlock = (error: unknown) => isTransient(error) && codeOf(error) !== LOCK_NOT_AVAILABLE;
  try {
    return await retryTransient(() => rowsOf(session.exec, text), isDeadlock, retries);
  } catch (error) {
    if (codeOf(error) === UNDEFINED_FUNCTION) throw incomparableError(error as Error);
    throw isTransient(error) ? withNothingChanged(toSvcError(error)) : toSvcError(error);
  }
}

function incomparableError(error: Error): SvcError {
  return new SvcError('not_supported', 'A field has a PostgreSQL type whose values svc cannot compare.', {
    why: `${UNDEFINED_FUNCTION}: ${error.message}`,
    state: 'Nothing was changed.',
    next: ['Write the update as a raw statement in SQL.'],
    cause: error,
  });
}
