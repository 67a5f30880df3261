import type { Adapter } from '../database/adapter.ts';
import type { Statement } from '../dialect.ts';
import { isSvcError } from '../errors.ts';
import { modelOfPlain } from '../schema/plain.ts';
import { statementsBefore } from './course.ts';
import { execute } from './execute.ts';
import { type Execution, failure, GOES_ON } from './execution.ts';
import { markFailed } from './failed.ts';
import { halfDone } from './half-done.ts';
import { type HistoryRow, history } from './history.ts';
import type { LedgerEntry } from './ledger.ts';
import { outcomeOf } from './outcome.ts';
import type { PlannedMigration } from './plan.ts';

const JOURNALED = ['tag', 'migration', 'origin', 'checksum', 'journal', 'started', 'step'] as const;

interface Resumption {
  readonly planned: PlannedMigration;
  /** The step of which nobody knows whether it took effect, or that comes next. */
  readonly at: number;
  readonly started: boolean;
}

/** What the journal says of a migration whose process died. */
function journaled(entry: LedgerEntry, record: Pick<HistoryRow, (typeof JOURNALED)[number]> | undefined): Resumption {
  if (!record?.journal) throw halfDone(entry);
  const { tag, migration, origin, checksum, journal, started, step } = record;
  const { direction, steps } = journal;
  const statements = steps.flatMap((one) => one.statements);
  const before = journal.before && modelOfPlain(journal.before);
  const planned: PlannedMigration = { tag, origin, direction, migration, checksum, steps, statements, before };
  const at = steps.findIndex((_, index) => statementsBefore(planned, index) === step);
  return { planned, at: at < 0 ? steps.length : at, started: started === true };
}

/** What it will run to go on, for people: one that was started may turn out to be done. */
export async function rest(adapter: Adapter, entry: LedgerEntry): Promise<PlannedMigration> {
  const { seq } = entry.row;
  // Before the lock the table may not have every column that this version adds.
  const query = { from: seq, to: seq, limit: 1, columns: JOURNALED };
  const [stored] = (await adapter.connection.records(history).page('bySeq', query)).records;
  const { planned, at } = journaled(entry, stored?.record);
  const steps = planned.steps.slice(at);
  return { ...planned, steps, statements: steps.flatMap(({ statements }) => statements) };
}

/**
 * Goes on with a migration whose process died: the compiled steps of the journal, from the one of which nobody
 * knows whether it took effect. The catalog decides that; where it cannot, a person does, who says `retry`.
 */
export async function resume(run: Execution, entry: LedgerEntry, retry = false): Promise<void> {
  const stored = await run.adapter.connection.records(history).get(entry.row.tag);
  const { planned, at, started } = journaled(entry, stored?.record);
  const step = planned.steps[at];
  let from = at;
  if (step && started && !step.statements.every(({ idempotent }) => idempotent)) {
    const outcome = await outcomeOf(run, planned, step).catch((error) => {
      // Who says retry needs no look that the database refuses.
      if (retry && isSvcError(error) && error.code === 'permission_denied') return 'unknown' as const;
      throw error;
    });
    if (outcome === 'unknown' && !retry)
      throw await markFailed(run, planned, entry, 'It is not known whether the step took effect.');
    const left = outcome === 'done' ? 'settle' : 'repair';
    for (const statement of step.statements) await finish(run, planned, statement, left);
    if (outcome === 'done') from += 1;
  }
  await execute(run, [planned], from);
}

/** What an interrupted attempt left behind: half of the statement to take away, or the rest of it to wait for. */
async function finish(
  { adapter, epoch }: Execution,
  planned: PlannedMigration,
  statement: Statement,
  left: 'repair' | 'settle',
): Promise<void> {
  const run = statement[left];
  if (run === undefined) return;
  const { failure: failed } = await adapter.connection.run(
    [
      {
        transactional: false,
        statements: [{ ...statement, text: `${left} of ${statement.text}`, run }],
        writes: [],
      },
    ],
    epoch,
  );
  if (failed) throw failure(planned, failed, GOES_ON, planned.statements.indexOf(statement));
}
