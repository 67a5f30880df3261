import { AckPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, headers, nanos } from '@nats-io/transport-node';
import type { Broker } from '@svc/sdk';
import { reconnectingBroker } from '@svc/sdk/broker';
import { EVENTS, ensureStream, eventSubject, queueStreams } from './streams.ts';

/** All processes share one consumer, so each message goes to one of them. */
const CONSUMER = 'svc';
/** A message goes to another process if, for this long, it is neither acknowledged nor reported to be in progress. */
export const ACK_MS = 10_000;
/** A server that misses two pings in a row counts as disconnected. */
const PING_MS = 10_000;
const PULL_MS = 1_000;

/** NATS with JetStream, at `nats://user:password@host:4222` or `tls://`. A published event is stored, with or without a consumer. */
export const nats = (url: string): Broker =>
  reconnectingBroker({
    url,
    async connect() {
      const { username, password, host, protocol } = new URL(url);
      const connection = await connect({
        servers: host,
        reconnect: false,
        pingInterval: PING_MS,
        ...(username !== '' && { user: decodeURIComponent(username), pass: decodeURIComponent(password) }),
        ...(protocol === 'tls:' && { tls: {} }),
      });
      await ensureStream(await jetstreamManager(connection), EVENTS);
      return connection;
    },
    closed: (connection) => connection.closed(),
    close: (connection) => connection.close(),
    async publish(connection, { name, id, body }) {
      const messageHeaders = headers();
      messageHeaders.set('content-type', 'application/cloudevents+json');
      const options = { msgID: id, headers: messageHeaders };
      await jetstream(connection).publish(eventSubject(name), JSON.stringify(body), options);
    },
    async consume(connection, { queue, signal, receive }) {
      const { live, dead } = queueStreams(queue);
      const manager = await jetstreamManager(connection);
      await ensureStream(manager, dead);
      await ensureStream(manager, live);
      const settings = { durable_name: CONSUMER, ack_policy: AckPolicy.Explicit, ack_wait: nanos(ACK_MS) };
      await manager.consumers.add(live.name, settings);
      const client = jetstream(connection);
      const consumer = await client.consumers.get(live.name, CONSUMER);
      while (!signal.aborted) {
        // A pull is always awaited, because a message for an abandoned pull would wait until ACK_MS has passed.
        const message = await consumer.next({ expires: PULL_MS });
        if (!message) continue;
        await receive({
          body: message.data,
          ack: () => message.ackAck(),
          requeue: () => message.nak(),
          extend: () => message.working(),
          async deadLetter() {
            await client.publish(dead.subjects[0] ?? '', message.data);
            await message.ackAck();
          },
        });
      }
    },
  });
