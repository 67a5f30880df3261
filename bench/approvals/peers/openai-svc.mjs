import { Agent, RunState, run, tool } from '@openai/agents';
import { z } from 'zod';
import { approveInterruptions, withApproval } from '../../../dist/plugins/frameworks/openai-agents.js';
import { model } from './openai.mjs';
import { OwnTable } from './own-table.mjs';
import { promptOf } from './script.mjs';
import { openGates, suspendedSystem } from './svc-gate.mjs';

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
    const gates = openGates({ url });
    const table = await OwnTable.open(effects);
    const agentOf = (executionId, gate) => {
      const options = { executionId, wait: 'suspend', onRequested: gates.onRequested };
      const tools = withApproval(gates[gate], [refund], options);
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
    return suspendedSystem(gates, effects, { start, resume, tamperRun: (run) => table.tamper(run) });
  },
};
