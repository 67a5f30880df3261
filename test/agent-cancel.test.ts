import * as assert from 'node:assert/strict';
import { type ExecutionRow, executionRecords, isRunningIn } from '../core/agent/execution-record.ts';
import { readExecution } from '../core/agent/read-executions.ts';
import type { Run, RunOutcome } from '../core/agent/run.ts';
import { pruneApprovals } from '../core/approval/audit.ts';
import type { StorageBackend } from '../core/approval/backend.ts';
import { listApprovals } from '../core/approval/list-approvals.ts';
import { applyPlugin, definePlugin } from '../core/plugin.ts';
import { CLOCK, type RecordDefinition, type RecordStore } from '../core/records.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { AgentHost, agentDefinition } from './kit/agent-host.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

// Cancels a run at every point, from its own process or from another one.

/** Short compared to the approval time-out, which ends a run that does not notice its cancellation. */
const SOON_MS = 30_000;

const options = { humanInLoop: { enabled: true } };
const call = (tool: string) => ({ tool });
const refund = (handler: () => unknown) => ({ tag: 'refund', requiresConfirmation: true, handler });

interface Fixture {
  readonly backend: MemoryStore;
  /** Runs the execution. */
  readonly host: AgentHost;
  /** Another process, which defines no agent. */
  readonly otherHost: AgentHost;
  /** Stores a cancellation request, as a process that dies directly afterwards. */
  ask(run: Run): Promise<void>;
  row(run: Run): Promise<ExecutionRow | undefined>;
}

/** Runs `body` with two hosts. `before` is called before each write of an execution of `host`. */
async function withHosts(
  body: (fixture: Fixture) => Promise<void>,
  before: (row: ExecutionRow) => unknown = () => undefined,
): Promise<void> {
  const backend = new MemoryStore();
  const observed: StorageBackend = {
    records<R extends object>(definition: RecordDefinition<R>): RecordStore<R> {
      const store = backend.records(definition);
      return {
        insert: (record) => store.insert(record),
        get: (key) => store.get(key),
        async replace(key, version, record, guard) {
          if (definition.collection === executionRecords.collection) await before(record as unknown as ExecutionRow);
          return store.replace(key, version, record, guard);
        },
        page: (index, query) => store.page(index, query),
        remove: (key, version) => store.remove(key, version),
      };
    },
    ensureTables: () => backend.ensureTables(),
    withLock: (work) => backend.withLock(work),
    now: () => backend.now(),
    watch: (topic, listener) => backend.watch(topic, listener),
    close: () => backend.close(),
  };
  const host = await AgentHost.open(observed);
  const otherHost = await AgentHost.open(backend);
  const rows = backend.records(executionRecords);
  try {
    await body({
      backend,
      host,
      otherHost,
      async ask({ executionId }) {
        const { record, version } = (await rows.get(executionId))!;
        const state = { ...record.state, cancel: 'enough' };
        assert.equal(await rows.replace(executionId, version, { ...record, state, updatedAt: CLOCK }), 'replaced');
      },
      row: async ({ executionId }) => (await rows.get(executionId))?.record,
    });
  } finally {
    await host.close();
    await otherHost.close();
  }
}

/** Waits for the end of a run, and asserts that its outcome equals the stored one. */
async function endOf(run: Run, otherHost: AgentHost): Promise<RunOutcome> {
  let outcome: RunOutcome | undefined;
  run.result.then(
    (known) => {
      outcome = known;
    },
    () => undefined,
  );
  await waitUntil(() => outcome !== undefined, 'the run never ended', SOON_MS);
  const { steps, text, status, reason } = (await readExecution(otherHost.executions, run.executionId))!;
  assert.deepEqual({ steps, text, status, reason }, JSON.parse(JSON.stringify({ ...withoutIds(outcome!) })));
  return outcome!;
}

/** Cancels a run from another process. A rejection is ignored if the test has already failed. */
function cancelled({ executions }: AgentHost, executionId: string, reason: string): Promise<RunOutcome> {
  const cancelling = executions.cancel(executionId, reason);
  cancelling.catch(() => undefined);
  return cancelling;
}

const withoutIds = ({ steps, text, status, reason }: RunOutcome) => ({ steps, text, status, reason });
const statuses = ({ steps }: RunOutcome) =>
  steps.map(({ calls }) => calls.map(({ tool, status }) => `${tool} ${status}`));

