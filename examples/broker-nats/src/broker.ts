import { setTimeout as wait } from 'node:timers/promises';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, headers, type NatsConnection } from '@nats-io/transport-node';
import { type Broker, DeliveryFailed, SvcError } from '@svc/sdk';
import { consumeUntil } from './consume.ts';
import { EVENTS, ensureStream, eventSubject } from './streams.ts';

export interface NatsOptions {
  /** `nats://user:password@host:4222`, or `tls://`. */
  readonly url: string;
}

const CONNECT_MS = 10_000;
const CLOSE_MS = 2_000;
/** A server that misses two pings in a row counts as disconnected. */
const PING_MS = 10_000;

/** NATS with JetStream. When `publish` resolves, the event is stored, with or without a consumer. */
export function nats({ url }: NatsOptions): Broker {
  const stopping = new AbortController();
  let current: Promise<NatsConnection> | undefined;

  const connected = (): Promise<NatsConnection> => {
    if (stopping.signal.aborted) throw new SvcError('interrupted', 'The broker is closed.');
    if (current) return current;
    const opening = open(url);
    const forget = () => {
      if (current === opening) current = undefined;
    };
    opening.then((connection) => connection.closed()).then(forget, forget);
    current = opening;
    return opening;
  };

  return {
    async publish({ name, id, body }, signal) {
      const connection = await connected();
      signal.throwIfAborted();
      const messageHeaders = headers();
      messageHeaders.set('content-type', 'application/cloudevents+json');
      const stored = jetstream(connection).publish(eventSubject(name), JSON.stringify(body), {
        msgID: id,
        headers: messageHeaders,
      });
      await withAbort(stored, signal);
    },
    async consume(queue, handle) {
      const stopped = new AbortController();
      const consuming = consumeUntil(queue, handle, connected, AbortSignal.any([stopped.signal, stopping.signal]));
      return async () => {
        stopped.abort();
        await consuming;
      };
    },
    async close() {
      stopping.abort();
      const closing = current?.then((connection) => connection.close()).catch(() => undefined);
      // A server that does not respond is not waited for.
      await Promise.race([closing, wait(CLOSE_MS, undefined, { ref: false })]);
    },
  };
}

/** Does not reconnect by itself. The next call connects, and fails if that fails. */
async function open(url: string): Promise<NatsConnection> {
  const { username, password, host, protocol } = new URL(url);
  const connection = await connect({
    servers: host,
    timeout: CONNECT_MS,
    reconnect: false,
    pingInterval: PING_MS,
    ...(username !== '' && { user: decodeURIComponent(username), pass: decodeURIComponent(password) }),
    ...(protocol === 'tls:' && { tls: {} }),
  }).catch((error: Error) => {
    throw new DeliveryFailed(`${host}: ${error.message}`);
  });
  await ensureStream(await jetstreamManager(connection), EVENTS);
  return connection;
}

function withAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(new DeliveryFailed('the broker did not confirm in time'));
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
