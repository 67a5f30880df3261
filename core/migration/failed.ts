import type { RunOutcome } from '../dialect.ts';
import { isSvcError, type SvcError, sentences } from '../errors.ts';
import { recordChange } from '../records.ts';
import type { Change, Stage } from './course.ts';
import { CHANGE_ROWS, type Execution, failure, GOES_ON, isOutgrown, note } from './execution.ts';
import { halfDone } from './half-done.ts';
import { history } from './history.ts';
import type { LedgerEntry } from './ledger.ts';
import { outcomeOf } from './outcome.ts';
import { isAtomic, type PlannedMigration } from './plan.ts';

/** What a stage that failed leaves behind, recorded and told. `before` is the row before the migration began. */
export async function failed(
  run: Execution,
  { planned, segment, offset }: Stage,
  why: NonNullable<RunOutcome['failure']>,
  before: LedgerEntry | undefined,
  counted: string,
): Promise<SvcError> {
  const entry = run.ledger.entries.get(planned.tag);
  const code = isSvcError(why.error) ? why.error.code : undefined;
  if (code === 'connection_lost' && isAtomic(planned)) {
    const state = `At least ${counted}, each as a whole or not at all; the next run finds out.`;
    return failure(planned, why, state, offset);
  }
  // A retry of one statement in a transaction is undone with the word that it began.
  const begun = entry?.row.status === 'applying' || entry?.row.status === 'failed';
  const goesOn = code === 'connection_lost' || (begun && (code === 'lock_lost' || code === 'interrupted'));
  if (goesOn || (begun && segment.statements.length === 0)) {
    return failure(planned, why, GOES_ON, offset);
  }
  if (!begun) return failure(planned, why, `Nothing of it stays; ${counted}.`, offset);
  const fresh = before === undefined || before.row.status === 'completed' || before.row.status === 'rolled_back';
  if (fresh && entry.row.step === 0 && (why.untouched || (await isUndone(run, planned)))) {
    await forget(run, entry, before);
    return failure(planned, why, `Nothing of it stays; ${counted}.`, offset);
  }
  if (why.passing) {
    await write(
      run,
      planned,
      { tag: planned.tag, status: 'applying', started: false, epoch: run.epoch },
      entry.version,
    );
    const done = `${entry.row.step} of ${entry.row.steps} steps are committed`;
    return failure(planned, why, `${done}; the next run goes on with the one that had to wait.`, offset);
  }
  const refusal = await markFailed(run, planned, entry, wordsOf(why.error));
  const own = !isSvcError(why.error) ? [] : isOutgrown(planned, why.error) ? [CHANGE_ROWS] : why.error.next;
  const next = [...own, ...refusal.next];
  return failure(planned, { ...why, error: refusal.with({ next }) }, refusal.state ?? '', offset);
}

/** What the history keeps of an error. */
function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return isSvcError(error) ? sentences(error) : error.message;
}

/** The catalog shows nothing of the first step. */
async function isUndone(run: Execution, planned: PlannedMigration): Promise<boolean> {
  const [first] = planned.steps;
  return first !== undefined && (await outcomeOf(run, planned, first)) === 'not done';
}

/** Marks the migration failed and gives the refusal that says so. */
export async function markFailed(
  run: Execution,
  planned: PlannedMigration,
  { row, version }: LedgerEntry,
  why: string,
): Promise<SvcError> {
  const text = planned.statements[row.step]?.text ?? '';
  const error = `step ${row.step + 1} of ${row.steps}: ${text}: ${why}`;
  const marked = await write(run, planned, { tag: row.tag, status: 'failed', error, epoch: run.epoch }, version);
  if (marked) return halfDone(marked);
  throw new Error(`"${row.tag}" is not in the ledger`);
}

/** Takes the row away, or puts it back, as if the migration had not begun. */
async function forget(run: Execution, entry: LedgerEntry, before: LedgerEntry | undefined): Promise<void> {
  const { tag, name, checksum } = entry.row;
  if (before) {
    // What its row tells of the migration is what was tried last: edited, it is pending under its new text.
    const change = { ...before.row, name, checksum, journal: null, started: false, epoch: run.epoch };
    await write(run, undefined, change, entry.version);
    return;
  }
  await run.adapter.connection.records(history).remove(tag, entry.version);
  run.ledger.entries.delete(tag);
}

async function write(
  run: Execution,
  planned: PlannedMigration | undefined,
  change: Change,
  version: number,
): Promise<LedgerEntry | undefined> {
  const writes = [recordChange(history, change, version)];
  const { failure: lost } = await run.adapter.connection.run(
    [{ transactional: true, statements: [], writes }],
    run.epoch,
  );
  if (lost && planned) {
    throw failure(planned, lost, 'The failure could not be recorded; the next run goes on from the journal.');
  }
  if (lost) throw lost.error;
  return note(run, { change }, {});
}
