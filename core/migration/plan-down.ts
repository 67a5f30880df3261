import { describeError, isSvcError, SvcError } from '../errors.ts';
import { modelOperations } from '../schema/model-operations.ts';
import type { MutableSchema } from '../schema/mutable-schema.ts';
import type { MigrationOperation } from '../schema/operation.ts';
import { affectedCollections, affectedMembers, requiredCollections } from './affected-collections.ts';
import { assertKeepsEarlier } from './assert-keeps-earlier.ts';
import { allowsExisting } from './existing-table.ts';
import { assertHistoryVersion, type History, type HistoryRecord, type HistorySummary, isRollback } from './history.ts';
import { HISTORY_VERSION, historyTable } from './history-table.ts';
import { restoreKept } from './keep.ts';
import { type Kept, purgedBefore, readKept } from './kept.ts';
import { type Migration, whyIrreversible } from './migration.ts';
import {
  type AppliedMigration,
  appliedMigrations,
  orderDifferences,
  rollbackOption,
  tagOrderedCount,
} from './order.ts';
import { modelForPlanning, planMigration } from './plan.ts';
import type { PlannedMigration } from './planned-migration.ts';
import { assertNoneFailed, reconcile, unknownMigrationError } from './reconcile.ts';
import { replayDifferences, replayMigrations } from './replay.ts';
import type { Target } from './target.ts';

interface PlannedRollback extends PlannedMigration {
  /** Operations of `down` that would drop a table which existed before the migration. */
  readonly skipped: ReadonlySet<MigrationOperation>;
}

/** The last migration that a rollback keeps, if any. An interrupted rollback counts as the first of `count`. */
export function lastToKeep(
  history: History,
  { to, count: given }: { readonly to?: string; readonly count?: number },
): HistoryRecord | undefined {
  const count = given ?? 1;
  const { failed, interrupted } = reconcile([], history);
  assertNoneFailed(failed);
  assertNoneBeingApplied(history);
  const completed = history.completed();
  const [unfinished] = interrupted;
  if (to === undefined) {
    if (!unfinished) {
      if (given !== undefined && given > completed.length) throw countError(given, completed.length);
      return completed.at(-1 - count);
    }
    if (count > 1) throw unfinishedRollbackError(unfinished);
    return completed.at(-1);
  }
  const last = completed.find(({ row }) => row.tag === to);
  if (!last) throw unknownMigrationError(to, 'It is not among the completed migrations.');
  return last;
}

function countError(count: number, applied: number): SvcError {
  return new SvcError(
    'migration_not_applied',
    `-n is ${count}, and ${applied === 1 ? '1 migration is' : `${applied} migrations are`} applied.`,
    {
      state: 'Nothing was changed.',
      next: ['svc db migrate status    lists what is applied'],
    },
  );
}

/** Throws if a migration is being applied or was interrupted: recovering it would change what the rollback covers. */
export function assertNoneBeingApplied(history: History): void {
  const applying = reconcile([], history).interrupted.find(({ row }) => !isRollback(row));
  if (!applying) return;
  const { tag, step, steps } = applying.row;
  throw new SvcError('migration_half_done', `The migration "${tag}" is being applied, or was interrupted.`, {
    why: 'A rollback can be planned only after it is finished.',
    state: `Nothing was changed; ${step} of ${steps} of its steps are committed.`,
    next: [
      'svc db migrate    waits for it, or runs the rest',
      `svc db migrate resolve ${tag} --rolled-back    the steps were undone by hand`,
    ],
    details: { tag, step, steps },
  });
}

/** The user may have repeated an interrupted `rollback -n`: counting again would roll back more than intended. */
function unfinishedRollbackError({ row }: HistoryRecord): SvcError {
  return new SvcError('migration_half_done', `The rollback of "${row.tag}" is not finished, or was interrupted.`, {
    why: '-n counts from the last applied migration, so the migrations that this rollback has already undone would be counted again.',
    state: 'Nothing was changed.',
    next: [
      // With its count, because the command line repeats the flags of a command that is the same.
      'svc db migrate rollback -n 1    finishes it, and rolls back nothing else',
      'svc db migrate rollback --to <tag>    finishes it, and rolls back everything after that tag',
    ],
    details: { tag: row.tag },
  });
}

