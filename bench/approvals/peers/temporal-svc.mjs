import * as activity from '@temporalio/activity';
import { approvalActivities, wakeUps } from '../../../dist/plugins/frameworks/temporal.js';
import { AMOUNT } from './script.mjs';
import { openGates } from './svc-gate.mjs';
import { TemporalWorker } from './temporal-worker.mjs';

/** `stored`: called once the request of a workflow is stored. `executions`: of the workflows whose requests this process stored. */
const context = { stored: new Map(), executions: new Map() };

async function close() {
  await context.worker.close();
  await context.gates?.svc.close();
  context.gates = undefined;
}

/** As temporal.mjs, with `approvalStep` in place of a signal. */
export default {
  name: 'Temporal with svc',
  packages: [],
  async open({ url, effects, renamed, victim, job }) {
    context.worker ??= await TemporalWorker.open('temporal-svc', { victim, job });
    await close();
    const { worker, stored, executions } = context;
    const wake = (workflowId, runId, signal) => worker.signal(workflowId, runId, signal);
    const gates = openGates({ url, plugins: [wakeUps(wake)] });
    context.gates = gates;
    const amountName = renamed ? 'sum' : 'amount';
    const guarded = (gate, tag) => {
      const properties = { orderId: { type: 'string' }, [amountName]: { type: 'number' } };
      const inputSchema = { type: 'object', properties, required: Object.keys(properties) };
      return gate.guard(tag, { inputSchema, description: 'Pays.' }, ({ orderId, ...rest }) =>
        effects.pay(orderId, rest[amountName]),
      );
    };
    const onRequested = (request) => {
      gates.onRequested(request);
      const [, workflowId] = request.executionId.split(':');
      executions.set(workflowId, request.executionId);
      stored.get(workflowId)?.();
    };
    const tools = [guarded(gates.payouts, 'refund'), guarded(gates.expiring, 'expiring')];
    await worker.work(approvalActivities(activity, tools, { onRequested }));
    const begin = async (run, tool) => {
      const isStored = new Promise((resolve) => {
        stored.set(worker.idOf(run), resolve);
      });
      await worker.start(run, AMOUNT, tool);
      await isStored;
      stored.delete(worker.idOf(run));
    };
    const executionOf = async (run) => {
      const known = executions.get(worker.idOf(run));
      if (known !== undefined) return known;
      const { workflowId, runId } = await worker.handle(run).describe();
      return `temporal:${workflowId}:${runId}`;
    };
    const recover = (run) => worker.handle(run).result();
    return {
      start: (run) => begin(run, 'refund'),
      async startExpiring(run) {
        await begin(run, 'expiring');
        return recover(run);
      },
      async decide(run, verdict) {
        await context.gates.decide(await executionOf(run), verdict);
        return recover(run);
      },
      recover,
      list: () => context.gates.list(),
      tamper: async (run) => context.gates.tamper(effects, await executionOf(run)),
      close,
    };
  },
};
