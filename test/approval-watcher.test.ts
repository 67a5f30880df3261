import * as assert from 'node:assert/strict';
import type { NumberedChange } from '../config/sdk/approval-changes.ts';
import { ApprovalWatcher, type ChangeSubscription } from '../config/sdk/approval-watcher.ts';
import type { StorageBackend } from '../core/approval/backend.ts';
import type { ApprovalGate } from '../core/approval/gate.ts';
import { SvcError } from '../core/errors.ts';
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
  refund,
  reject,
  startCall,
} from './suites/approval-setup.ts';
import { expectError } from './suites/expect-error.ts';
import { waitUntil } from './suites/wait-until.ts';

// One process has an agent and decides; another one watches, in the same store.

interface Watched {
  readonly agent: ApprovalProcess;
  readonly gate: ApprovalGate;
  readonly watcher: ApprovalWatcher;
  readonly reads: Reads;
  readonly clock: { ahead: number };
  subscribe(lastId?: string): Promise<Received>;
}

interface Received extends ChangeSubscription {
  readonly changes: NumberedChange[];
  until(count: number): Promise<string[]>;
}

/** What the process that watches reads. */
class Reads {
  searches = 0;
  pages = 0;
  rows = 0;
  isDown = false;
}

/** The store as the process that watches has it: without notifications unless `notifies`. */
function counted(store: MemoryStore, reads: Reads, notifies: boolean): StorageBackend {
  return {
    records<R extends object>(definition: RecordDefinition<R>): RecordStore<R> {
      const rows = store.records(definition);
      if (definition.collection !== '_svc_approvals') return rows;
      const up = () => {
        if (reads.isDown) throw new SvcError('connection_lost', 'The store is down.');
      };
      return {
        insert: (record) => rows.insert(record),
        replace: (key, version, record, guard) => rows.replace(key, version, record, guard),
        remove: (key, version) => rows.remove(key, version),
        async get(key) {
          up();
          reads.rows += 1;
          return rows.get(key);
        },
        async page(index, query) {
          up();
          // Not the search for overdue requests.
          if (index === 'byStatus') reads.pages += 1;
          if ((query.equals as { status?: string }).status === 'waiting' && index === 'byStatus') reads.searches += 1;
          return rows.page(index, query);
        },
      };
    },
    ensureTables: () => store.ensureTables(),
    withLock: (work) => store.withLock(work),
    now: () => store.now(),
    close: () => store.close(),
    ...(notifies && { watch: (topic, notify) => store.watch(topic, notify) }),
  };
}

async function watched(
  body: (watched: Watched) => Promise<void>,
  { notifies = false, timeoutMs = 60_000 }: { readonly notifies?: boolean; readonly timeoutMs?: number } = {},
): Promise<void> {
  const clock = { ahead: 0 };
  const store = new MemoryStore(() => Date.now() + clock.ahead);
  const reads = new Reads();
  const agent = await openApprovalProcess(store);
  const server = await openApprovalProcess(counted(store, reads, notifies));
  const watcher = new ApprovalWatcher(server.service);
  const gate = createGate(agent, compileTestTools(new Bank().tool()), { humanInLoop: { approvalTimeout: timeoutMs } });
  try {
    await body({
      agent,
      gate,
      watcher,
      reads,
      clock,
      async subscribe(lastId) {
        const changes: NumberedChange[] = [];
        const subscription = await watcher.subscribe((numbered) => changes.push(numbered), lastId);
        return {
          ...subscription,
          changes,
          async until(count) {
            await waitUntil(() => changes.length >= count, `${count} changes did not arrive: ${named(changes)}`);
            return named(changes);
          },
        };
      },
    });
  } finally {
    watcher.close();
    await server.service.close();
    await agent.service.close();
  }
}

const named = (changes: readonly NumberedChange[] = []): string[] =>
  changes.map(({ change }) => `${change.type} ${change.status}`);

for (const notifies of [false, true]) {
  test(`${notifies ? 'with' : 'without'} notifications: what another process creates, decides and cancels is found`, () =>
    watched(
      async ({ agent, gate, subscribe }) => {
        const early = await startCall(gate, refund());
        const events = await subscribe();
        assert.equal(events.missed, undefined);
        const late = await startCall(gate, refund());
        assert.deepEqual(await events.until(1), ['created waiting']);
        assert.equal(events.changes[0]?.change.requestId, late.request.requestId);
        await approve(agent, early.request);
        await reject(agent, late.request);
        const after = await events.until(3);
        assert.deepEqual(after.slice(1).sort(), ['decided approved', 'decided rejected']);
        const cancelled = await startCall(gate, refund());
        await events.until(4);
        await agent.service.cancelAll(cancelled.request.executionId, 'over', 'the test');
        assert.deepEqual((await events.until(5)).at(-1), 'decided cancelled');
        // Created and decided before a search finds it.
        const quick = await startCall(gate, refund());
        await approve(agent, quick.request);
        await quick.outcome;
        assert.deepEqual((await events.until(7)).slice(5), ['created waiting', 'decided approved']);
        assert.deepEqual(new Set(events.changes.map(({ id }) => id)).size, 7);
        // Each once: what ran in the meantime is no change.
        const last = await startCall(gate, refund());
        await events.until(8);
        assert.equal(events.changes.at(-1)?.change.requestId, last.request.requestId);
      },
      { notifies },
    ));
}

