import type { Statement } from '../dialect.ts';
import { isSvcError } from '../errors.ts';
import { deserializeModel } from '../schema/model.ts';
import { markFailed, migrationError, RESUMES_FROM_JOURNAL } from './failure.ts';
import type { HistoryRecord } from './history.ts';
import { assertUnchanged } from './history-damage.ts';
import { type HistoryRow, historyTable } from './history-table.ts';
import { type MigrationRun, statementsBeforeStep } from './journal.ts';
import { assertMayFinish } from './plan-approval.ts';
import type { PlannedMigration } from './planned-migration.ts';
import { interruptedError } from './reconcile.ts';
import { runMigrations } from './runner.ts';
import { stepOutcome } from './step-outcome.ts';
import type { Target } from './target.ts';

const JOURNAL_COLUMNS = ['tag', 'migration', 'origin', 'checksum', 'journal', 'started', 'step'] as const;

interface JournaledMigration {
  readonly planned: PlannedMigration;
  /** Index of the first step that is not recorded as done. */
  readonly nextStep: number;
  /** Whether that step was started: it may have taken effect. */
  readonly started: boolean;
}

function fromJournal(
  record: HistoryRecord,
  stored: Pick<HistoryRow, (typeof JOURNAL_COLUMNS)[number]> | undefined,
): JournaledMigration {
  if (!stored?.journal) throw interruptedError(record);
  const { tag, migration, origin, checksum, journal, started, step } = stored;
  assertUnchanged(stored, migration);
  const { direction, steps, ran, order, approval } = journal;
  const statements = steps.flatMap((one) => one.statements);
  const before = journal.before && deserializeModel(journal.before);
  const planned: PlannedMigration = {
    ...{ tag, origin, direction, migration, checksum, steps, statements, before },
    ...(ran && { ran }),
    ...(order && { order }),
    ...(approval !== undefined && { approval }),
  };
  const index = steps.findIndex((_, index) => statementsBeforeStep(planned, index) === step);
  return { planned, nextStep: index < 0 ? steps.length : index, started: started === true };
}

/** The steps that recovering an interrupted migration would run. The first may turn out to be done. Takes no lock. */
export async function remainingSteps(target: Target, record: HistoryRecord): Promise<PlannedMigration> {
  const { seq } = record.row;
  // `get` reads every column, and before the lock the table may lack those that this version adds.
  const query = { from: seq, to: seq, limit: 1, columns: JOURNAL_COLUMNS };
  const [stored] = (await target.connection.records(historyTable).page('bySeq', query)).records;
  const { planned, nextStep } = fromJournal(record, stored?.record);
  return left(planned, nextStep);
}

function left(planned: PlannedMigration, nextStep: number): PlannedMigration {
  const steps = planned.steps.slice(nextStep);
  return { ...planned, isInterrupted: true, steps, statements: steps.flatMap(({ statements }) => statements) };
}

/**
 * Finishes an interrupted migration: runs the journal's compiled steps from the first that is not done. If a step was
 * started, the catalog shows whether it took effect. If that remains unknown, the migration is marked as failed, unless
 * `retry` is true.
 */
export async function resumeMigration(run: MigrationRun, record: HistoryRecord, retry = false): Promise<void> {
  const stored = await run.target.connection.records(historyTable).get(record.row.tag);
  const { planned, nextStep, started } = fromJournal(record, stored?.record);
  if (!retry) {
    assertMayFinish(run.target, left(planned, nextStep));
    run.onResumed?.(planned, statementsBeforeStep(planned, nextStep));
  }
  const step = planned.steps[nextStep];
  let resumeAt = nextStep;
  if (step && started && !step.statements.every(({ idempotent }) => idempotent)) {
    const outcome = await stepOutcome(run, planned, step).catch((error) => {
      // A retry does not depend on the catalog, so it may be unreadable.
      if (retry && isSvcError(error) && error.code === 'permission_denied') return 'unknown' as const;
      throw error;
    });
    if (outcome === 'unknown' && !retry) {
      throw await markFailed(run, planned, record, 'It is not known whether the step took effect.');
    }
    const action = outcome === 'done' ? 'awaitEffect' : 'repair';
    for (const statement of step.statements) await runFollowUp(run, planned, statement, action);
    if (outcome === 'done') resumeAt += 1;
  }
  await runMigrations(run, [planned], resumeAt);
}

/** Waits until the engine finishes an interrupted statement, or cleans up after it. */
async function runFollowUp(
  { target, epoch }: MigrationRun,
  planned: PlannedMigration,
  statement: Statement,
  action: 'repair' | 'awaitEffect',
): Promise<void> {
  const run = statement[action];
  if (run === undefined) return;
  const text = `${action === 'repair' ? 'repair' : 'wait'} of ${statement.text}`;
  const { failure } = await target.connection.run(
    [{ transactional: false, statements: [{ ...statement, text, run }], writes: [] }],
    epoch,
  );
  if (failure) throw migrationError(planned, failure, RESUMES_FROM_JOURNAL, planned.statements.indexOf(statement));
}
