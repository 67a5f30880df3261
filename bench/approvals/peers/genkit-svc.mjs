import { generateMiddleware } from 'genkit';
import { toToolDefinition } from 'genkit/tool';
import { approvalMiddleware, resumeOptions } from '../../../dist/plugins/frameworks/genkit.js';
import { refundOf, scripted } from './genkit.mjs';
import { OwnTable } from './own-table.mjs';
import { promptOf } from './script.mjs';
import { openGates } from './svc-gate.mjs';

/** As genkit.mjs, with the middleware of svc in place of an interrupt. */
export default {
  name: 'Genkit with svc',
  packages: [],
  async open({ url, effects, renamed }) {
    const { ai, model } = scripted();
    const refund = refundOf(ai, renamed, (orderId, amount) => effects.pay(orderId, amount));
    const { svc, payouts, expiring, onRequested, decide, list, tamper } = openGates({ url });
    const table = await OwnTable.open(effects);
    const optionsOf = (name, gate) => {
      const executionId = ({ context }) => context.run;
      const options = { tools: [refund], toToolDefinition, executionId, wait: 'suspend', onRequested };
      return generateMiddleware({ name }, approvalMiddleware(gate, options));
    };
    const uses = { payouts: optionsOf('payouts', payouts), expiring: optionsOf('expiring', expiring) };
    const generate = async (id, input, gate = 'payouts') => {
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
    return {
      start: (id) => generate(id, { prompt: promptOf(id) }),
      async startExpiring(id) {
        await generate(id, { prompt: promptOf(id) }, 'expiring');
        return resume(id, 'expiring');
      },
      async decide(id, verdict) {
        await decide(id, verdict);
        return resume(id);
      },
      recover: (id) => resume(id),
      list,
      async tamper(id) {
        await tamper(effects, id);
        await table.tamper(id);
      },
      close: () => svc.close(),
    };
  },
};
