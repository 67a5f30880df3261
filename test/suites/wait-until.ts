import { setTimeout as wait } from 'node:timers/promises';

const PATIENCE_MS = 60_000;

/** Waits for a condition, with a deadline. */
export async function waitUntil(
  holds: () => boolean | Promise<boolean>,
  otherwise: string,
  patienceMs = PATIENCE_MS,
): Promise<void> {
  const deadline = Date.now() + patienceMs;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(otherwise);
    await wait(10);
  }
}
