import type { RecordDefinition } from '../../../core/records.ts';

/** How far moving data has come: what a process that died leaves to the next one. */
export interface WorkRow {
  readonly id: string;
  /** The token of the last partition that is done, as text. */
  readonly cursor: string | null;
  readonly matched: number;
  readonly modified: number;
  readonly at: Date;
}

export const work: RecordDefinition<WorkRow> = {
  collection: '_svc_work',
  key: 'id',
  columns: {
    id: { type: 'string' },
    cursor: { type: 'text', nullable: true },
    matched: { type: 'bigint' },
    modified: { type: 'bigint' },
    at: { type: 'timestamp' },
  },
  indexes: [],
};
