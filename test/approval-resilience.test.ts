import * as assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { callbackHandler } from '../config/sdk/callback/handler.ts';
import { Svc } from '../config/sdk/index.ts';
import { DeliveryFailed } from '../core/approval/channel.ts';
import { ApprovalService } from '../core/approval/service.ts';
import { DETACH } from '../core/approval/call.ts';
import type { ApprovalRecord } from '../core/approval/request.ts';
import { newRequestId } from '../core/approval/request.ts';
import { SvcError } from '../core/errors.ts';
import { Kernel } from '../core/kernel.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import {
  approve,
  Bank,
  createGate,
  type ApprovalProcess,
  OWNER,
  openApprovalProcess,
  type PendingCall,
  refund,
  rowOf,
  compileTestTools,
  startCall,
} from './suites/approval-setup.ts';
import { CALLBACK_KEY } from './suites/gate-client.ts';
import { expectError } from './suites/expect-error.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

// What happens beside a request changes nothing in it: taps that throw, results too large to keep, a store out of reach.

test('taps that throw when they are told stop neither the request nor its decision', async () => {
  const office = await openApprovalProcess(new MemoryStore());
  const bank = new Bank();
  office.kernel.hooks.approvalRequested.tap('broken', () => {
    throw new Error('no paper');
  });
  office.kernel.hooks.approvalDecided.tapPromise('broken', async () => {
    throw new Error('no ink');
  });
  const { request, outcome } = await startCall(createGate(office, compileTestTools(bank.tool())), refund());
  await waitUntil(() => office.warnings.length === 1, 'Nobody was warned.');
  assert.equal((await rowOf(office, request)).record.status, 'waiting');
  assert.equal((await approve(office, request)).status, 'approved');
  assert.equal((await outcome).status, 'completed');
  assert.equal(bank.paid.length, 1);
  assert.deepEqual(office.warnings, [
    'A tap on approvalRequested threw: no paper',
    'A tap on approvalDecided threw: no ink',
  ]);
  await office.service.close();
});

test('callbacks of a call that throw or reject stop neither the call nor the process', async () => {
  const office = await openApprovalProcess(new MemoryStore());
  const bank = new Bank();
  const gate = createGate(office, compileTestTools(bank.tool()));
  const call = refund();
  const outcome = await gate.call(call, {
    // Refused, as it names another execution, after the call has been decided.
    onRequested: async (request) => {
      await approve(office, request);
      await waitUntil(() => bank.paid.length === 1, 'It never ran.');
      return approve(office, { ...request, executionId: 'exe_other' });
    },
    onDecided: () => {
      throw new Error('no ink');
    },
  });
  assert.equal(outcome.status, 'completed');
  await waitUntil(() => office.warnings.length === 2, 'Nobody was warned.');
  assert.deepEqual(office.warnings, [
    'onDecided threw: no ink',
    'onRequested threw: No request of that id belongs to that execution.',
  ]);
  await office.service.close();
});

test('a channel that wants to be left alone for longer than timers wait is left alone', async () => {
  const office = await openApprovalProcess(new MemoryStore());
  const attempts = { patient: 0, other: 0 };
  const route = (channel: 'patient' | 'other', afterMs: number) => ({
    channel,
    deliver: async () => {
      attempts[channel] += 1;
      throw new DeliveryFailed('later', { afterMs });
    },
  });
  const gate = createGate(office, compileTestTools(new Bank().tool()), {
    routes: [route('patient', 3_000_000_000), route('other', 0)],
    humanInLoop: { approvalTimeout: 31_536_000_000 },
  });
  const { request, outcome } = await startCall(gate, refund());
  await waitUntil(() => attempts.other === 2, 'The other channel was not tried again.');
  assert.equal(attempts.patient, 1);
  await approve(office, request);
  assert.equal((await outcome).status, 'completed');
  await office.service.close();
});

