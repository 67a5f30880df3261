import { Agent, RunState, tool } from '@openai/agents';
import { Svc } from '@svc/sdk';
import { approveInterruptions, withApproval } from '@svc/sdk/openai-agents';
import { z } from 'zod';

// The types of the tools are unchanged.

const svc = new Svc();
const gate = svc.gate({ agentTag: 'support', humanInLoop: { enabled: true } });
const refund = tool({
  name: 'refund',
  description: '',
  parameters: z.object({ amount: z.number() }),
  execute: async ({ amount }) => amount,
});
const [gated] = withApproval(gate, [refund], { executionId: ({ context }) => String(context) });
export const same: typeof refund = gated;
export const agent = new Agent({
  name: 'support',
  tools: withApproval(gate, [refund], { executionId: 'a', wait: 'suspend' }),
});
approveInterruptions(await RunState.fromString(agent, ''));
// @ts-expect-error: the name of the run is needed.
withApproval(gate, [refund], {});
