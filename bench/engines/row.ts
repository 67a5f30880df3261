import type { HistoryRow } from '../../core/migration/history-table.ts';
import { checksum, type Migration } from '../../core/migration/migration.ts';
import type { RecordValues } from '../../core/records.ts';

/** The history row that svc writes before and after a migration of one step. */
export function rowOf(migration: Migration, seq: number, status: 'applying' | 'completed'): RecordValues {
  const done = status === 'completed';
  const row: Omit<HistoryRow, 'journal'> & { journal: object | null } = {
    tag: migration.tag,
    seq,
    name: migration.name ?? migration.tag,
    origin: 'file',
    status,
    applied_at: done ? new Date() : null,
    rolled_back_at: null,
    duration_ms: done ? 1 : null,
    checksum: checksum(migration),
    migration,
    step: done ? 1 : 0,
    steps: 1,
    error: null,
    sdk_version: '0.1.0',
    applied_by: 'bench',
    epoch: 1,
    // The journal that a killed run resumes from: about as long as the migration itself.
    journal: done ? null : { direction: 'up', steps: migration.up },
    started: !done,
    found: null,
  };
  return { ...row };
}
