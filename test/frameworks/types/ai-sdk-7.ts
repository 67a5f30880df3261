import { Svc } from '@svc/sdk';
import { resumeMessage, withApproval } from '@svc/sdk/ai-sdk';
import { generateText, type ModelMessage, tool } from 'ai-7';
import { z } from 'zod';

// The types of the tools are unchanged.

const svc = new Svc();
const gate = svc.gate({ agentTag: 'support', humanInLoop: { enabled: true } });
const refund = tool({
  inputSchema: z.object({ amount: z.number() }),
  execute: async ({ amount }) => ({ paid: amount }),
});
const executionId = ({ toolCallId, context }: { toolCallId: string; context?: unknown }) =>
  `${String(context)} ${toolCallId}`;
const tools = withApproval(gate, { refund }, { executionId, wait: 'suspend' });
export const same: { refund: typeof refund } = tools;
const messages: ModelMessage[] = [];
const result = await generateText({ model: 'openai/gpt-5', tools, messages: [...messages, resumeMessage(messages)] });
export const paid: number[] = result.staticToolResults.map(({ output }) => output.paid);
