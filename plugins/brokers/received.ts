import { setTimeout as wait } from 'node:timers/promises';
import { isDeliveryFailed } from '../../core/approval/channel.ts';

/** A message that the server delivers again unless it is acknowledged. @experimental */
export interface Received {
  readonly body: Uint8Array;
  /** Removes it from the queue: it was handled. */
  ack(): unknown;
  /** Returns it to the queue, to be delivered again. */
  requeue(): unknown;
  /** Stores it with the dead letters of the queue, then removes it from the queue. */
  deadLetter(): unknown;
  /** Extends the time after which the server delivers it again. Called every three seconds while it is handled or paused. */
  extend?(): unknown;
}

const EXTEND_MS = 3_000;
const MIN_PAUSE_MS = 200;

/** Never rejects: the server delivers again what could not be acknowledged. A pause ends early if `signal` aborts. */
export async function handleMessage(
  message: Received,
  handle: (body: Uint8Array) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const extending = message.extend && setInterval(() => void attempt(() => message.extend?.()), EXTEND_MS);
  try {
    const settle = signal.aborted ? 'requeue' : await resultOf(message.body, handle, signal);
    await attempt(() => message[settle]());
  } finally {
    clearInterval(extending);
  }
}

async function resultOf(
  body: Uint8Array,
  handle: (body: Uint8Array) => Promise<void>,
  signal: AbortSignal,
): Promise<'ack' | 'requeue' | 'deadLetter'> {
  try {
    await handle(body);
    return 'ack';
  } catch (error) {
    if (!isDeliveryFailed(error) || !error.retry) return 'deadLetter';
    // Many messages may pause with one signal: a signal of its own for each, because listeners are limited.
    const own = AbortSignal.any([signal]);
    await wait(Math.max(MIN_PAUSE_MS, error.afterMs), undefined, { signal: own }).catch(() => undefined);
    return 'requeue';
  }
}

async function attempt(action: () => unknown): Promise<void> {
  try {
    await action();
  } catch {
    // The connection is lost, or the server rejected it: the message is delivered again.
  }
}
