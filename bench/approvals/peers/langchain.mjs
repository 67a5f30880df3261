import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { Command } from '@langchain/langgraph';
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres';
import { createAgent, humanInTheLoopMiddleware } from 'langchain';
import { z } from 'zod';
import { listWaiting, tamper } from './langgraph-store.mjs';
import { callOf, DONE, promptOf, runIn } from './script.mjs';

export class Scripted extends BaseChatModel {
  _llmType() {
    return 'scripted';
  }

  bindTools() {
    return this;
  }

  async _generate(messages) {
    const isLast = messages.at(-1).getType() === 'tool';
    const prompt = messages.find((one) => one.getType() === 'human')?.content ?? '';
    const message = isLast
      ? new AIMessage(DONE)
      : new AIMessage({ content: '', tool_calls: [callOf(runIn(String(prompt)))] });
    return { generations: [{ text: '', message }] };
  }
}

export default {
  name: 'LangChain HITL',
  packages: ['langchain'],
  async open({ url, effects, renamed }) {
    const checkpointer = PostgresSaver.fromConnString(url);
    await checkpointer.setup();
    const amountName = renamed ? 'sum' : 'amount';
    const refund = tool(async ({ orderId, ...rest }) => JSON.stringify(await effects.pay(orderId, rest[amountName])), {
      name: 'refund',
      description: 'Pays.',
      schema: z.object({ orderId: z.string(), [amountName]: z.number() }),
    });
    const agent = createAgent({
      model: new Scripted({}),
      tools: [refund],
      middleware: [
        humanInTheLoopMiddleware({ interruptOn: { refund: { allowedDecisions: ['approve', 'edit', 'reject'] } } }),
      ],
      checkpointer,
    });
    const threadOf = (run) => ({ configurable: { thread_id: run } });
    const responseOf = ({ messages, __interrupt__ }) =>
      __interrupt__ ? 'waits' : `${messages?.at(-2)?.content ?? ''} ${messages?.at(-1)?.content ?? 'nothing'}`;
    const decision = (run, { approve, amount }) => {
      if (!approve) return { type: 'reject', message: 'rejected' };
      if (amount === undefined) return { type: 'approve' };
      return { type: 'edit', editedAction: { name: 'refund', args: { orderId: run, amount } } };
    };
    return {
      start: (run) => agent.invoke({ messages: [{ role: 'user', content: promptOf(run) }] }, threadOf(run)),
      decide: async (run, verdict) =>
        responseOf(await agent.invoke(new Command({ resume: { decisions: [decision(run, verdict)] } }), threadOf(run))),
      recover: async (run) => responseOf((await agent.invoke(null, threadOf(run))) ?? {}),
      list: () => listWaiting(checkpointer),
      tamper: (run) => tamper(effects, run),
      close: () => checkpointer.end(),
    };
  },
};
