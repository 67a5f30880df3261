import * as assert from 'node:assert/strict';
import { auditTrail, pruneApprovals } from '../core/approval/audit.ts';
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

for (const difference of [-3_600_000, 3_600_000]) {
  const side = difference > 0 ? 'fast' : 'slow';
  test(`a list, an export and a removal go by the store's clock, which is an hour ${side}`, async () => {
    let now = Date.now() + difference;
    const app = await openApprovalProcess(new MemoryStore(() => now));
    const gate = createGate(app, compileTestTools(new Bank().tool()), {});
    const request = async () => {
      const detach = new AbortController();
      const { request } = await startCall(gate, refund(), { signal: detach.signal });
      detach.abort(DETACH);
      return request.requestId;
    };
    const first = await request();
    now += 60_000;
    await app.service.clock.readNow();
    const between = new Date(now - 30_000);
    const second = await request();
    const listed = async (query: { since?: Date; before?: Date }) =>
      (await listApprovals(app.service, query)).records.map(({ requestId }) => requestId);
    const exported = async (query: { since?: Date; before?: Date }) => {
      const ids = new Set<string>();
      for await (const { requestId } of auditTrail(app.service, query)) ids.add(requestId);
      return [...ids];
    };
    for (const ids of [listed, exported]) {
      assert.deepEqual(await ids({ since: between }), [second]);
      assert.deepEqual(await ids({ before: between }), [first]);
    }
    now += 86_400_000;
    await app.service.clock.readNow();
    await listApprovals(app.service);
    const olderThanMs = now - between.getTime();
    assert.equal(await pruneApprovals(app.service, { olderThanMs }, async () => false), 1);
    assert.deepEqual(
      (await listApprovals(app.service, { status: 'rejected' })).records.map((one) => one.requestId),
      [second],
    );
    await app.service.close();
  });
}
