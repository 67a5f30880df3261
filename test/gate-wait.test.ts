import * as assert from 'node:assert/strict';
import { z } from 'zod';
import { definePlugin, type Gate, type GuardedTool, Svc } from '../config/sdk/index.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { waitUntil } from './suites/wait-until.ts';

// Calls that are left waiting and made again, and tools that are known only at run time.

const inputSchema = z.object({ amount: z.number() });
const parameters = { amount: 20 };

interface Parts {
  readonly svc: Svc;
  readonly gate: Gate;
  readonly refund: GuardedTool<string>;
  readonly ran: unknown[];
  readonly approve: (requestId: string | undefined, modifiedParams?: object) => Promise<unknown>;
}

async function withGate(
  body: (parts: Parts) => Promise<void>,
  options: { approvalTimeout?: number; hold?: Promise<void> } = {},
) {
  const svc = new Svc({ config: { product: 'shop', env: 'dev' } });
  const { approvalTimeout = 60_000, hold } = options;
  const gate = svc.gate({ agentTag: 'payouts', humanInLoop: { enabled: true, approvalTimeout } });
  const ran: unknown[] = [];
  const refund = gate.guard('refund', { inputSchema }, async (input, ctx, own: string) => {
    ran.push([input.amount, own, ctx.approvedBy]);
    await hold;
    return { paid: input.amount };
  });
  const approve: Parts['approve'] = (requestId = '', modifiedParams) =>
    svc.approvals.signal({ signal: 'approve', payload: { requestId, modifiedParams } }, { actor: 'ann' });
  try {
    await body({ svc, gate, refund, ran, approve });
  } finally {
    await svc.close();
  }
}

const named = (toolCallId: string) => ({ parameters, executionId: 'exe_1', toolCallId });

test('a call is left waiting, and the same call continues with its request and runs once', () =>
  withGate(async ({ svc, refund, ran, approve }) => {
    const left = await refund.run(named('c1'), { waitMs: 0 }, 'first');
    assert.equal(left.status, 'waiting');
    assert.ok(Date.parse(left.expiresAt ?? '') > Date.now());
    assert.match(left.forModel(), /approval_pending/);
    const again = await refund.run(named('c1'), { waitMs: 1 }, 'second');
    assert.deepEqual([again.status, again.requestId], ['waiting', left.requestId]);
    assert.equal((await svc.approvals.get(left.requestId ?? ''))?.status, 'waiting');
    await approve(left.requestId, { amount: 15 });
    const outcomes = [];
    for (const own of ['third', 'fourth']) outcomes.push(await refund.run(named('c1'), { waitMs: 0 }, own));
    for (const { status, result, changed, executedWith, expiresAt } of outcomes)
      assert.deepEqual(
        { status, result, changed, executedWith, expiresAt },
        {
          status: 'completed',
          result: { paid: 15 },
          changed: ['amount'],
          executedWith: { amount: 15 },
          expiresAt: undefined,
        },
      );
    assert.deepEqual(ran, [[15, 'third', 'ann']]);
  }));

test('a decision during the wait ends it', () =>
  withGate(async ({ refund, approve }) => {
    const options = { waitMs: 60_000, onRequested: ({ requestId }: { requestId: string }) => approve(requestId) };
    assert.equal((await refund.run(named('c1'), options, '')).status, 'completed');
  }));

test('aborting a wait cancels nothing', () =>
  withGate(async ({ svc, refund, ran }) => {
    const leaving = new AbortController();
    const options = { waitMs: 60_000, signal: leaving.signal, onRequested: () => leaving.abort() };
    const left = await refund.run(named('c1'), options, '');
    assert.equal(left.status, 'waiting');
    assert.equal((await svc.approvals.get(left.requestId ?? ''))?.status, 'waiting');
    const cancelling = new AbortController();
    const cancelled = await refund.run(
      named('c1'),
      { signal: cancelling.signal, onRequested: () => cancelling.abort('stop') },
      '',
    );
    assert.deepEqual([cancelled.status, ran], ['cancelled', []]);
  }));

test('a call that another caller runs is waited for, unless the caller aborts', async () => {
  let release = () => {};
  const hold = new Promise<void>((resolve) => {
    release = resolve;
  });
  await withGate(
    async ({ refund, ran, approve }) => {
      const first = refund.run(named('c1'), { onRequested: ({ requestId }) => approve(requestId) }, '');
      await waitUntil(() => ran.length > 0, 'it did not run');
      const again = refund.run(named('c1'), { waitMs: 0 }, '');
      const leaving = await refund.run(named('c1'), { waitMs: 60_000, signal: AbortSignal.abort() }, '');
      assert.equal(leaving.status, 'running');
      release();
      assert.deepEqual([(await first).status, (await again).status], ['completed', 'completed']);
      assert.equal(ran.length, 1);
    },
    { hold },
  );
});

