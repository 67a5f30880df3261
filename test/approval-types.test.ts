import * as assert from 'node:assert/strict';
import {
  type AgentDefinition,
  defineTool,
  type GateDefinition,
  type HumanInLoopConfig,
  Svc,
  type ToolDefinition,
} from '../config/sdk/index.ts';
import { test } from './kit/test.ts';

// The plain shapes of the documentation compile when they are written apart. TypeScript widens their literals.

const svc = new Svc({ product: 'shop', env: 'test', config: {} });
test.after(() => svc.close());

const model = { provider: 'scripted', model: 'x', settings: { turns: [] } };
const text = 'text' as string | undefined;
const parameters = { orderId: { type: 'string', required: true }, amount: { type: 'number', required: false } };
const plainTool = {
  tag: 'refund',
  description: 'Pays money back.',
  requiresConfirmation: true,
  parameters,
  handler: async (_ctx: unknown, params: { orderId: string; amount?: number }) => ({ paid: params.amount }),
};

test('a tool and a definition in variables of their own', () => {
  const plainDefinition = {
    tag: 'plain',
    name: 'Plain',
    model,
    systemPrompt: 'You refund customers.',
    tools: [plainTool],
    humanInLoop: { enabled: true, alwaysRequireApproval: ['refund'], approvalTimeout: 300_000 },
  };
  assert.equal(svc.agents.define(plainDefinition).tag, 'plain');
  const { tools, humanInLoop } = plainDefinition;
  svc.gate({ agentTag: 'plain', tools, humanInLoop });
  const plainGate = { agentTag: 'plain', tools, humanInLoop };
  svc.gate(plainGate);
  const untyped = { ...plainTool, handler: async (_ctx: unknown, params: unknown) => params };
  const anyParams = { ...plainTool, handler: (_ctx: unknown, params: Record<string, unknown>) => params.amount };
  svc.agents.define({
    tag: 'several',
    model,
    tools: [plainTool, { ...untyped, tag: 'y' }, { ...anyParams, tag: 'x' }] as const,
  });
});

test('typed shapes fit each other', () => {
  const tool: ToolDefinition = { tag: 'refund', handler: (_ctx, params) => params };
  const tools: ToolDefinition[] = [tool];
  const definition: AgentDefinition = { tag: 'typed', model, tools: [tool] };
  svc.agents.define(definition);
  svc.agents.define({ ...definition, tag: 'typed2', tools });
  const ofTools: AgentDefinition['tools'] = tools;
  svc.agents.define({ tag: 'typed3', model, tools: ofTools });
  const gate: GateDefinition = { agentTag: 'typed', tools };
  svc.gate(gate);
  const defined = defineTool(plainTool);
  svc.agents.define({ tag: 'typed4', model, tools: [defined, { ...tool, tag: 'other' }] });
  const narrow = defineTool({
    tag: 'narrow',
    parameters: { amount: { type: 'number', required: true } },
    handler: (_ctx, { amount }) => amount.toFixed(2),
  });
  const list: ToolDefinition[] = [narrow, defined];
  svc.gate({ agentTag: 'typed', tools: [...list.slice(1), narrow] });
});

test('undefined is allowed where a property is optional', () => {
  const webhook = undefined as string | undefined;
  const humanInLoop: HumanInLoopConfig = { enabled: true, approvalWebhook: webhook, approvalTimeout: undefined };
  svc.agents.define({
    tag: 'optional',
    name: text,
    systemPrompt: text,
    model: { ...model, settings: undefined },
    tools: [{ tag: 'a', description: text, requiresConfirmation: undefined, handler: () => null }],
    humanInLoop,
    limits: { steps: undefined },
  });
});

test('a signal in a variable, with any object as its changes', async () => {
  const requestId = 'apr_01999999-0000-7000-8000-000000000000';
  const plain = { executionId: 'exe_1', signal: 'approve', payload: { requestId, modifiedParams: { amount: 1 } } };
  const changes: object = { amount: 1 };
  const unknowns: Record<string, unknown> = { amount: 1 };
  const body = { approved: true } as { approved: boolean; reason?: string; modifiedParams?: Record<string, unknown> };
  const calls = [
    svc.agents.signal(plain),
    svc.approvals.signal(plain),
    svc.agents.signal({ signal: 'approve', payload: { requestId, modifiedParams: changes } }),
    svc.agents.signal({ signal: 'approve', payload: { requestId, modifiedParams: unknowns } }),
    svc.agents.signal(
      {
        executionId: text,
        signal: body.approved ? 'approve' : 'reject',
        payload: { requestId, reason: body.reason, modifiedParams: body.modifiedParams },
      },
      { actor: text === 'text' ? undefined : text, from: undefined, reviewToken: undefined },
    ),
  ];
  for (const call of calls) await assert.rejects(call, { code: 'approval_unknown' });
  // @ts-expect-error: there is no such signal
  await assert.rejects(svc.agents.signal({ signal: 'aprove', payload: { requestId } }), { code: 'decision_invalid' });
  const arrow = { signal: 'approv', payload: { requestId } };
  await assert.rejects(svc.agents.signal(arrow), { code: 'decision_invalid' });
});

test('the options of a call and of a list', async () => {
  const gate = svc.gate({ agentTag: 'plain', tools: [{ tag: 'look', handler: () => 1 }] });
  const call = { tool: 'look', parameters: {}, executionId: text, toolCallId: text, groupId: undefined };
  const { result } = await gate.run(call, { signal: undefined, onRequested: undefined, onDecided: undefined });
  assert.equal(result, 1);
  const none = undefined;
  await svc.approvals.list({ status: none, agentTag: text, executionId: none, limit: none, cursor: none });
  await svc.agents.list({ status: none, agentTag: text, limit: none, cursor: none });
});
