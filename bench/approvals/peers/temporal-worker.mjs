import { Client, Connection } from '@temporalio/client';
import { bundleWorkflowCode, NativeConnection, Runtime, Worker } from '@temporalio/worker';

const quiet = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, log() {} };

/** A worker with its client; the bench started their server. */
export class TemporalWorker {
  #queue;
  #workflow;
  #code;
  #stop;

  /** @param name of the task queue, and of the file with the workflows. */
  static async open(name) {
    const worker = new TemporalWorker();
    const { TEMPORAL_ADDRESS: address } = process.env;
    Runtime.install({ logger: quiet });
    worker.#queue = name;
    worker.#workflow = new Client({ connection: await Connection.connect({ address }) }).workflow;
    const workflowsPath = new URL(`./${name}-workflows.mjs`, import.meta.url).pathname;
    worker.#code = (await bundleWorkflowCode({ workflowsPath, logger: quiet })).code;
    return worker;
  }

  /** Works with these activities, in place of those before. */
  async work(activities) {
    await this.close();
    const worker = await Worker.create({
      connection: await NativeConnection.connect({ address: process.env.TEMPORAL_ADDRESS }),
      taskQueue: this.#queue,
      workflowBundle: { code: this.#code },
      activities,
      // A killed worker would keep the next step of its workflows for ten seconds, and longer on the test server.
      maxCachedWorkflows: 0,
    });
    const running = worker.run();
    this.#stop = () => {
      worker.shutdown();
      return running;
    };
  }

  /** Starts the workflow of a run. */
  async start(run, ...args) {
    const workflowId = this.idOf(run);
    await this.#workflow.start('refund', { taskQueue: this.#queue, workflowId, args: [run, ...args] });
  }

  handle(run) {
    return this.#workflow.getHandle(this.idOf(run));
  }

  signal(workflowId, runId, name) {
    return this.#workflow.getHandle(workflowId, runId).signal(name);
  }

  async close() {
    await this.#stop?.();
    this.#stop = undefined;
  }

  idOf(run) {
    return `${this.#queue}-${run}`;
  }
}
