import * as assert from 'node:assert/strict';
import { setImmediate as tick } from 'node:timers/promises';
import fc from 'fast-check';
import type { StorageBackend } from '../core/approval/backend.ts';
import { DETACH } from '../core/approval/call.ts';
import { listApprovals } from '../core/approval/list-approvals.ts';
import type { ApprovalRequest } from '../core/approval/request.ts';
import { StoreClock } from '../core/approval/store-clock.ts';
import { TimerQueue } from '../core/approval/timer-queue.ts';
import type { RecordDefinition, RecordStore } from '../core/records.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { test } from './kit/test.ts';
import {
  type ApprovalProcess,
  approve,
  Bank,
  compileTestTools,
  createGate,
  openApprovalProcess,
  readRow,
  refund,
  startCall,
} from './suites/approval-setup.ts';
import { expectError } from './suites/expect-error.ts';
import { waitUntil } from './suites/wait-until.ts';

// The clock of the store decides, not the clock of the process. Timers only trigger a read.

const START = Date.parse('2026-01-01T00:00:00Z');
const TIMEOUT_MS = 60_000;

async function setUp({ isDead = false } = {}) {
  let now = START;
  const setClock = (to: number): void => {
    now = to;
  };
  const app = await openApprovalProcess(new MemoryStore(() => now));
  const bank = new Bank();
  const gate = createGate(app, compileTestTools(bank.tool()), { humanInLoop: { approvalTimeout: TIMEOUT_MS } });
  const detach = new AbortController();
  const pending = await startCall(gate, refund(), { signal: detach.signal });
  // Simulates a dead process: no call waits for the request.
  if (isDead) detach.abort(DETACH);
  const deadline = Date.parse(pending.request.timeout);
  return { app, bank, gate, ...pending, deadline, setClock };
}

test('a decision after the deadline by the clock of the store is rejected, whatever the clock of the process', async () => {
  for (const after of [0, 1, 5 * TIMEOUT_MS]) {
    const { app, bank, request, outcome, deadline, setClock } = await setUp();
    setClock(deadline + after);
    await expectError(approve(app, request), 'approval_expired');
    assert.equal((await outcome).status, 'rejected');
    assert.equal(bank.paid.length, 0);
    await app.service.close();
  }
});

test('a reading that is a little less than the extended one before it does not turn the order around', async () => {
  let store = START + 1_000;
  const clock = new StoreClock(async () => new Date(store));
  const first = await clock.now();
  store = first - 50;
  await clock.readNow();
  assert.equal(await clock.now(), first);
  // The clock of the store was set.
  store = START - 60_000;
  await clock.readNow();
  assert.ok((await clock.now()) < START);
});

test('a decision a millisecond before the deadline is valid, and is dated before it', async () => {
  const { app, request, outcome, deadline, setClock } = await setUp();
  setClock(deadline - 1);
  const { decidedAt } = await approve(app, request);
  assert.ok(decidedAt < request.timeout);
  assert.equal((await outcome).status, 'completed');
  await app.service.close();
});

test('nothing expires before its deadline', async () => {
  const { app, request, deadline, setClock } = await setUp();
  setClock(deadline - 1);
  await app.service.expire(await readRow(app, request));
  // A list extrapolates the last reading for a second.
  setClock(deadline - 2_000);
  await app.service.clock.readNow();
  assert.equal(await app.service.sweep(), 0);
  assert.equal((await readRow(app, request)).record.status, 'waiting');
  assert.equal((await listApprovals(app.service)).records.length, 1);
  await app.service.close();
});

test('a list, a read and a sweep expire an overdue request', async () => {
  const accesses: readonly ((app: ApprovalProcess, request: ApprovalRequest) => Promise<unknown>)[] = [
    async ({ service }) => assert.deepEqual((await listApprovals(service)).records, []),
    async ({ service }, { executionId }) =>
      assert.equal((await listApprovals(service, { executionId })).records[0]?.status, 'rejected'),
    async ({ service }, { requestId }) =>
      assert.equal((await service.getExpiringIfDue(requestId))?.record.status, 'rejected'),
    async ({ service }) => assert.equal(await service.sweep(), 1),
  ];
  for (const access of accesses) {
    const { app, request, deadline, setClock } = await setUp({ isDead: true });
    setClock(deadline);
    await app.service.clock.readNow();
    await access(app, request);
    const { status, body } = (await readRow(app, request)).record;
    assert.deepEqual([status, body.decision?.cause], ['rejected', 'timeout']);
    await app.service.close();
  }
});

