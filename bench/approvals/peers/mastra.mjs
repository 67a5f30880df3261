import { Mastra } from '@mastra/core';
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { PostgresStore } from '@mastra/pg';
import { MockLanguageModelV4 } from 'ai/test';
import { z } from 'zod';
import { callOf, DONE, promptOf, runIn } from './script.mjs';

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

export const model = () => {
  const turn = async ({ prompt }) => {
    const isLast = prompt.at(-1).role === 'tool';
    const { id, name, args } = callOf(runIn(JSON.stringify(prompt).replaceAll('"', ' ')));
    const unified = isLast ? 'stop' : 'tool-calls';
    const textParts = [
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: DONE },
      { type: 'text-end', id: 't' },
    ];
    const call = [{ type: 'tool-call', toolCallId: id, toolName: name, input: JSON.stringify(args) }];
    const parts = [
      { type: 'stream-start', warnings: [] },
      ...(isLast ? textParts : call),
      { type: 'finish', finishReason: { unified, raw: unified }, usage: USAGE },
    ];
    const content = isLast ? [{ type: 'text', text: DONE }] : call;
    return { parts, content, finishReason: { unified, raw: unified } };
  };
  return new MockLanguageModelV4({
    async doGenerate(options) {
      const { content, finishReason } = await turn(options);
      return { content, finishReason, usage: USAGE, warnings: [] };
    },
    async doStream(options) {
      const { parts } = await turn(options);
      return { stream: ReadableStream.from(parts) };
    },
  });
};

export const refundOf = (effects, renamed, more = {}) => {
  const amountName = renamed ? 'sum' : 'amount';
  return createTool({
    id: 'refund',
    description: 'Pays.',
    inputSchema: z.object({ orderId: z.string(), [amountName]: z.number() }),
    execute: ({ orderId, ...rest }) => effects.pay(orderId, rest[amountName]),
    ...more,
  });
};

/** Changes the stored amount of a run. */
export const tamperSnapshot = (effects, run) =>
  effects.query(
    `UPDATE mastra_workflow_snapshot SET snapshot = replace(replace(snapshot::text, '"amount": 42', '"amount": 9999'), '"amount":42', '"amount":9999')::jsonb WHERE run_id = $1`,
    [run],
  );

export default {
  name: 'Mastra',
  packages: ['@mastra/core', '@mastra/pg'],
  async open({ url, effects, renamed }) {
    const refund = refundOf(effects, renamed, { requireApproval: true });
    const payouts = new Agent({
      id: 'payouts',
      name: 'payouts',
      instructions: 'You pay.',
      model: model(),
      tools: { refund },
    });
    const storage = new PostgresStore({ id: 'store', connectionString: url });
    const agent = new Mastra({ agents: { payouts }, storage, logger: false }).getAgent('payouts');
    const responseOf = ({ finishReason, text, error }) =>
      error ? `refused: ${error.message ?? error}` : finishReason === 'suspended' ? 'waits' : text || finishReason;
    const callRefOf = (run) => ({ runId: run, toolCallId: callOf(run).id });
    return {
      start: async (run) => responseOf(await agent.generate(promptOf(run), { runId: run })),
      decide: async (run, { approve }) =>
        responseOf(
          await (approve
            ? agent.approveToolCallGenerate(callRefOf(run))
            : agent.declineToolCallGenerate(callRefOf(run))),
        ),
      /** It lists suspended runs; none resumes by itself. */
      async recover(run) {
        const { runs } = await agent.listSuspendedRuns({});
        return runs.some(({ runId }) => runId === run) ? 'waits' : 'not listed any more';
      },
      noEdit: true,
      async list() {
        let listed = 0;
        for (let page = 0; ; page++) {
          const { runs } = await agent.listSuspendedRuns({ page, perPage: 100 });
          listed += runs.length;
          if (runs.length === 0) return listed;
        }
      },
      tamper: (run) => tamperSnapshot(effects, run),
      close: async () => {},
    };
  },
};
