import { generateText, stepCountIs, tool } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { z } from 'zod';
import { resumeMessage, withApproval } from '../../plugins/frameworks/ai-sdk.ts';

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** One turn with these calls, then one with a text. `received` gets what the model reads as the tools' results. */
const scripted = (Model, calls, received) =>
  new Model({
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
export const model = scripted(MockLanguageModelV3, PAGE_CALLS, pageReceived);

/** Version 7 has the same parts under other names. */
export const hostOf = ({ generateText, stopAfter, tool, Model, messagesOf }) => ({
  async open({ gate, calls, executionId, wait, onRequested, refund, lookup, changedSchema, renamed, unheld }) {
    const amount = changedSchema ? z.number().max(1000) : z.number();
    const gated = {
      [renamed ? 'pay' : 'refund']: tool({
        description: 'Pays money back.',
        inputSchema: z.object({ amount, note: z.string().default('none') }),
        ...(!unheld && { execute: refund }),
      }),
    };
    const tools = {
      ...withApproval(gate, gated, { executionId, wait, onRequested }),
      lookup: tool({ inputSchema: z.object({}), execute: lookup }),
    };
    const received = [];
    const run = async (messages, abortSignal) => {
      const result = await generateText({
        model: scripted(Model, calls, received),
        tools,
        stopWhen: stopAfter(3),
        messages,
        abortSignal,
      });
      const suspended = result.content.some(({ type }) => type === 'tool-approval-request');
      return { suspended, state: JSON.stringify([...messages, ...messagesOf(result)]), received };
    };
    return {
      start: (signal) => run([{ role: 'user', content: 'Refund it.' }], signal),
      resume(state) {
        const messages = JSON.parse(state);
        return run([...messages, resumeMessage(messages)]);
      },
    };
  },
});

export default hostOf({
  generateText,
  stopAfter: stepCountIs,
  tool,
  Model: MockLanguageModelV3,
  messagesOf: ({ response }) => response.messages,
});