/** A promise and the function that resolves it. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

test('from another process, just before a call creates its request: that request is cancelled', () =>
  withHosts(async ({ host, otherHost, row }) => {
    const tap = gate();
    const slow = definePlugin({
      name: 'slow',
      apply: ({ hooks }) => hooks.beforeToolCall.tapPromise('slow', () => tap.opened),
    });
    applyPlugin(host.kernel, slow, 'test');
    const ran: string[] = [];
    const turns = [{ calls: [call('refund')] }, { text: 'Never.' }];
    const run = host.run(host.define(agentDefinition(turns, { tools: [refund(() => ran.push('paid'))], ...options })));
    await waitUntil(async () => (await row(run))?.state.steps.length === 1, 'the turn was never stored');
    const cancelling = cancelled(otherHost, run.executionId, 'enough');
    await waitUntil(async () => (await row(run))?.state.cancel === 'enough', 'the cancellation was never requested');
    assert.deepEqual((await listApprovals(otherHost.service, { executionId: run.executionId })).records, []);
    tap.open();
    const outcome = await endOf(run, otherHost);
    assert.deepEqual([outcome.status, outcome.reason, ran], ['cancelled', 'enough', []]);
    assert.deepEqual(withoutIds(await cancelling), JSON.parse(JSON.stringify(withoutIds(outcome))));
    const [request] = (await listApprovals(otherHost.service, { executionId: run.executionId })).records;
    assert.deepEqual([request?.status, request?.run], ['cancelled', 'none']);
  }));

test('requested by a process that then died: a call approved after that does not run', () =>
  withHosts(async ({ host, otherHost, ask }) => {
    const ran: string[] = [];
    const turns = [{ calls: [call('refund'), call('refund')] }, { text: 'Never.' }];
    const run = host.run(host.define(agentDefinition(turns, { tools: [refund(() => ran.push('paid'))], ...options })));
    const [first] = await host.untilWaiting(2);
    await ask(run);
    await otherHost.decide(first!);
    const outcome = await endOf(run, otherHost);
    assert.deepEqual([outcome.status, outcome.reason, ran], ['cancelled', 'enough', []]);
    assert.deepEqual(statuses(outcome), [['refund cancelled', 'refund cancelled']]);
    const { records } = await listApprovals(otherHost.service, { executionId: run.executionId });
    assert.deepEqual(
      records.map(({ status, run: ranAs, outcome }) => [status, ranAs, outcome?.status]),
      [
        ['approved', 'none', 'cancelled'],
        ['cancelled', 'none', undefined],
      ],
    );
  }));

test('from another process, while an approved call runs: it completes, and the outcome contains it', () =>
  withHosts(async ({ host, otherHost, row }) => {
    const paying = gate();
    let began = false;
    const pay = refund(async () => {
      began = true;
      await paying.opened;
      return 'paid';
    });
    const turns = [{ calls: [call('refund')] }, { calls: [call('refund')] }, { text: 'Never.' }];
    const run = host.run(host.define(agentDefinition(turns, { tools: [pay], ...options })));
    for (const request of await host.untilWaiting(1)) await host.decide(request);
    await waitUntil(() => began, 'it never ran');
    const cancelling = cancelled(otherHost, run.executionId, 'enough');
    await waitUntil(async () => (await row(run))?.state.cancel === 'enough', 'the cancellation was never requested');
    paying.open();
    const outcome = await endOf(run, otherHost);
    assert.deepEqual([outcome.status, outcome.reason], ['cancelled', 'enough']);
    assert.deepEqual(statuses(outcome)[0], ['refund completed']);
    assert.equal((await cancelling).steps[0]?.calls[0]?.result, 'paid');
    assert.deepEqual((await listApprovals(otherHost.service, {})).records, []);
  }));

test('taken over after a request to cancel: the outcome has the results of its calls, and nothing starts', () =>
  withHosts(async ({ host, otherHost, ask, backend }) => {
    const ran: string[] = [];
    const turns = [{ calls: [call('refund'), call('refund'), call('look')] }, { text: 'Never.' }];
    const look = gate();
    const tools = [refund(() => ran.push('paid')), { tag: 'look', handler: () => ran.push('look') }];
    const definition = agentDefinition(turns, { tools, ...options });
    const hold = definePlugin({
      name: 'hold',
      apply: ({ hooks }) =>
        hooks.beforeToolCall.tapPromise('hold', async ({ call: { tool } }) => {
          if (tool === 'look') await look.opened;
        }),
    });
    applyPlugin(host.kernel, hold, 'test');
    const run = host.run(host.define(definition));
    const [first] = await host.untilWaiting(2);
    await host.decide(first!);
    await waitUntil(
      async () => (await host.service.read(first!.requestId))?.record.body.run === 'done',
      'its run was never stored',
    );
    await ask(run);
    const closing = host.executions.close();
    look.open();
    await closing;
    const next = await AgentHost.open(backend);
    next.define(definition);
    const outcome = await endOf(await next.executions.resume(run.executionId), otherHost);
    assert.deepEqual([outcome.status, outcome.reason], ['cancelled', 'enough']);
    assert.deepEqual(statuses(outcome), [['refund completed', 'refund cancelled']]);
    assert.deepEqual(ran, ['paid']);
    await next.close();
  }));

test('requested before its owner died, with an agent that no process defines: the next to cancel ends it', () =>
  withHosts(async ({ host, otherHost, ask, backend }) => {
    const turns = [{ calls: [call('refund'), call('refund')] }];
    const run = host.run(host.define(agentDefinition(turns, { tools: [refund(() => 1)], ...options })));
    const [first] = await host.untilWaiting(2);
    await ask(run);
    await host.executions.close();
    await otherHost.decide(first!);
    const cancelling = cancelled(otherHost, run.executionId, 'again');
    await waitUntil(
      async () => (await readExecution(otherHost.executions, run.executionId))?.status === 'cancelled',
      'it never ended',
      SOON_MS,
    );
    assert.equal((await cancelling).reason, 'enough');
    assert.deepEqual((await listApprovals(otherHost.service, {})).records, []);
    const { records } = await listApprovals(otherHost.service, { status: 'approved' });
    assert.deepEqual(
      records.map(({ run: ranAs, outcome }) => [ranAs, outcome?.status]),
      [['none', 'cancelled']],
    );
    // It has no open requests, so it can be removed.
    await waitUntil(async () => Date.now() > Date.parse(first!.timestamp) + 2, 'the clock did not advance');
    assert.equal(await pruneApprovals(otherHost.service, { olderThanMs: 0 }, isRunningIn(backend)), 2);
  }));

test('during the last model turn: cancelled, with the text of that turn', async () => {
  let end: (() => Promise<void>) | undefined;
  const asking = async ({ status }: ExecutionRow): Promise<void> => {
    if (status !== 'completed') return;
    const ask = end;
    end = undefined;
    await ask?.();
  };
  await withHosts(async ({ host, otherHost, ask }) => {
    const again = { tag: 'look', idempotent: true, handler: () => 'seen' };
    const run = host.run(
      host.define(agentDefinition([{ calls: [call('look')] }, { text: 'Done.' }], { tools: [again] })),
    );
    end = () => ask(run);
    const outcome = await endOf(run, otherHost);
    assert.deepEqual([outcome.status, outcome.reason, outcome.text], ['cancelled', 'enough', 'Done.']);
    assert.deepEqual(statuses(outcome), [['look completed'], []]);
  }, asking);
});

test('while a model turn is being stored: none of its calls starts', async () => {
  let cancel = () => {};
  const cancelling = ({ state }: ExecutionRow): void => {
    if (state.steps.length === 1) cancel();
  };
  await withHosts(async ({ host, otherHost }) => {
    const ran: string[] = [];
    const tools = [
      { tag: 'look', handler: () => ran.push('look') },
      { tag: 'again', idempotent: true, handler: () => ran.push('again') },
      refund(() => ran.push('paid')),
    ];
    const calls = [call('look'), call('again'), call('refund')];
    const run = host.run(host.define(agentDefinition([{ calls }, { text: 'Never.' }], { tools, ...options })));
    cancel = () => void run.cancel('enough');
    const outcome = await endOf(run, otherHost);
    assert.deepEqual([outcome.status, outcome.reason, ran], ['cancelled', 'enough', []]);
    assert.deepEqual((await listApprovals(otherHost.service, { executionId: run.executionId })).records, []);
  }, cancelling);
});

test('while the start of a call is being stored: the call does not start', async () => {
  let cancel = () => {};
  const cancelling = ({ state }: ExecutionRow): void => {
    if (state.steps[0]?.calls[0]?.started) cancel();
  };
  await withHosts(async ({ host, otherHost }) => {
    const ran: string[] = [];
    const tools = [{ tag: 'look', handler: () => ran.push('look') }];
    const run = host.run(host.define(agentDefinition([{ calls: [call('look')] }, { text: 'Never.' }], { tools })));
    cancel = () => void run.cancel('enough');
    const outcome = await endOf(run, otherHost);
    assert.deepEqual([outcome.status, outcome.reason, ran], ['cancelled', 'enough', []]);
  }, cancelling);
});
