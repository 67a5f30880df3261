import { generateText, stepCountIs, streamText, ToolLoopAgent, tool } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { z } from 'zod';
import { resumeMessage, withApproval } from '../../plugins/frameworks/ai-sdk.ts';
import { PAGE_CALLS, scripted } from './ai-sdk-model.mjs';

export const pageReceived = [];
/** The model of the program of the docs. */
export const model = scripted(MockLanguageModelV3, PAGE_CALLS, pageReceived);

async function connect(server) {
  const { createMCPClient } = await import('@ai-sdk/mcp');
  const { Experimental_StdioMCPTransport: StdioTransport } = await import('@ai-sdk/mcp/mcp-stdio');
  return createMCPClient({ transport: new StdioTransport(server) });
}

/** Version 7 has the same parts under other names. */
export const hostOf = ({ generateText, streamText, ToolLoopAgent, stopAfter, timeoutOf, tool, Model, messagesOf }) => ({
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
    const client = mcpServer && (await connect(mcpServer));
    const gated = client
      ? await client.tools()
      : {
          [renamed ? 'pay' : 'refund']: tool({
            description: 'Pays money back.',
            inputSchema: z.object({ amount, note: z.string().default('none') }),
            ...(!unheld && { execute: refund }),
          }),
        };
    const own = {
      ...withApproval(gate, gated, { executionId, wait, onRequested }),
      lookup: tool({ inputSchema: z.object({}), execute: lookup }),
    };
    const received = [];
    const scriptedModel = scripted(Model, calls, received);
    const delegate = tool({
      inputSchema: z.object({}),
      execute: async (_input, { abortSignal }) => {
        const agent = new ToolLoopAgent({ model: scriptedModel, tools: own });
        return (await agent.generate({ prompt: 'Refund it.', abortSignal })).text;
      },
    });
    const run = async (messages, abortSignal) => {
      const settings = {
        model: subAgent ? scripted(Model, [{ id: 'd1', name: 'delegate', args: {} }], []) : scriptedModel,
        tools: subAgent ? { delegate } : own,
        stopWhen: stopAfter(3),
        messages,
        abortSignal,
        ...(runTimeoutMs && { timeout: timeoutOf(runTimeoutMs) }),
      };
      const result = onPart ? streamText(settings) : await generateText(settings);
      if (onPart) for await (const part of result.fullStream) onPart(part);
      const suspended = (await result.content).some(({ type }) => type === 'tool-approval-request');
      return { suspended, state: JSON.stringify([...messages, ...(await messagesOf(result))]), received };
    };
    return {
      start: (signal) => run([{ role: 'user', content: 'Refund it.' }], signal),
      resume(state, signal) {
        const messages = JSON.parse(state);
        return run([...messages, resumeMessage(messages)], signal);
      },
      close: () => client?.close(),
    };
  },
});

export default hostOf({
  generateText,
  streamText,
  ToolLoopAgent,
  stopAfter: stepCountIs,
  timeoutOf: (ms) => ms,
  tool,
  Model: MockLanguageModelV3,
  messagesOf: async ({ response }) => (await response).messages,
});