test('a channel that was reached is not told again, however often it was not reached before', async () => {
  const home = new MemoryStore();
  const [first, next] = [await openApprovalProcess(home), await openApprovalProcess(home)];
  const told: string[] = [];
  const route = (channel: string) => ({ channel, deliver: async () => void told.push(channel) });
  const tools = compileTestTools(new Bank().tool());
  const call = refund();
  const leave = new AbortController();
  const left = await startCall(createGate(first, tools), call, { signal: leave.signal });
  const { requestId } = left.request;
  for (let attempt = 1; attempt <= 1001; attempt++) {
    const delivered = attempt === 1001;
    const at = new Date(attempt);
    const id = `del_${attempt}`;
    await first.service.deliveries.insert({
      id,
      requestId,
      channel: 'ops',
      at,
      delivered,
      error: delivered ? null : 'no',
    });
  }
  leave.abort(DETACH);
  await expectError(left.outcome, 'interrupted');
  const again = await startCall(createGate(next, tools, { routes: [route('ops'), route('new')] }), call);
  await waitUntil(() => told.includes('new'), 'The other channel was not told.');
  assert.deepEqual(told, ['new']);
  await approve(next, again.request);
  await again.outcome;
  for (const { service } of [first, next]) await service.close();
});

test('a channel is told once that a call was approved, also one that was approved while nobody waited for it', async () => {
  const home = new MemoryStore();
  const [first, next] = [await openApprovalProcess(home), await openApprovalProcess(home)];
  const tools = compileTestTools(new Bank().tool());
  const told: string[] = [];
  const routes = [
    {
      channel: 'ops',
      deliver: async () => {},
      onDecided: async ({ requestId, status }: ApprovalRecord) => void told.push(`${requestId} ${status}`),
    },
  ];
  const [calm, crashed] = [refund(), refund()];
  const leave = new AbortController();
  const waited = await startCall(createGate(first, tools, { routes }), calm);
  const left = await startCall(createGate(first, tools, { routes }), crashed, { signal: leave.signal });
  leave.abort(DETACH);
  await expectError(left.outcome, 'interrupted');
  await approve(first, waited.request);
  await approve(first, left.request);
  await waited.outcome;
  for (let round = 0; round < 3; round++) {
    for (const call of [calm, crashed])
      assert.equal((await createGate(next, tools, { routes }).call(call)).status, 'completed');
  }
  assert.deepEqual(told, [`${waited.request.requestId} approved`, `${left.request.requestId} approved`]);
  for (const { service } of [first, next]) await service.close();
});

test('a call that is given up before it is put to the gate is told to no channel', async () => {
  const office = await openApprovalProcess(new MemoryStore());
  const told: string[] = [];
  const routes = [
    {
      channel: 'ops',
      deliver: async () => void told.push('deliver'),
      onDecided: async () => void told.push('decided'),
    },
  ];
  const gate = createGate(office, compileTestTools(new Bank().tool()), { routes });
  assert.equal((await gate.call(refund(), { signal: AbortSignal.abort('gone') })).status, 'cancelled');
  const { request, outcome } = await startCall(gate, refund());
  await waitUntil(() => told.length > 0, 'The channel was not told of the next call.');
  await approve(office, request);
  await outcome;
  assert.deepEqual(told, ['deliver', 'decided']);
  await office.service.close();
});

for (const [who, isBeside] of [
  ['who waits beside it', true],
  ['who puts the call again', false],
] as const) {
  test(`a channel that was not reached when a call was left is tried again for ${who}`, async () => {
    const office = await openApprovalProcess(new MemoryStore());
    const bank = new Bank();
    let [attempts, taps] = [0, 0];
    let isUp = false;
    const deliver = async () => {
      attempts += 1;
      if (!isUp) throw new DeliveryFailed('down', { afterMs: 60_000 });
    };
    office.kernel.hooks.approvalRequested.tap('test', () => void taps++);
    const gate = createGate(office, compileTestTools(bank.tool()), {
      routes: [{ channel: 'ops', deliver }],
      humanInLoop: { approvalTimeout: 600_000 },
    });
    const call = refund();
    const leave = new AbortController();
    const left = await startCall(gate, call, { signal: leave.signal });
    const beside = isBeside ? await startCall(gate, call) : undefined;
    const { requestId } = left.request;
    const told = async () =>
      (await office.service.deliveries.page('byRequest', { equals: { requestId }, limit: 10 })).records.map(
        ({ record }) => record.delivered,
      );
    // So many that they are not all looked at now and then.
    const others = Array.from({ length: 17 }, () => office.service.watcher.subscribe(newRequestId()));
    await waitUntil(async () => (await told()).length === 1, 'The channel was not tried.');
    isUp = true;
    if (isBeside) await refusedAlone(office, left);
    else {
      leave.abort(DETACH);
      await expectError(left.outcome, 'interrupted');
    }
    const { outcome } = beside ?? (await startCall(gate, call));
    await waitUntil(async () => (await told()).length === 2, 'The channel was not tried again.');
    assert.deepEqual((await told()).sort(), [false, true]);
    assert.deepEqual([attempts, taps], [2, 1]);
    await approve(office, left.request);
    assert.equal((await outcome).status, 'completed');
    assert.equal(office.service.announcements.size, 0);
    for (const seat of others) seat.unsubscribe();
    await office.service.close();
  });
}

