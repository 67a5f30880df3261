import { tool } from '@langchain/core/tools';
import { Command, interrupt } from '@langchain/langgraph';
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres';
import { z } from 'zod';
import { withApproval } from '../../../dist/plugins/frameworks/langchain.js';
import { graphOf } from './langgraph.mjs';
import { tamper as tamperThread } from './langgraph-store.mjs';
import { promptOf } from './script.mjs';
import { openGates, suspendedSystem } from './svc-gate.mjs';

/** As langgraph.mjs, with the gate of svc in place of `interrupt` in the tool. */
export default {
  name: 'LangGraph JS with svc',
  packages: [],
  async open({ url, effects, renamed }) {
    const checkpointer = PostgresSaver.fromConnString(url);
    await checkpointer.setup();
    const amountName = renamed ? 'sum' : 'amount';
    const refund = tool(async ({ orderId, ...rest }) => JSON.stringify(await effects.pay(orderId, rest[amountName])), {
      name: 'refund',
      description: 'Pays.',
      schema: z.object({ orderId: z.string(), [amountName]: z.number() }),
    });
    const gates = openGates({ url });
    const withGate = (gate) =>
      graphOf(withApproval(gate, [refund], { interrupt, onRequested: gates.onRequested }), checkpointer);
    const graphs = { payouts: withGate(gates.payouts), expiring: withGate(gates.expiring) };
    const threadOf = (run) => ({ configurable: { thread_id: run } });
    const responseOf = ({ messages, __interrupt__ }) =>
      __interrupt__ ? 'waits' : `${messages?.at(-2)?.content ?? ''} ${messages?.at(-1)?.content ?? 'nothing'}`;
    const start = (run, gate) =>
      graphs[gate].invoke({ messages: [{ role: 'user', content: promptOf(run) }] }, threadOf(run));
    const resume = async (run, gate) =>
      responseOf(await graphs[gate].invoke(new Command({ resume: true }), threadOf(run)));
    return suspendedSystem(gates, effects, {
      start,
      resume,
      tamperRun: (run) => tamperThread(effects, run),
      close: () => checkpointer.end(),
    });
  },
};
