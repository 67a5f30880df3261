import { Agent, RunState, run, setTracingDisabled, tool, Usage, webSearchTool } from '@openai/agents';
import { z } from 'zod';
import { approveInterruptions, withApproval } from '../../plugins/frameworks/openai-agents.ts';

setTracingDisabled(true);

/** One turn with these calls, then one with a text. `received` gets what the model reads as the tools' results. */
const scripted = (calls, received) => ({
  async getResponse({ input }) {
    const items = typeof input === 'string' ? [] : input;
    const results = items.filter(({ type }) => type === 'function_call_result');
    received.push(...results.map(({ callId, output }) => [callId, JSON.stringify(output)]));
    const output =
      results.length > 0
        ? [
            {
              type: 'message',
              role: 'assistant',
              status: 'completed',
              content: [{ type: 'output_text', text: 'Done.' }],
            },
          ]
        : calls.map(({ id, name, args }) => ({
            type: 'function_call',
            callId: id,
            name,
            arguments: JSON.stringify(args),
            status: 'completed',
          }));
    return { usage: new Usage(), output };
  },
  getStreamedResponse() {
    throw new Error('not used');
  },
});

const PAGE_CALLS = [{ id: 'c1', name: 'refund', args: { orderId: '1234', amount: 20 } }];
export const pageReceived = [];
/** The model of the program of the docs. */
export const model = scripted(PAGE_CALLS, pageReceived);

export default {
  name: 'OpenAI Agents 0.20',
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
    const gated = tool({
      name: renamed ? 'pay' : 'refund',
      description: 'Pays money back.',
      parameters: z.object({ amount, note: z.string().default('none') }),
      execute: refund,
      ...(timeoutMs && { timeoutMs }),
    });
    const free = tool({ name: 'lookup', description: '', parameters: z.object({}), execute: lookup });
    const received = [];
    const tools = [...withApproval(gate, [unheld ? webSearchTool() : gated], { executionId, wait, onRequested }), free];
    const agent = new Agent({ name: 'payouts', model: scripted(calls, received), tools });
    const ended = ({ interruptions, state }) => ({
      suspended: interruptions.length > 0,
      state: state.toString(),
      received,
    });
    return {
      start: async (signal) => ended(await run(agent, 'Refund it.', { signal })),
      async resume(text) {
        const state = await RunState.fromString(agent, text);
        approveInterruptions(state);
        return ended(await run(agent, state));
      },
    };
  },
};
