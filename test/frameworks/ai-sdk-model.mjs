const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/**
 * A model of the AI SDK: one turn with these calls, then one with a text. `received` gets what the model reads as the tools'
 * results.
 */
export function scripted(Model, calls, received) {
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
  return new Model({
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
}

export const PAGE_CALLS = [{ id: 'c1', name: 'refund', args: { orderId: '1234', amount: 20 } }];
