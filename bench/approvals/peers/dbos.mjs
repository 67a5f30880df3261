import { DBOS } from '@dbos-inc/dbos-sdk';
import { AMOUNT } from './script.mjs';

const WAIT_SECONDS = 600;
const context = {};

/** It has no agents: the gate is the workflow of its documentation, a `recv` before the step. */
const refund = DBOS.registerWorkflow(
  async (run, amount, seconds = WAIT_SECONDS) => {
    const verdict = await DBOS.recv('decision', seconds);
    if (verdict === null) return 'nobody decided';
    if (!verdict.approve) return 'rejected';
    return DBOS.runStep(async () => JSON.stringify(await context.effects.pay(run, verdict.amount ?? amount)), {
      name: 'pay',
    });
  },
  { name: 'refund' },
);

export default {
  name: 'DBOS',
  packages: ['@dbos-inc/dbos-sdk'],
  async open({ url, effects, isRestart }) {
    context.effects = effects;
    // A process has a single instance.
    if (isRestart) await DBOS.shutdown();
    DBOS.setConfig({ name: 'payouts', systemDatabaseUrl: url, logLevel: 'error', runAdminServer: false });
    await DBOS.launch();
    const resultOf = async (run) => String(await DBOS.retrieveWorkflow(run).getResult());
    return {
      start: (run) => DBOS.startWorkflow(refund, { workflowID: run })(run, AMOUNT),
      async decide(run, verdict) {
        await DBOS.send(run, verdict, 'decision');
        return resultOf(run);
      },
      recover: resultOf,
      async startExpiring(run) {
        await DBOS.startWorkflow(refund, { workflowID: run })(run, AMOUNT, 1);
        return resultOf(run);
      },
      list: async () => (await DBOS.listWorkflows({ status: 'PENDING' })).length,
      async tamper(run) {
        await effects.query(
          `UPDATE dbos.workflow_input SET inputs = replace(inputs, '42', '9999') WHERE workflow_uuid = $1`,
          [run],
        );
      },
      noRename: 'a workflow has no parameters that are checked',
      close: () => DBOS.shutdown(),
    };
  },
};
