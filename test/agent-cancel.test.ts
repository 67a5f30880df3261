import * as assert from 'node:assert/strict';
import { type ExecutionRow, executionRecords } from '../core/agent/execution-record.ts';
import { isRunningIn, readExecution } from '../core/agent/list.ts';
import type { Run, RunOutcome } from '../core/agent/run.ts';
import { pruneApprovals } from '../core/approval/audit.ts';
import type { StorageBackend } from '../core/approval/backend.ts';
import { listApprovals } from '../core/approval/list.ts';
import { applyPlugin, definePlugin } from '../core/plugin.ts';
import { CLOCK, type RecordDefinition, type RecordStore } from '../core/records.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { AgentHost, agentOf } from './kit/agent-host.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

// Cancels a run at every point, from its own process or from another one.

/** Short compared to the approval time-out, which ends a run that does not notice its cancellation. */
const SOON_MS = 30_000;

const gated = { humanInLoop: { enabled: true } };
const call = (tool: string) => ({ tool });
const refund = (handler: () => unknown) => ({ tag: 'refund', requiresConfirmation: true, handler });

interface Place {
  readonly home: MemoryStore;
  /** Runs the execution. */
  readonly host: AgentHost;
  /** Another process, which defines no agent. */
  readonly far: AgentHost;
  /** What a process leaves that dies as soon as it has asked for the cancellation. */
  ask(run: Run): Promise<void>;
  row(run: Run): Promise<ExecutionRow | undefined>;
}

