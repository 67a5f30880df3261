import type { Connection } from '../dialect.ts';
import { SvcError } from '../errors.ts';
import { type History, type HistoryRecord, type HistorySummary, isRollback } from './history.ts';
import { assertUnchanged } from './history-damage.ts';
import type { Migration } from './migration.ts';

/** A migration that exists outside the history, usually in a file. */
export interface DefinedMigration {
  readonly tag: string;
  readonly checksum: string;
  readonly file?: string;
  /** May be a getter that parses the file: read it only if the migration is pending. */
  readonly migration: Migration;
}

interface ReconcileResult {
  /** Defined and without a completed row, in tag order. */
  readonly pending: readonly DefinedMigration[];
  /** Not finished: being applied or rolled back by a running or a dead process. */
  readonly interrupted: readonly HistoryRecord[];
  readonly failed: readonly HistoryRecord[];
  /** Applied from a file that has changed since. */
  readonly edited: readonly DefinedMigration[];
  /** Applied from a file that no longer exists. */
  readonly missing: readonly HistoryRecord[];
}

/** Compares the defined migrations with the history. */
export function reconcile(defined: readonly DefinedMigration[], history: History): ReconcileResult {
  const pending: DefinedMigration[] = [];
  const edited: DefinedMigration[] = [];
  const definedTags = new Set<string>();
  for (const migration of defined) {
    const { tag } = migration;
    definedTags.add(tag);
    const row = history.records.get(tag)?.row;
    if (row?.status !== 'completed') pending.push(migration);
    else if (row.checksum !== migration.checksum) edited.push(migration);
  }
  const records = [...history.records.values()];
  return {
    pending: pending.sort((a, b) => (a.tag < b.tag ? -1 : 1)),
    edited,
    interrupted: records.filter(({ row }) => row.status === 'applying'),
    failed: records.filter(({ row }) => row.status === 'failed'),
    missing: records.filter(
      ({ row }) => row.status === 'completed' && row.origin === 'file' && !definedTags.has(row.tag),
    ),
  };
}

/**
 * As `reconcile`. Throws if a row was changed, if applied files were edited or are missing, or if a migration failed and needs
 * a decision.
 */
export async function assertReconciled(
  connection: Connection,
  defined: readonly DefinedMigration[],
  history: History,
): Promise<ReconcileResult> {
  const reconciled = reconcile(defined, history);
  const { edited, missing, failed } = reconciled;
  await assertRowsUnchanged(connection, history, edited);
  const [firstEdited] = edited;
  if (firstEdited) {
    throw new SvcError('migration_edited', `The migration "${firstEdited.tag}" was edited after it was applied.`, {
      why: `Its checksum differs from the one in the history.${andMore(edited.length)}`,
      state: 'Nothing was changed.',
      next: [
        'Restore the file from version control, and put the change into a new migration: svc db migrate create <name>',
      ],
      ...(firstEdited.file !== undefined && { where: firstEdited.file }),
      details: { tags: edited.map(({ tag }) => tag) },
    });
  }
  const [firstMissing] = missing;
  if (firstMissing) {
    const { tag } = firstMissing.row;
    throw new SvcError('migration_missing', `The file of the applied migration "${tag}" is missing.`, {
      why: `It is in the history but not in the migrations folder.${andMore(missing.length)}`,
      state: 'Nothing was changed.',
      next: ['Restore the file from version control.', `Or write it from the history: svc db migrate export ${tag}`],
      details: { tags: missing.map(({ row }) => row.tag) },
    });
  }
  assertNoneFailed(failed);
  return reconciled;
}

export function assertNoneFailed([first]: ReconcileResult['failed']): void {
  if (first) throw interruptedError(first);
}

/** Of migrations that differ from their rows: throws `history_damaged` if it is the checksum of a row that was changed. */
export async function assertRowsUnchanged(
  connection: Connection,
  history: History,
  edited: readonly Pick<DefinedMigration, 'tag'>[],
): Promise<void> {
  const tags = new Set(edited.map(({ tag }) => tag));
  if (tags.size === 0) return;
  for (const { row, migration } of await history.completedMigrations(connection))
    if (tags.has(row.tag)) assertUnchanged(row, migration);
}

function andMore(count: number): string {
  return count > 1 ? ` The same is true of ${count - 1} more.` : '';
}

/** Throws `migration_unknown` if no file defines this tag. */
export function assertDefined(tag: string | undefined, defined: readonly DefinedMigration[]): void {
  if (tag !== undefined && !defined.some((one) => one.tag === tag)) {
    throw unknownMigrationError(tag, 'No file defines it.');
  }
}

export function unknownMigrationError(tag: string, why: string): SvcError {
  return new SvcError('migration_unknown', `There is no migration "${tag}".`, {
    why,
    state: 'Nothing was changed.',
    next: ['svc db migrate status'],
  });
}

/** A migration or rollback that stopped halfway and needs a person's decision. */
export function interruptedError({ row }: HistoryRecord): SvcError {
  const rollback = isRollback(row);
  return new SvcError(
    'migration_half_done',
    `The ${rollback ? 'rollback of' : 'migration'} "${row.tag}" stopped half-way.`,
    {
      ...(row.error !== null && { why: row.error }),
      state: `${row.step} of ${row.steps} steps are committed.`,
      next: resolveCommands(row, rollback),
      details: { tag: row.tag, step: row.step, steps: row.steps },
    },
  );
}

/** The `resolve` commands that apply; there is nothing to retry once all steps are committed. */
export function resolveCommands(
  {
    tag,
    step,
    steps,
    origin,
  }: Pick<HistorySummary, 'tag' | 'step' | 'steps'> & Partial<Pick<HistorySummary, 'origin'>>,
  rollback: boolean,
): readonly string[] {
  const isFinished = step >= steps;
  const finished = isFinished ? 'it is applied' : 'the rest was done by hand';
  const undone = 'the steps were undone by hand';
  const rest =
    origin === 'file' && !rollback ? 'run the rest, which you may first correct in the file' : 'run the rest';
  return [
    ...(isFinished ? [] : [`svc db migrate resolve ${tag} --retry        ${rest}`]),
    `svc db migrate resolve ${tag} --applied      ${rollback ? undone : finished}`,
    `svc db migrate resolve ${tag} --rolled-back  ${rollback ? finished : undone}`,
  ];
}
