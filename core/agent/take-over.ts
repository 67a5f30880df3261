import { setTimeout as wait } from 'node:timers/promises';
import type { Executions } from './executions.ts';
import type { Run } from './run.ts';

/** @experimental */
export interface TakeOverOptions {
  /** Told of every execution that is taken over. */
  readonly onRun?: (run: Run) => void;
  /** Told when the store could not be looked at; it is looked at again. */
  readonly onError?: (error: unknown) => void;
}

const LOOK_MS = 5_000;

/** Looks for executions that nobody runs until it is stopped, and keeps the process alive meanwhile. @experimental */
export class TakeOver {
  /** The runs of the first look: what a process finds when it starts. */
  readonly first: Promise<readonly Run[]>;
  readonly #stop = new AbortController();
  readonly #looking: Promise<void>;

  constructor(executions: Executions, { onRun, onError }: TakeOverOptions, lookMs = LOOK_MS) {
    const look = async (): Promise<readonly Run[]> => {
      const runs = await executions.takeOver();
      for (const run of runs) onRun?.(run);
      return runs;
    };
    const first = look();
    this.first = first;
    this.#looking = (async () => {
      await first.catch(() => undefined);
      const { signal } = this.#stop;
      while (!signal.aborted) {
        // Not all processes of a fleet at once.
        await wait(lookMs * (0.75 + Math.random() / 2), undefined, { signal }).catch(() => undefined);
        if (!signal.aborted) await look().catch((error) => onError?.(error));
      }
    })();
  }

  /** What was taken over runs on. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#looking;
  }
}
