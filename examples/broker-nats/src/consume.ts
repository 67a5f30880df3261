import { setTimeout as wait } from 'node:timers/promises';
import { AckPolicy, type JetStreamClient, type JsMsg, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { type NatsConnection, nanos } from '@nats-io/transport-node';
import { DeliveryFailed } from '@svc/sdk';
import { ensureStream, queueStreams } from './streams.ts';

type Handler = (body: unknown) => Promise<void>;

/** All processes share one consumer, so each message goes to one of them. */
const CONSUMER = 'svc';
/** A message that is not acknowledged within this time goes to another process. */
const ACK_MS = 60_000;
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
  const client = jetstream(connection);
  const consumer = await client.consumers.get(live.name, CONSUMER);
  while (!signal.aborted) {
    // One at a time. A pull is always awaited, because a message for an abandoned pull would wait until ACK_MS has passed.
    const message = await consumer.next({ expires: PULL_MS });
    if (message) await processMessage(client, dead.subjects[0] ?? '', message, handle);
  }
}

async function processMessage(client: JetStreamClient, dead: string, message: JsMsg, handle: Handler): Promise<void> {
  try {
    await handle(bodyOf(message));
  } catch (error) {
    // The handler requests another delivery.
    if (error instanceof DeliveryFailed && error.retry) return message.nak(Math.max(PAUSE_MS, error.afterMs));
    await client.publish(dead, message.data);
  }
  await message.ackAck();
}

function bodyOf(message: JsMsg): unknown {
  const text = message.string();
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
