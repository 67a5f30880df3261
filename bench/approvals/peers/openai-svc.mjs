import { Agent, RunState, run, tool } from '@openai/agents';
import { z } from 'zod';
import { approveInterruptions, withApproval } from '../../../dist/plugins/frameworks/openai-agents.js';
import { model } from './openai.mjs';
import { OwnTable } from './own-table.mjs';
import { promptOf } from './script.mjs';
import { openGates } from './svc-gate.mjs';

/** As openai.mjs, with the tool wrapped. */
export default {
  name: 'OpenAI Agents JS with svc',
  packages: [],
  async open({ url, effects, renamed }) {
    const amountName = renamed ? 'sum' : 'amount';
    const refund = tool({
      name: 'refund',
      description: 'Pays.',
      parameters: z.object({ orderId: z.string(), [amountName]: z.number() }),
      execute: async ({ orderId, ...rest }) => JSON.stringify(await effects.pay(orderId, rest[amountName])),
    });
    const { svc, payouts, expiring, onRequested, decide, list, tamper } = openGates({ url });
    const table = await OwnTable.open(effects);
    const agentOf = (executionId, gate = payouts) => {
      const tools = withApproval(gate, [refund], { executionId, wait: 'suspend', onRequested });
      return new Agent({ name: 'payouts', model, tools });
    };
    const storeResult = async (id, result) => {
      const waits = result.interruptions.length > 0;
      await table.put(id, result.state.toString(), waits);
      return waits ? 'waits' : String(result.finalOutput);
    };
    const start = async (id, gate) => storeResult(id, await run(agentOf(id, gate), promptOf(id)));
    const resume = async (id, gate) => {
      const agent = agentOf(id, gate);
      const state = await RunState.fromString(agent, await table.get(id));
      approveInterruptions(state);
      return storeResult(id, await run(agent, state));
    };
    return {
      start: (id) => start(id),
      async startExpiring(id) {
        await start(id, expiring);
        return resume(id, expiring);
      },
      async decide(id, verdict) {
        await decide(id, verdict);
        return resume(id);
      },
      recover: (id) => resume(id),
      list,
      async tamper(id) {
        await tamper(effects, id);
        await table.tamper(id);
      },
      close: () => svc.close(),
    };
  },
};
