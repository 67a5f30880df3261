import { generateText, stepCountIs, tool } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { z } from 'zod';
import { resumeMessage, withApproval } from '../../plugins/frameworks/ai-sdk.ts';

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** One turn with these calls, then one with a text. `received` gets what the model reads as the tools' results. */
const scripted = (calls, received) =>
  new MockLanguageModelV3({
    async doGenerate({ prompt }) {
      const results = prompt.filter(({ role }) => role === 'tool').flatMap(({ content }) => content);
      if (results.length > 0)
        received.push(...results.map(({ toolCallId, output }) => [toolCallId, JSON.stringify(output)]));
      const content =
        results.length > 0
          ? [{ type: 'text', text: 'Done.' }]
          : calls.map(({ id, name, args }) => ({
              type: 'tool-call',
              toolCallId: id,
              toolName: name,
              input: JSON.stringify(args),
            }));
      const unified = results.length > 0 ? 'stop' : 'tool-calls';
      return { content, finishReason: { unified, raw: unified }, usage: USAGE, warnings: [] };
    },
  });

const PAGE_CALLS = [{ id: 'c1', name: 'refund', args: { orderId: '1234', amount: 20 } }];
export const pageReceived = [];
/** The model of the program of the docs. */
export const model = scripted(PAGE_CALLS, pageReceived);

export default {
  name: 'AI SDK 6',
  async open({ gate, calls, executionId, wait, onRequested, refund, lookup, changedSchema, renamed }) {
    const amount = changedSchema ? z.number().max(1000) : z.number();
    const gated = {
      [renamed ? 'pay' : 'refund']: tool({
        description: 'Pays money back.',
        inputSchema: z.object({ amount, note: z.string().default('none') }),
        execute: refund,
      }),
    };
    const tools = {
      ...withApproval(gate, gated, { executionId, wait, onRequested }),
      lookup: tool({ inputSchema: z.object({}), execute: lookup }),
    };
    const received = [];
    const run = async (messages, abortSignal) => {
      const { response, content } = await generateText({
        model: scripted(calls, received),
        tools,
        stopWhen: stepCountIs(3),
        messages,
        abortSignal,
      });
      const suspended = content.some(({ type }) => type === 'tool-approval-request');
      return { suspended, state: JSON.stringify([...messages, ...response.messages]), received };
    };
    return {
      start: (signal) => run([{ role: 'user', content: 'Refund it.' }], signal),
      resume(state) {
        const messages = JSON.parse(state);
        return run([...messages, resumeMessage(messages)]);
      },
    };
  },
};
