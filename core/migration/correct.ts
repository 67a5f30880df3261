import { isDeepStrictEqual } from 'node:util';
import { SvcError } from '../errors.ts';
import { type RecordWrite, recordUpdate } from '../records.ts';
import { serializeModel } from '../schema/model.ts';
import type { HistoryRecord } from './history.ts';
import { type HistoryRow, historyTable, type Journal } from './history-table.ts';
import { approvalOf, type MigrationRun, recordCommitted } from './journal.ts';
import { modelForPlanning, planMigration } from './plan.ts';
import type { PlannedMigration } from './planned-migration.ts';
import type { DefinedMigration } from './reconcile.ts';

/**
 * Replaces the remaining steps of a failed migration by those of its corrected file. Throws `migration_edited` if a step
 * that ran is no longer the same, and `destructive` if the correction destroys data that the failed migration did not.
 */
export async function correctMigration(
  run: MigrationRun,
  row: HistoryRow,
  version: number,
  file: DefinedMigration,
  audit: RecordWrite,
): Promise<HistoryRecord> {
  const { journal } = row;
  if (journal?.direction !== 'up') throw editedError(row, file, 'The rollback runs the recorded steps.');
  if (journal.ran) throw editedError(row, file, 'It keeps what it drops: the recorded steps run.');
  const { migration } = file;
  const planned = await planCorrected(run, row, journal, file);
  assertNothingMoreDestroyed(row, journal, planned);
  const update = {
    tag: row.tag,
    status: row.status,
    name: migration.name ?? row.name,
    checksum: planned.checksum,
    migration,
    steps: planned.statements.length,
    journal: {
      direction: 'up',
      steps: planned.steps,
      ...approvalOf(run),
      ...(planned.before && { before: serializeModel(planned.before) }),
    } satisfies Journal,
    found: planned.preexisting ?? null,
    epoch: run.epoch,
  } as const;
  const writes = [audit, recordUpdate(historyTable, update, version)];
  const { failure } = await run.target.connection.run([{ transactional: true, statements: [], writes }], run.epoch);
  if (failure) throw failure.error;
  const corrected = recordCommitted(run, { update }, {});
  if (!corrected) throw new Error(`"${row.tag}" is not in the history`);
  return corrected;
}

/**
 * Whether a table is large may have changed since the steps ran: the rest is compiled as they were. Throws `migration_edited`
 * if they are no longer the same.
 */
async function planCorrected(
  run: MigrationRun,
  row: HistoryRow,
  journal: Journal,
  file: DefinedMigration,
): Promise<PlannedMigration> {
  const { migration, checksum: knownChecksum } = file;
  let first: SvcError | undefined;
  for (const online of migration.online === undefined ? [undefined, true, false] : [migration.online]) {
    const compiled = online === undefined ? migration : { ...migration, online };
    const model = await modelForPlanning(run.target, run.history, migration.up);
    const planned = await planMigration(run.target, compiled, 'up', row.origin, model, { knownChecksum });
    const edited = stepThatChanged(row, journal, planned, file);
    if (!edited) return { ...planned, migration };
    first ??= edited;
  }
  throw first;
}

/** The journal is JSON, which drops undefined properties. */
const asJson = (value: object): unknown => JSON.parse(JSON.stringify(value));

function stepThatChanged(
  row: HistoryRow,
  journal: Journal,
  planned: PlannedMigration,
  file: DefinedMigration,
): SvcError | undefined {
  let ran = 0;
  for (const [index, step] of journal.steps.entries()) {
    if (ran >= row.step) return undefined;
    ran += step.statements.length;
    const corrected = planned.steps[index];
    if (corrected && isDeepStrictEqual(asJson(corrected.statements), asJson(step.statements))) continue;
    const text = step.statements[0]?.text ?? '';
    return editedError(row, file, `It changes a step that ran: ${text}`);
  }
  return undefined;
}

function assertNothingMoreDestroyed(row: HistoryRow, journal: Journal, planned: PlannedMigration): void {
  const known = new Set(journal.steps.flatMap(({ statements }) => statements.map(({ text }) => text)));
  const added = planned.statements.filter(({ text, destructive }) => destructive && !known.has(text));
  const [first] = added;
  if (!first) return;
  throw new SvcError('destructive', `The corrected "${row.tag}" destroys data.`, {
    why: first.text,
    state: `Nothing was changed; ${row.step} of ${row.steps} of its steps are committed.`,
    next: ['Put that into a migration of its own: svc db migrate create <name>'],
    details: { tag: row.tag, statements: added.map(({ text }) => text) },
  });
}

/** The file of a migration that stopped halfway cannot replace what is recorded. */
export function editedError(
  { tag, step, steps, journal }: HistoryRow,
  { file }: DefinedMigration,
  why = 'Its checksum differs from the recorded one.',
): SvcError {
  return new SvcError('migration_edited', `The migration "${tag}" was edited after it was started.`, {
    why,
    state: `Nothing was changed; ${step} of ${steps} of its steps are committed.`,
    next: [
      'Restore the file from version control, and decide again.',
      ...(journal?.direction === 'up'
        ? [`Or change only steps that did not run, then: svc db migrate resolve ${tag} --retry`]
        : []),
      `Or undo its steps by hand: svc db migrate resolve ${tag} --rolled-back    the edited file can then be applied`,
    ],
    ...(file !== undefined && { where: file }),
    details: { tag },
  });
}
