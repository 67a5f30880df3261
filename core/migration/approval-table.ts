import type { Connection } from '../dialect.ts';
import { anyDefinition, type RecordDefinition } from '../records.ts';

interface ApprovalTableRow {
  /** `last` is the claim of the approval that was used last; `store` names the store in which this database is approved. */
  readonly id: 'last' | 'store';
  /** Of a request, or of the store. */
  readonly requestId: string;
  readonly digest: string;
  readonly plan: object;
}

export const approvalTable: RecordDefinition<ApprovalTableRow> = {
  collection: '_svc_plan_approval',
  key: 'id',
  columns: {
    id: { type: 'string' },
    requestId: { type: 'string' },
    digest: { type: 'string' },
    plan: { type: 'json' },
  },
  indexes: [],
  colocateWithLock: true,
};

/** At the first change of a database after its environment has approvers. Needs the lock. */
export async function rememberApprovalStore(connection: Connection, store: string): Promise<void> {
  await connection.ensureTables([anyDefinition(approvalTable)]);
  await connection.records(approvalTable).insert({ id: 'store', requestId: store, digest: '', plan: {} });
}

/** Undefined before the first change. */
export async function readApprovalStore(connection: Connection): Promise<string | undefined> {
  return (await connection.records(approvalTable).get('store'))?.record.requestId;
}
