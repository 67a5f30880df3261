import { AMOUNT } from './script.mjs';
import { TemporalWorker } from './temporal-worker.mjs';

const WAIT_MS = 600_000;
/** `worker`: a process has a single one. */
const context = {};

export default {
  name: 'Temporal',
  packages: ['@temporalio/worker'],
  async open({ effects, victim, job }) {
    context.worker ??= await TemporalWorker.open('temporal', { victim, job });
    const { worker } = context;
    await worker.work({ pay: (run, amount) => effects.pay(run, amount) });
    const recover = (run) => worker.handle(run).result();
    return {
      start: (run) => worker.start(run, AMOUNT, WAIT_MS),
      async decide(run, verdict) {
        await worker.handle(run).signal('decision', verdict);
        return recover(run);
      },
      recover,
      async startExpiring(run) {
        await worker.start(run, AMOUNT, 1_000);
        return recover(run);
      },
      // Its test server cannot list.
      noTamper: 'its histories are in the memory of its server',
      noRename: 'a workflow has no parameters that are checked',
      close: () => worker.close(),
    };
  },
};
