import { isSvcError, SvcError } from '../errors.ts';
import { assertDatabaseOwner, History } from './history.ts';
import type { HistoryOrigin } from './history-table.ts';
import type { Migration } from './migration.ts';
import { replayDifferences, replayMigrations } from './replay.ts';
import type { DatabaseAccess, Target } from './target.ts';

/** A completed migration. On an empty database files run in tag order; other origins do not run there. */
export interface AppliedMigration {
  readonly tag: string;
  readonly origin: HistoryOrigin;
  readonly migration: Migration;
}

/** How many migrations come before the first file that is newer than a file applied after it. Usually all. */
export function tagOrderedCount(applied: readonly Pick<AppliedMigration, 'tag' | 'origin'>[]): number {
  let count = applied.length;
  let oldest: string | undefined;
  for (const [index, { tag, origin }] of [...applied.entries()].reverse()) {
    if (origin !== 'file') continue;
    if (oldest !== undefined && tag > oldest) count = index;
    else oldest = tag;
  }
  return count;
}

/** As the files run on an empty database; other origins keep their places. */
function inTagOrder(applied: readonly AppliedMigration[]): readonly Migration[] {
  const sorted: AppliedMigration[] = [];
  for (const migration of applied) {
    const isNewer = ({ tag, origin }: AppliedMigration): boolean => origin === 'file' && tag > migration.tag;
    const index = migration.origin === 'file' ? sorted.findIndex(isNewer) : -1;
    sorted.splice(index < 0 ? sorted.length : index, 0, migration);
  }
  return sorted.map(({ migration }) => migration);
}

/** Describes how the schema differs from the one that the same files produce in tag order. */
export function orderDifferences(applied: readonly AppliedMigration[], dialect: string): readonly string[] {
  if (tagOrderedCount(applied) === applied.length) return [];
  try {
    const expected = replayMigrations(inTagOrder(applied), dialect);
    const actual = replayMigrations(
      applied.map(({ migration }) => migration),
      dialect,
    );
    const early = [...expected.everUnmanaged].filter((name) => !actual.everUnmanaged.has(name));
    return [
      ...early.map((name) => `table ${name} is changed before it is created`),
      ...replayDifferences(expected, actual),
    ];
  } catch (error) {
    if (!isSvcError(error)) throw error;
    return [`${error.where}: ${error.message}`];
  }
}

/** `orderDifferences` of the completed migrations, which are loaded only if their tags are out of order. */
export async function historyOrderDifferences(
  { connection, dialect }: DatabaseAccess,
  history: History,
): Promise<readonly string[]> {
  const rows = history.completed().map(({ row }) => row);
  return tagOrderedCount(rows) === rows.length
    ? []
    : orderDifferences(await appliedMigrations(connection, history), dialect.name);
}

export async function appliedMigrations(
  connection: Target['connection'],
  history: History,
): Promise<AppliedMigration[]> {
  const completed = await history.completedMigrations(connection);
  return completed.map(({ row, migration }) => ({ tag: row.tag, origin: row.origin, migration }));
}

/** Throws `order_conflict` if a pending file is older than an applied one and would produce another schema now. */
export function assertOrder(
  completed: readonly AppliedMigration[],
  pending: readonly Migration[],
  dialect: string,
): void {
  const newest = completed.reduce((last, { tag, origin }) => (origin === 'file' && tag > last ? tag : last), '');
  const late = pending.filter(({ tag }) => tag < newest);
  const older = late.map(({ tag }) => tag);
  if (older.length === 0) return;
  const contracts = late.every((one) => one.contracts !== undefined);
  const all = [...completed, ...pending.map(asApplied)];
  const known = new Set(orderDifferences(completed, dialect));
  const differences = orderDifferences(all, dialect).filter((line) => !known.has(line));
  if (differences.length === 0) return;
  const fits = canReplay(
    all.map(({ migration }) => migration),
    dialect,
  );
  const names = older.map((tag) => `"${tag}"`).join(', ');
  const inOrder = rollbackOption(completed, tagOrderedCount(all));
  const [areOlder, each] = older.length === 1 ? ['is', 'it'] : ['are', 'each'];
  throw new SvcError(
    'order_conflict',
    `${names} ${areOlder} older than "${newest}", which is already applied, and ${fits ? 'would produce a different schema if applied now' : 'cannot be applied after it'}.`,
    {
      why: `${fits ? 'In tag order the schema would be different' : 'The files fit only in tag order'}: ${differences.join('; ').replace(/\.$/, '')}.`,
      state: 'Nothing was changed.',
      next: [
        ...(fits ? nextStepsToAlign(differences) : []),
        `${fits ? 'Or, if' : 'If'} not applied to another database, ${
          contracts
            ? `delete ${each === 'it' ? 'its file' : 'their files'}, then svc db schema generate: it writes the second half again, after the newer files`
            : `give ${each} a newer tag: rename the file, and change "tag" in it${fits ? '' : ', and adapt it to the newer files'}`
        }`,
        contracts
          ? `Or apply all in order: svc db migrate rollback ${inOrder}, then svc db migrate contract, then svc db migrate`
          : `Or apply all in order: svc db migrate rollback ${inOrder}, then svc db migrate`,
      ],
      details: { tags: older, differences },
    },
  );
}

/** Whether these files can be applied only in tag order: whether the order is why one of them could not be planned. */
export function fitsOnlyInTagOrder(
  completed: readonly AppliedMigration[],
  pending: readonly Migration[],
  dialect: string,
): boolean {
  const all = [...completed, ...pending.map(asApplied)];
  return (
    canReplay(inTagOrder(all), dialect) &&
    !canReplay(
      all.map(({ migration }) => migration),
      dialect,
    )
  );
}

function canReplay(migrations: readonly Migration[], dialect: string): boolean {
  try {
    replayMigrations(migrations, dialect);
    return true;
  } catch (error) {
    if (isSvcError(error)) return false;
    throw error;
  }
}

function asApplied(migration: Migration): AppliedMigration {
  return { tag: migration.tag, origin: 'file', migration };
}

/** How to align databases that applied the files in different orders. */
export function nextStepsToAlign(differences: readonly string[]): readonly string[] {
  const noun = differences.length === 1 ? 'the difference' : 'the differences';
  return [`svc db migrate create <name>    for a migration that removes ${noun}, whichever order was applied`];
}

/** The rollback option that keeps the first `count` migrations. */
export function rollbackOption(completed: readonly Pick<AppliedMigration, 'tag'>[], count: number): string {
  const last = completed[count - 1];
  return last ? `--to ${last.tag}` : `-n ${completed.length}`;
}

interface ExportedMigrations {
  /** Completed migrations without a file, in the order of application. */
  readonly migrations: readonly Migration[];
  /** Describes how the schema would differ if all of them ran as files, in tag order. */
  readonly outOfOrder: readonly string[];
}

/** The migrations that `svc db migrate export` writes to files. */
export async function exportMigrations(
  target: Target,
  tagsInFiles: ReadonlySet<string> = new Set(),
): Promise<ExportedMigrations> {
  await assertDatabaseOwner(target);
  const history = await History.read(target.connection);
  const completed = (await history.completedMigrations(target.connection)).map(({ migration }) => migration);
  return {
    migrations: completed.filter(({ tag }) => !tagsInFiles.has(tag)),
    outOfOrder: orderDifferences(
      completed.map((migration) => ({ tag: migration.tag, origin: 'file', migration })),
      target.dialect.name,
    ),
  };
}
