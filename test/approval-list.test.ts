import * as assert from 'node:assert/strict';
import { DETACH } from '../core/approval/call.ts';
import { listApprovals } from '../core/approval/list-approvals.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { test } from './kit/test.ts';
import { Bank, compileTestTools, createGate, openApprovalProcess, refund, startCall } from './suites/approval-setup.ts';

test('a list has no more records than its limit where some of the rows it read have expired', async () => {
  let now = Date.parse('2026-01-01T00:00:00Z');
  const app = await openApprovalProcess(new MemoryStore(() => now));
  const tools = compileTestTools(new Bank().tool());
  const ids: string[] = [];
  for (const approvalTimeout of [1_000, 60_000, 60_000, 60_000]) {
    const detach = new AbortController();
    const gate = createGate(app, tools, { humanInLoop: { approvalTimeout } });
    ids.push((await startCall(gate, refund(), { signal: detach.signal })).request.requestId);
    detach.abort(DETACH);
  }
  now += 30_000;
  const listed: string[][] = [];
  let cursor: string | undefined;
  do {
    const page = await listApprovals(app.service, { limit: 2, ...(cursor !== undefined && { cursor }) });
    listed.push(page.records.map(({ requestId }) => requestId));
    cursor = page.cursor;
  } while (cursor !== undefined);
  const [expired = '', ...waiting] = ids;
  assert.ok(!listed.flat().includes(expired), 'the expired request is not listed as waiting');
  assert.deepEqual(listed.flat().sort(), waiting.sort());
  assert.ok(listed.every((page) => page.length <= 2));
  await app.service.close();
});
