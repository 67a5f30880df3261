import { generateMiddleware, genkit, z } from 'genkit';
import { interrupt, toToolDefinition } from 'genkit/tool';
import { approvalMiddleware, resumeOptions } from '../../plugins/frameworks/genkit.ts';

/** One turn with these calls, then one with a text. `received` gets what the model reads as the tools' results. */
const scripted = (calls, received) => {
  const ai = genkit({});
  const model = ai.defineModel(
    { name: 'scripted', supports: { tools: true, multiturn: true } },
    async ({ messages }) => {
      const results = messages.filter(({ role }) => role === 'tool').flatMap(({ content }) => content);
      received.push(...results.map(({ toolResponse: { ref, output } }) => [ref, JSON.stringify(output)]));
      const requests = calls.map(({ id, name, args }) => ({ toolRequest: { ref: id, name, input: args } }));
      const content = results.length > 0 ? [{ text: 'Done.' }] : [{ text: 'I pay it back.' }, ...requests];
      return { finishReason: 'stop', message: { role: 'model', content } };
    },
  );
  return { ai, model };
};

const PAGE_CALLS = [{ id: 'c1', name: 'refund', args: { orderId: '1234', amount: 20 } }];
export const pageReceived = [];
/** Genkit and the model of the program of the docs. */
export const { ai, model } = scripted(PAGE_CALLS, pageReceived);

export default {
  async open({ gate, calls, executionId, wait, onRequested, refund, lookup, changedSchema, renamed, unheld }) {
    const received = [];
    const { ai, model } = scripted(calls, received);
    const amount = changedSchema ? z.number().max(1000) : z.number();
    const name = renamed ? 'pay' : 'refund';
    const inputSchema = z.object({ amount, note: z.string().default('none') });
    const definition = { name, description: 'Pays money back.', inputSchema };
    const gated = unheld ? interrupt(definition) : ai.defineTool(definition, refund);
    const free = ai.defineTool({ name: 'lookup', description: '', inputSchema: z.object({}) }, lookup);
    const options = { tools: [gated], toToolDefinition, executionId, wait, onRequested };
    const approvals = generateMiddleware({ name: 'approvals' }, approvalMiddleware(gate, options));
    const run = async (input) => {
      const result = await ai.generate({ model, tools: [gated, free], use: [approvals()], ...input });
      return {
        suspended: result.finishReason === 'interrupted',
        state: JSON.stringify(result.messages),
        received,
      };
    };
    return {
      start: (abortSignal) => run({ prompt: 'Refund it.', abortSignal }),
      resume(state) {
        const messages = JSON.parse(state);
        return run({ messages, resume: resumeOptions(messages) });
      },
    };
  },
};
