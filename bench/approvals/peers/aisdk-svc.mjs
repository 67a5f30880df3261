import { generateText, isStepCount, tool } from 'ai';
import { z } from 'zod';
import { resumeMessage, withApproval } from '../../../dist/plugins/frameworks/ai-sdk.js';
import { model } from './aisdk.mjs';
import { OwnTable } from './own-table.mjs';
import { promptOf } from './script.mjs';
import { openGates } from './svc-gate.mjs';

/** As aisdk.mjs, with the tool wrapped. */
export default {
  name: 'AI SDK with svc',
  packages: [],
  async open({ url, effects, renamed }) {
    const amountName = renamed ? 'sum' : 'amount';
    const refund = tool({
      description: 'Pays.',
      inputSchema: z.object({ orderId: z.string(), [amountName]: z.number() }),
      execute: ({ orderId, ...rest }) => effects.pay(orderId, rest[amountName]),
    });
    const { svc, payouts, expiring, onRequested, decide, list, tamper } = openGates({ url });
    const table = await OwnTable.open(effects);
    const step = async (run, messages, gate = payouts) => {
      const tools = withApproval(gate, { refund }, { executionId: run, wait: 'suspend', onRequested });
      const result = await generateText({ model: model(), tools, stopWhen: isStepCount(5), messages });
      const waits = result.content.some(({ type }) => type === 'tool-approval-request');
      await table.put(run, JSON.stringify([...messages, ...result.responseMessages]), waits);
      return waits ? 'waits' : result.text;
    };
    const resume = async (run, gate) => {
      const messages = JSON.parse(await table.get(run));
      return step(run, [...messages, resumeMessage(messages)], gate);
    };
    const start = (run, gate) => step(run, [{ role: 'user', content: promptOf(run) }], gate);
    return {
      start: (run) => start(run),
      async startExpiring(run) {
        await start(run, expiring);
        return resume(run, expiring);
      },
      async decide(run, verdict) {
        await decide(run, verdict);
        return resume(run);
      },
      recover: (run) => resume(run),
      list,
      async tamper(run) {
        await tamper(effects, run);
        await table.tamper(run);
      },
      close: () => svc.close(),
    };
  },
};
