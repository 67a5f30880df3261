import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { Command, interrupt, MemorySaver } from '@langchain/langgraph';
import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import { z } from 'zod';

/** One turn with these calls, then one with a text. `received` gets what the model reads as the tools' results. */
export class Scripted extends BaseChatModel {
  constructor(calls, received) {
    super({});
    Object.assign(this, { calls, received });
  }

  _llmType() {
    return 'scripted';
  }

  bindTools() {
    return this;
  }

  async _generate(messages) {
    const results = messages.filter((one) => one.getType() === 'tool');
    this.received.push(...results.map(({ tool_call_id, content }) => [tool_call_id, JSON.stringify(content)]));
    const message =
      results.length > 0
        ? new AIMessage('Done.')
        : new AIMessage({ content: 'I pay it back.', tool_calls: this.calls });
    return { generations: [{ text: '', message }] };
  }
}

export const pageReceived = [];
const pageCall = { id: 'c1', name: 'refund', args: { orderId: '1234', amount: 20 } };
/** The model of the programs of the docs. */
export const model = new Scripted([pageCall], pageReceived);

/** Checkpoints that another process can continue from. */
class Saver extends MemorySaver {
  toText() {
    return JSON.stringify([this.storage, this.writes], (_key, value) =>
      value instanceof Uint8Array ? { bytes: Buffer.from(value).toString() } : value,
    );
  }

  static from(text) {
    const saver = new Saver();
    [saver.storage, saver.writes] = JSON.parse(text, (_key, value) =>
      typeof value?.bytes === 'string' ? new Uint8Array(Buffer.from(value.bytes)) : value,
    );
    return saver;
  }
}

/**
 * Runs of an agent, each with a checkpointer of its own.
 * @param withGate the part of its settings that puts tools under a gate.
 * @param agentOf the agent of a model, tools and a checkpointer.
 */
export async function openRuns(
  {
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
    returnsCommand,
  },
  { withGate, agentOf },
) {
  const amount = changedSchema ? z.number().max(1000) : z.number();
  const name = renamed ? 'pay' : 'refund';
  const schema = z.object({ amount, note: z.string().default('none') });
  const command = async (args, { toolCall }) => {
    const message = new ToolMessage({ content: await refund(args), tool_call_id: toolCall.id });
    return new Command({ update: { messages: [message] } });
  };
  const gated = tool(returnsCommand ? command : refund, { name, description: 'Pays money back.', schema });
  const free = tool(lookup, { name: 'lookup', description: '', schema: z.object({}) });
  const received = [];
  const client = mcpServer && new MultiServerMCPClient({ mcpServers: { shop: mcpServer } });
  const providersTool = { type: 'refund_20260101', name };
  const gatedTools = client ? await client.getTools() : [unheld ? providersTool : gated];
  const options = { onRequested, ...(wait === 'suspend' && { interrupt }) };
  const { tools, ...settings } = withGate(gate, gatedTools, options);
  const payoutsWith = (checkpointer) =>
    agentOf({ ...settings, model: new Scripted(calls, received), tools: [...tools, free], checkpointer });
  const prompt = { messages: [{ role: 'user', content: 'Refund it.' }] };
  const supportWith = (checkpointer) => {
    const payouts = payoutsWith();
    const work = async (_input, config) => (await payouts.invoke(prompt, config)).messages.at(-1).text;
    const delegate = tool(work, { name: 'delegate', description: '', schema: z.object({}) });
    return agentOf({
      model: new Scripted([{ id: 'd1', name: 'delegate', args: {} }], []),
      tools: [delegate],
      checkpointer,
    });
  };
  const run = async (saver, input, signal) => {
    const agent = subAgent ? supportWith(saver) : payoutsWith(saver);
    const config = { configurable: { thread_id: executionId }, signal, timeout: runTimeoutMs };
    if (!onPart) {
      const result = await agent.invoke(input, config);
      return { suspended: result.__interrupt__ !== undefined, state: saver.toText(), received };
    }
    let suspended = false;
    for await (const part of await agent.stream(input, { ...config, streamMode: 'updates' })) {
      onPart(part);
      suspended ||= part.__interrupt__ !== undefined;
    }
    return { suspended, state: saver.toText(), received };
  };
  return {
    start: (signal) => run(new Saver(), prompt, signal),
    resume: (state) => run(Saver.from(state), new Command({ resume: true })),
    close: () => client?.close(),
  };
}
