import type { Statement } from '../dialect.ts';
import type { Collection, SchemaModel } from '../schema/model.ts';
import { modelOperations } from '../schema/model-operations.ts';
import type { MigrationOperation } from '../schema/operation.ts';
import { affectedCollections } from './affected-collections.ts';
import type { HistoryOrigin, JournalStep } from './history-table.ts';
import type { Keep } from './kept.ts';
import type { Migration } from './migration.ts';

/** One direction of a migration, compiled to statements. */
export interface PlannedMigration {
  readonly tag: string;
  readonly origin: HistoryOrigin;
  readonly direction: 'up' | 'down';
  readonly migration: Migration;
  readonly checksum: string;
  readonly steps: readonly JournalStep[];
  readonly statements: readonly Statement[];
  /** The operation of each statement; absent if it was compiled earlier and is only being finished. */
  readonly operations?: readonly MigrationOperation[];
  /** Only what is left of a run that was interrupted, which the next run finishes. */
  readonly isInterrupted?: true;
  /** The request under which a run began that was interrupted. */
  readonly approval?: string;
  /** What runs in place of the operations of the migration: it keeps what it drops, or restores what it kept. */
  readonly ran?: readonly MigrationOperation[];
  /** The indexes of the operations in the order in which they run; absent if it is that of the migration. */
  readonly order?: readonly number[];
  /** What it keeps. */
  readonly keeps?: readonly Keep[];
  /** Of a rollback: what does not come back, because it was purged, in words. */
  readonly purged?: readonly string[];
  /** The affected collections before the migration; undefined if an older SDK started it. */
  readonly before: SchemaModel | undefined;
  /** Tables of `createCollection … ifNotExists` that exist already; absent if it has no such operation. */
  readonly preexisting?: readonly string[];
  /** Those of them that another program created: they become known to svc when the migration runs. */
  readonly adopted?: readonly Collection[];
  /** How many locks it needs at least; absent where they are not limited. */
  readonly locks?: number;
  /** The operations that destroy data; absent if it was compiled earlier and is only being finished. */
  readonly destructive?: readonly MigrationOperation[];
}

/** The operations that run, to which those of the steps are indexes. */
export function operationsOf({ ran, order, migration, direction }: PlannedMigration): readonly MigrationOperation[] {
  return ran ?? order?.flatMap((index) => migration[direction][index] ?? []) ?? migration[direction];
}

/** The operations that a step contains, as an index and a count. */
export function operationsOfStep(
  planned: PlannedMigration,
  step: number,
): { readonly first: number; readonly count: number } {
  const { steps } = planned;
  const { length } = operationsOf(planned);
  const first = steps[step]?.operation ?? length;
  const next = steps[step + 1]?.operation ?? length;
  return { first, count: Math.max(1, next - first) };
}

/** The collections affected by what the raw statements of a step make. */
export function verifiableCollections(planned: PlannedMigration, step: number, dialect: string): readonly string[] {
  const { first, count } = operationsOfStep(planned, step);
  const raw = operationsOf(planned)
    .slice(first, first + count)
    .filter(({ type }) => type === 'raw');
  return modelOperations(raw, dialect).flatMap(affectedCollections);
}

/** Whether the whole migration commits in one transaction together with its history row. */
export function isAtomic({ steps }: PlannedMigration): boolean {
  return steps.length === 0 || (steps.length === 1 && steps[0]?.transactional === true);
}

/** The texts of the statements that destroy data and need permission: none if the migration permits its own. */
export function destructiveStatements({ statements, direction, migration }: PlannedMigration): readonly string[] {
  if (direction === 'up' && migration.allow?.includes('destructive')) return [];
  return statements.filter(({ destructive }) => destructive).map(({ text }) => text);
}
