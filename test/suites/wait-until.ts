import { setTimeout as wait } from 'node:timers/promises';

const TIMEOUT_MS = 60_000;

/** Waits until a condition is true. Throws an error with `message` after the timeout. */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  message: string,
  timeoutMs = TIMEOUT_MS,
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(message);
    await wait(10);
  }
}
