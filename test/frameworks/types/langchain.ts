import { interrupt } from '@langchain/langgraph';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import { Svc } from '@svc/sdk';
import { approvalMiddleware, withApproval } from '@svc/sdk/langchain';
import { createAgent, createMiddleware, tool } from 'langchain';
import { z } from 'zod';

const svc = new Svc();
const gate = svc.gate({ agentTag: 'support', humanInLoop: { enabled: true } });
const refund = tool(async ({ amount }) => String(amount), { name: 'refund', schema: z.object({ amount: z.number() }) });
export const agent = createAgent({
  model: 'openai:gpt-5',
  tools: [refund],
  middleware: [createMiddleware(approvalMiddleware(gate, { tools: ['refund'], interrupt }))],
});
const [gated] = withApproval(gate, [refund], { interrupt });
export const same: typeof refund = gated;
export const node = new ToolNode(withApproval(gate, [refund]));
// @ts-expect-error: the tools that wait are named.
approvalMiddleware(gate, {});
