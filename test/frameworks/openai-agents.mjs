import {
  Agent,
  getAllMcpTools,
  MCPServerStdio,
  RunState,
  run,
  setTracingDisabled,
  tool,
  Usage,
  webSearchTool,
} from '@openai/agents';
import { z } from 'zod';
import { approveInterruptions, withApproval } from '../../plugins/frameworks/openai-agents.ts';

setTracingDisabled(true);

/** One turn with these calls, then one with a text. `received` gets what the model reads as the tools' results. */
const scripted = (calls, received) => {
  const respond = ({ input }) => {
    const items = typeof input === 'string' ? [] : input;
    const results = items.filter(({ type }) => type === 'function_call_result');
    received.push(...results.map(({ callId, output }) => [callId, JSON.stringify(output)]));
    const content = [{ type: 'output_text', text: 'Done.' }];
    return results.length > 0
      ? [{ type: 'message', role: 'assistant', status: 'completed', content }]
      : calls.map(({ id, name, args }) => ({
          type: 'function_call',
          callId: id,
          name,
          arguments: JSON.stringify(args),
          status: 'completed',
        }));
  };
  return {
    getResponse: async (request) => ({ usage: new Usage(), output: respond(request) }),
    async *getStreamedResponse(request) {
      const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
      yield { type: 'response_done', response: { id: 'r1', usage, output: respond(request) } };
    },
  };
};

const PAGE_CALLS = [{ id: 'c1', name: 'refund', args: { orderId: '1234', amount: 20 } }];
export const pageReceived = [];
/** The model of the program of the docs. */
export const model = scripted(PAGE_CALLS, pageReceived);

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
  }) {
    const amount = changedSchema ? z.number().max(1000) : z.number();
    const gated = tool({
      name: renamed ? 'pay' : 'refund',
      description: 'Pays money back.',
      parameters: z.object({ amount, note: z.string().default('none') }),
      execute: refund,
      ...(timeoutMs && { timeoutMs }),
    });
    const free = tool({ name: 'lookup', description: '', parameters: z.object({}), execute: lookup });
    const received = [];
    const server = mcpServer && new MCPServerStdio(mcpServer);
    await server?.connect();
    const gatedTools = server ? await getAllMcpTools([server]) : [unheld ? webSearchTool() : gated];
    const tools = [...withApproval(gate, gatedTools, { executionId, wait, onRequested }), free];
    const payouts = new Agent({ name: 'payouts', model: scripted(calls, received), tools });
    const delegate = subAgent && payouts.asTool({ toolName: 'delegate', toolDescription: 'Pays money back.' });
    const delegation = [{ id: 'd1', name: 'delegate', args: { input: 'Refund it.' } }];
    const agent = subAgent
      ? new Agent({ name: 'support', model: scripted(delegation, []), tools: [delegate] })
      : payouts;
    const ended = async (input, signal) => {
      const result = await run(agent, input, { signal, stream: onPart !== undefined });
      if (onPart) for await (const part of result) onPart(part);
      const { interruptions, state } = result;
      return { suspended: interruptions.length > 0, state: state.toString(), received };
    };
    return {
      start: (signal) => ended('Refund it.', signal),
      async resume(text, signal) {
        const state = await RunState.fromString(agent, text);
        approveInterruptions(state);
        return ended(state, signal);
      },
      close: () => server?.close(),
    };
  },
};
