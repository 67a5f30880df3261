import { setTimeout as wait } from 'node:timers/promises';
import { type Broker, type BrokerEvent, DeliveryFailed, isDeliveryFailed } from '../../core/approval/channel.ts';
import { isSvcError, messageWithNext, SvcError } from '../../core/errors.ts';
import { onAbort } from '../../core/on-abort.ts';
import { handleMessage, type Received } from './received.ts';
import { withoutSecrets } from './without-secrets.ts';

export type { Received } from './received.ts';

/** A queue that a driver consumes until `signal` aborts. @experimental */
export interface Subscription {
  readonly queue: string;
  /** Aborts when the consumer stops or the connection is lost. */
  readonly signal: AbortSignal;
  /** Resolves when `signal` aborts. */
  readonly stopped: Promise<void>;
  /**
   * Handles a message, and acknowledges it. Resolves afterwards and never rejects: await it to handle one message at a
   * time. After `signal` aborted, it returns the message to the queue.
   */
  receive(message: Received): Promise<void>;
  /** Resolves when every message passed to `receive` is acknowledged. */
  finished(): Promise<void>;
}

/** A client library of a message broker, without reconnecting: `reconnectingBroker` does that. @experimental */
export interface BrokerDriver<Connection> {
  /** The URL of the server. No error contains its password. */
  readonly url: string;
  /**
   * Opens one connection. It does not reconnect. `signal` only aborts connecting, after ten seconds: never a connection that is open.
   */
  connect(signal: AbortSignal): Promise<Connection>;
  /**
   * Asks the server for any response, for a client library without heartbeats: every two seconds. A connection on which it rejects, or
   * takes longer than five seconds, counts as lost and is closed. Without it, the library detects that the server no longer responds.
   */
  ping?(connection: Connection): Promise<unknown>;
  /** Resolves or rejects when the connection is lost or closed. */
  closed(connection: Connection): Promise<unknown>;
  /** Resolves once the server has stored the event, and throws if no queue receives it. */
  publish(connection: Connection, event: BrokerEvent, signal: AbortSignal): Promise<unknown>;
  /**
   * Creates the queue and its dead-letter queue if they are missing, passes each message to `receive`, and resolves when
   * it stopped: pull in a loop while `signal` is not aborted, or subscribe and await `stopped`. Absent if the broker only
   * publishes.
   */
  consume?(connection: Connection, subscription: Subscription): Promise<void>;
  close(connection: Connection): Promise<unknown>;
}

const CONNECT_TIMEOUT_MS = 10_000;
const CLOSE_TIMEOUT_MS = 2_000;
const PING_MS = 2_000;
const PING_TIMEOUT_MS = 5_000;
const FIRST_RETRY_MS = 200;
const MAX_RETRY_MS = 10_000;
const LOST = 'the connection to the broker was lost';
const NOT_CONFIRMED = 'the broker did not confirm in time';

/**
 * A broker that connects on first use and again after a lost connection. `publish` ends with its signal and with its
 * connection. Consumers reconnect with growing pauses, acknowledge what was handled, return what failed temporarily to the
 * queue after the requested pause, and pass the rest to the dead letters. Errors are `DeliveryFailed` without the password
 * of `url`; a `DeliveryFailed` or `SvcError` of the driver keeps its properties. @experimental
 */
export function reconnectingBroker<Connection>(driver: BrokerDriver<Connection>): Broker {
  const stopping = new AbortController();
  const consumers = new Set<Promise<void>>();
  let current: Promise<Opened<Connection>> | undefined;

  const connected = (): Promise<Opened<Connection>> => {
    if (stopping.signal.aborted) throw new SvcError('interrupted', 'The broker is closed.');
    if (current) return current;
    const opening = open(driver);
    const forget = () => {
      if (current === opening) current = undefined;
    };
    opening.then(({ lost }) => void (lost.aborted ? forget() : onAbort(lost, forget)), forget);
    current = opening;
    return opening;
  };

  const { consume } = driver;
  return {
    async publish(event, signal) {
      try {
        const { connection, lost } = await until(signal, NOT_CONFIRMED, connected());
        if (lost.aborted) throw new DeliveryFailed(LOST);
        await until(signal, NOT_CONFIRMED, until(lost, LOST, driver.publish(connection, event, signal)));
      } catch (error) {
        throw deliveryError(driver.url, error);
      }
    },
    ...(consume && {
      async consume(queue, handle) {
        const stopped = new AbortController();
        const signal = AbortSignal.any([stopped.signal, stopping.signal]);
        const round = async () => {
          const opened = await until(signal, 'the consumer stops', connected());
          await consumeOnce({ driver, consume, opened, queue, handle, signal });
        };
        const consuming = repeat(driver.url, queue, round, signal).finally(() => consumers.delete(consuming));
        consumers.add(consuming);
        return async () => {
          stopped.abort();
          await consuming;
        };
      },
    }),
    async check(signal) {
      try {
        await until(signal, 'no response', connected());
      } catch (error) {
        throw deliveryError(driver.url, error);
      }
    },
    async close() {
      stopping.abort();
      await atMost(CLOSE_TIMEOUT_MS / 2, Promise.all(consumers));
      // A connection that is being opened is closed once it is open, which may take longer than this call.
      await atMost(
        CLOSE_TIMEOUT_MS,
        current?.then(({ connection }) => driver.close(connection)),
      );
    },
  } satisfies Broker;
}

