import { isSvcError, SvcError } from '../errors.ts';
import { affectedCollections } from './affected-collections.ts';
import type { PlannedMigration } from './planned-migration.ts';
import type { Target } from './target.ts';

/** Throws `destructive` if a rollback destroys rows. */
export async function assertNothingLost(
  target: Pick<Target, 'connection'>,
  planned: readonly PlannedMigration[],
): Promise<void> {
  const losses = await lossesOfRollback(target, planned);
  if (losses.length === 0) return;
  throw new SvcError('destructive', 'The rollback destroys data.', {
    why: losses.slice(0, 3).join('; '),
    state: 'Nothing was changed.',
    next: ['Preview first: svc db migrate rollback --dry-run', 'Then: svc db migrate rollback --allow-destructive'],
    details: { statements: losses },
  });
}

/**
 * The statements of a rollback whose tables hold rows, as `tag: what`. A destructive raw statement is always one of them:
 * what it destroys is not known.
 */
async function lossesOfRollback(
  { connection }: Pick<Target, 'connection'>,
  planned: readonly PlannedMigration[],
): Promise<readonly string[]> {
  /** Each table's name before the rollback, by its name in the course of it. */
  const presentNames = new Map<string, string>();
  const losses: string[] = [];
  for (const { tag, migration, destructive = [] } of planned) {
    for (const operation of migration.down) {
      if (destructive.includes(operation)) {
        const tables = affectedCollections(operation).map((name) => presentNames.get(name) ?? name);
        const hasRows = await Promise.all(tables.map((table) => holdsRows(connection, table)));
        if (operation.type === 'raw') losses.push(`${tag}: ${operation.statement}`);
        else if (hasRows.includes(true))
          losses.push(`${tag}: ${operation.type} in ${tables.join(', ')}, which has rows`);
      }
      if (operation.type === 'renameCollection') {
        presentNames.set(operation.to, presentNames.get(operation.collection) ?? operation.collection);
      }
    }
  }
  return losses;
}

async function holdsRows(connection: Target['connection'], table: string): Promise<boolean> {
  try {
    return (await connection.count(table, 1)) > 0;
  } catch (error) {
    // A table that was dropped by hand: the rollback itself reports it.
    if (isSvcError(error) && error.code === 'collection_unknown') return false;
    throw error;
  }
}
