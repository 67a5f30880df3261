import { generateText, isStepCount, tool } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { z } from 'zod';
import { OwnTable } from './own-table.mjs';
import { callOf, DONE, promptOf, runIn } from './script.mjs';

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

export const model = () =>
  new MockLanguageModelV4({
    async doGenerate({ prompt }) {
      const isLast = prompt.at(-1).role === 'tool';
      const { id, name, args } = callOf(runIn(JSON.stringify(prompt).replaceAll('"', ' ')));
      const content = isLast
        ? { type: 'text', text: DONE }
        : { type: 'tool-call', toolCallId: id, toolName: name, input: JSON.stringify(args) };
      const unified = isLast ? 'stop' : 'tool-calls';
      return { content: [content], finishReason: { unified, raw: unified }, usage: USAGE, warnings: [] };
    },
  });

/** It stores nothing: the caller stores the messages, here in a table row. Without its optional secret. */
export default {
  name: 'AI SDK',
  packages: ['ai'],
  async open({ effects, renamed }) {
    const amountName = renamed ? 'sum' : 'amount';
    const tools = {
      refund: tool({
        description: 'Pays.',
        inputSchema: z.object({ orderId: z.string(), [amountName]: z.number() }),
        execute: ({ orderId, ...rest }) => effects.pay(orderId, rest[amountName]),
      }),
    };
    const table = await OwnTable.open(effects);
    const step = async (run, messages) => {
      const result = await generateText({
        model: model(),
        tools,
        toolApproval: { refund: 'user-approval' },
        stopWhen: isStepCount(5),
        messages,
      });
      const waits = result.content.some(({ type }) => type === 'tool-approval-request');
      await table.put(run, JSON.stringify([...messages, ...result.responseMessages]), waits);
      return waits ? 'waits' : result.text;
    };
    const storedMessages = async (run) => JSON.parse(await table.get(run));
    return {
      start: (run) => step(run, [{ role: 'user', content: promptOf(run) }]),
      async decide(run, { approve }) {
        const messages = await storedMessages(run);
        const content = messages
          .flatMap(({ content }) => (Array.isArray(content) ? content : []))
          .filter(({ type }) => type === 'tool-approval-request')
          .map(({ approvalId }) => ({ type: 'tool-approval-response', approvalId, approved: approve }));
        return step(run, [...messages, { role: 'tool', content }]);
      },
      /** The stored messages contain no answer to the request, so the run cannot continue. */
      recover: async (run) => ((await storedMessages(run)).at(-1).role === 'assistant' ? 'waits' : 'ended'),
      noEdit: true,
      list: () => table.waiting(),
      tamper: (run) => table.tamper(run),
      close: async () => {},
    };
  },
};