/** The store refuses the first who looks, after the others have looked and gone on waiting. */
async function refusedAlone({ service }: ApprovalProcess, { request: { requestId }, outcome }: PendingCall): Promise<void> {
  const { read } = service;
  let looked = 0;
  let refuse = () => {};
  service.read = (id) => {
    looked += 1;
    if (looked > 1) return read.call(service, id);
    return new Promise((_, reject) => {
      refuse = () => reject(new SvcError('permission_denied', 'Not now.'));
    });
  };
  service.watcher.notify(requestId);
  await waitUntil(() => looked === 2, 'Nobody waits beside it.');
  service.read = read;
  refuse();
  await expectError(outcome, 'permission_denied');
}

test('a result that is too large to be kept reaches its caller whole; who asks again is told that it ran', async () => {
  const office = await openApprovalProcess(new MemoryStore());
  const bank = new Bank();
  const KEPT = 256 * 1024;
  // With its two quotes a text of so many bytes, and of one more.
  for (const [size, isKept] of [
    [KEPT - 2, true],
    [KEPT - 1, false],
  ] as const) {
    const large = 'x'.repeat(size);
    const gate = createGate(office, compileTestTools(bank.tool({ handler: () => bank.paid.push({}) && large })));
    const call = refund();
    const { request, outcome } = await startCall(gate, call);
    await approve(office, request);
    assert.deepEqual((await outcome).result, large);
    const again = await gate.call(call);
    assert.equal(again.status, 'completed');
    if (isKept) assert.equal(again.result, large);
    else assert.equal((again.result as { error: string }).error, 'result_not_kept');
  }
  assert.equal(bank.paid.length, 2);
  await office.service.close();
});

test('what cannot be told of a request ends neither its call nor the process', async () => {
  const office = await openApprovalProcess(new MemoryStore());
  const bank = new Bank();
  const call = refund();
  const { request, outcome } = await startCall(createGate(office, compileTestTools(bank.tool())), call);
  await approve(office, request);
  await outcome;
  const { read } = office.service;
  // As an older version of this SDK stored it.
  const result = JSON.parse(`${'['.repeat(20_000)}${']'.repeat(20_000)}`);
  office.service.read = async (id) => {
    const { record, version } = (await read.call(office.service, id))!;
    const body = { ...record.body, outcome: { status: 'completed' as const, result } };
    return { version, record: { ...record, status: 'rejected', body } };
  };
  const routes = [{ channel: 'pager', deliver: async () => {}, onDecided: async () => {} }];
  assert.equal((await createGate(office, compileTestTools(bank.tool()), { routes }).call(call)).status, 'rejected');
  await waitUntil(() => office.warnings.length > 0, 'Nobody was warned.');
  assert.match(office.warnings[0]!, /^The announcement threw: /);
  await office.service.close();
});

test('503: the callback says when the store cannot be used, decides nothing, and gives nothing away', async () => {
  const office = await openApprovalProcess(new MemoryStore());
  const { request } = await startCall(createGate(office, compileTestTools(new Bank().tool())), refund());
  const answer = callbackHandler({ approvals: office.service, product: OWNER.product, env: OWNER.env, key: CALLBACK_KEY });
  const url = `https://shop.example/approvals/${request.requestId}/respond?token=v1.${'A'.repeat(43)}`;
  const { read } = office.service;
  for (const code of ['connection_lost', 'connection_failed', 'permission_denied', 'migration_failed'] as const) {
    office.service.read = () => Promise.reject(new SvcError(code, 'gone: postgres://shop:hunter2@db'));
    const headers = { 'content-type': 'application/json' };
    const posted = await answer(new Request(url, { method: 'POST', headers, body: '{"approved":true}' }));
    assert.deepEqual([posted.status, posted.headers.get('retry-after')], [503, '5']);
    const said = (await posted.json()) as { error: string };
    assert.equal(said.error, 'store_unavailable');
    const shown = await answer(new Request(url));
    assert.equal(shown.status, 503);
    assert.ok(!`${JSON.stringify(said)}${await shown.text()}`.includes('hunter2'));
  }
  office.service.read = read;
  assert.equal((await rowOf(office, request)).record.status, 'waiting');
  await office.service.close();
});

