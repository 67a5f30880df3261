import { Mastra } from '@mastra/core';
import { Agent } from '@mastra/core/agent';
import { RequestContext } from '@mastra/core/request-context';
import { PostgresStore } from '@mastra/pg';
import { withApproval } from '../../../dist/plugins/frameworks/mastra.js';
import { model, refundOf, tamperSnapshot } from './mastra.mjs';
import { callOf, promptOf } from './script.mjs';
import { openGates, suspendedSystem } from './svc-gate.mjs';

/** As mastra.mjs, with the tool wrapped in place of `requireApproval`. */
export default {
  name: 'Mastra with svc',
  packages: [],
  async open({ url, effects, renamed }) {
    const refund = refundOf(effects, renamed);
    const gates = openGates({ url });
    const executionId = ({ requestContext }) => requestContext.get('run');
    const agentOf = (id, gate) =>
      new Agent({
        id,
        name: id,
        instructions: 'You pay.',
        model: model(),
        tools: withApproval(gate, { refund }, { executionId, wait: 'suspend', onRequested: gates.onRequested }),
      });
    const storage = new PostgresStore({ id: 'store', connectionString: url });
    const agents = { payouts: agentOf('payouts', gates.payouts), expiring: agentOf('expiring', gates.expiring) };
    const mastra = new Mastra({ agents, storage, logger: false });
    const responseOf = ({ finishReason, text, error }) =>
      error ? `refused: ${error.message ?? error}` : finishReason === 'suspended' ? 'waits' : text || finishReason;
    const contextOf = (run) => ({ runId: run, requestContext: new RequestContext([['run', run]]) });
    const start = async (run, agent) =>
      responseOf(await mastra.getAgent(agent).generate(promptOf(run), contextOf(run)));
    const resume = async (run, agent) => {
      const options = { ...contextOf(run), toolCallId: callOf(run).id };
      return responseOf(await mastra.getAgent(agent).resumeGenerate({}, options));
    };
    return suspendedSystem(gates, effects, { start, resume, tamperRun: (run) => tamperSnapshot(effects, run) });
  },
};
