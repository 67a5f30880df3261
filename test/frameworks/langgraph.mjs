import { tool } from '@langchain/core/tools';
import { Command, interrupt, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt';
import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import { z } from 'zod';
import { withApproval } from '../../plugins/frameworks/langchain.ts';
import { Saver, Scripted } from './langchain.mjs';

/** A graph of a model and a tool node. */
const graphOf = (model, tools, checkpointer) =>
  new StateGraph(MessagesAnnotation)
    .addNode('model', async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
    .addNode('tools', new ToolNode(tools))
    .addEdge(START, 'model')
    .addConditionalEdges('model', toolsCondition)
    .addEdge('tools', 'model')
    .compile({ checkpointer });

export default {
  async open({
    gate,
    calls,
    executionId,
    wait,
    onRequested,
    refund,
    lookup,
    changedSchema,
    renamed,
    unheld,
    onPart,
    runTimeoutMs,
    subAgent,
    mcpServer,
  }) {
    const amount = changedSchema ? z.number().max(1000) : z.number();
    const name = renamed ? 'pay' : 'refund';
    const schema = z.object({ amount, note: z.string().default('none') });
    const gated = tool(refund, { name, description: 'Pays money back.', schema });
    const free = tool(lookup, { name: 'lookup', description: '', schema: z.object({}) });
    const received = [];
    const client = mcpServer && new MultiServerMCPClient({ mcpServers: { shop: mcpServer } });
    const providersTool = { type: 'refund_20260101', name };
    const gatedTools = client ? await client.getTools() : [unheld ? providersTool : gated];
    const options = { onRequested, ...(wait === 'suspend' && { interrupt }) };
    const tools = [...withApproval(gate, gatedTools, options), free];
    const payoutsWith = (checkpointer) => graphOf(new Scripted(calls, received), tools, checkpointer);
    const prompt = { messages: [{ role: 'user', content: 'Refund it.' }] };
    const supportWith = (checkpointer) => {
      const payouts = payoutsWith();
      const work = async (_input, config) => (await payouts.invoke(prompt, config)).messages.at(-1).text;
      const delegate = tool(work, { name: 'delegate', description: '', schema: z.object({}) });
      return graphOf(new Scripted([{ id: 'd1', name: 'delegate', args: {} }], []), [delegate], checkpointer);
    };
    const run = async (saver, input, signal) => {
      const graph = subAgent ? supportWith(saver) : payoutsWith(saver);
      const settings = { configurable: { thread_id: executionId }, signal, timeout: runTimeoutMs };
      let suspended = false;
      for await (const part of await graph.stream(input, { ...settings, streamMode: 'updates' })) {
        onPart?.(part);
        suspended ||= part.__interrupt__ !== undefined;
      }
      return { suspended, state: saver.toText(), received };
    };
    return {
      start: (signal) => run(new Saver(), prompt, signal),
      resume: (state) => run(Saver.from(state), new Command({ resume: true })),
      close: () => client?.close(),
    };
  },
};
