import { AIMessage } from '@langchain/core/messages';
import { END, interrupt, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import { refundTool, Threads } from './langgraph-threads.mjs';
import { callOf, DONE, runIn } from './script.mjs';

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
    const threads = await Threads.open({ url, effects });
    const refund = refundTool(renamed, async (orderId, amount) => {
      const verdict = interrupt({ orderId, amount });
      if (!verdict.approve) return 'rejected';
      return JSON.stringify(await effects.pay(orderId, verdict.amount ?? amount));
    });
    return threads.system(graphOf([refund], threads.checkpointer), (_run, verdict) => verdict);
  },
};