/** Compiles the rollback of every migration after `last`, newest first. */
export async function planDown(
  target: Target,
  history: History,
  last: HistoryRecord | undefined,
): Promise<PlannedMigration[]> {
  const completed = await history.completedMigrations(target.connection);
  const toRollBack = completed.filter(({ row }) => row.seq > (last?.row.seq ?? 0)).reverse();
  const model = await modelForPlanning(
    target,
    history,
    toRollBack.flatMap(({ migration }) => migration.down),
  );
  const planned: PlannedRollback[] = [];
  const kept = await readKept(target);
  for (const { migration, row } of toRollBack)
    planned.push(await planOneRollback(target, migration, row, model, { kept }));
  const applied = await appliedMigrations(target.connection, history);
  assertRollbackOrder(planned, applied, target.dialect.name);
  assertKeepsEarlier(
    planned,
    applied.map(({ migration }) => migration),
    target.dialect.name,
  );
  return planned;
}

/** The `down` of a file was written for the migrations before it in tag order, not in the order of application. */
function assertRollbackOrder(
  planned: readonly PlannedRollback[],
  completed: readonly AppliedMigration[],
  dialect: string,
): void {
  const remaining = completed.slice(0, completed.length - planned.length);
  const isOutOfOrder = (tag: string): boolean => remaining.some((one) => one.origin === 'file' && one.tag > tag);
  const suspect = planned.find(({ tag, origin }) => origin === 'file' && isOutOfOrder(tag)) ?? planned.at(-1);
  if (!suspect || (!isOutOfOrder(suspect.tag) && orderDifferences(remaining, dialect).length === 0)) return;
  const differences = rollbackDifferences(
    planned,
    completed.map(({ migration }) => migration),
    dialect,
  );
  if (differences.length === 0) return;
  throw new SvcError(
    'not_reversible_now',
    `The rollback of "${suspect.tag}" would not restore the schema from before it.`,
    {
      why: `It was applied after a newer migration, which its down does not account for: ${differences.join('; ')}.`,
      state: 'Nothing was changed.',
      next: [
        `Roll that back as well: svc db migrate rollback ${rollbackOption(completed, tagOrderedCount(completed))}`,
        `Or undo it by hand, then: svc db migrate resolve ${suspect.tag} --rolled-back`,
      ],
      details: { tag: suspect.tag, differences },
    },
  );
}

const CORRECT_THE_SCHEMA = 'Write a new migration that corrects the schema: svc db migrate create <name>';

/**
 * Compiles the rollback of one migration and applies it to `model`. `completed` is the whole history if the migration
 * is not its last; the result must then equal a history without the migration.
 */
export async function planOneRollback(
  target: Target,
  migration: Migration,
  row: Pick<HistorySummary, 'tag' | 'seq' | 'origin' | 'steps' | 'duration_ms'>,
  model: MutableSchema,
  { completed = [], kept }: { readonly completed?: readonly Migration[]; readonly kept: readonly Kept[] },
): Promise<PlannedRollback> {
  assertReversible(migration, row, target.dialect.name);
  const skipped = await preexistingTableDrops(target, migration, row);
  const index = completed.findIndex(({ tag }) => tag === migration.tag);
  const laterCount = index < 0 ? 0 : completed.length - 1 - index;
  try {
    const purged = purgedBefore(migration, kept);
    const replace = restoreKept(target, migration, kept, model);
    const planned = {
      ...(await planMigration(target, migration, 'down', row.origin, model, { skipped, replace })),
      skipped,
      ...(purged.length > 0 && { purged }),
    };
    const differences = laterCount > 0 ? rollbackDifferences([planned], completed, target.dialect.name) : [];
    if (differences.length === 0) return planned;
    throw new SvcError('not_reversible_now', 'The rollback would not produce the schema of the other migrations.', {
      why: differences.join('; '),
    });
  } catch (error) {
    if (!isSvcError(error)) throw error;
    throw new SvcError('not_reversible_now', `"${migration.tag}" cannot be rolled back from the current schema.`, {
      why: describeError(error),
      state: 'Nothing was changed.',
      next:
        laterCount > 0
          ? [`Roll back the migrations after it first: svc db migrate rollback -n ${laterCount}`]
          : [`Undo it by hand, then: svc db migrate resolve ${migration.tag} --rolled-back`, CORRECT_THE_SCHEMA],
      cause: error,
    });
  }
}

