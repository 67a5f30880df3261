import * as activity from '@temporalio/activity';
import { Client, Connection } from '@temporalio/client';
import { bundleWorkflowCode, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { approvalActivities } from '../../plugins/frameworks/temporal.ts';

const quiet = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, log() {} };

/** The code of the workflows, which takes seconds to make. */
export async function bundle() {
  const workflowsPath = new URL('./temporal-workflows.mjs', import.meta.url).pathname;
  return (await bundleWorkflowCode({ workflowsPath, logger: quiet })).code;
}

export async function startWorker({ url, queue, code, tool }) {
  Runtime.install({ logger: quiet });
  const worker = await Worker.create({
    connection: await NativeConnection.connect({ address: url }),
    taskQueue: queue,
    workflowBundle: { code },
    activities: approvalActivities(activity, [tool]),
    // A killed worker would keep the next step of its workflows for ten seconds.
    maxCachedWorkflows: 0,
  });
  worker.run().catch((error) => {
    console.error(error);
    process.exit(1);
  });
}

export async function connect({ url, queue }) {
  const connection = await Connection.connect({ address: url });
  const { workflow } = new Client({ connection });
  const countEvents = async (id, attributes) => {
    const { events } = await workflow.getHandle(id).fetchHistory();
    return events.filter((event) => event[attributes]).length;
  };
  return {
    start: (id, { timeoutMs: workflowExecutionTimeout, ...input }) =>
      workflow.start('payout', { taskQueue: queue, workflowId: id, args: [input], workflowExecutionTimeout }),
    result: (id) => workflow.getHandle(id).result(),
    cancel: (id) => workflow.getHandle(id).cancel(),
    forge: (id, toolCallId) => workflow.getHandle(id).signal(`svc:${toolCallId}`),
    wake: (id, run, signal) => workflow.getHandle(id, run).signal(signal),
    /** How often a time-out, and no signal, continued the workflow. */
    checks: (id) => countEvents(id, 'timerFiredEventAttributes'),
    activities: (id) => countEvents(id, 'activityTaskScheduledEventAttributes'),
    failure: async (id) => {
      const { raw } = await workflow.getHandle(id).describe();
      return raw.pendingActivities?.[0]?.lastFailure?.message;
    },
    close: () => connection.close(),
  };
}
