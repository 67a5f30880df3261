import { Agent } from '@mastra/core/agent';
import { Mastra } from '@mastra/core/mastra';
import { InMemoryStore } from '@mastra/core/storage';
import { createTool } from '@mastra/core/tools';
import { MockLanguageModelV3 } from 'ai/test';
import { z } from 'zod';
import { withApproval } from '../../plugins/frameworks/mastra.ts';

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** One turn with these calls, then one with a text. `received` gets what the model reads as the tools' results. */
const scripted = (calls, received) => {
  const generate = (prompt) => {
    const results = prompt.filter(({ role }) => role === 'tool').flatMap(({ content }) => content);
    received.push(...results.map(({ toolCallId, output }) => [toolCallId, JSON.stringify(output)]));
    const unified = results.length > 0 ? 'stop' : 'tool-calls';
    const requests = calls.map(({ id, name, args }) => ({
      type: 'tool-call',
      toolCallId: id,
      toolName: name,
      input: JSON.stringify(args),
    }));
    const content = results.length > 0 ? [{ type: 'text', text: 'Done.' }] : requests;
    return { content, finishReason: { unified, raw: unified }, usage: USAGE };
  };
  return new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => ({ ...generate(prompt), warnings: [] }),
    async doStream({ prompt }) {
      const { content, ...finish } = generate(prompt);
      const parts = content.flatMap((part) =>
        part.type === 'text'
          ? [
              { type: 'text-start', id: 't' },
              { type: 'text-delta', id: 't', delta: part.text },
              { type: 'text-end', id: 't' },
            ]
          : [part],
      );
      return {
        stream: ReadableStream.from([{ type: 'stream-start', warnings: [] }, ...parts, { type: 'finish', ...finish }]),
      };
    },
  });
};

const PAGE_CALLS = [{ id: 'c1', name: 'refund', args: { orderId: '1234', amount: 20 } }];
export const pageReceived = [];
/** The model of the program of the docs. */
export const model = scripted(PAGE_CALLS, pageReceived);

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
  }) {
    const amount = changedSchema ? z.number().max(1000) : z.number();
    const name = renamed ? 'pay' : 'refund';
    const gated = createTool({
      id: name,
      description: 'Pays money back.',
      inputSchema: z.object({ amount, note: z.string().default('none') }),
      ...(!unheld && { execute: refund }),
      ...(timeoutMs && { background: { enabled: true, timeoutMs } }),
    });
    const free = createTool({ id: 'lookup', description: '', inputSchema: z.object({}), execute: lookup });
    const received = [];
    const requested = [];
    const options = {
      executionId,
      wait,
      onRequested(request) {
        requested.push(request.toolCallId);
        return onRequested?.(request);
      },
    };
    const tools = { ...withApproval(gate, { [name]: gated }, options), lookup: free };
    const agentOf = (storage) => {
      const agent = new Agent({
        id: 'payouts',
        name: 'payouts',
        instructions: '',
        model: scripted(calls, received),
        tools,
      });
      return new Mastra({ agents: { agent }, storage, logger: false }).getAgent('agent');
    };
    const ended = async (store, stream) => {
      await stream.consumeStream();
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
        for (const toolCallId of toolCallIds)
          result = await ended(store, await agent.resumeStream({}, { runId, toolCallId }));
        return result;
      },
    };
  },
};
