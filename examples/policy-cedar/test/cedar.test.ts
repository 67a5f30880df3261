import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ApprovalRequest, defineTool, type SignalOptions, Svc } from '@svc/sdk';
import { cedarPolicies } from '../src/index.ts';

const POLICIES = `
  permit(principal, action == Action::"run", resource == Tool::"refund") when { context.amount < 100 };
  permit(principal, action == Action::"request", resource == Tool::"refund");
  forbid(principal, action, resource) when { context has currency && context.currency != "EUR" };

  permit(principal in Group::"finance", action == Action::"approve", resource == Tool::"refund")
    when { principal.verifiedBy != "nobody" && context.amount < 1000 };
  permit(principal, action == Action::"reject", resource);
`;

interface Asked {
  readonly parameters: object;
  /** Who approves it; without one, the request is rejected by nobody in particular. */
  readonly by?: SignalOptions;
  readonly modifiedParams?: object;
}

/** Calls the refund tool, and decides its request. */
async function refund({ parameters, by, modifiedParams }: Asked, policies = POLICIES) {
  const svc = new Svc({ config: { product: 'shop', env: 'dev', plugins: [cedarPolicies(policies)] } });
  const tool = defineTool({
    tag: 'refund',
    parameters: { amount: { type: 'number', required: true }, currency: { type: 'string' }, note: { type: 'string' } },
    handler: (_ctx, { amount }) => `paid ${amount}`,
  });
  const refused: string[] = [];
  const decide = async ({ requestId }: ApprovalRequest) => {
    if (by) {
      const payload = { requestId, ...(modifiedParams && { modifiedParams }) };
      await svc.agents.signal({ signal: 'approve', payload }, by).catch(({ why }) => refused.push(why));
    }
    const { status } = await svc.approvals.get(requestId);
    if (status === 'waiting') await svc.agents.signal({ signal: 'reject', payload: { requestId } });
  };
  try {
    const gate = svc.gate({ agentTag: 'payouts', tools: [tool], humanInLoop: { enabled: true } });
    let decided: Promise<void> | undefined;
    const onRequested = (request: ApprovalRequest) => {
      decided = decide(request);
    };
    const { status, result } = await gate.run({ tool: 'refund', parameters }, { onRequested });
    await decided;
    return { status, asked: decided !== undefined, result: JSON.stringify(result), refused };
  } finally {
    await svc.close();
  }
}

const ann = { principal: { id: 'ann@acme.example', groups: ['finance'] } };

test('a call that a policy permits runs', async () => {
  const { status, asked } = await refund({ parameters: { amount: 99 } });
  assert.deepEqual([status, asked], ['completed', false]);
});

test('any other waits for a person whom a policy permits to approve it', async () => {
  const { status, asked, result } = await refund({ parameters: { amount: 100 }, by: ann });
  assert.deepEqual([status, asked, result], ['completed', true, '"paid 100"']);
});

test('a person of another group, and one whom nobody verified, are refused', async () => {
  for (const by of [{ principal: { id: 'bo@acme.example', groups: ['sales'] } }, { actor: 'ann@acme.example' }]) {
    const { status, refused } = await refund({ parameters: { amount: 100 }, by });
    assert.deepEqual([status, refused], ['rejected', ['A policy does not let this person approve it.']]);
  }
});

test('the policy sees what the approver changed', async () => {
  const { status, refused } = await refund({ parameters: { amount: 100 }, by: ann, modifiedParams: { amount: 5000 } });
  assert.deepEqual([status, refused.length], ['rejected', 1]);
});

test('what is forbidden is denied without a request', async () => {
  const { status, asked, result } = await refund({ parameters: { amount: 5, currency: 'USD' } });
  assert.deepEqual([status, asked], ['denied', false]);
  assert.match(result, /does not permit/);
});

test('a policy that fails denies: Cedar itself would leave out a forbid that fails', async () => {
  const careless = `${POLICIES} forbid(principal, action, resource) when { context.note like "*gift*" };`;
  assert.equal((await refund({ parameters: { amount: 5, note: 'a refund' } }, careless)).status, 'completed');
  assert.equal((await refund({ parameters: { amount: 5 } }, careless)).status, 'denied');
  // A number that Cedar cannot represent.
  assert.equal((await refund({ parameters: { amount: 5.5 } })).status, 'denied');
});

test('policies that are not valid are found when the plugin is created', () => {
  assert.throws(() => cedarPolicies('permit(principal, action'), /The policies are not valid/);
});
