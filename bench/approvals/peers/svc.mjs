import { definePlugin, Svc } from '../../../dist/config/sdk/index.js';
import { callOf, DONE, promptOf } from './script.mjs';
import { tamperWith, waitingIn } from './svc-gate.mjs';

const turns = (run) => [{ calls: [{ tool: 'refund', parameters: callOf(run).args }] }, { text: DONE }];

/** A model that derives its reply from the prompt: a script would be the same for every run. */
const scriptedByPrompt = definePlugin({
  name: 'bench-model',
  apply(kernel) {
    kernel.models.register('by-prompt', () => ({
      async *turn({ prompt, turns: previous }) {
        const [, run] = /order (\S+)/.exec(prompt);
        const { text = '', calls = [] } = turns(run)[previous.length];
        if (text) yield { type: 'text', text };
        for (const { tool, parameters } of calls) yield { type: 'tool_call', id: `call_${run}`, tool, parameters };
        yield { type: 'finished', inputTokens: 0, outputTokens: 0 };
      },
    }));
  },
});

export default {
  name: 'svc',
  packages: [],
  async open({ url, effects, renamed }) {
    const svc = new Svc({
      product: 'bench',
      env: 'dev',
      config: {
        databases: { main: { dialect: 'postgresql', url } },
        approvals: { store: { database: 'main' } },
        plugins: [scriptedByPrompt],
      },
    });
    const amountName = renamed ? 'sum' : 'amount';
    const agentOf = (tag, approvalTimeout) =>
      svc.agents.define({
        tag,
        model: { provider: 'by-prompt', model: 'test' },
        tools: [
          {
            tag: 'refund',
            description: 'Pays.',
            requiresConfirmation: true,
            parameters: {
              orderId: { type: 'string', required: true },
              [amountName]: { type: 'number', required: true },
            },
            handler: (_ctx, { orderId, ...rest }) => effects.pay(orderId, rest[amountName]),
          },
        ],
        humanInLoop: { enabled: true, approvalTimeout },
      });
    const payouts = agentOf('payouts', 600_000);
    const expiring = agentOf('expiring', 1_000);
    /** Runs of this process; those of other processes are looked up in the store. */
    const runs = new Map();
    const responseOf = (outcome) => {
      const last = outcome.steps.flatMap(({ calls }) => calls).at(-1);
      return `${last?.status} ${JSON.stringify(last?.result)} ${outcome.text || outcome.status}`;
    };
    const requestOf = async (run) => {
      const known = runs.get(run)?.request;
      if (known) return known;
      const { records } = await svc.approvals.list({ limit: 1000, newestFirst: true });
      const found = records.find(({ parameters }) => parameters.orderId === run);
      return found ?? { requestId: run, executionId: run };
    };
    const begin = async (agent, id) => {
      const run = agent.run({ prompt: promptOf(id) });
      const request = await new Promise((resolve, reject) => {
        run.result.catch(reject);
        (async () => {
          for await (const event of run) if (event.type === 'approval_requested') resolve(event.request);
        })().catch(reject);
      });
      runs.set(id, { run, request });
    };
    return {
      start: (id) => begin(payouts, id),
      async startExpiring(id) {
        await begin(expiring, id);
        return responseOf(await runs.get(id).run.result);
      },
      async decide(id, { approve, amount }) {
        const { executionId, requestId } = await requestOf(id);
        const payload = { requestId, ...(amount !== undefined && { modifiedParams: { amount } }) };
        await svc.agents.signal({ executionId, signal: approve ? 'approve' : 'reject', payload });
        const run = runs.get(id)?.run ?? (await svc.agents.resume(executionId));
        return responseOf(await run.result);
      },
      async recover(id) {
        const [{ executionId }] = await effects.query(
          `SELECT "executionId" FROM _svc_executions WHERE state->>'prompt' = $1`,
          [promptOf(id)],
        );
        return responseOf(await (await svc.agents.resume(executionId)).result);
      },
      list: () => waitingIn(svc),
      tamper: async (id) => tamperWith(effects, (await requestOf(id)).requestId),
      close: () => svc.close(),
    };
  },
};
