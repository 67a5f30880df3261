import { describeError, isSvcError, SvcError } from '../errors.ts';
import type { HistoryRow, HistoryStatus } from './history-table.ts';
import { checksum, type Migration } from './migration.ts';

// What somebody changed in the tables of the history: svc stops before it acts on it.

/** Throws `history_damaged` if the row holds another migration than the one that was applied: its `down` would run. */
export function assertUnchanged(
  { tag, origin, checksum: recorded }: Pick<HistoryRow, 'tag' | 'origin' | 'checksum'>,
  migration: Migration,
): void {
  if (checksumOrUndefined(migration) === recorded) return;
  throw new SvcError('history_damaged', `The history row of "${tag}" was changed after it was written.`, {
    why: 'The migration in the row does not have the checksum that the row records.',
    state: 'Nothing was changed.',
    next: [
      RESTORE_ROW,
      `svc db migrate resolve ${tag} --forget    removes it from the history and keeps the tables`,
      ...(origin === 'file' ? ['Then: svc db migrate baseline    records it again, from its file'] : []),
    ],
    where: '_svc_migrations',
    details: { tag },
  });
}

const RESTORE_ROW = 'Restore the row of _svc_migrations from a backup.';

function checksumOrUndefined(migration: Migration): string | undefined {
  try {
    return checksum(migration);
  } catch (error) {
    if (isSvcError(error)) return undefined;
    throw error;
  }
}

const STATUSES: Readonly<Record<HistoryStatus, true>> = {
  applying: true,
  completed: true,
  failed: true,
  rolled_back: true,
};

/** Throws `history_damaged` for a status that svc does not write: the migration would count as not applied. */
export function assertKnownStatus({ tag, status }: Pick<HistoryRow, 'tag' | 'status'>): void {
  if (typeof status === 'string' && Object.hasOwn(STATUSES, status)) return;
  throw new SvcError('history_damaged', `The history row of "${tag}" has an unknown status.`, {
    why: `Its status is ${JSON.stringify(status)}; svc writes ${Object.keys(STATUSES).join(', ')}.`,
    state: 'Nothing was changed.',
    next: [RESTORE_ROW, 'Or set its status to what it was: completed if the migration is applied, else rolled_back.'],
    where: '_svc_migrations',
    details: { tag },
  });
}

/** The error of a read of these records, or `history_damaged` if their table lacks a column. */
export function asDamage(error: unknown, collection: string): unknown {
  if (!isSvcError(error) || error.code !== 'field_unknown') return error;
  const table = typeof error.details.table === 'string' ? error.details.table : collection;
  return new SvcError('history_damaged', `The table ${table} lacks a column that svc created.`, {
    why: describeError(error),
    state: 'Nothing was changed.',
    next: [
      `Restore the table ${table} from a backup.`,
      'Or drop _svc_migrations, and _svc_meta if there is one, then: svc db migrate baseline    records the files of what is applied',
    ],
    where: table,
    cause: error,
  });
}
