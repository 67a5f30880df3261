import type { RunOutcome } from '../dialect.ts';
import { describeError, isSvcError, SvcError } from '../errors.ts';
import { recordUpdate } from '../records.ts';
import type { HistoryRecord } from './history.ts';
import { historyTable } from './history-table.ts';
import { type HistoryUpdate, type JournaledSegment, type MigrationRun, recordCommitted } from './journal.ts';
import { isAtomic, type PlannedMigration } from './planned-migration.ts';
import { interruptedError } from './reconcile.ts';
import { stepOutcome } from './step-outcome.ts';

type RunFailure = NonNullable<RunOutcome['failure']>;

/** The `state` of an error after which the next run resumes. */
export const RESUMES_FROM_JOURNAL = 'The progress is journaled; the next run continues from there.';

const CHANGE_BLOCKING_ROWS = 'Change the rows that block the change.';

/**
 * Records the state after a failed segment, and returns the error to throw. `before` is the history record from
 * before the migration started; `progress` states how many migrations of the run are done.
 */
export async function handleFailure(
  run: MigrationRun,
  { planned, segment, firstStatement }: JournaledSegment,
  failure: RunFailure,
  before: HistoryRecord | undefined,
  progress: string,
): Promise<SvcError> {
  const record = run.history.records.get(planned.tag);
  const code = isSvcError(failure.error) ? failure.error.code : undefined;
  if (code === 'connection_lost' && isAtomic(planned)) {
    const state = `At least ${progress}. Each is applied completely or not at all; the next run determines which.`;
    return migrationError(planned, failure, state, firstStatement);
  }
  // A retried statement in a transaction is rolled back together with the record of its start.
  const isStarted = record?.row.status === 'applying' || record?.row.status === 'failed';
  const isResumable = code === 'connection_lost' || (isStarted && (code === 'lock_lost' || code === 'interrupted'));
  if (isResumable || (isStarted && (failure.unrepaired || segment.statements.length === 0))) {
    return migrationError(planned, failure, RESUMES_FROM_JOURNAL, firstStatement);
  }
  if (!isStarted) return migrationError(planned, failure, `None of it took effect; ${progress}.`, firstStatement);
  const isNew = before === undefined || before.row.status === 'completed' || before.row.status === 'rolled_back';
  if (
    isNew &&
    record.row.step === 0 &&
    (failure.rolledBack || (code !== 'effect_differs' && (await hadNoEffect(run, planned))))
  ) {
    await restoreRow(run, record, before);
    return migrationError(planned, failure, `None of it took effect; ${progress}.`, firstStatement);
  }
  if (failure.transient) {
    const update = { tag: planned.tag, status: 'applying', started: false, epoch: run.epoch } as const;
    await writeUpdate(run, planned, update, record.version);
    const done = `${record.row.step} of ${record.row.steps} steps are committed`;
    const state = `${done}; the next run continues with the one that had to wait.`;
    return migrationError(planned, failure, state, firstStatement);
  }
  const marked = await markFailed(run, planned, record, failureText(failure.error));
  const next = [...specificNext(planned, failure.error), ...marked.next];
  return migrationError(planned, { ...failure, error: marked.with({ next }) }, marked.state ?? '', firstStatement);
}

function specificNext(planned: PlannedMigration, error: unknown): readonly string[] {
  if (!isSvcError(error)) return [];
  if (error.code === 'copy_required') return copyRemedies(planned);
  return isRollbackBlockedByRows(planned, error) ? [CHANGE_BLOCKING_ROWS] : error.next;
}

/** The text of an error, to store in the history. */
function failureText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return isSvcError(error) ? describeError(error) : error.message;
}

/** Whether the catalog shows that the first step did not take effect. */
async function hadNoEffect(run: MigrationRun, planned: PlannedMigration): Promise<boolean> {
  const [first] = planned.steps;
  return first !== undefined && (await stepOutcome(run, planned, first)) === 'not done';
}

/** Marks the migration as failed and returns the error that lists the `resolve` commands. */
export async function markFailed(
  run: MigrationRun,
  planned: PlannedMigration,
  { row, version }: HistoryRecord,
  why: string,
): Promise<SvcError> {
  const text = planned.statements[row.step]?.text ?? '';
  const error = `step ${row.step + 1} of ${row.steps}: ${text}: ${why}`;
  const marked = await writeUpdate(run, planned, { tag: row.tag, status: 'failed', error, epoch: run.epoch }, version);
  if (marked) return interruptedError(marked);
  throw new Error(`"${row.tag}" is not in the history`);
}

