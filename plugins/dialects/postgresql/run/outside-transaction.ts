import type { RunObserver, Segment, Statement } from '../../../../core/dialect.ts';
import type { ExecSql } from '../../sql/session.ts';
import { isRaw } from '../../sql/statement.ts';
import { qualified } from '../compile/names.ts';
import type { PostgresqlStep } from '../compile/step.ts';
import {
  codeOf,
  DUPLICATE_TABLE,
  isRejectedBeforeExecution,
  isTransient,
  statementError,
} from '../connection/errors.ts';
import { lockReleasedError } from '../connection/lock.ts';
import { type BatchOutcome, holdsLock, type RunContext, statementText } from './context.ts';
import { runFill } from './fill.ts';
import { dropInvalidIndex, waitForIndexBuilds } from './invalid-index.ts';

/** A statement that cannot be in a transaction. It has no lock timeout, which would leave an invalid index. */
export async function runOutsideTransaction(
  context: RunContext,
  exec: ExecSql,
  segment: Segment<PostgresqlStep>,
  observer: RunObserver | undefined,
): Promise<BatchOutcome> {
  const [statement, ...more] = segment.statements;
  if (!statement || more.length > 0 || segment.writes.length > 0)
    throw new Error('a step outside a transaction is one statement');
  let repaired: boolean | undefined;
  try {
    await exec('SET lock_timeout = 0');
    try {
      if (statement.repair?.kind === 'dropInvalidIndex')
        await waitForIndexBuilds(exec, qualified(statement.repair.table, context.schema));
      await runStep(context, exec, statement.run, observer);
    } catch (error) {
      // An existing index of that name is not part of this run: another session may be building it.
      if (codeOf(error) !== DUPLICATE_TABLE) repaired = await runRepair(context, exec, statement);
      throw error;
    } finally {
      await exec(isRaw(statement) ? context.restoreSettings : `SET lock_timeout = ${context.settings.lockTimeoutMs}`);
    }
    if (isRaw(statement) && !(await holdsLock(context, exec))) throw lockReleasedError();
    return { written: [[]] };
  } catch (error) {
    const mayContinue = (statement.idempotent || repaired) && isTransient(error);
    const rolledBack = isRejectedBeforeExecution(error) || isAtomic(statement);
    const failure = {
      statement: 0,
      error: statementError(statement, error),
      ...(mayContinue && { transient: true }),
      ...(rolledBack && { rolledBack }),
      ...(repaired === false && { unrepaired: true }),
    };
    return { written: [], failure };
  }
}

/** It has an effect as a whole, or none. One that is built concurrently leaves something to clean up. */
const isAtomic = ({ run, repair, awaitEffect }: Statement<PostgresqlStep>): boolean =>
  run.kind === 'sql' && repair === undefined && awaitEffect === undefined;

async function runStep(
  context: RunContext,
  exec: ExecSql,
  step: PostgresqlStep,
  observer?: RunObserver,
): Promise<void> {
  const { schema, settings } = context;
  switch (step.kind) {
    case 'dropInvalidIndex':
      return dropInvalidIndex(exec, schema, step);
    case 'fill':
      return runFill({ exec, schema, settings, shouldStop: () => observer?.shouldRetry() === false }, step);
    case 'sql':
    case 'raw':
      await exec(statementText(context, step));
  }
}

/** Whether it succeeded; undefined if the statement has no repair. The original error is reported, not that of the repair. */
async function runRepair(
  context: RunContext,
  exec: ExecSql,
  { repair }: Statement<PostgresqlStep>,
): Promise<boolean | undefined> {
  if (repair === undefined) return undefined;
  return runStep(context, exec, repair).then(
    () => true,
    () => false,
  );
}
