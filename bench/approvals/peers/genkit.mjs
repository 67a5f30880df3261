import { genkit as createGenkit, z } from 'genkit/beta';
import { OwnTable } from './own-table.mjs';
import { callOf, DONE, promptOf, runIn } from './script.mjs';

/** Genkit with the scripted model. */
export function scripted() {
  const ai = createGenkit({});
  const model = ai.defineModel(
    { name: 'scripted', supports: { tools: true, multiturn: true } },
    async ({ messages }) => {
      const isLast = messages.at(-1).role === 'tool';
      const { id, name, args } = callOf(runIn(JSON.stringify(messages).replaceAll('"', ' ')));
      const content = isLast ? [{ text: DONE }] : [{ toolRequest: { ref: id, name, input: args } }];
      return { finishReason: 'stop', message: { role: 'model', content } };
    },
  );
  return { ai, model };
}

export const refundOf = (ai, renamed, run) => {
  const amountName = renamed ? 'sum' : 'amount';
  const inputSchema = z.object({ orderId: z.string(), [amountName]: z.number() });
  return ai.defineTool({ name: 'refund', description: 'Pays.', inputSchema }, (input, context) =>
    run(input.orderId, input[amountName], context),
  );
};

/** It returns its messages for the caller to store, here in a table row. */
export default {
  name: 'Genkit',
  packages: ['genkit'],
  async open({ effects, renamed }) {
    const { ai, model } = scripted();
    const refund = refundOf(ai, renamed, (orderId, amount, { interrupt, resumed }) =>
      resumed ? effects.pay(orderId, amount) : interrupt(),
    );
    const table = await OwnTable.open(effects);
    const storeResult = async (id, { finishReason, messages, text }) => {
      const waits = finishReason === 'interrupted';
      await table.put(id, JSON.stringify(messages), waits);
      return waits ? 'waits' : text;
    };
    const generate = (input) => ai.generate({ model, tools: [refund], ...input });
    return {
      start: async (id) => storeResult(id, await generate({ prompt: promptOf(id) })),
      async decide(id, { approve, amount }) {
        const messages = JSON.parse(await table.get(id));
        const parts = messages.at(-1).content.filter(({ metadata }) => metadata?.interrupt);
        const replaceInput = amount === undefined ? {} : { replaceInput: { orderId: id, amount } };
        const resume = approve
          ? { restart: parts.map((part) => refund.restart(part, { approved: true }, replaceInput)) }
          : { respond: parts.map((part) => refund.respond(part, 'rejected')) };
        return storeResult(id, await generate({ messages, resume }));
      },
      recover: async (id) => storeResult(id, await generate({ messages: JSON.parse(await table.get(id)) })),
      list: () => table.waiting(),
      tamper: (id) => table.tamper(id),
      close: async () => {},
    };
  },
};
