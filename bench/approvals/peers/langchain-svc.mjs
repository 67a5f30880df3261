import { tool } from '@langchain/core/tools';
import { Command, interrupt } from '@langchain/langgraph';
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres';
import { createAgent, createMiddleware } from 'langchain';
import { z } from 'zod';
import { approvalMiddleware } from '../../../dist/plugins/frameworks/langchain.js';
import { Scripted } from './langchain.mjs';
import { tamper as tamperThread } from './langgraph-store.mjs';
import { promptOf } from './script.mjs';
import { openGates } from './svc-gate.mjs';

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
    const { svc, payouts, expiring, onRequested, decide, list, tamper } = openGates({ url });
    const agentOf = (gate) => {
      const middleware = [
        createMiddleware(approvalMiddleware(gate, { tools: ['refund'], executionId: runOf, interrupt, onRequested })),
      ];
      return createAgent({ model: new Scripted({}), tools: [refund], middleware, checkpointer });
    };
    const runOf = ({ runtime }) => runtime.configurable.thread_id;
    const agent = agentOf(payouts);
    const brief = agentOf(expiring);
    const threadOf = (run) => ({ configurable: { thread_id: run } });
    const responseOf = ({ messages, __interrupt__ }) =>
      __interrupt__ ? 'waits' : `${messages?.at(-2)?.content ?? ''} ${messages?.at(-1)?.content ?? 'nothing'}`;
    const start = (run, from = agent) =>
      from.invoke({ messages: [{ role: 'user', content: promptOf(run) }] }, threadOf(run));
    const resume = async (run, from = agent) =>
      responseOf(await from.invoke(new Command({ resume: true }), threadOf(run)));
    return {
      start: (run) => start(run),
      async startExpiring(run) {
        await start(run, brief);
        for (;;) {
          const response = await resume(run, brief);
          if (response !== 'waits') return response;
        }
      },
      async decide(run, verdict) {
        await decide(run, verdict);
        return resume(run);
      },
      recover: (run) => resume(run),
      list,
      async tamper(run) {
        await tamper(effects, run);
        await tamperThread(effects, run);
      },
      async close() {
        await svc.close();
        await checkpointer.end();
      },
    };
  },
};
