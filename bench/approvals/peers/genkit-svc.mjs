import { generateMiddleware } from 'genkit';
import { toToolDefinition } from 'genkit/tool';
import { approvalMiddleware, resumeOptions } from '../../../dist/plugins/frameworks/genkit.js';
import { refundOf, scripted } from './genkit.mjs';
import { OwnTable } from './own-table.mjs';
import { promptOf } from './script.mjs';
import { openGates, suspendedSystem } from './svc-gate.mjs';

/** As genkit.mjs, with the middleware of svc in place of an interrupt. */
export default {
  name: 'Genkit with svc',
  packages: [],
  async open({ url, effects, renamed }) {
    const { ai, model } = scripted();
    const refund = refundOf(ai, renamed, (orderId, amount) => effects.pay(orderId, amount));
    const gates = openGates({ url });
    const table = await OwnTable.open(effects);
    const optionsOf = (name, gate) => {
      const executionId = ({ context }) => context.run;
      const options = {
        tools: [refund],
        toToolDefinition,
        executionId,
        wait: 'suspend',
        onRequested: gates.onRequested,
      };
      return generateMiddleware({ name }, approvalMiddleware(gate, options));
    };
    const uses = { payouts: optionsOf('payouts', gates.payouts), expiring: optionsOf('expiring', gates.expiring) };
    const generate = async (id, input, gate) => {
      const settings = { model, tools: [refund], use: [uses[gate]()], context: { run: id } };
      const { finishReason, messages, text } = await ai.generate({ ...settings, ...input });
      const waits = finishReason === 'interrupted';
      await table.put(id, JSON.stringify(messages), waits);
      return waits ? 'waits' : text;
    };
    const resume = async (id, gate) => {
      const messages = JSON.parse(await table.get(id));
      return generate(id, { messages, resume: resumeOptions(messages) }, gate);
    };
    const start = (id, gate) => generate(id, { prompt: promptOf(id) }, gate);
    return suspendedSystem(gates, effects, { start, resume, tamperRun: (run) => table.tamper(run) });
  },
};
