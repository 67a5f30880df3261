import { generateText, isStepCount, tool } from 'ai';
import { z } from 'zod';
import { resumeMessage, withApproval } from '../../../dist/plugins/frameworks/ai-sdk.js';
import { model } from './aisdk.mjs';
import { OwnTable } from './own-table.mjs';
import { promptOf } from './script.mjs';
import { openGates, suspendedSystem } from './svc-gate.mjs';

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
    const gates = openGates({ url });
    const table = await OwnTable.open(effects);
    const step = async (run, messages, gate) => {
      const options = { executionId: run, wait: 'suspend', onRequested: gates.onRequested };
      const tools = withApproval(gates[gate], { refund }, options);
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
    return suspendedSystem(gates, effects, { start, resume, tamperRun: (run) => table.tamper(run) });
  },
};
