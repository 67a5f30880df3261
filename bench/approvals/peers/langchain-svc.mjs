import { tool } from '@langchain/core/tools';
import { Command, interrupt } from '@langchain/langgraph';
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres';
import { createAgent, createMiddleware } from 'langchain';
import { z } from 'zod';
import { approvalMiddleware } from '../../../dist/plugins/frameworks/langchain.js';
import { Scripted } from './langchain.mjs';
import { tamper as tamperThread } from './langgraph-store.mjs';
import { promptOf } from './script.mjs';
import { openGates, suspendedSystem } from './svc-gate.mjs';

/** As langchain.mjs, with the middleware of svc in place of LangChain's. */
export default {
  name: 'LangChain with svc',
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
    const agentOf = (gate) => {
      const options = { tools: ['refund'], executionId: runOf, interrupt, onRequested: gates.onRequested };
      const middleware = [createMiddleware(approvalMiddleware(gate, options))];
      return createAgent({ model: new Scripted({}), tools: [refund], middleware, checkpointer });
    };
    const runOf = ({ runtime }) => runtime.configurable.thread_id;
    const agents = { payouts: agentOf(gates.payouts), expiring: agentOf(gates.expiring) };
    const threadOf = (run) => ({ configurable: { thread_id: run } });
    const responseOf = ({ messages, __interrupt__ }) =>
      __interrupt__ ? 'waits' : `${messages?.at(-2)?.content ?? ''} ${messages?.at(-1)?.content ?? 'nothing'}`;
    const start = (run, gate) =>
      agents[gate].invoke({ messages: [{ role: 'user', content: promptOf(run) }] }, threadOf(run));
    const resume = async (run, gate) =>
      responseOf(await agents[gate].invoke(new Command({ resume: true }), threadOf(run)));
    return suspendedSystem(gates, effects, {
      start,
      resume,
      tamperRun: (run) => tamperThread(effects, run),
      close: () => checkpointer.end(),
    });
  },
};