test('what is kept in memory is warned of outside dev, and only there', async () => {
  for (const env of ['dev', 'prd']) {
    const warned: string[] = [];
    const hear = ({ message }: Error) => warned.push(message);
    process.on('warning', hear);
    const svc = new Svc({ config: { product: 'shop' }, env });
    await svc.approvals.list();
    await svc.approvals.list();
    await new Promise(setImmediate);
    process.off('warning', hear);
    await svc.close();
    const about = warned.filter((message) => message.includes('stored in memory'));
    assert.equal(about.length, env === 'dev' ? 0 : 1, warned.join());
    if (env !== 'dev') assert.match(about[0]!, /^Approvals of "prd" .* Set approvals\.store in svc\.config\.$/);
  }
});

test('what a handler logs names its agent and its call, and control characters are written out', async () => {
  const lines: string[] = [];
  const log = (line: string) => lines.push(line);
  const kernel = new Kernel();
  const service = await ApprovalService.open({ backend: new MemoryStore(), hooks: kernel.hooks, owner: OWNER, log });
  const office = { service, kernel, warnings: [] };
  const tool = new Bank().tool({
    handler: (ctx) => {
      ctx.log('paid\u001b[2J\u202e', { text: 'a\u001bb' });
      ctx.log('plain');
    },
  });
  const { request, outcome } = await startCall(createGate(office, compileTestTools(tool)), refund());
  await approve(office, request);
  await outcome;
  await createGate(office, compileTestTools({ ...tool, requiresConfirmation: false })).call(
    refund(undefined, { toolCallId: 'free' }),
  );
  assert.equal(lines.length, 4);
  const [gated, plain, free] = lines as [string, string, string];
  assert.ok(gated.startsWith(`payouts ${request.requestId}: paid`) && gated.includes('{'), gated);
  assert.ok(!lines.some((line) => line.includes('\u001b') || line.includes('\u202e')), lines.join('\n'));
  assert.equal(plain, `payouts ${request.requestId}: plain`);
  assert.ok(free.startsWith('payouts free: paid'), free);
  await service.close();
});

test('a tool that has paid has not failed because of what it logs', async () => {
  const lines: string[] = [];
  const log = (line: string) => lines.push(line);
  const kernel = new Kernel();
  const service = await ApprovalService.open({ backend: new MemoryStore(), hooks: kernel.hooks, owner: OWNER, log });
  const office = { service, kernel, warnings: [] };
  const circular: Record<string, unknown> = { status: 200 };
  circular.self = circular;
  const hostile = {
    toJSON() {
      throw new Error('no');
    },
    [inspect.custom]() {
      throw new Error('never');
    },
  };
  const tool = new Bank().tool({
    handler: (ctx) => {
      for (const data of [{ id: 10n }, circular, () => 1, hostile]) ctx.log('paid', data as never);
      for (const message of [new Error('late'), 42, null, Object.create(null), hostile]) ctx.log(message as never);
      return 'receipt';
    },
  });
  const { request, outcome } = await startCall(createGate(office, compileTestTools(tool)), refund());
  await approve(office, request);
  const { status, result } = await outcome;
  assert.deepEqual([status, result], ['completed', 'receipt']);
  const said = lines.map((line) => line.slice(`payouts ${request.requestId}: `.length));
  assert.equal(said.length, 9, lines.join('\n'));
  for (const [at, words] of [
    [0, /^paid .*10n/],
    [1, /^paid .*200.*Circular/s],
    [2, /^paid \[Function/],
    [3, /^paid \[value cannot be formatted: never\]$/],
    [4, /^Error: late/],
    [5, /^42$/],
  ] as const) {
    assert.match(said[at]!, words);
  }
  await service.close();
});
