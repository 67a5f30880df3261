import { setTimeout as wait } from 'node:timers/promises';

const PATIENCE_MS = 30_000;

/** Waits for a condition, with a deadline. */
export async function until(holds: () => boolean | Promise<boolean>, otherwise: string): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(otherwise);
    await wait(10);
  }
}