function assertReversible(
  migration: Migration,
  row: Pick<HistorySummary, 'steps' | 'duration_ms'>,
  dialect: string,
): void {
  if (row.duration_ms === null) {
    throw new SvcError('irreversible', `The migration "${migration.tag}" was recorded by baseline and never run.`, {
      why: 'A rollback would destroy objects that svc did not create.',
      state: 'Nothing was changed.',
      next: [`svc db migrate resolve ${migration.tag} --forget    removes it from the history and keeps the tables`],
    });
  }
  const lacksDown = migration.down.length === 0 && row.steps > 0 && !migration.up.every(createsTemporaryTable);
  const why = whyIrreversible(migration, dialect);
  if (why === undefined && !lacksDown) return;
  throw new SvcError('irreversible', `The migration "${migration.tag}" cannot be rolled back.`, {
    why: why ?? 'Its down is empty.',
    state: 'Nothing was changed.',
    next: [CORRECT_THE_SCHEMA],
  });
}

/** A temporary table disappeared with its session, so there is nothing to drop. */
function createsTemporaryTable(operation: MigrationOperation): boolean {
  return operation.type === 'createCollection' && operation.options?.sqlOptions?.temporary === true;
}

/**
 * Describes where the schema after the rollbacks differs from that of the remaining migrations: a `down` may fit only
 * names that were reused, or another order. Throws if the remaining migrations do not replay.
 */
function rollbackDifferences(
  planned: readonly PlannedRollback[],
  completed: readonly Migration[],
  dialect: string,
): readonly string[] {
  const tags = new Set(planned.map(({ tag }) => tag));
  const expected = replayMigrations(
    completed.filter(({ tag }) => !tags.has(tag)),
    dialect,
  );
  const actual = replayMigrations(completed, dialect);
  const unmanaged = new Set(actual.unmanaged);
  const down = planned.flatMap(({ migration, skipped }) =>
    modelOperations(
      migration.down.filter((operation) => !skipped.has(operation)),
      dialect,
    ),
  );
  for (const operation of down) actual.apply(operation);
  for (const name of planned.flatMap(({ skipped }) => [...skipped].flatMap(affectedCollections))) {
    const collection = expected.model.get(name);
    if (collection) actual.model.set(name, collection);
    else actual.model.delete(name);
  }
  // The replay has no fields of unmanaged tables: a later migration that names the same member counts as a difference.
  const members = new Set(
    down
      .filter((operation) => requiredCollections(operation).some((name) => unmanaged.has(name)))
      .flatMap(affectedMembers),
  );
  const later = completed.slice(completed.findIndex(({ tag }) => tags.has(tag))).filter(({ tag }) => !tags.has(tag));
  const overlapping = later.filter(({ up }) =>
    modelOperations(up, dialect)
      .flatMap(affectedMembers)
      .some((name) => members.has(name)),
  );
  return [...replayDifferences(expected, actual), ...overlapping.map(({ tag }) => `"${tag}" changes the same objects`)];
}

/** The drops of tables that already existed when an `ifNotExists` operation of the migration ran. */
async function preexistingTableDrops(
  target: Target,
  { tag, up, down }: Migration,
  row: Pick<HistorySummary, 'seq' | 'steps'>,
): Promise<ReadonlySet<MigrationOperation>> {
  const drops = down.filter((operation) => operation.type === 'dropCollection');
  const candidates = up.filter(allowsExisting).filter(({ name }) => drops.some((drop) => drop.collection === name));
  if (candidates.length === 0) return new Set();
  const names = candidates.map(({ name }) => name);
  const preexisting = (await recordedPreexisting(target, row)) ?? (row.steps === 0 ? names : undefined);
  if (preexisting) return new Set(drops.filter(({ collection }) => preexisting.includes(collection)));
  if (up.length === 1) return new Set();
  throw new SvcError('irreversible', `It is not known whether "${tag}" created the table "${names.join('", "')}".`, {
    why: 'It was applied by a version of svc that did not record which tables existed already.',
    state: 'Nothing was changed.',
    next: [`svc db migrate resolve ${tag} --forget    removes it from the history and keeps the tables`],
  });
}

/** Undefined if an older SDK applied the migration, or if the history table does not have the column yet. */
async function recordedPreexisting(
  target: Target,
  { seq }: Pick<HistorySummary, 'seq'>,
): Promise<readonly string[] | undefined> {
  if (((await assertHistoryVersion(target))?.record.version ?? 0) < HISTORY_VERSION) return undefined;
  const query = { from: seq, to: seq, limit: 1, columns: ['found'] } as const;
  const [stored] = (await target.connection.records(historyTable).page('bySeq', query)).records;
  return stored?.record.found ?? undefined;
}
