import * as assert from 'node:assert/strict';
import { verifyAudit } from '../../core/approval/audit.ts';
import type { StorageBackend } from '../../core/approval/backend.ts';
import { APPROVAL_STATUSES } from '../../core/approval/request.ts';
import { approvals } from '../../core/approval/schema.ts';
import { type ApprovalProcess, openApprovalProcess } from './approval-setup.ts';
import type { DeclareCase } from './suite.ts';
import type { StoreUnderTest, TestStore } from './test-database.ts';

/** The first use creates tables, which is slow on an embedded engine. */
const SLOW_MS = 300_000;

/** Declares a case. With `tampers`, it changes stored requests by other means than svc. */
export type DeclareApprovalCase = (
  name: string,
  body: (open: () => Promise<ApprovalProcess>, testStore: TestStore) => Promise<void>,
  options?: { readonly tampers?: true },
) => void;

/** Each case gets processes of its own on a store that all share, and what it leaves passes `svc approvals verify`. */
export function approvalCases(declare: DeclareCase, store: StoreUnderTest): DeclareApprovalCase {
  let sharedStore: ReturnType<StoreUnderTest['createStore']> | undefined;
  let remaining = 0;
  return (name, body, { tampers } = {}) => {
    const runCase = async () => {
      sharedStore ??= store.createStore();
      const testStore = await sharedStore;
      const apps: ApprovalProcess[] = [];
      const backends: StorageBackend[] = [];
      const connect = async () => {
        const backend = await testStore.connect();
        backends.push(backend);
        return backend;
      };
      try {
        await body(
          async () => {
            const app = await openApprovalProcess(await connect());
            apps.push(app);
            return app;
          },
          { connect },
        );
        const verifier = await openApprovalProcess(await connect());
        apps.push(verifier);
        const { broken } = await verifyAudit(verifier.service);
        if (tampers) assert.notDeepEqual(broken, [], 'svc approvals verify finds nothing');
        else assert.deepEqual(broken, [], 'svc approvals verify');
      } finally {
        try {
          for (const { service } of apps) await service.close();
          await removeAllRequests(await connect());
        } finally {
          for (const backend of backends) await backend.close();
          remaining -= 1;
          if (remaining === 0) await testStore.drop();
        }
      }
    };
    if (declare(name, runCase, { timeoutMs: SLOW_MS })) remaining += 1;
  };
}

/** Removes every request. Indexes of some engines lag, so they may list requests that are gone. */
async function removeAllRequests(backend: StorageBackend): Promise<void> {
  const rows = backend.records(approvals);
  for (const status of APPROVAL_STATUSES) {
    for (;;) {
      const { records } = await rows.page('byStatus', { equals: { status }, limit: 1000, columns: ['requestId'] });
      if (records.length === 0) break;
      for (const { record, version } of records) await rows.remove(record.requestId, version);
    }
  }
}
