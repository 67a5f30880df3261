import type { Statement } from '../dialect.ts';
import { modelOfPlain } from '../schema/plain.ts';
import { statementsBefore } from './course.ts';
import { execute } from './execute.ts';
import type { Execution } from './execution.ts';
import { markFailed } from './failed.ts';
import { halfDone } from './half-done.ts';
import { history } from './history.ts';
import type { LedgerEntry } from './ledger.ts';
import { outcomeOf } from './outcome.ts';
import type { PlannedMigration } from './plan.ts';

/**
 * Goes on with a migration whose process died: the compiled steps of the journal, from the one of which nobody
 * knows whether it took effect. The catalog decides that; where it cannot, a person does, who says `retry`.
 */
export async function resume(run: Execution, entry: LedgerEntry, retry = false): Promise<void> {
  const { tag } = entry.row;
  const stored = await run.adapter.connection.records(history).get(tag);
  if (!stored?.record.journal) throw halfDone(entry);
  const { migration, origin, checksum, journal, started } = stored.record;
  const { direction, steps } = journal;
  const statements = steps.flatMap((step) => step.statements);
  const before = journal.before && modelOfPlain(journal.before);
  const planned: PlannedMigration = { tag, origin, direction, migration, checksum, steps, statements, before };
  let at = steps.findIndex((_, index) => statementsBefore(planned, index) === stored.record.step);
  if (at < 0) at = steps.length;
  const step = steps[at];
  if (step && started && !step.statements.every(({ idempotent }) => idempotent)) {
    const outcome = await outcomeOf(run, planned, step);
    if (outcome === 'done') at += 1;
    else if (outcome === 'unknown' && !retry)
      throw await markFailed(run, planned, entry, 'It is not known whether the step took effect.');
    else for (const statement of step.statements) await repair(run, statement);
  }
  await execute(run, [planned], at);
}

async function repair({ adapter, epoch }: Execution, statement: Statement): Promise<void> {
  if (statement.repair === undefined) return;
  const mended: Statement = { ...statement, text: `repair of ${statement.text}`, run: statement.repair };
  const { failure: failed } = await adapter.connection.run(
    [{ transactional: false, statements: [mended], writes: [] }],
    epoch,
  );
  if (failed) throw failed.error;
}
