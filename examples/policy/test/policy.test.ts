import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ApprovalRequest, defineTool, Svc } from '@svc/sdk';
import { amountPolicy } from '../src/index.ts';

const NOON = '2026-11-21T12:00:00Z';
const NIGHT = '2026-11-21T23:30:00Z';

/** Calls the refund tool under the policy. Every request is approved. */
async function refund(amount: number, at: string) {
  const rule = { tool: 'refund', parameter: 'amount', askFrom: 100, denyFrom: 1000 };
  const attended = { from: 8, to: 18, timeZone: 'UTC' };
  const policy = amountPolicy([{ ...rule, attended }], () => new Date(at));
  const svc = new Svc({ config: { product: 'shop', env: 'dev', plugins: [policy] } });
  const tool = defineTool({
    tag: 'refund',
    parameters: { amount: { type: 'number', required: true } },
    handler: (_ctx, { amount }) => `paid ${amount}`,
  });
  const requests: ApprovalRequest[] = [];
  try {
    const gate = svc.gate({ agentTag: 'payouts', tools: [tool], humanInLoop: { enabled: true } });
    const outcome = await gate.run(
      { tool: 'refund', parameters: { amount } },
      {
        onRequested(request) {
          requests.push(request);
          const { executionId, requestId } = request;
          void svc.agents.signal({ executionId, signal: 'approve', payload: { requestId } });
        },
      },
    );
    return { status: outcome.status, reason: requests[0]?.reason, result: JSON.stringify(outcome.result) };
  } finally {
    await svc.close();
  }
}

test('a small amount by day needs no approval', async () => {
  const { status, reason } = await refund(99, NOON);
  assert.deepEqual([status, reason], ['completed', undefined]);
});

test('a larger amount needs approval at any hour', async () => {
  for (const at of [NOON, NIGHT]) {
    const { status, reason } = await refund(100, at);
    assert.deepEqual([status, reason], ['completed', '100 is 100 or more.']);
  }
});

test('at night a small amount needs approval too', async () => {
  const { status, reason } = await refund(1, NIGHT);
  assert.deepEqual([status, reason], ['completed', "It is 23 o'clock: nobody is watching."]);
});

test('an amount over the limit is denied without a request', async () => {
  const { status, reason, result } = await refund(1000, NOON);
  assert.deepEqual([status, reason], ['denied', undefined]);
  assert.match(result, /over the limit of 1000/);
});

test('the limit also applies to parameters that a human changed', async () => {
  const policy = amountPolicy([
    {
      tool: 'refund',
      parameter: 'amount',
      askFrom: 100,
      denyFrom: 1000,
      attended: { from: 0, to: 24, timeZone: 'UTC' },
    },
  ]);
  const svc = new Svc({ config: { product: 'shop', env: 'dev', plugins: [policy] } });
  const tool = defineTool({ tag: 'refund', parameters: { amount: { type: 'number' } }, handler: () => 'paid' });
  const gate = svc.gate({ agentTag: 'payouts', tools: [tool], humanInLoop: { enabled: true } });
  const rejected = new Promise((resolve) => {
    const call = gate.run(
      { tool: 'refund', parameters: { amount: 500 } },
      {
        onRequested: ({ executionId, requestId }) =>
          svc.agents
            .signal({ executionId, signal: 'approve', payload: { requestId, modifiedParams: { amount: 5000 } } })
            .catch(resolve),
      },
    );
    call.catch(() => undefined); // Closing the client rejects the pending call.
  });
  assert.equal(((await rejected) as { code: string }).code, 'decision_refused');
  await svc.close();
});
