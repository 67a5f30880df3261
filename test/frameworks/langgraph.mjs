import { MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt';
import { withApproval } from '../../plugins/frameworks/langchain.ts';
import { openRuns } from './langgraph-runs.mjs';

export { model, pageReceived } from './langgraph-runs.mjs';

/** A graph of a model and a tool node. */
const agentOf = ({ model, tools, checkpointer }) =>
  new StateGraph(MessagesAnnotation)
    .addNode('model', async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
    .addNode('tools', new ToolNode(tools))
    .addEdge(START, 'model')
    .addConditionalEdges('model', toolsCondition)
    .addEdge('tools', 'model')
    .compile({ checkpointer });

const withGate = (gate, tools, options) => ({ tools: withApproval(gate, tools, options) });

export default {
  open: (options) => openRuns(options, { withGate, agentOf }),
};
