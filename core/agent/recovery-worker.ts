import { setTimeout as wait } from 'node:timers/promises';
import type { ExecutionService } from './execution-service.ts';
import type { Run } from './run.ts';

/** @experimental */
export interface RecoveryOptions {
  /** Called for every execution that is taken over. */
  readonly onRun?: ((run: Run) => void) | undefined;
  /** Called when the store cannot be read. The worker tries again. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

const INTERVAL_MS = 5_000;

/** Takes over executions whose process died, until it is stopped. Keeps the process alive. @experimental */
export class RecoveryWorker {
  /** The runs that the first pass took over, when the worker started. */
  readonly initialRuns: Promise<readonly Run[]>;
  readonly #stop = new AbortController();
  readonly #polling: Promise<void>;

  constructor(executions: ExecutionService, { onRun, onError }: RecoveryOptions, intervalMs = INTERVAL_MS) {
    const recover = async (): Promise<readonly Run[]> => {
      const runs = await executions.recover();
      for (const run of runs) onRun?.(run);
      return runs;
    };
    const initialRuns = recover();
    this.initialRuns = initialRuns;
    this.#polling = (async () => {
      await initialRuns.catch(() => undefined);
      const { signal } = this.#stop;
      while (!signal.aborted) {
        // Jitter, so that the processes of a fleet do not poll at the same time.
        await wait(intervalMs * (0.75 + Math.random() / 2), undefined, { signal }).catch(() => undefined);
        if (!signal.aborted) await recover().catch((error) => onError?.(error));
      }
    })();
  }

  /** Stops taking over executions. Those already taken over continue. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#polling;
  }
}
