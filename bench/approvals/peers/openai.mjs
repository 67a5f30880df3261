import { Agent, RunState, run, setTracingDisabled, tool, Usage } from '@openai/agents';
import { z } from 'zod';
import { OwnTable } from './own-table.mjs';
import { callOf, DONE, promptOf, runIn } from './script.mjs';

setTracingDisabled(true);

export const model = {
  async getResponse({ input }) {
    const items = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
    const isLast = items.some(({ type }) => type === 'function_call_result');
    const { id, name, args } = callOf(runIn(JSON.stringify(items).replaceAll('"', ' ')));
    const output = isLast
      ? { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: DONE }] }
      : { type: 'function_call', callId: id, name, arguments: JSON.stringify(args), status: 'completed' };
    return { usage: new Usage(), output: [output] };
  },
  getStreamedResponse() {
    throw new Error('not used');
  },
};

/** It returns its state as text for the caller to store, here in a table row. */
export default {
  name: 'OpenAI Agents JS',
  packages: ['@openai/agents'],
  async open({ effects, renamed }) {
    const amountName = renamed ? 'sum' : 'amount';
    const refund = tool({
      name: 'refund',
      description: 'Pays.',
      parameters: z.object({ orderId: z.string(), [amountName]: z.number() }),
      needsApproval: true,
      execute: async ({ orderId, ...rest }) => JSON.stringify(await effects.pay(orderId, rest[amountName])),
    });
    const agent = new Agent({ name: 'payouts', model, tools: [refund] });
    const table = await OwnTable.open(effects);
    const storeResult = async (id, result) => {
      const waits = result.interruptions.length > 0;
      await table.put(id, result.state.toString(), waits);
      return waits ? 'waits' : String(result.finalOutput);
    };
    return {
      start: async (id) => storeResult(id, await run(agent, promptOf(id))),
      async decide(id, { approve }) {
        const state = await RunState.fromString(agent, await table.get(id));
        for (const one of state.getInterruptions()) {
          if (approve) state.approve(one);
          else state.reject(one);
        }
        return storeResult(id, await run(agent, state));
      },
      recover: async (id) => storeResult(id, await run(agent, await RunState.fromString(agent, await table.get(id)))),
      noEdit: true,
      list: () => table.waiting(),
      tamper: (id) => table.tamper(id),
      close: async () => {},
    };
  },
};
