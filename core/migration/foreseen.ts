import { type Execution, failure } from './execution.ts';
import type { PlannedMigration } from './plan.ts';

/** Refuses what is sure to fail, before anything has run. */
export async function refuseForeseen({ adapter }: Execution, planned: readonly PlannedMigration[]): Promise<void> {
  const foreseen = await adapter.connection.foresee?.(planned.flatMap((one) => one.statements));
  if (!foreseen) return;
  let at = foreseen.statement;
  for (const one of planned) {
    if (at < one.statements.length)
      throw failure(one, { statement: at, error: foreseen.error }, 'Nothing was changed.');
    at -= one.statements.length;
  }
}
