import { Agent } from '@mastra/core/agent';
import { Mastra } from '@mastra/core/mastra';
import { InMemoryStore } from '@mastra/core/storage';
import { createTool } from '@mastra/core/tools';
import { MCPClient } from '@mastra/mcp';
import { MockLanguageModelV3 } from 'ai/test';
import { z } from 'zod';
import { withApproval } from '../../plugins/frameworks/mastra.ts';
import { PAGE_CALLS, scripted } from './ai-sdk-model.mjs';

export const pageReceived = [];
/** The model of the program of the docs. */
export const model = scripted(MockLanguageModelV3, PAGE_CALLS, pageReceived);

/** A store that another process can continue from. */
class Store extends InMemoryStore {
  get runs() {
    return this.stores.workflows.db.workflows;
  }

  static from(runs) {
    const store = new Store();
    for (const [key, run] of runs) store.runs.set(key, run);
    return store;
  }
}

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
    timeoutMs,
    onPart,
    subAgent,
    mcpServer,
    mapsOutput,
  }) {
    const amount = changedSchema ? z.number().max(1000) : z.number();
    const name = mcpServer ? 'shop_refund' : renamed ? 'pay' : 'refund';
    const client = mcpServer && new MCPClient({ id: executionId, servers: { shop: mcpServer } });
    const gated = createTool({
      id: name,
      description: 'Pays money back.',
      inputSchema: z.object({ amount, note: z.string().default('none') }),
      ...(!unheld && { execute: refund }),
      ...(mapsOutput && {
        execute: async (input) => ({ text: await refund(input) }),
        toModelOutput: ({ text }) => ({ type: 'text', value: text.toUpperCase() }),
      }),
      ...(timeoutMs && { background: { enabled: true, timeoutMs } }),
    });
    const free = createTool({ id: 'lookup', description: '', inputSchema: z.object({}), execute: lookup });
    const received = [];
    const requested = [];
    const options = {
      executionId,
      wait,
      onRequested(request) {
        // The run of a sub-agent is resumed by the call that it has in the run of its agent.
        requested.push(subAgent ? 'd1' : request.toolCallId);
        return onRequested?.(request);
      },
    };
    const gatedTools = client ? await client.listTools() : { [name]: gated };
    const tools = { ...withApproval(gate, gatedTools, options), lookup: free };
    const named = calls.map((call) => (call.name === 'refund' && client ? { ...call, name } : call));
    const agentOf = (storage) => {
      const model = scripted(MockLanguageModelV3, named, received);
      const settings = { id: 'payouts', name: 'payouts', description: 'Pays money back.', instructions: '' };
      const payouts = new Agent({ ...settings, model, tools });
      const delegation = [{ id: 'd1', name: 'agent-payouts', args: { prompt: 'Refund it.' } }];
      const agent = subAgent
        ? new Agent({
            ...settings,
            id: 'support',
            name: 'support',
            model: scripted(MockLanguageModelV3, delegation, []),
            agents: { payouts },
          })
        : payouts;
      return new Mastra({ agents: { agent }, storage, logger: false }).getAgent('agent');
    };
    const ended = async (store, stream) => {
      if (onPart) for await (const part of stream.fullStream) onPart(part);
      else await stream.consumeStream();
      const state = { runId: stream.runId, toolCallIds: requested, runs: [...store.runs] };
      return { suspended: (await stream.finishReason) === 'suspended', state: JSON.stringify(state), received };
    };
    return {
      async start(abortSignal) {
        const store = new Store();
        return ended(store, await agentOf(store).stream('Refund it.', { abortSignal }));
      },
      async resume(state) {
        const { runId, toolCallIds, runs } = JSON.parse(state);
        const store = Store.from(runs);
        const agent = agentOf(store);
        let result;
        for (const toolCallId of new Set(toolCallIds))
          result = await ended(store, await agent.resumeStream({}, { runId, toolCallId }));
        return result;
      },
      close: () => client?.disconnect(),
    };
  },
};
