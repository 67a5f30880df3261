import { SvcError } from '../errors.ts';
import { halfDone } from './half-done.ts';
import type { Ledger, LedgerEntry } from './ledger.ts';
import type { Migration } from './migration.ts';

/** A migration that is defined somewhere: by a file, usually. */
export interface Defined {
  readonly tag: string;
  readonly checksum: string;
  readonly file?: string;
  /** A file may be parsed only when this is asked for: an applied one seldom is. */
  readonly migration: Migration;
}

export interface Standing {
  /** Defined and without a completed row, in tag order. */
  readonly pending: readonly Defined[];
  /** Was being applied or rolled back when its process died. */
  readonly interrupted: readonly LedgerEntry[];
  readonly failed: readonly LedgerEntry[];
  /** Applied from a file that now says something else. */
  readonly edited: readonly Defined[];
  /** Applied from a file that is gone. */
  readonly missing: readonly LedgerEntry[];
}

/** Holds what is defined against what is recorded. */
export function reconcile(defined: readonly Defined[], ledger: Ledger): Standing {
  const pending: Defined[] = [];
  const edited: Defined[] = [];
  const byTag = new Set<string>();
  for (const candidate of defined) {
    const { tag } = candidate;
    byTag.add(tag);
    const row = ledger.entries.get(tag)?.row;
    if (row?.status !== 'completed') pending.push(candidate);
    else if (row.checksum !== candidate.checksum) edited.push(candidate);
  }
  const rows = [...ledger.entries.values()];
  return {
    pending: pending.sort((a, b) => (a.tag < b.tag ? -1 : 1)),
    edited,
    interrupted: rows.filter(({ row }) => row.status === 'applying'),
    failed: rows.filter(({ row }) => row.status === 'failed'),
    missing: rows.filter(({ row }) => row.status === 'completed' && row.origin === 'file' && !byTag.has(row.tag)),
  };
}

/** Refuses to go on over history that no longer matches its files, and over half-done migrations. */
export function refuseTrouble({ edited, missing, failed }: Standing): void {
  const changed = edited[0];
  if (changed) {
    throw new SvcError('migration_edited', `The migration "${changed.tag}" was edited after it was applied.`, {
      why: `Its checksum is not the one in the history.${more(edited.length)}`,
      state: 'Nothing was changed.',
      next: [
        'Restore the file from version control, and put the change into a new migration: svc db migrate create <name>',
      ],
      ...(changed.file !== undefined && { where: changed.file }),
      details: { tags: edited.map(({ tag }) => tag) },
    });
  }
  const gone = missing[0];
  if (gone) {
    throw new SvcError('migration_missing', `The file of the applied migration "${gone.row.tag}" is missing.`, {
      why: `The history has it, the migrations folder does not.${more(missing.length)}`,
      state: 'Nothing was changed.',
      next: [
        'Restore the file from version control.',
        `Or write it from the history: svc db migrate export ${gone.row.tag}`,
      ],
      details: { tags: missing.map(({ row }) => row.tag) },
    });
  }
  const stuck = failed[0];
  if (stuck) throw halfDone(stuck);
}

function more(count: number): string {
  return count > 1 ? ` So it is with ${count - 1} more.` : '';
}
