import * as assert from 'node:assert/strict';
import { setImmediate as tick } from 'node:timers/promises';
import fc from 'fast-check';
import { TimerQueue } from '../core/approval/timer-queue.ts';
import { StoreClock } from '../core/approval/store-clock.ts';
import { DETACH } from '../core/approval/call.ts';
import { listApprovals } from '../core/approval/list.ts';
import type { ApprovalRequest } from '../core/approval/request.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { approve, Bank, createGate, type ApprovalProcess, openApprovalProcess, refund, rowOf, compileTestTools, startCall } from './suites/approval-setup.ts';
import { expectError } from './suites/expect-error.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

// The store's clock decides, whatever this process believes; its own timers only say when to ask.

const START = Date.parse('2026-01-01T00:00:00Z');
const TIMEOUT_MS = 60_000;

async function scene({ isDead = false } = {}) {
  let now = START;
  const setClock = (to: number): void => {
    now = to;
  };
  const office = await openApprovalProcess(new MemoryStore(() => now));
  const bank = new Bank();
  const gate = createGate(office, compileTestTools(bank.tool()), { humanInLoop: { approvalTimeout: TIMEOUT_MS } });
  const leave = new AbortController();
  const pending = await startCall(gate, refund(), { signal: leave.signal });
  // As good as a process that died: nobody waits for it here any more.
  if (isDead) leave.abort(DETACH);
  const deadline = Date.parse(pending.request.timeout);
  return { office, bank, gate, ...pending, deadline, setClock };
}

test('a decision loses to the clock of the store, though this process believes that there is time left', async () => {
  for (const after of [0, 1, 5 * TIMEOUT_MS]) {
    const { office, bank, request, outcome, deadline, setClock } = await scene();
    setClock(deadline + after);
    await expectError(approve(office, request), 'approval_expired');
    assert.equal((await outcome).status, 'rejected');
    assert.equal(bank.paid.length, 0);
    await office.service.close();
  }
});

test('a decision a millisecond before the deadline stands, and is dated before it', async () => {
  const { office, request, outcome, deadline, setClock } = await scene();
  setClock(deadline - 1);
  const { decidedAt } = await approve(office, request);
  assert.ok(decidedAt < request.timeout);
  assert.equal((await outcome).status, 'completed');
  await office.service.close();
});

test('nothing expires before its time, whoever looks', async () => {
  const { office, request, deadline, setClock } = await scene();
  setClock(deadline - 1);
  await office.service.expire(await rowOf(office, request));
  // A list carries the last reading on for a second.
  setClock(deadline - 2_000);
  await office.service.clock.readNow();
  assert.equal(await office.service.sweep(), 0);
  assert.equal((await rowOf(office, request)).record.status, 'waiting');
  assert.equal((await listApprovals(office.service)).records.length, 1);
  await office.service.close();
});

test('whoever meets a request past its time decides it: a list, its view, and a sweep', async () => {
  const meetings: readonly ((office: ApprovalProcess, request: ApprovalRequest) => Promise<unknown>)[] = [
    async ({ service }) => assert.deepEqual((await listApprovals(service)).records, []),
    async ({ service }, { executionId }) =>
      assert.equal((await listApprovals(service, { executionId })).records[0]?.status, 'rejected'),
    async ({ service }, { requestId }) => assert.equal((await service.getExpiringIfDue(requestId))?.record.status, 'rejected'),
    async ({ service }) => assert.equal(await service.sweep(), 1),
  ];
  for (const meet of meetings) {
    const { office, request, deadline, setClock } = await scene({ isDead: true });
    setClock(deadline);
    await office.service.clock.readNow();
    await meet(office, request);
    const { status, body } = (await rowOf(office, request)).record;
    assert.deepEqual([status, body.decision?.cause], ['rejected', 'timeout']);
    await office.service.close();
  }
});

test('a store that lets nobody write hides what is past its time all the same', async () => {
  const { office, request, deadline, setClock } = await scene({ isDead: true });
  setClock(deadline);
  office.service.rows.replace = () => Promise.reject(new Error('read-only'));
  assert.deepEqual((await listApprovals(office.service)).records, []);
  assert.equal((await office.service.getExpiringIfDue(request.requestId))?.record.status, 'waiting');
  assert.match(office.warnings.join(), /could not be expired/);
  await office.service.close();
});

test('a decision of the system is listed as one', async () => {
  const { office, deadline, setClock } = await scene();
  setClock(deadline);
  await office.service.sweep();
  assert.equal((await listApprovals(office.service, { status: 'rejected' })).records[0]?.cause, 'timeout');
  await office.service.close();
});

