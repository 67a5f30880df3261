import { createSdkMcpServer, query, tool } from '@anthropic-ai/claude-agent-sdk';
import { Svc } from '@svc/sdk';
import { approvalHooks, withApproval } from '@svc/sdk/claude-agent';
import { z } from 'zod';

// The types of the tools are unchanged.

const svc = new Svc();
const gate = svc.gate({ agentTag: 'support', humanInLoop: { enabled: true } });
const refund = tool('refund', '', { amount: z.number() }, async ({ amount }) => ({
  content: [{ type: 'text', text: String(amount) }],
}));
const { tools, hooks } = withApproval(gate, [refund], { executionId: 'a', wait: 'suspend' });
export const same: [typeof refund] = tools;
const mcpServers = { shop: createSdkMcpServer({ name: 'shop', tools }) };
export const suspending = query({ prompt: '', options: { mcpServers, hooks } });
const executionId = ({ session_id }: { session_id: string }) => session_id;
export const holding = query({
  prompt: '',
  options: { hooks: approvalHooks(gate, { tools: { Bash: {} }, executionId }) },
});
// @ts-expect-error: the name of the run is needed.
withApproval(gate, [refund], {});
// @ts-expect-error: the tools that wait are named.
approvalHooks(gate, {});