/** `before` sees each write of an execution of `host` before it is made. */
async function placed(
  body: (place: Place) => Promise<void>,
  before: (row: ExecutionRow) => unknown = () => undefined,
): Promise<void> {
  const home = new MemoryStore();
  const seen: StorageBackend = {
    records<R extends object>(definition: RecordDefinition<R>): RecordStore<R> {
      const store = home.records(definition);
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
    ensureTables: () => home.ensureTables(),
    withLock: (work) => home.withLock(work),
    now: () => home.now(),
    watch: (topic, hint) => home.watch(topic, hint),
    close: () => home.close(),
  };
  const host = await AgentHost.open(seen);
  const far = await AgentHost.open(home);
  const rows = home.records(executionRecords);
  try {
    await body({
      home,
      host,
      far,
      async ask({ executionId }) {
        const { record, version } = (await rows.get(executionId))!;
        const state = { ...record.state, cancel: 'enough' };
        assert.equal(await rows.replace(executionId, version, { ...record, state, updatedAt: CLOCK }), 'replaced');
      },
      row: async ({ executionId }) => (await rows.get(executionId))?.record,
    });
  } finally {
    await host.close();
    await far.close();
  }
}

/** The run ends soon, and as it is stored. */
async function ended(run: Run, far: AgentHost): Promise<RunOutcome> {
  let outcome: RunOutcome | undefined;
  run.result.then(
    (known) => {
      outcome = known;
    },
    () => undefined,
  );
  await waitUntil(() => outcome !== undefined, 'the run never ended', SOON_MS);
  const { steps, text, status, reason } = (await readExecution(far.executions, run.executionId))!;
  assert.deepEqual({ steps, text, status, reason }, JSON.parse(JSON.stringify({ ...shown(outcome!) })));
  return outcome!;
}

/** The outcome that the other process gets. If nobody waits for it any more, the test has already failed. */
function cancelled({ executions: there }: AgentHost, executionId: string, reason: string): Promise<RunOutcome> {
  const cancelling = there.cancel(executionId, reason);
  cancelling.catch(() => undefined);
  return cancelling;
}

const shown = ({ steps, text, status, reason }: RunOutcome) => ({ steps, text, status, reason });
const statuses = ({ steps }: RunOutcome) =>
  steps.map(({ calls }) => calls.map(({ tool, status }) => `${tool} ${status}`));

/** A promise and what settles it. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

test('from another process, just before a call creates its request: that request is cancelled', () =>
  placed(async ({ host, far, row }) => {
    const tap = gate();
    const slow = definePlugin({
      name: 'slow',
      apply: ({ hooks }) => hooks.beforeToolCall.tapPromise('slow', () => tap.opened),
    });
    applyPlugin(host.kernel, slow, 'test');
    const ran: string[] = [];
    const turns = [{ calls: [call('refund')] }, { text: 'Never.' }];
    const run = host.run(host.define(agentOf(turns, { tools: [refund(() => ran.push('paid'))], ...gated })));
    await waitUntil(async () => (await row(run))?.state.steps.length === 1, 'the turn was never stored');
    const cancelling = cancelled(far, run.executionId, 'enough');
    await waitUntil(async () => (await row(run))?.state.cancel === 'enough', 'it was never asked for');
    assert.deepEqual((await listApprovals(far.service, { executionId: run.executionId })).records, []);
    tap.open();
    const outcome = await ended(run, far);
    assert.deepEqual([outcome.status, outcome.reason, ran], ['cancelled', 'enough', []]);
    assert.deepEqual(shown(await cancelling), JSON.parse(JSON.stringify(shown(outcome))));
    const [request] = (await listApprovals(far.service, { executionId: run.executionId })).records;
    assert.deepEqual([request?.status, request?.run], ['cancelled', 'none']);
  }));

test('requested by a process that then died: a call approved after that does not run', () =>
  placed(async ({ host, far, ask }) => {
    const ran: string[] = [];
    const turns = [{ calls: [call('refund'), call('refund')] }, { text: 'Never.' }];
    const run = host.run(host.define(agentOf(turns, { tools: [refund(() => ran.push('paid'))], ...gated })));
    const [first] = await host.waiting(2);
    await ask(run);
    await far.decide(first!);
    const outcome = await ended(run, far);
    assert.deepEqual([outcome.status, outcome.reason, ran], ['cancelled', 'enough', []]);
    assert.deepEqual(statuses(outcome), [['refund cancelled', 'refund cancelled']]);
    const { records } = await listApprovals(far.service, { executionId: run.executionId });
    assert.deepEqual(
      records.map(({ status, run: ranAs, outcome }) => [status, ranAs, outcome?.status]),
      [
        ['approved', 'none', 'cancelled'],
        ['cancelled', 'none', undefined],
      ],
    );
  }));

test('from another process, while an approved call runs: it completes, and the outcome contains it', () =>
  placed(async ({ host, far, row }) => {
    const paying = gate();
    let began = false;
    const pay = refund(async () => {
      began = true;
      await paying.opened;
      return 'paid';
    });
    const turns = [{ calls: [call('refund')] }, { calls: [call('refund')] }, { text: 'Never.' }];
    const run = host.run(host.define(agentOf(turns, { tools: [pay], ...gated })));
    for (const request of await host.waiting(1)) await host.decide(request);
    await waitUntil(() => began, 'it never ran');
    const cancelling = cancelled(far, run.executionId, 'enough');
    await waitUntil(async () => (await row(run))?.state.cancel === 'enough', 'it was never asked for');
    paying.open();
    const outcome = await ended(run, far);
    assert.deepEqual([outcome.status, outcome.reason], ['cancelled', 'enough']);
    assert.deepEqual(statuses(outcome)[0], ['refund completed']);
    assert.equal((await cancelling).steps[0]?.calls[0]?.result, 'paid');
    assert.deepEqual((await listApprovals(far.service, {})).records, []);
  }));

test('taken over after a request to cancel: the outcome has the results of its calls, and nothing starts', () =>
  placed(async ({ host, far, ask, home }) => {
    const ran: string[] = [];
    const turns = [{ calls: [call('refund'), call('refund'), call('look')] }, { text: 'Never.' }];
    const look = gate();
    const tools = [refund(() => ran.push('paid')), { tag: 'look', handler: () => ran.push('look') }];
    const definition = agentOf(turns, { tools, ...gated });
    const hold = definePlugin({
      name: 'hold',
      apply: ({ hooks }) =>
        hooks.beforeToolCall.tapPromise('hold', async ({ call: { tool } }) => {
          if (tool === 'look') await look.opened;
        }),
    });
    applyPlugin(host.kernel, hold, 'test');
    const run = host.run(host.define(definition));
    const [first] = await host.waiting(2);
    await host.decide(first!);
    await waitUntil(
      async () => (await host.service.read(first!.requestId))?.record.body.run === 'done',
      'it was never stored that it ran',
    );
    await ask(run);
    const closing = host.executions.close();
    look.open();
    await closing;
    const next = await AgentHost.open(home);
    next.define(definition);
    const outcome = await ended(await next.executions.resume(run.executionId), far);
    assert.deepEqual([outcome.status, outcome.reason], ['cancelled', 'enough']);
    assert.deepEqual(statuses(outcome), [['refund completed', 'refund cancelled']]);
    assert.deepEqual(ran, ['paid']);
    await next.close();
  }));

test('requested before its owner died, with an agent that no process defines: the next to cancel ends it', () =>
  placed(async ({ host, far, ask, home }) => {
    const turns = [{ calls: [call('refund'), call('refund')] }];
    const run = host.run(host.define(agentOf(turns, { tools: [refund(() => 1)], ...gated })));
    const [first] = await host.waiting(2);
    await ask(run);
    await host.executions.close();
    await far.decide(first!);
    const cancelling = cancelled(far, run.executionId, 'again');
    await waitUntil(
      async () => (await readExecution(far.executions, run.executionId))?.status === 'cancelled',
      'it never ended',
      SOON_MS,
    );
    assert.equal((await cancelling).reason, 'enough');
    assert.deepEqual((await listApprovals(far.service, {})).records, []);
    const { records } = await listApprovals(far.service, { status: 'approved' });
    assert.deepEqual(
      records.map(({ run: ranAs, outcome }) => [ranAs, outcome?.status]),
      [['none', 'cancelled']],
    );
    // Nothing of it is open: it can be removed.
    await waitUntil(async () => Date.now() > Date.parse(first!.timestamp) + 2, 'the clock did not advance');
    assert.equal(await pruneApprovals(far.service, { olderThanMs: 0 }, isRunningIn(home)), 2);
  }));

test('during the last model turn: cancelled, with the text of that turn', async () => {
  let end: (() => Promise<void>) | undefined;
  const asking = async ({ status }: ExecutionRow): Promise<void> => {
    if (status !== 'completed') return;
    const ask = end;
    end = undefined;
    await ask?.();
  };
  await placed(async ({ host, far, ask }) => {
    const again = { tag: 'look', idempotent: true, handler: () => 'seen' };
    const run = host.run(host.define(agentOf([{ calls: [call('look')] }, { text: 'Done.' }], { tools: [again] })));
    end = () => ask(run);
    const outcome = await ended(run, far);
    assert.deepEqual([outcome.status, outcome.reason, outcome.text], ['cancelled', 'enough', 'Done.']);
    assert.deepEqual(statuses(outcome), [['look completed'], []]);
  }, asking);
});

test('while a model turn is being stored: none of its calls starts', async () => {
  let cancel = () => {};
  const cancelling = ({ state }: ExecutionRow): void => {
    if (state.steps.length === 1) cancel();
  };
  await placed(async ({ host, far }) => {
    const ran: string[] = [];
    const tools = [
      { tag: 'look', handler: () => ran.push('look') },
      { tag: 'again', idempotent: true, handler: () => ran.push('again') },
      refund(() => ran.push('paid')),
    ];
    const calls = [call('look'), call('again'), call('refund')];
    const run = host.run(host.define(agentOf([{ calls }, { text: 'Never.' }], { tools, ...gated })));
    cancel = () => void run.cancel('enough');
    const outcome = await ended(run, far);
    assert.deepEqual([outcome.status, outcome.reason, ran], ['cancelled', 'enough', []]);
    assert.deepEqual((await listApprovals(far.service, { executionId: run.executionId })).records, []);
  }, cancelling);
});

test('while the start of a call is being stored: the call does not start', async () => {
  let cancel = () => {};
  const cancelling = ({ state }: ExecutionRow): void => {
    if (state.steps[0]?.calls[0]?.started) cancel();
  };
  await placed(async ({ host, far }) => {
    const ran: string[] = [];
    const tools = [{ tag: 'look', handler: () => ran.push('look') }];
    const run = host.run(host.define(agentOf([{ calls: [call('look')] }, { text: 'Never.' }], { tools })));
    cancel = () => void run.cancel('enough');
    const outcome = await ended(run, far);
    assert.deepEqual([outcome.status, outcome.reason, ran], ['cancelled', 'enough', []]);
  }, cancelling);
});
