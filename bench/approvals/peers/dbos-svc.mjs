import { DBOS } from '@dbos-inc/dbos-sdk';
import { approvalStep } from '../../../dist/plugins/frameworks/dbos.js';
import { AMOUNT } from './script.mjs';
import { openGates } from './svc-gate.mjs';

/** `stored`: called once the request of a run is stored. */
const context = { stored: new Map() };

const refund = DBOS.registerWorkflow(
  async (run, gate = 'payouts') => {
    const call = { toolCallId: 'refund', parameters: { orderId: run, amount: AMOUNT } };
    const { status, result } = await approvalStep(DBOS, context[gate], call, { onRequested: context.onRequested });
    return `${status} ${JSON.stringify(result)}`;
  },
  { name: 'refund' },
);

async function close() {
  await DBOS.shutdown();
  await context.gates.svc.close();
}

/** As dbos.mjs, with `approvalStep` in place of `recv`. */
export default {
  name: 'DBOS with svc',
  packages: [],
  async open({ url, effects, isRestart, renamed }) {
    // A process has a single instance.
    if (isRestart) await close();
    const gates = openGates({ url });
    const amountName = renamed ? 'sum' : 'amount';
    const guarded = (gate) => {
      const properties = { orderId: { type: 'string' }, [amountName]: { type: 'number' } };
      const inputSchema = { type: 'object', properties, required: Object.keys(properties) };
      return gate.guard('refund', { inputSchema, description: 'Pays.' }, ({ orderId, ...rest }) =>
        effects.pay(orderId, rest[amountName]),
      );
    };
    const { stored } = context;
    const onRequested = (request) => {
      gates.onRequested(request);
      stored.get(request.executionId)?.();
    };
    Object.assign(context, {
      gates,
      payouts: guarded(gates.payouts),
      expiring: guarded(gates.expiring),
      onRequested,
    });
    DBOS.setConfig({
      name: 'payouts',
      systemDatabaseUrl: url,
      applicationVersion: '1',
      logLevel: 'error',
      runAdminServer: false,
    });
    await DBOS.launch();
    const resultOf = async (run) => String(await DBOS.retrieveWorkflow(run).getResult());
    const begin = async (run, gate) => {
      const isStored = new Promise((resolve) => {
        stored.set(`dbos:${run}`, resolve);
      });
      await DBOS.startWorkflow(refund, { workflowID: run })(run, gate);
      await isStored;
      stored.delete(`dbos:${run}`);
    };
    return {
      start: (run) => begin(run, 'payouts'),
      async startExpiring(run) {
        await begin(run, 'expiring');
        return resultOf(run);
      },
      async decide(run, verdict) {
        await context.gates.decide(`dbos:${run}`, verdict);
        return resultOf(run);
      },
      recover: resultOf,
      list: () => context.gates.list(),
      async tamper(run) {
        await context.gates.tamper(effects, `dbos:${run}`);
        await effects.query(
          `UPDATE dbos.workflow_input SET inputs = replace(inputs, '42', '9999') WHERE workflow_uuid = $1`,
          [run],
        );
      },
      close,
    };
  },
};
