import * as assert from 'node:assert/strict';
import { APPROVALS_VERSION, approvals, calls, tools } from '../core/approval/schema.ts';
import { ApprovalService } from '../core/approval/service.ts';
import { SvcError } from '../core/errors.ts';
import { Kernel } from '../core/kernel.ts';
import { metaTable } from '../core/migration/history-table.ts';
import { callKey } from '../core/tool/call-digest.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { test } from './kit/test.ts';
import {
  approve,
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
import { waitUntil } from './suites/wait-until.ts';

// What a process asks the store before a tool runs that needs no approval now. The suite of all stores has the rest.

const FREE = { humanInLoop: { enabled: false } } as const;

/** A process whose reads of the calls table are counted, and fail while `isDown`. */
async function openCounting(store = new MemoryStore()) {
  const app = await openApprovalProcess(store);
  const reads = { count: 0, isDown: false };
  const get = app.service.calls.get.bind(app.service.calls);
  Object.assign(app.service, {
    calls: Object.assign(Object.create(app.service.calls), {
      insert: app.service.calls.insert.bind(app.service.calls),
      get: async (key: string) => {
        reads.count += 1;
        if (reads.isDown) throw new SvcError('connection_lost', 'The store is down.');
        return get(key);
      },
    }),
  });
  return { app, reads };
}

test('a tool that was never gated asks the store once, and a call without a name never', async () => {
  const { app, reads } = await openCounting();
  const bank = new Bank();
  const gate = createGate(app, compileTestTools(bank.tool()), FREE);
  await gate.call({ tool: 'refund', parameters: refund().parameters });
  const { toolCallId, ...unnamed } = refund();
  await gate.call(unnamed);
  assert.equal(reads.count, 0);
  await Promise.all(Array.from({ length: 50 }, () => gate.call(refund())));
  // One for the tool and one for the whole store.
  assert.equal(reads.count, 2);
  assert.equal(bank.paid.length, 52);
  await app.service.close();
});

test('a named call does not run while the store cannot be asked; a call without a name does', async () => {
  const { app, reads } = await openCounting();
  const bank = new Bank();
  const gate = createGate(app, compileTestTools(bank.tool()), FREE);
  reads.isDown = true;
  await expectError(gate.call(refund()), 'connection_lost');
  assert.equal(bank.paid.length, 0);
  await gate.call({ tool: 'refund', parameters: refund().parameters });
  assert.equal(bank.paid.length, 1);
  reads.isDown = false;
  assert.equal((await gate.call(refund())).status, 'completed');
  // What the process knows lasts for a moment only.
  await waitUntil(() => !app.service.isKnownUngated('refund'), 'It never asked again.');
  reads.isDown = true;
  await expectError(gate.call(refund()), 'connection_lost');
  assert.equal(bank.paid.length, 2);
  await app.service.close();
});

test('a process that knew a tool as never gated learns that another process gated it', async () => {
  const store = new MemoryStore();
  const [app, other] = [await openApprovalProcess(store), await openApprovalProcess(store)];
  const bank = new Bank();
  const free = createGate(other, compileTestTools(bank.tool()), FREE);
  await free.call(refund());
  const call = refund();
  const { request, outcome } = await startCall(createGate(app, compileTestTools(bank.tool())), call);
  await reject(app, request);
  const rejected = await outcome;
  await waitUntil(() => !other.service.isKnownUngated('refund'), 'It never asked again.');
  assert.deepEqual(await free.call(call), rejected);
  assert.equal(bank.paid.length, 1);
  for (const { service } of [app, other]) await service.close();
});

test('requests of an earlier version are refused with that reason, and keep their calls from running', async () => {
  const store = new MemoryStore();
  const old = await openApprovalProcess(store);
  const bank = new Bank();
  const gate = createGate(old, compileTestTools(bank.tool()));
  const [waiting, rejected, approved] = [refund(), refund(), refund()];
  const requests = [];
  for (const call of [waiting, rejected, approved]) requests.push((await startCall(gate, call)).request);
  await reject(old, requests[1]!);
  await old.service.close();
  // Version 2: shorter digests, no mark on a gated tool.
  const earlier = new MemoryStore();
  await earlier.records(metaTable).insert({ id: 'approvals', version: 2, ...OWNER });
  const toolDigest = 'A'.repeat(43);
  const { description, schema } = compileTestTools(bank.tool()).get('refund')!;
  // Without the members that version 3 added.
  const definition = { description, schema } as never;
  await earlier.records(tools).insert({ digest: toolDigest, tag: 'refund', definition });
  for (const [index, call] of [waiting, rejected, approved].entries()) {
    const { record } = (await store.records(approvals).get(requests[index]!.requestId))!;
    const body = { ...record.body, toolDigest, digest: `c${'B'.repeat(43)}` };
    await earlier.records(approvals).insert({ ...record, body });
    const { requestId } = record;
    await earlier.records(calls).insert({ call: callKey(call.executionId!, call.toolCallId!), requestId });
  }

  const app = await openApprovalProcess(earlier);
  assert.equal((await earlier.records(metaTable).get('approvals'))?.record.version, APPROVALS_VERSION);
  const free = createGate(app, compileTestTools(bank.tool()), FREE);
  for (const call of [waiting, rejected, approved]) {
    const error = await expectError(free.call(call), 'approval_stale');
    assert.match(error.why ?? '', /another version of @svc\/sdk/);
  }
  await approve(app, requests[2]!);
  for (const [index, call] of [waiting, approved].entries()) {
    const request = [requests[0]!, requests[2]!][index]!;
    const resumed = await free.call({ ...call, requestId: request.requestId }, { resumed: true });
    assert.equal(resumed.status, 'stale');
    assert.match(JSON.stringify(resumed.result), /another version of @svc\/sdk/);
  }
  assert.equal((await readRow(app, requests[0]!)).record.status, 'cancelled');
  // A tool that the earlier version may have gated without a mark.
  assert.equal(await app.service.wasGated('another'), true);
  assert.equal(bank.paid.length, 0);
  await app.service.close();
});

test('a request is not stored if the mark on its tool is not', async () => {
  const kernel = new Kernel();
  const service = await ApprovalService.open({ backend: new MemoryStore(), hooks: kernel.hooks, owner: OWNER });
  const insert = service.calls.insert.bind(service.calls);
  let isDown = true;
  service.calls.insert = (row) =>
    isDown ? Promise.reject(new SvcError('connection_lost', 'The store is down.')) : insert(row);
  const app = { service, kernel, warnings: [] };
  const gate = createGate(app, compileTestTools(new Bank().tool()));
  const { toolCallId, ...call } = refund();
  await expectError(gate.call(call), 'connection_lost');
  assert.equal(
    (await service.rows.page('byExecution', { equals: { executionId: call.executionId! }, limit: 1 })).records.length,
    0,
  );
  isDown = false;
  const { request, outcome } = await startCall(gate, call);
  await reject(app, request);
  assert.equal((await outcome).status, 'rejected');
  await service.close();
});
