import { AIMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { Command, END, interrupt, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres';
import { z } from 'zod';
import { listWaiting, tamper } from './langgraph-store.mjs';
import { callOf, DONE, promptOf, runIn } from './script.mjs';

const model = ({ messages }) => {
  if (messages.at(-1).getType() === 'tool') return { messages: [new AIMessage(DONE)] };
  return { messages: [new AIMessage({ content: '', tool_calls: [callOf(runIn(messages[0].content))] })] };
};

/** A graph of a model and a tool node. */
export function graphOf(tools, checkpointer) {
  return new StateGraph(MessagesAnnotation)
    .addNode('model', model)
    .addNode('tools', new ToolNode(tools))
    .addEdge(START, 'model')
    .addConditionalEdges('model', ({ messages }) => (messages.at(-1).tool_calls?.length ? 'tools' : END))
    .addEdge('tools', 'model')
    .compile({ checkpointer });
}

/** As in its documentation: `interrupt` in the tool, before the effect. */
export default {
  name: 'LangGraph JS',
  packages: ['@langchain/langgraph', '@langchain/langgraph-checkpoint-postgres'],
  async open({ url, effects, renamed }) {
    const checkpointer = PostgresSaver.fromConnString(url);
    await checkpointer.setup();
    const amountName = renamed ? 'sum' : 'amount';
    const refund = tool(
      async ({ orderId, ...rest }) => {
        const verdict = interrupt({ orderId, ...rest });
        if (!verdict.approve) return 'rejected';
        return JSON.stringify(await effects.pay(orderId, verdict.amount ?? rest[amountName]));
      },
      { name: 'refund', description: 'Pays.', schema: z.object({ orderId: z.string(), [amountName]: z.number() }) },
    );
    const graph = graphOf([refund], checkpointer);
    const threadOf = (run) => ({ configurable: { thread_id: run } });
    const responseOf = ({ messages, __interrupt__ }) =>
      __interrupt__ ? 'waits' : `${messages?.at(-2)?.content ?? ''} ${messages?.at(-1)?.content ?? 'nothing'}`;
    return {
      start: (run) => graph.invoke({ messages: [{ role: 'user', content: promptOf(run) }] }, threadOf(run)),
      decide: async (run, verdict) => responseOf(await graph.invoke(new Command({ resume: verdict }), threadOf(run))),
      recover: async (run) => responseOf((await graph.invoke(null, threadOf(run))) ?? {}),
      list: () => listWaiting(checkpointer),
      tamper: (run) => tamper(effects, run),
      close: () => checkpointer.end(),
    };
  },
};