/** Removes or restores the row, as if the migration had not started. */
async function restoreRow(run: MigrationRun, record: HistoryRecord, before: HistoryRecord | undefined): Promise<void> {
  const { tag, name, checksum } = record.row;
  if (before) {
    // The file may have been edited since: store the name and checksum of the latest attempt.
    const update = { ...before.row, name, checksum, journal: null, started: false, epoch: run.epoch };
    await writeUpdate(run, undefined, update, record.version);
    return;
  }
  await run.target.connection.records(historyTable).remove(tag, record.version);
  run.history.records.delete(tag);
}

async function writeUpdate(
  run: MigrationRun,
  planned: PlannedMigration | undefined,
  update: HistoryUpdate,
  version: number,
): Promise<HistoryRecord | undefined> {
  const writes = [recordUpdate(historyTable, update, version)];
  const { failure } = await run.target.connection.run([{ transactional: true, statements: [], writes }], run.epoch);
  if (failure && planned) {
    throw migrationError(
      planned,
      failure,
      'The failure could not be recorded; the next run continues from the journal.',
    );
  }
  if (failure) throw failure.error;
  return recordCommitted(run, { update }, {});
}

/** The error for a failed statement, with the engine's message, the statement and the resulting state. */
export function migrationError(
  planned: PlannedMigration,
  { error, statement }: RunFailure,
  state: string,
  firstStatement = 0,
): SvcError {
  const index = statement === undefined ? undefined : firstStatement + statement;
  const text = index === undefined ? undefined : planned.statements[index]?.text;
  const steps = planned.statements.length;
  const facts = {
    state,
    where: index === undefined ? planned.tag : `${planned.tag}, step ${index + 1} of ${steps}: ${text}`,
    details: { tag: planned.tag, ...(index !== undefined && { step: index + 1, steps, statement: text }) },
  };
  if (isSvcError(error)) {
    const next = error.code === 'interrupted' ? continueSteps(planned) : retrySteps(planned);
    return error.with({ ...facts, next: error.next.length === 0 ? next : nextFor(planned, error) });
  }
  return new SvcError('migration_failed', `The migration "${planned.tag}" failed.`, {
    why: error instanceof Error ? error.message : String(error),
    next: retrySteps(planned),
    cause: error,
    ...facts,
  });
}

/** A rollback runs the stored migration: correcting its file would change nothing. */
function retrySteps({ tag, direction }: PlannedMigration): readonly string[] {
  if (direction === 'up') return [`Correct "${tag}" or remove the cause, then run the command again.`];
  return ['Remove the cause, then run the command again.', rollBackByHand(tag)];
}

/** After a person interrupted the run in the middle of a migration. */
export const continueSteps = ({ tag, direction }: PlannedMigration): readonly string[] => [
  direction === 'down'
    ? `svc db migrate resolve ${tag} --retry    continues with the next step of the rollback`
    : 'svc db migrate    continues with the next step',
];

const rollBackByHand = (tag: string): string =>
  `Or roll back by hand, then: svc db migrate resolve ${tag} --rolled-back`;

/** Rows violate a constraint that the rollback restores. The applied file cannot be changed. */
function isRollbackBlockedByRows({ direction }: PlannedMigration, { code }: SvcError): boolean {
  return direction === 'down' && code === 'data_violates';
}

function copyRemedies({ tag, origin, direction }: PlannedMigration): readonly string[] {
  const option = 'options: { allowCopy: true }    of the database in the configuration, or of svc.database.connect';
  const command = direction === 'up' ? 'svc db migrate' : 'svc db migrate rollback';
  const remedies = {
    api: [`If that is acceptable: ${option}`],
    engine: [`If that is acceptable: allow: ['copy'] in "${tag}", or ${option}`],
    file: [
      `If that is acceptable: ${command} --allow-copy`,
      `Or permit it in "${tag}": "allow": ["copy"]`,
      `In code: ${option}`,
    ],
  };
  return [...remedies[origin], 'Otherwise use a tool for online schema changes.'];
}

function nextFor(planned: PlannedMigration, error: SvcError): readonly string[] {
  const { tag, origin, direction } = planned;
  if (isRollbackBlockedByRows(planned, error)) {
    return [
      `${CHANGE_BLOCKING_ROWS} Then run the command again.`,
      `Or roll back by hand, with values for those rows, then: svc db migrate resolve ${tag} --rolled-back`,
    ];
  }
  const { code, next } = error;
  if (code === 'copy_required') return copyRemedies(planned);
  if (code !== 'data_violates' || origin !== 'file' || direction === 'down') return next;
  // A later migration would run too late: this one fails before it.
  return [...next, `Do so in "${tag}" or before it: until it is applied it may be edited, or deleted and regenerated.`];
}