test('a read-only store does not list an overdue request', async () => {
  const { app, request, deadline, setClock } = await setUp({ isDead: true });
  setClock(deadline);
  app.service.rows.replace = () => Promise.reject(new Error('read-only'));
  assert.deepEqual((await listApprovals(app.service)).records, []);
  assert.equal((await app.service.getExpiringIfDue(request.requestId))?.record.status, 'waiting');
  assert.match(app.warnings.join(), /could not be expired/);
  await app.service.close();
});

test('an expiry is listed with its cause', async () => {
  const { app, deadline, setClock } = await setUp();
  setClock(deadline);
  await app.service.sweep();
  assert.equal((await listApprovals(app.service, { status: 'rejected' })).records[0]?.cause, 'timeout');
  await app.service.close();
});

test('a stored call that was changed together with its digest does not run', async () => {
  const { app, bank, gate, request, outcome } = await setUp();
  const other = await startCall(gate, refund({ order: '1234', amount: 9999 }, { executionId: request.executionId }));
  const forged = (await readRow(app, other.request)).record.body;
  const row = await readRow(app, request);
  const body = { ...row.record.body, parameters: forged.parameters, digest: forged.digest };
  await app.service.rows.replace(request.requestId, row.version, { ...row.record, body });
  await approve(app, request);
  assert.equal((await outcome).status, 'stale');
  assert.equal(bank.paid.length, 0);
  await app.service.close();
});

test('a timeout of a year does not overflow a timer', async () => {
  const warned: string[] = [];
  const onWarning = ({ name }: Error) => warned.push(name);
  process.on('warning', onWarning);
  const app = await openApprovalProcess(new MemoryStore());
  const gate = createGate(app, compileTestTools(new Bank().tool()), {
    humanInLoop: { approvalTimeout: 31_536_000_000 },
  });
  const { request, outcome } = await startCall(gate, refund());
  for (let turn = 0; turn < 100; turn++) await tick();
  process.off('warning', onWarning);
  // Node warns about a timer that is too long, and then fires it immediately.
  assert.ok(!warned.includes('TimeoutOverflowWarning'));
  assert.equal((await readRow(app, request)).record.status, 'waiting');
  await app.service.close();
  await expectError(outcome, 'interrupted');
});

test('many deadlines: each request expires after its own deadline', async () => {
  const app = await openApprovalProcess(new MemoryStore());
  const tools = compileTestTools(new Bank().tool());
  const outcomes = await Promise.all(
    Array.from({ length: 500 }, async (_, at) => {
      const gate = createGate(app, tools, { humanInLoop: { approvalTimeout: 20 + (at % 50) * 10 } });
      return gate.call(refund());
    }),
  );
  assert.ok(outcomes.every(({ status }) => status === 'rejected'));
  const { records } = await listApprovals(app.service, { status: 'rejected', limit: 1000 });
  assert.match(
    (await expectError(listApprovals(app.service, { limit: 1001 }), 'value_invalid')).why ?? '',
    /limit is not 1 to 1,000/,
  );
  assert.equal(records.length, 500);
  assert.ok(records.every(({ decidedAt, timeout, cause }) => decidedAt! >= timeout && cause === 'timeout'));
  await app.service.close();
});