test('a call that was left and not decided has expired when it is made again', () =>
  withGate(
    async ({ refund, ran }) => {
      const left = await refund.run(named('c1'), { waitMs: 0 }, '');
      const ended = await refund.run(named('c1'), {}, '');
      assert.deepEqual([left.status, ended.status, ran], ['waiting', 'rejected', []]);
      assert.match(ended.forModel(), /approval_timeout/);
    },
    { approvalTimeout: 1_000 },
  ));

test('a request is stored without running the call, whatever is decided', () =>
  withGate(async ({ gate, refund, ran, approve }) => {
    const asked = await refund.request(named('c1'));
    assert.equal(asked?.status, 'waiting');
    await approve(asked?.requestId);
    assert.equal((await refund.request(named('c1')))?.status, 'decided');
    assert.deepEqual(ran, []);
    assert.equal((await refund.run(named('c1'), {}, '')).requestId, asked?.requestId);
    assert.equal(await refund.request({ ...named('c2'), parameters: { amount: '20' } }), undefined);
    const free = gate.guard('free', { inputSchema, requiresConfirmation: false }, () => 'free');
    assert.equal(await free.request(named('c3')), undefined);
    assert.equal((await free.run(named('c3'))).status, 'completed');
  }));

test('every channel has had an attempt when a call is left', async () => {
  const delivered: string[] = [];
  const channel = () => ({
    name: 'post',
    deliver: async ({ requestId }: { readonly requestId: string }) => {
      await new Promise((resolve) => setImmediate(resolve));
      delivered.push(requestId);
    },
  });
  const plugin = definePlugin({
    name: 'post',
    apply: ({ channels, hooks }) => {
      channels.register('post', channel);
      hooks.approvalRequested.tapPromise('post', () => new Promise((resolve) => setImmediate(resolve)));
    },
  });
  const approvals = { channels: { post: { type: 'post' } } };
  const svc = new Svc({ config: { product: 'shop', env: 'dev', approvals, plugins: [plugin] } as never });
  try {
    const gate = svc.gate({ agentTag: 'payouts', humanInLoop: { enabled: true } });
    const refund = gate.guard('refund', { inputSchema }, () => 1);
    const left = await refund.run(named('c1'), { waitMs: 0 });
    assert.deepEqual(delivered, [left.requestId]);
    await refund.run(named('c1'), { waitMs: 0 });
    assert.equal(delivered.length, 1, 'it is delivered once');
  } finally {
    await svc.close();
  }
});

test('a wait needs the ids with which the call can be made again', () =>
  withGate(async ({ gate, refund }) => {
    for (const options of [{ waitMs: 0 }, { waitMs: 5 }])
      await expectError(refund.run({ parameters, executionId: 'exe_1' }, options, ''), 'value_invalid');
    await expectError(refund.request({ parameters, toolCallId: 'c1' }), 'value_invalid');
    for (const waitMs of [-1, Number.NaN, Number.POSITIVE_INFINITY, '1' as never])
      await expectError(refund.run(named('c1'), { waitMs }, ''), 'value_invalid');
    await expectError(gate.run({ tool: 'refund', ...named('c1') }, { waitMS: 1 } as never), 'value_invalid');
  }));

test('a guarded tool whose schema has changed does not run an earlier approval, nor one of another name', () =>
  withGate(async ({ gate, refund, ran, approve }) => {
    const left = await refund.run(named('c1'), { waitMs: 0 }, '');
    await approve(left.requestId);
    const other = gate.guard('refund2', { inputSchema }, () => ran.push('other'));
    await expectError(other.run(named('c1')), 'call_conflict');
    const changed = gate.guard('refund', { inputSchema: inputSchema.extend({ to: z.string().optional() }) }, () =>
      ran.push('changed'),
    );
    assert.equal((await changed.run(named('c1'))).status, 'stale');
    assert.deepEqual(ran, []);
  }));

test('a guarded tool is validated as a tool of the gate is', () =>
  withGate(async ({ gate }) => {
    for (const [tag, definition, execute] of [
      ['', { inputSchema }, () => 1],
      ['a', {}, () => 1],
      ['a', { inputSchema: { type: 'string' } }, () => 1],
      ['a', { inputSchema, parameters: {} }, () => 1],
      ['a', { inputSchema }, 'no function'],
    ] as const)
      await expectError((async () => gate.guard(tag, definition as never, execute as never))(), 'agent_invalid');
    const mcp = gate.guard('a'.repeat(128), { inputSchema: { type: 'object' } }, (input) => input);
    assert.equal((await mcp.run({ parameters: [] })).status, 'invalid');
  }));