test('what a policy denies is decided and never waited; what nobody decides expires', () =>
  watched(async ({ agent, gate, subscribe, clock }) => {
    agent.kernel.hooks.beforeToolCall.tap('test', (review) => {
      if ((review.call.parameters as { amount: number }).amount > 100) review.deny('too much');
    });
    const events = await subscribe();
    assert.equal((await gate.call(refund({ order: '1', amount: 200 }))).status, 'denied');
    await events.until(1);
    const { type, cause, decidedBy } = events.changes[0]?.change ?? {};
    assert.deepEqual([type, cause, decidedBy], ['decided', 'policy', 'policy']);
    const dead = await startCall(gate, refund(), { signal: AbortSignal.timeout(600_000) });
    await events.until(2);
    clock.ahead += 61_000;
    assert.deepEqual((await events.until(3)).slice(1), ['created waiting', 'expired rejected']);
    assert.equal((await dead.outcome).status, 'rejected');
  }));

test('200 listeners read the store as one does; without one, nobody reads it', () =>
  watched(async ({ agent, gate, watcher, reads, subscribe }) => {
    const { pages } = reads;
    const all = await Promise.all(Array.from({ length: 200 }, () => subscribe()));
    assert.equal(reads.searches, 1);
    const { request } = await startCall(gate, refund());
    const began = performance.now();
    for (const one of all) assert.deepEqual(await one.until(1), ['created waiting']);
    await approve(agent, request);
    for (const one of all) assert.deepEqual(await one.until(2), ['created waiting', 'decided approved']);
    assert.ok(reads.searches <= 3 + (performance.now() - began) / 750, `${reads.searches}`);
    assert.equal(reads.pages - pages, 4 * reads.searches);
    // The request as it was created and as it was decided.
    assert.equal(reads.rows, 2);
    for (const one of all.slice(1)) one.unsubscribe();
    all[5]?.unsubscribe();
    assert.equal(watcher.isRunning, true);
    all[0]?.unsubscribe();
    assert.equal(watcher.isRunning, false);
    const before = { ...reads };
    const unseen = await startCall(gate, refund());
    await reject(agent, unseen.request);
    assert.deepEqual({ ...reads }, before);
  }));

test('who was away reads what was missed, also if nobody listened; any other id begins again', () =>
  watched(async ({ agent, gate, subscribe }) => {
    const first = await subscribe();
    const { request } = await startCall(gate, refund());
    await first.until(1);
    first.unsubscribe();
    await approve(agent, request);
    const other = await startCall(gate, refund());
    const back = await subscribe(first.changes[0]?.id);
    assert.deepEqual(named(back.missed).sort(), ['created waiting', 'decided approved']);
    const all = await subscribe(first.lastId);
    assert.deepEqual(named(all.missed).length, 3);
    assert.deepEqual((await subscribe(back.lastId)).missed, []);
    assert.equal(all.lastId, back.lastId);
    const [origin = '', count = ''] = back.lastId.split('.');
    for (const id of [
      '',
      'garbage',
      `${origin}.`,
      `${origin}.${Number(count) + 1}`,
      `${origin}.-1`,
      `${origin}.1e1`,
      `${'0'.repeat(16)}.1`,
      `${origin}.${'9'.repeat(400)}`,
    ]) {
      assert.equal((await subscribe(id)).missed, undefined, id);
    }
    await reject(agent, other.request);
    await back.until(1);
  }));

test('after ten minutes without a listener, ids of before are not known any more', () =>
  watched(
    async ({ gate, subscribe, clock }) => {
      const first = await subscribe();
      await startCall(gate, refund());
      await first.until(1);
      first.unsubscribe();
      clock.ahead += 601_000;
      const back = await subscribe(first.changes[0]?.id);
      assert.equal(back.missed, undefined);
      assert.deepEqual(back.changes, []);
    },
    { timeoutMs: 3_600_000 },
  ));

test('a store that is down for a while hides no change; at the beginning it is an error', () =>
  watched(async ({ agent, gate, watcher, reads, subscribe }) => {
    reads.isDown = true;
    await expectError(subscribe(), 'connection_lost');
    assert.equal(watcher.isRunning, false);
    reads.isDown = false;
    const events = await subscribe();
    reads.isDown = true;
    const { request } = await startCall(gate, refund());
    await approve(agent, request);
    const { request: waits } = await startCall(gate, refund());
    reads.isDown = false;
    assert.deepEqual((await events.until(3)).sort(), ['created waiting', 'created waiting', 'decided approved']);
    await reject(agent, waits);
    assert.equal((await events.until(4)).at(-1), 'decided rejected');
  }));

test('a listener that leaves while the first search runs, or twice, ends nothing of others', () =>
  watched(async ({ watcher, gate, subscribe }) => {
    const [one, two] = await Promise.all([subscribe(), subscribe()]);
    one.unsubscribe();
    one.unsubscribe();
    assert.equal(watcher.isRunning, true);
    await startCall(gate, refund());
    assert.deepEqual(await two.until(1), ['created waiting']);
    assert.deepEqual(one.changes, []);
    two.unsubscribe();
    const three = await subscribe(two.lastId);
    assert.deepEqual(named(three.missed), ['created waiting']);
    await startCall(gate, refund());
    assert.deepEqual(await three.until(1), ['created waiting']);
  }));