test('a timer queue fires once for each item, in order, and not for removed ones', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ item: fc.nat(9), in: fc.nat(15), isRemoval: fc.boolean() }), { maxLength: 40 }),
      async (steps) => {
        const fired: number[] = [];
        const due = new Map<number, number>();
        const queue = new TimerQueue<number>((item) => {
          assert.ok(performance.now() >= (due.get(item) ?? Number.POSITIVE_INFINITY), 'it fired early');
          fired.push(item);
          due.delete(item);
        });
        for (const step of steps) {
          const at = performance.now() + step.in;
          if (step.isRemoval) {
            queue.delete(step.item);
            due.delete(step.item);
          } else {
            queue.set(step.item, at);
            due.set(step.item, at);
          }
        }
        const order = [...due].sort(([, a], [, b]) => a - b).map(([item]) => item);
        await waitUntil(() => due.size === 0, 'It did not fire.');
        assert.deepEqual(fired, order);
      },
    ),
    { numRuns: 60 },
  );
});

test('concurrent readers of the store clock share one query, and an old reading is refreshed', async () => {
  let reads = 0;
  const clock = new StoreClock(async () => {
    reads += 1;
    await tick();
    return new Date(START + reads * 10_000);
  });
  const first = await Promise.all([clock.now(), clock.readNow(), clock.now()]);
  assert.deepEqual([reads, new Set(first).size], [1, 1]);
  const extrapolated = await clock.now();
  assert.equal(reads, 1);
  assert.ok(extrapolated >= START + 10_000 && extrapolated < START + 12_000);
  await waitUntil(async () => {
    await clock.now();
    return reads === 2;
  }, 'It was never read again.');
  assert.ok(clock.msUntil(START + 30_000) <= 10_000);
});

test('the clock of a slow store is not read more often', async () => {
  let reads = 0;
  const clock = new StoreClock(async () => {
    reads += 1;
    const began = performance.now();
    while (performance.now() - began < 30);
    return new Date(START);
  });
  const times = 8;
  for (let at = 0; at < times; at++) await clock.readNow();
  assert.ok(reads < 2 * times, `It was read ${reads} times for ${times} readings.`);
});

test('a clock reading that arrives late in a busy process is not used for deadlines', async () => {
  const began = performance.now();
  let reads = 0;
  const clock = new StoreClock(async () => {
    reads += 1;
    const now = new Date(START + performance.now() - began);
    await tick();
    if (reads === 1) while (performance.now() - began < 400);
    return now;
  });
  await clock.now();
  const off = (await clock.now()) - (START + performance.now() - began);
  assert.ok(Math.abs(off) < 100, `It is ${off} ms off.`);
});

test('the clock is read together with the request, by the process that decides and by the one that is notified', async () => {
  const store = new MemoryStore();
  const open = async () => {
    const calls: string[] = [];
    const noted = <F extends (...values: never[]) => Promise<unknown>>(name: string, work: F) =>
      (async (...values: never[]) => {
        calls.push(`${name} begins`);
        await tick();
        const result = await work(...values);
        calls.push(`${name} ends`);
        return result;
      }) as F;
    const backend: StorageBackend = {
      records<R extends object>(definition: RecordDefinition<R>): RecordStore<R> {
        const rows = store.records(definition);
        return {
          insert: (record) => rows.insert(record),
          get: noted(`read ${definition.collection}`, (key: string) => rows.get(key)),
          replace: (key, version, record, guard) => rows.replace(key, version, record, guard),
          page: (index, query) => rows.page(index, query),
          remove: (key, version) => rows.remove(key, version),
        };
      },
      ensureTables: () => store.ensureTables(),
      withLock: (work) => store.withLock(work),
      now: noted('clock', () => store.now()),
      watch: (topic, listener) => store.watch(topic, listener),
      close: () => store.close(),
    };
    return { app: await openApprovalProcess(backend), calls };
  };
  const [waiting, deciding] = [await open(), await open()];
  const { request, outcome } = await startCall(createGate(waiting.app, compileTestTools(new Bank().tool())), refund());
  const startedAt = performance.now();
  await waitUntil(() => performance.now() - startedAt > 1_100, 'The last reading of the clock is still used.');
  for (const { calls } of [waiting, deciding]) calls.length = 0;
  await approve(deciding.app, request);
  await outcome;
  for (const { app, calls } of [waiting, deciding]) {
    const [clock, read] = ['clock begins', 'read _svc_approvals ends'].map((name) => calls.indexOf(name));
    assert.ok(clock! >= 0 && clock! < read!, calls.join(', '));
    await app.service.close();
  }
});
