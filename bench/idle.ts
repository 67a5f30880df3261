import { cpus } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';

const MAX_BUSY = 0.1;
const SAMPLE_MS = 3_000;
const PATIENCE_MS = 120_000;

/** Resolves when the machine does nothing else; throws if it stays busy. */
export async function waitUntilIdle(): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const busy = await busyShare();
    if (busy <= MAX_BUSY) return;
    const share = `${Math.round(busy * 100)} % of its processors`;
    if (performance.now() > deadline) {
      throw new Error(
        `Something else uses ${share}: a figure would be about both. Stop it, or use --quick for a trial.`,
      );
    }
    console.error(`Waiting: something else uses ${share} ...`);
  }
}

/** The share of processor time that was used in the next seconds. */
async function busyShare(): Promise<number> {
  const before = processorTimes();
  await wait(SAMPLE_MS);
  const after = processorTimes();
  return 1 - (after.idle - before.idle) / (after.all - before.all);
}

function processorTimes(): { readonly idle: number; readonly all: number } {
  const times = cpus().map(({ times }) => times);
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
  return { idle: sum(times.map(({ idle }) => idle)), all: sum(times.flatMap((time) => Object.values(time))) };
}
