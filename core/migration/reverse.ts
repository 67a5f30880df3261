import type { Adapter } from '../database/adapter.ts';
import { isSvcError, SvcError } from '../errors.ts';
import type { Draft } from '../schema/draft.ts';
import type { Operation } from '../schema/operation.ts';
import type { LedgerRow } from './ledger.ts';
import type { Migration } from './migration.ts';
import { type PlannedMigration, planMigration } from './plan.ts';

/** The way back of one migration, from the model as it is. */
export async function planReverse(
  adapter: Adapter,
  migration: Migration,
  row: Pick<LedgerRow, 'origin' | 'steps' | 'duration_ms'>,
  draft: Draft,
): Promise<PlannedMigration> {
  if (row.duration_ms === null) {
    throw new SvcError('irreversible', `The migration "${migration.tag}" was recorded by baseline and never run.`, {
      why: 'Its way back would destroy what svc did not make.',
      state: 'Nothing was changed.',
      next: [`svc db migrate resolve ${migration.tag} --forget    takes it out of the history and leaves the tables`],
    });
  }
  const hasNoWay = migration.down.length === 0 && row.steps > 0 && !migration.up.every(endsWithItsSession);
  if (migration.irreversible !== undefined || hasNoWay) {
    throw new SvcError('irreversible', `The migration "${migration.tag}" has no way back.`, {
      why: migration.irreversible ?? 'Its down is empty.',
      state: 'Nothing was changed.',
      next: ['Write a new migration that repairs what is wrong: svc db migrate create <name>'],
    });
  }
  try {
    return await planMigration(adapter, migration, 'down', row.origin, draft);
  } catch (error) {
    if (!isSvcError(error)) throw error;
    throw new SvcError('not_reversible_now', `"${migration.tag}" cannot be rolled back from the schema as it is now.`, {
      why: [error.message, error.why].filter(Boolean).join(' '),
      state: 'Nothing was changed.',
      next: ['Roll back the migrations after it first: svc db migrate rollback -n <count>'],
      cause: error,
    });
  }
}

/** A temporary table is gone already: nothing is left to take back. */
function endsWithItsSession(operation: Operation): boolean {
  return operation.type === 'createCollection' && operation.options?.sqlOptions?.temporary === true;
}
