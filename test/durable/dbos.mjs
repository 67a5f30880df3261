import { DBOS, DBOSClient } from '@dbos-inc/dbos-sdk';
import { approvalStep } from '../../plugins/frameworks/dbos.ts';

const QUEUE = 'payouts';

export async function startWorker({ url, tool }) {
  DBOS.setConfig({
    name: 'payouts',
    systemDatabaseUrl: url,
    // Waiting workflows outlive a new version of the code.
    applicationVersion: '1',
    logLevel: 'error',
    runAdminServer: false,
  });
  const step = (call) =>
    approvalStep(DBOS, tool, call).catch((error) => {
      console.log('ended without an outcome');
      throw error;
    });
  const payout = async ({ calls, inTurn }) => {
    if (!inTurn) return Promise.all(calls.map(step));
    const outcomes = [];
    for (const call of calls) outcomes.push(await step(call));
    return outcomes;
  };
  DBOS.registerWorkflow(payout, { name: 'payout' });
  await DBOS.launch();
  await DBOS.registerQueue(QUEUE);
}

export async function connect({ url }) {
  const client = await DBOSClient.create({ systemDatabaseUrl: url });
  const handle = (id) => client.retrieveWorkflow(id);
  return {
    start: (id, { timeoutMs: workflowTimeoutMS, ...input }) =>
      client.enqueue({ workflowName: 'payout', queueName: QUEUE, workflowID: id, workflowTimeoutMS }, input),
    result: (id) => handle(id).getResult(),
    cancel: (id) => client.cancelWorkflow(id),
    resume: (id) => client.resumeWorkflow(id),
    // What a program sends that knows DBOS, and knows no gate.
    forge: (id, toolCallId) => client.send(id, { approve: true }, toolCallId),
    close: () => client.destroy(),
  };
}
