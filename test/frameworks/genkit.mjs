import { createMcpClient } from '@genkit-ai/mcp';
import { generateMiddleware, genkit, z } from 'genkit';
import { interrupt, toToolDefinition } from 'genkit/tool';
import { approvalMiddleware, resumeOptions } from '../../plugins/frameworks/genkit.ts';

/** One turn with these calls, then one with a text. `received` gets what the model reads as the tools' results. */
const defineScripted = (ai, name, calls, received) =>
  ai.defineModel({ name, supports: { tools: true, multiturn: true } }, async ({ messages }, sendChunk) => {
    const results = messages.filter(({ role }) => role === 'tool').flatMap(({ content }) => content);
    received.push(...results.map(({ toolResponse: { ref, output } }) => [ref, JSON.stringify(output)]));
    const requests = calls.map(({ id, name, args }) => ({ toolRequest: { ref: id, name, input: args } }));
    const content = results.length > 0 ? [{ text: 'Done.' }] : [{ text: 'I pay it back.' }, ...requests];
    sendChunk?.({ role: 'model', content });
    return { finishReason: 'stop', message: { role: 'model', content } };
  });

const PAGE_CALLS = [{ id: 'c1', name: 'refund', args: { orderId: '1234', amount: 20 } }];
export const pageReceived = [];
/** Genkit and the model of the program of the docs. */
export const ai = genkit({});
export const model = defineScripted(ai, 'scripted', PAGE_CALLS, pageReceived);

export default {
  async open({
    gate,
    calls,
    executionId,
    wait,
    onRequested,
    refund,
    lookup,
    changedSchema,
    renamed,
    unheld,
    onPart,
    subAgent,
    mcpServer,
  }) {
    const received = [];
    const name = renamed ? 'pay' : 'refund';
    const ai = genkit({});
    const amount = changedSchema ? z.number().max(1000) : z.number();
    const inputSchema = z.object({ amount, note: z.string().default('none') });
    const definition = { name, description: 'Pays money back.', inputSchema };
    const gated = unheld ? interrupt(definition) : ai.defineTool(definition, refund);
    const free = ai.defineTool({ name: 'lookup', description: '', inputSchema: z.object({}) }, lookup);
    const client = mcpServer && createMcpClient({ name: 'shop', serverName: 'shop', mcpServer });
    const gatedTools = client ? await client.getActiveTools(ai) : [gated];
    const options = { tools: gatedTools, toToolDefinition, executionId, wait, onRequested };
    const approvals = generateMiddleware({ name: 'approvals' }, approvalMiddleware(gate, options));
    const payouts = {
      model: defineScripted(ai, 'scripted', calls, received),
      tools: [...gatedTools, free],
      use: [approvals()],
    };
    const delegate = ai.defineTool({ name: 'delegate', description: '', inputSchema: z.object({}) }, async () => {
      const { text } = await ai.generate({ ...payouts, prompt: 'Refund it.' });
      return text;
    });
    const delegation = defineScripted(ai, 'delegation', [{ id: 'd1', name: 'delegate', args: {} }], []);
    const agent = subAgent ? { model: delegation, tools: [delegate] } : payouts;
    const run = async (input) => {
      const settings = { ...agent, ...input };
      const { stream, response } = onPart ? ai.generateStream(settings) : { response: ai.generate(settings) };
      if (onPart) for await (const part of stream) onPart(part);
      const result = await response;
      return {
        suspended: result.finishReason === 'interrupted',
        state: JSON.stringify(result.messages),
        received,
      };
    };
    return {
      start: (abortSignal) => run({ prompt: 'Refund it.', abortSignal }),
      resume(state, abortSignal) {
        const messages = JSON.parse(state);
        return run({ messages, resume: resumeOptions(messages), abortSignal });
      },
      close: () => client?.disable(),
    };
  },
};