test('what was stored and its digest changed with it does not run while its caller is there', async () => {
  const { office, bank, gate, request, outcome } = await scene();
  const other = await startCall(gate, refund({ order: '1234', amount: 9999 }, { executionId: request.executionId }));
  const forged = (await rowOf(office, other.request)).record.body;
  const row = await rowOf(office, request);
  const body = { ...row.record.body, parameters: forged.parameters, digest: forged.digest };
  await office.service.rows.replace(request.requestId, row.version, { ...row.record, body });
  await approve(office, request);
  assert.equal((await outcome).status, 'stale');
  assert.equal(bank.paid.length, 0);
  await office.service.close();
});

test('a year of waiting is no overflow of a timer', async () => {
  const warned: string[] = [];
  const hear = ({ name }: Error) => warned.push(name);
  process.on('warning', hear);
  const office = await openApprovalProcess(new MemoryStore());
  const gate = createGate(office, compileTestTools(new Bank().tool()), { humanInLoop: { approvalTimeout: 31_536_000_000 } });
  const { request, outcome } = await startCall(gate, refund());
  for (let turn = 0; turn < 100; turn++) await tick();
  process.off('warning', hear);
  // Node says so of a timer that is too long, and then lets it ring at once, over and over.
  assert.ok(!warned.includes('TimeoutOverflowWarning'));
  assert.equal((await rowOf(office, request)).record.status, 'waiting');
  await office.service.close();
  await expectError(outcome, 'interrupted');
});

test('many deadlines: each request is decided after its own and not before', async () => {
  const office = await openApprovalProcess(new MemoryStore());
  const tools = compileTestTools(new Bank().tool());
  const outcomes = await Promise.all(
    Array.from({ length: 500 }, async (_, at) => {
      const gate = createGate(office, tools, { humanInLoop: { approvalTimeout: 20 + (at % 50) * 10 } });
      return gate.call(refund());
    }),
  );
  assert.ok(outcomes.every(({ status }) => status === 'rejected'));
  const { records } = await listApprovals(office.service, { status: 'rejected', limit: 1000 });
  assert.match(
    (await expectError(listApprovals(office.service, { limit: 1001 }), 'value_invalid')).why ?? '',
    /limit is not 1 to 1,000/,
  );
  assert.equal(records.length, 500);
  assert.ok(records.every(({ decidedAt, timeout, cause }) => decidedAt! >= timeout && cause === 'timeout'));
  await office.service.close();
});

test('an alarm rings once for each item, in order, and not for what was taken back', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ item: fc.nat(9), in: fc.nat(15), back: fc.boolean() }), { maxLength: 40 }),
      async (steps) => {
        const rung: number[] = [];
        const due = new Map<number, number>();
        const alarm = new TimerQueue<number>((item) => {
          assert.ok(performance.now() >= (due.get(item) ?? Number.POSITIVE_INFINITY), 'it rang early');
          rung.push(item);
          due.delete(item);
        });
        for (const step of steps) {
          const at = performance.now() + step.in;
          if (step.back) {
            alarm.delete(step.item);
            due.delete(step.item);
          } else {
            alarm.set(step.item, at);
            due.set(step.item, at);
          }
        }
        const order = [...due].sort(([, a], [, b]) => a - b).map(([item]) => item);
        await waitUntil(() => due.size === 0, 'It did not ring.');
        assert.deepEqual(rung, order);
      },
    ),
    { numRuns: 60 },
  );
});

test('the clock of the store is asked once for all who ask together, and again when its answer is old', async () => {
  let asked = 0;
  const clock = new StoreClock(async () => {
    asked += 1;
    await tick();
    return new Date(START + asked * 10_000);
  });
  const first = await Promise.all([clock.now(), clock.readNow(), clock.now()]);
  assert.deepEqual([asked, new Set(first).size], [1, 1]);
  const carried = await clock.now();
  assert.equal(asked, 1);
  assert.ok(carried >= START + 10_000 && carried < START + 12_000);
  await waitUntil(async () => {
    await clock.now();
    return asked === 2;
  }, 'It was never asked again.');
  assert.ok(clock.msUntil(START + 30_000) <= 10_000);
});

test('a store that is far away is not asked more often for it', async () => {
  let asked = 0;
  const clock = new StoreClock(async () => {
    asked += 1;
    const began = performance.now();
    while (performance.now() - began < 30);
    return new Date(START);
  });
  const times = 8;
  for (let at = 0; at < times; at++) await clock.readNow();
  assert.ok(asked < 2 * times, `It was asked ${asked} times for ${times} readings.`);
});

test('an answer that this process was too busy to hear is not what deadlines are counted from', async () => {
  const began = performance.now();
  let asked = 0;
  const clock = new StoreClock(async () => {
    asked += 1;
    const now = new Date(START + performance.now() - began);
    await tick();
    if (asked === 1) while (performance.now() - began < 400);
    return now;
  });
  await clock.now();
  const off = (await clock.now()) - (START + performance.now() - began);
  assert.ok(Math.abs(off) < 100, `It is ${off} ms off.`);
});
