import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ApprovalRequest, defineTool, Svc } from '@svc/sdk';
import { amountPolicy } from '../src/index.ts';

const NOON = '2026-11-21T12:00:00Z';
const NIGHT = '2026-11-21T23:30:00Z';

/** Puts one refund to a gate under the policy; whoever is asked says yes. */
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
  const asked: ApprovalRequest[] = [];
  try {
    const gate = svc.gate({ agentTag: 'payouts', tools: [tool], humanInLoop: { enabled: true } });
    const outcome = await gate.run(
      { tool: 'refund', parameters: { amount } },
      {
        onRequested(request) {
          asked.push(request);
          const { executionId, requestId } = request;
          void svc.agents.signal({ executionId, signal: 'approve', payload: { requestId } });
        },
      },
    );
    return { status: outcome.status, reason: asked[0]?.reason, told: JSON.stringify(outcome.result) };
  } finally {
    await svc.close();
  }
}

test('a small amount by day needs nobody', async () => {
  const { status, reason } = await refund(99, NOON);
  assert.deepEqual([status, reason], ['completed', undefined]);
});

test('a larger one is asked for, at any hour', async () => {
  for (const at of [NOON, NIGHT]) {
    const { status, reason } = await refund(100, at);
    assert.deepEqual([status, reason], ['completed', '100 is 100 or more.']);
  }
});

test('at night a small one is asked for too', async () => {
  const { status, reason } = await refund(1, NIGHT);
  assert.deepEqual([status, reason], ['completed', "It is 23 o'clock: nobody is watching."]);
});

test('over the limit nobody is asked', async () => {
  const { status, reason, told } = await refund(1000, NOON);
  assert.deepEqual([status, reason], ['denied', undefined]);
  assert.match(told, /over the limit of 1000/);
});

test('a human who changes the parameters is held to the limit as well', async () => {
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
  const refused = new Promise((resolve) => {
    const call = gate.run(
      { tool: 'refund', parameters: { amount: 500 } },
      {
        onRequested: ({ executionId, requestId }) =>
          svc.agents
            .signal({ executionId, signal: 'approve', payload: { requestId, modifiedParams: { amount: 5000 } } })
            .catch(resolve),
      },
    );
    call.catch(() => undefined); // Closing the client ends what waits.
  });
  assert.equal(((await refused) as { code: string }).code, 'decision_refused');
  await svc.close();
});