interface Opened<Connection> {
  readonly connection: Connection;
  /** Aborts when the connection is lost or closed. */
  readonly lost: AbortSignal;
}

/** Opens a connection, within CONNECT_TIMEOUT_MS: a later one is closed. */
async function open<Connection>(driver: BrokerDriver<Connection>): Promise<Opened<Connection>> {
  const timedOut = new AbortController();
  const opening = driver.connect(timedOut.signal);
  const timer = setTimeout(() => {
    timedOut.abort();
    opening.then((connection) => driver.close(connection)).catch(() => undefined);
  }, CONNECT_TIMEOUT_MS).unref();
  const connection = await until(timedOut.signal, 'the broker did not respond in time', opening).finally(() =>
    clearTimeout(timer),
  );
  const lost = new AbortController();
  const onLost = () => lost.abort();
  driver.closed(connection).then(onLost, onLost);
  if (driver.ping) void endIfSilent(driver, connection, lost);
  return { connection, lost: lost.signal };
}

/** Ends a connection whose server no longer responds. */
async function endIfSilent<Connection>(
  driver: BrokerDriver<Connection>,
  connection: Connection,
  lost: AbortController,
): Promise<void> {
  const pause = () => wait(PING_MS, undefined, { signal: lost.signal, ref: false }).catch(() => undefined);
  for (await pause(); driver.ping && !lost.signal.aborted; await pause()) {
    let responds = false;
    const pinging = driver.ping(connection).then(() => {
      responds = true;
    });
    await atMost(PING_TIMEOUT_MS, pinging);
    if (responds || lost.signal.aborted) continue;
    lost.abort();
    await driver.close(connection).catch(() => undefined);
  }
}

/** Repeats until `signal` aborts. Reports an error once, until another one occurs. */
async function repeat(url: string, queue: string, round: () => Promise<void>, signal: AbortSignal): Promise<void> {
  let reported: string | undefined;
  for (let pause = FIRST_RETRY_MS; !signal.aborted; pause = Math.min(pause * 2, MAX_RETRY_MS)) {
    const startedAt = performance.now();
    const why = await round().then(
      () => 'the subscription ended',
      (error: unknown) => messageWithNext(deliveryError(url, error)),
    );
    if (signal.aborted) return;
    const lasted = performance.now() - startedAt > MAX_RETRY_MS;
    if (lasted) pause = FIRST_RETRY_MS;
    if (lasted || why !== reported)
      process.emitWarning(`Cannot consume from the queue ${queue}: ${why}. Retrying.`, 'SvcWarning');
    reported = why;
    await wait(pause, undefined, { signal }).catch(() => undefined);
  }
}

interface Round<Connection> {
  readonly driver: BrokerDriver<Connection>;
  readonly consume: NonNullable<BrokerDriver<Connection>['consume']>;
  readonly opened: Opened<Connection>;
  readonly queue: string;
  readonly handle: (body: Uint8Array) => Promise<void>;
  readonly signal: AbortSignal;
}

/** Consumes on one connection. When stopped, it first finishes the messages in progress; a lost connection ends it at once. */
async function consumeOnce<Connection>(round: Round<Connection>): Promise<void> {
  const { driver, consume, queue, handle } = round;
  const { connection, lost } = round.opened;
  const ended = new AbortController();
  const signal = AbortSignal.any([round.signal, ended.signal]);
  if (lost.aborted) throw new DeliveryFailed(LOST);
  if (signal.aborted) return;
  const stopped = new Promise<void>((resolve) => void onAbort(signal, resolve));
  const pending = new Set<Promise<void>>();
  const receive = (message: Received): Promise<void> => {
    const work = handleMessage(message, handle, signal).finally(() => pending.delete(work));
    pending.add(work);
    return work;
  };
  const finished = async () => void (await Promise.all(pending));
  try {
    const consuming = consume.call(driver, connection, { queue, signal, stopped, receive, finished });
    await until(lost, LOST, consuming.then(finished));
  } finally {
    ended.abort();
  }
}

/** The result of `work`, or a `DeliveryFailed` as soon as `signal` aborts. */
function until<T>(signal: AbortSignal, message: string, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAborted = () => reject(new DeliveryFailed(message));
    if (signal.aborted) onAborted();
    const removeListener = onAbort(signal, onAborted);
    work.then(resolve, reject).finally(removeListener);
  });
}

/** Waits for a close, which a server that is gone never confirms. */
async function atMost(ms: number, work: Promise<unknown> | undefined): Promise<void> {
  const timer = new AbortController();
  const timeout = wait(ms, undefined, { signal: timer.signal, ref: false }).catch(() => undefined);
  await Promise.race([work?.catch(() => undefined), timeout]);
  timer.abort();
}

/** Errors are stored in the audit. Their causes may contain the URL, so they are dropped. */
function deliveryError(url: string, error: unknown): Error {
  if (isSvcError(error)) return error;
  const message = error instanceof Error ? error.message || error.name : String(error);
  return new DeliveryFailed(withoutSecrets(url, message), isDeliveryFailed(error) ? error : {});
}
