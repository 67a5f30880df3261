import { type AnyRecordDefinition, anyDefinition, type RecordDefinition } from '../../../../core/records.ts';
import { quoteIdentifier } from '../compile/names.ts';
import type { Registered } from '../compile/step.ts';
import { waitForSchemaAgreement } from '../connection/schema-agreement.ts';
import type { Session } from '../connection/session.ts';
import type { Settings } from '../connection/settings.ts';
import { recordColumnType } from './record-values.ts';

/** The table of the lock and, in the same partition, of the records written under it. */
export const LOCK_TABLE = '_svc_migrations';
/** The partition of the lock. */
export const LOCK_SCOPE = 'migrations';
export const OWNER_COLUMN = 'lock_owner';
export const EPOCH_COLUMN = 'lock_epoch';
export const VERSION_COLUMN = '_version';
/** Identifies the last write of a record, to recognise one whose response was lost. */
export const ATTEMPT_COLUMN = '_attempt';

/** The history's columns have their own names; columns of other records are prefixed with the name of their collection. */
export function lockTableColumn({ collection }: Pick<AnyRecordDefinition, 'collection'>, column: string): string {
  return collection === LOCK_TABLE ? column : `${collection.replace(/^_svc_/, '')}.${column}`;
}

const BASE_COLUMNS: readonly (readonly [name: string, type: string])[] = [
  ['scope', 'text'],
  ['kind', 'text'],
  ['key', 'text'],
  [OWNER_COLUMN, 'text STATIC'],
  [EPOCH_COLUMN, 'bigint STATIC'],
  [VERSION_COLUMN, 'bigint'],
  [ATTEMPT_COLUMN, 'uuid'],
];

export function lockTableColumns(definition: AnyRecordDefinition): [string, string][] {
  return Object.entries(definition.columns).map(([name, column]) => [
    lockTableColumn(definition, name),
    recordColumnType(column),
  ]);
}

/** Concurrent calls through different nodes all succeed, because each waits for schema agreement. */
export async function createLockTable(session: Session, settings: Settings): Promise<void> {
  const columns = [
    ...BASE_COLUMNS,
    ...lockTableColumns(anyDefinition(registryTable)),
    ...lockTableColumns(anyDefinition(progressTable)),
  ];
  await waitForSchemaAgreement(session, settings.agreementTimeoutMs);
  await session.execute(
    `CREATE TABLE IF NOT EXISTS ${quoteIdentifier(LOCK_TABLE)} (${columns.map(([name, type]) => `${quoteIdentifier(name)} ${type}`).join(', ')}, PRIMARY KEY (scope, kind, key))`,
  );
  await waitForSchemaAgreement(session, settings.agreementTimeoutMs);
}

/** The saved position of a scan. */
export interface ProgressRow {
  readonly id: string;
  /** The token of the partition to resume from, as text. */
  readonly cursor: string | null;
  readonly matched: number;
  readonly modified: number;
  readonly at: Date;
}

export const progressTable: RecordDefinition<ProgressRow> = {
  collection: '_svc_progress',
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

export interface RegistryRow {
  readonly table: string;
  readonly definition: Registered;
}

export const registryTable: RecordDefinition<RegistryRow> = {
  collection: '_svc_registry',
  key: 'table',
  columns: { table: { type: 'string' }, definition: { type: 'json' } },
  indexes: [],
  colocateWithLock: true,
};
