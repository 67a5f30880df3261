import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { Svc } from '@svc/sdk';
import { withApproval } from '@svc/sdk/mastra';
import { z } from 'zod';

// The types of the tools are unchanged.

const svc = new Svc();
const gate = svc.gate({ agentTag: 'support', humanInLoop: { enabled: true } });
const refund = createTool({
  id: 'refund',
  description: '',
  inputSchema: z.object({ amount: z.number() }),
  execute: async ({ amount }) => ({ paid: amount }),
});
const executionId = ({ agent }: { agent?: { threadId?: string } }) => String(agent?.threadId);
const tools = withApproval(gate, { refund }, { executionId, wait: 'suspend' });
export const same: { refund: typeof refund } = tools;
export const agent = new Agent({ id: 'a', name: 'a', instructions: '', model: 'openai/gpt-5', tools });
// @ts-expect-error: the name of the run is needed.
withApproval(gate, { refund }, {});
