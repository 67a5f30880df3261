import { Mastra } from '@mastra/core';
import { Agent } from '@mastra/core/agent';
import { RequestContext } from '@mastra/core/request-context';
import { createTool } from '@mastra/core/tools';
import { PostgresStore } from '@mastra/pg';
import { z } from 'zod';
import { withApproval } from '../../../dist/plugins/frameworks/mastra.js';
import { model } from './mastra.mjs';
import { callOf, promptOf } from './script.mjs';
import { openGates } from './svc-gate.mjs';

/** As mastra.mjs, with the tool wrapped in place of `requireApproval`. */
export default {
  name: 'Mastra with svc',
  packages: [],
  async open({ url, effects, renamed }) {
    const amountName = renamed ? 'sum' : 'amount';
    const refund = createTool({
      id: 'refund',
      description: 'Pays.',
      inputSchema: z.object({ orderId: z.string(), [amountName]: z.number() }),
      execute: ({ orderId, ...rest }) => effects.pay(orderId, rest[amountName]),
    });
    const { svc, payouts, expiring, onRequested, decide, list, tamper } = openGates({ url });
    const executionId = ({ requestContext }) => requestContext.get('run');
    const agentOf = (id, gate) =>
      new Agent({
        id,
        name: id,
        instructions: 'You pay.',
        model: model(),
        tools: withApproval(gate, { refund }, { executionId, wait: 'suspend', onRequested }),
      });
    const storage = new PostgresStore({ id: 'store', connectionString: url });
    const agents = { payouts: agentOf('payouts', payouts), expiring: agentOf('expiring', expiring) };
    const mastra = new Mastra({ agents, storage, logger: false });
    const responseOf = ({ finishReason, text, error }) =>
      error ? `refused: ${error.message ?? error}` : finishReason === 'suspended' ? 'waits' : text || finishReason;
    const contextOf = (run) => ({ runId: run, requestContext: new RequestContext([['run', run]]) });
    const start = async (run, agent = 'payouts') =>
      responseOf(await mastra.getAgent(agent).generate(promptOf(run), contextOf(run)));
    const resume = async (run, agent = 'payouts') => {
      const options = { ...contextOf(run), toolCallId: callOf(run).id };
      return responseOf(await mastra.getAgent(agent).resumeGenerate({}, options));
    };
    return {
      start: (run) => start(run),
      async startExpiring(run) {
        await start(run, 'expiring');
        for (;;) {
          const response = await resume(run, 'expiring');
          if (response !== 'waits') return response;
        }
      },
      async decide(run, verdict) {
        await decide(run, verdict);
        return resume(run);
      },
      recover: (run) => resume(run),
      list,
      async tamper(run) {
        await tamper(effects, run);
        await effects.query(
          `UPDATE mastra_workflow_snapshot SET snapshot = replace(replace(snapshot::text, '"amount": 42', '"amount": 9999'), '"amount":42', '"amount":9999')::jsonb WHERE run_id = $1`,
          [run],
        );
      },
      close: () => svc.close(),
    };
  },
};
