import * as assert from 'node:assert/strict';
import { listLines } from '../cli/approvals/request-text.ts';
import { callbackHandler } from '../config/sdk/callback/handler.ts';
import { tokenClaims } from '../config/sdk/callback/token.ts';
import { listApprovals } from '../core/approval/list-approvals.ts';
import type { ApprovalRequest } from '../core/approval/request.ts';
import { APPROVALS_VERSION, calls, waiters } from '../core/approval/schema.ts';
import { callbackToken } from '../core/approval/token.ts';
import { metaTable } from '../core/migration/history-table.ts';
import { gatedToolKey } from '../core/tool/call-digest.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { test } from './kit/test.ts';
import {
  type ApprovalProcess,
  Bank,
  compileTestTools,
  createGate,
  OWNER,
  openApprovalProcess,
  readRow,
  refund,
  reject,
  startCall,
} from './suites/approval-setup.ts';
import { expectError } from './suites/expect-error.ts';
import { CALLBACK_KEY } from './suites/gate-client.ts';

// What an approver reads if nobody waits for the decision. The approval suite tests it on every store.

const context = { product: OWNER.product, env: OWNER.env };

/** The callback of a process that makes no calls. */
function callbackOf(app: ApprovalProcess) {
  const handle = callbackHandler({ ...context, approvals: app.service, key: CALLBACK_KEY });
  return async (request: ApprovalRequest, type: string, body: string) => {
    const token = callbackToken(CALLBACK_KEY, tokenClaims(context, await readRow(app, request)));
    const url = `https://shop.example/approvals/${request.requestId}/respond?token=${token}`;
    const response = await handle(new Request(url, { method: 'POST', headers: { 'content-type': type }, body }));
    assert.equal(response.status, 200);
    return response.text();
  };
}

test('the page, the answer of the callback and the list say that nobody waits for the decision', async () => {
  const store = new MemoryStore();
  const [first, app] = [await openApprovalProcess(store), await openApprovalProcess(store)];
  const gate = createGate(first, compileTestTools(new Bank().tool()));
  const pending = [await startCall(gate, refund()), await startCall(gate, refund())];
  const [one, other] = pending.map(({ request }) => request) as [ApprovalRequest, ApprovalRequest];
  const respond = callbackOf(app);
  const form = 'application/x-www-form-urlencoded';
  const listed = async () =>
    (await listApprovals(app.service)).records.flatMap((record) => listLines(record, new Date(), 500)).join('\n');
  const notice =
    /[Nn]obody is waiting for this decision \(last seen \d{4}-[\dT:. -]+(?:Z|UTC)\)\. Once approved, the tool runs only/;

  assert.doesNotMatch(await respond(one, form, 'action=show'), notice);
  assert.doesNotMatch(await listed(), notice);
  await first.service.close();
  for (const { outcome } of pending) await expectError(outcome, 'interrupted');

  assert.match(await listed(), notice);
  const page = await respond(one, form, 'action=show');
  assert.match(page, notice);
  const view = /name="view" value="([^"]+)"/.exec(page)?.[1] ?? '';
  const decided = await respond(one, form, new URLSearchParams({ action: 'approve', view }).toString());
  assert.match(decided, /is approved[\s\S]*Nobody is waiting/);
  const answer = JSON.parse(await respond(other, 'application/json', '{"approved":true}'));
  assert.deepEqual(Object.keys(answer), ['requestId', 'executionId', 'status', 'decidedAt', 'unattendedSince']);
  assert.ok(Date.parse(answer.unattendedSince) <= Date.parse(answer.decidedAt));
  await app.service.close();
});

test('nothing is said of a rejected request, nor of one of an earlier version', async () => {
  const store = new MemoryStore();
  const [first, app] = [await openApprovalProcess(store), await openApprovalProcess(store)];
  const gate = createGate(first, compileTestTools(new Bank().tool()));
  const [one, other] = [await startCall(gate, refund()), await startCall(gate, refund())];
  await first.service.close();
  for (const { outcome } of [one, other]) await expectError(outcome, 'interrupted');
  assert.equal((await reject(app, one.request)).unattendedSince, undefined);
  const { record, version } = await readRow(app, other.request);
  const { waiters: _, ...body } = record.body;
  await app.service.rows.replace(record.requestId, version, { ...record, body });
  const [listed] = (await listApprovals(app.service)).records;
  assert.deepEqual([listed?.requestId, listed?.unattendedSince], [record.requestId, undefined]);
  await app.service.close();
});

test('a process that makes no calls stores nothing about itself', async () => {
  const store = new MemoryStore();
  const app = await openApprovalProcess(store);
  await app.service.close();
  for (const state of ['waiting', 'gone'] as const) {
    assert.deepEqual((await store.records(waiters).page('byState', { equals: { state }, limit: 10 })).records, []);
  }
});

test('only the upgrade of stores whose requests did not mark their tools marks every tool', async () => {
  for (const [version, isMarked] of [
    [2, true],
    [3, false],
  ] as const) {
    const store = new MemoryStore();
    await store.records(metaTable).insert({ id: 'approvals', version, ...OWNER });
    const app = await openApprovalProcess(store);
    assert.equal((await store.records(calls).get(gatedToolKey('*'))) !== undefined, isMarked);
    assert.equal((await store.records(metaTable).get('approvals'))?.record.version, APPROVALS_VERSION);
    await app.service.close();
  }
});
