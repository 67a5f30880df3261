import { Svc } from '@svc/sdk';
import { approvalMiddleware, resumeOptions } from '@svc/sdk/genkit';
import { type GenerateResponse, generateMiddleware, genkit, type MessageData, z } from 'genkit';
import { toToolDefinition } from 'genkit/tool';

const svc = new Svc();
const gate = svc.gate({ agentTag: 'support', humanInLoop: { enabled: true } });
const ai = genkit({});
const refund = ai.defineTool(
  { name: 'refund', description: '', inputSchema: z.object({ amount: z.number() }), outputSchema: z.number() },
  async ({ amount }) => amount,
);
const options = { tools: [refund], toToolDefinition };
const executionId = ({ context }: { context?: unknown }) => String(context);
const approvals = generateMiddleware({ name: 'approvals' }, approvalMiddleware(gate, { ...options, executionId }));
const messages: MessageData[] = [];
const response = await ai.generate({ messages, tools: [refund], use: [approvals()], resume: resumeOptions(messages) });
export const same: GenerateResponse = response;
// @ts-expect-error: the name of the run is needed.
approvalMiddleware(gate, options);
