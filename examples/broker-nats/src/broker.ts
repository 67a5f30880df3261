import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, headers, type NatsConnection } from '@nats-io/transport-node';
import { type Broker, DeliveryFailed, SvcError } from '@svc/sdk';
import { consumeFor } from './consume.ts';
import { EVENTS, ensureStream, eventSubject } from './streams.ts';

export interface NatsOptions {
  /** `nats://user:password@host:4222`, or `tls://`. */
  readonly url: string;
}

const CONNECT_MS = 10_000;
/** A server that is silent for two of these is taken for gone. */
const PING_MS = 10_000;

/** NATS with JetStream: an event is stored when `publish` resolves, whether somebody listens already or not. */
export function nats({ url }: NatsOptions): Broker {
  const stopping = new AbortController();
  let current: Promise<NatsConnection> | undefined;

  const connected = (): Promise<NatsConnection> => {
    if (stopping.signal.aborted) throw new SvcError('interrupted', 'The broker is closed.');
    if (current) return current;
    const opening = open(url);
    const gone = () => {
      if (current === opening) current = undefined;
    };
    opening.then((connection) => connection.closed()).then(gone, gone);
    current = opening;
    return opening;
  };

  return {
    async publish({ name, id, body }, signal) {
      const connection = await connected();
      signal.throwIfAborted();
      const about = headers();
      about.set('content-type', 'application/cloudevents+json');
      const stored = jetstream(connection).publish(eventSubject(name), JSON.stringify(body), {
        msgID: id,
        headers: about,
      });
      await orAborted(stored, signal);
    },
    async consume(queue, take) {
      const stopped = new AbortController();
      const working = consumeFor(queue, take, connected, AbortSignal.any([stopped.signal, stopping.signal]));
      return async () => {
        stopped.abort();
        await working;
      };
    },
    async close() {
      stopping.abort();
      const connection = await current?.catch(() => undefined);
      await connection?.close();
    },
  };
}

/** It never connects again by itself: whoever uses it next does, and learns whether that works. */
async function open(text: string): Promise<NatsConnection> {
  const { username, password, host, protocol } = new URL(text);
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

function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new DeliveryFailed('the broker did not confirm in time'));
    signal.addEventListener('abort', late, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', late));
  });
}
