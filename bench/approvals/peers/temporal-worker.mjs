import { Client, Connection } from '@temporalio/client';
import { bundleWorkflowCode, NativeConnection, Runtime, Worker } from '@temporalio/worker';

/** The runs of killed processes have queues of their own: no other victim is to continue them. */
const VICTIMS = ['victim-before', 'victim-after'];
const quiet = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, log() {} };

/** A worker with its client; the bench started their server. */
export class TemporalWorker {
  #queue;
  #victim;
  #isKilled;
  #workflow;
  #code;
  #stop;

  /**
   * @param name of the task queue, and of the file with the workflows.
   * @param victim the run of a process that will be killed, the only one that it works on.
   * @param job of the host: with `figures`, nothing is killed.
   */
  static async open(name, { victim, job }) {
    const worker = new TemporalWorker();
    const { TEMPORAL_ADDRESS: address } = process.env;
    Runtime.install({ logger: quiet });
    worker.#queue = name;
    worker.#victim = victim;
    worker.#isKilled = job !== 'figures';
    worker.#workflow = new Client({ connection: await Connection.connect({ address }) }).workflow;
    const workflowsPath = new URL(`./${name}-workflows.mjs`, import.meta.url).pathname;
    worker.#code = (await bundleWorkflowCode({ workflowsPath, logger: quiet })).code;
    return worker;
  }

  /** Works with these activities, in place of those before. */
  async work(activities) {
    await this.close();
    const connection = await NativeConnection.connect({ address: process.env.TEMPORAL_ADDRESS });
    const runs = this.#victim === undefined ? ['', ...VICTIMS] : [this.#victim];
    const workers = await Promise.all(
      runs.map((run) =>
        Worker.create({
          connection,
          taskQueue: this.#queueOf(run),
          workflowBundle: { code: this.#code },
          activities,
          // A killed worker would keep the next step of its workflows for ten seconds, and longer on the test server.
          ...(this.#isKilled && { maxCachedWorkflows: 0 }),
        }),
      ),
    );
    const running = Promise.all(workers.map((worker) => worker.run()));
    this.#stop = () => {
      for (const worker of workers) worker.shutdown();
      return running;
    };
  }

  /** Starts the workflow of a run. */
  async start(run, ...args) {
    const workflowId = this.idOf(run);
    await this.#workflow.start('refund', { taskQueue: this.#queueOf(run), workflowId, args: [run, ...args] });
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

  #queueOf(run) {
    return VICTIMS.includes(run) ? this.idOf(run) : this.#queue;
  }

  idOf(run) {
    return `${this.#queue}-${run}`;
  }
}
