import { setTimeout as wait } from 'node:timers/promises';
import { AckPolicy, type JetStreamClient, type JsMsg, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { type NatsConnection, nanos } from '@nats-io/transport-node';
import { DeliveryFailed } from '@svc/sdk';
import { ensureStream, queueStreams } from './streams.ts';

type Take = (body: unknown) => Promise<void>;

/** All processes of a product share one: each message goes to one of them. */
const CONSUMER = 'svc';
/** A message that is not settled in this time goes to another process: this one has died. */
const ACK_MS = 60_000;
const PULL_MS = 1_000;
const PAUSE_MS = 500;

/** Until it is stopped; a connection that is lost is made again. */
export async function consumeFor(
  queue: string,
  take: Take,
  connected: () => Promise<NatsConnection>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      const connection = await connected();
      const lost = connection.closed().then(() => Promise.reject(new Error('the connection was lost')));
      await Promise.race([consumeOn(connection, queue, take, signal), lost]);
    } catch {
      await wait(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}

async function consumeOn(connection: NatsConnection, queue: string, take: Take, signal: AbortSignal): Promise<void> {
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
    // One at a time, and a pull is never left behind: what it would get, nobody would take.
    const message = await consumer.next({ expires: PULL_MS });
    if (message) await settle(client, dead.subjects[0] ?? '', message, take);
  }
}

async function settle(client: JetStreamClient, dead: string, message: JsMsg, take: Take): Promise<void> {
  try {
    await take(bodyOf(message));
  } catch (error) {
    // Whoever says that it may go another time gets it again.
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
