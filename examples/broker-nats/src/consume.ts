import { setTimeout as wait } from 'node:timers/promises';
import { AckPolicy, type JsMsg, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { type NatsConnection, nanos } from '@nats-io/transport-node';
import { isDeliveryFailed } from '@svc/sdk';
import { ensureStream, queueStreams } from './streams.ts';

type Handler = (body: Uint8Array) => Promise<void>;

/** All processes share one consumer, so each message goes to one of them. */
const CONSUMER = 'svc';
/** A message goes to another process if, for this long, it is neither acknowledged nor reported to be in progress. */
export const ACK_MS = 10_000;
const PROGRESS_MS = 3_000;
const PULL_MS = 1_000;
const PAUSE_MS = 500;

/** Consumes until the signal aborts. Reconnects after a connection is lost. */
export async function consumeUntil(
  queue: string,
  handle: Handler,
  connected: () => Promise<NatsConnection>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      const connection = await connected();
      const lost = connection.closed().then(() => Promise.reject(new Error('the connection was lost')));
      await Promise.race([consumeOn(connection, queue, handle, signal), lost]);
    } catch {
      await wait(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}

async function consumeOn(
  connection: NatsConnection,
  queue: string,
  handle: Handler,
  signal: AbortSignal,
): Promise<void> {
  const { live, dead } = queueStreams(queue);
  const manager = await jetstreamManager(connection);
  await ensureStream(manager, dead);
  await ensureStream(manager, live);
  await manager.consumers.add(live.name, {
    durable_name: CONSUMER,
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(ACK_MS),
  });
  const consumer = await jetstream(connection).consumers.get(live.name, CONSUMER);
  while (!signal.aborted) {
    // One at a time. A pull is always awaited, because a message for an abandoned pull would wait until ACK_MS has passed.
    const message = await consumer.next({ expires: PULL_MS });
    if (message) await processMessage(connection, dead.subjects[0] ?? '', message, handle);
  }
}

async function processMessage(
  connection: NatsConnection,
  dead: string,
  message: JsMsg,
  handle: Handler,
): Promise<void> {
  const progress = setInterval(() => {
    if (!connection.isClosed()) message.working();
  }, PROGRESS_MS);
  try {
    await handle(message.data);
  } catch (error) {
    // The handler requests another delivery.
    if (isDeliveryFailed(error) && error.retry) return message.nak(Math.max(PAUSE_MS, error.afterMs));
    await jetstream(connection).publish(dead, message.data);
  } finally {
    clearInterval(progress);
  }
  await message.ackAck();
}
