import * as assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { inspect } from 'node:util';
import { type Broker, type BrokerEvent, DeliveryFailed } from '../../core/approval/channel.ts';
import { Kernel, type Plugin } from '../../core/kernel.ts';
import { applyPlugin } from '../../core/plugin.ts';
import { createEvent, declareEventCases, largestParameters, signal } from './broker-event-cases.ts';
import { expectRejection } from './expect-error.ts';
import { type GateUnderTest, withGate } from './gate-client.ts';
import { consumeInProcess } from './start-broker-process.ts';
import { suite, type TestFunction, type UnderTest, withTimeout } from './suite.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';
import { timersOf } from './timers-of.ts';
import { waitUntil as waitAtMost } from './wait-until.ts';

/** A broker, and the server that it connects to. */
export interface BrokerUnderTest extends UnderTest {
  /** The plugin that its package exports. */
  readonly plugin: Plugin;
  /** The name under which the plugin registers the broker. */
  readonly type: string;
  /**
   * The module whose default export is `plugin`: a file URL, or the name of a package. One case starts a process that loads it with
   * the Node options of this one. Without it, that case uses two instances in this process.
   */
  readonly module?: URL | string | undefined;
  /** A real server. The suite connects the broker to it through a proxy that it disconnects and freezes. */
  readonly server: { readonly host: string; readonly port: number };
  /** The options in `brokers` other than `type`, for a server at this address. */
  options(host: string, port: number): Readonly<Record<string, unknown>>;
  /** Texts in the options that must not occur in an error or warning, such as the password. */
  readonly secrets: readonly string[];
  /** How long the suite waits for a message, in milliseconds. Default 60,000. Longer than a lease and than two heartbeats. */
  readonly patienceMs?: number;
  /**
   * How long a message belongs to one process before the server delivers it to another, in milliseconds, if the server has such
   * leases.
   */
  readonly leaseMs?: number;
  /** Opens a client of the server that is independent of the broker. */
  openClient(): Promise<BrokerClient>;
}

export interface BrokerClient {
  /** Subscribes to events of a name. The returned function lists the messages so far, including any that the server kept. */
  listen(event: string): Promise<() => readonly BrokerMessage[]>;
  /** Sends a message with these bytes to a queue. Returns false if the queue does not exist. */
  send(queue: string, body: Uint8Array): Promise<boolean>;
  /** Removes and returns the dead letters of a queue. */
  takeDeadLetters(queue: string): Promise<readonly string[]>;
  /**
   * Makes the server, which responds as before, refuse events of this name until `close`: by a full queue that takes no more, a
   * key of another type, a missing permission. If the server cannot be made to, skip the case about it.
   */
  refuse(event: string): Promise<void>;
  /** Deletes these events and queues from the server, and disconnects. */
  close(used: { readonly events: readonly string[]; readonly queues: readonly string[] }): Promise<void>;
}

export interface BrokerMessage {
  readonly body: string;
  /** The id of the event, wherever the broker stores it. */
  readonly id: string | undefined;
  /** Milliseconds for which the server keeps the message, wherever the broker stores them; undefined if it does not. */
  readonly expiresInMs: number | undefined;
}

export interface BrokerCase {
  readonly client: BrokerClient;
  readonly proxy: TcpProxy;
  readonly options: Readonly<Record<string, unknown>>;
  /** Creates another instance, as another process would. It is closed at the end. */
  createBroker(): Broker;
  readonly broker: Broker;
  readonly event: string;
  readonly queue: string;
  readonly product: string;
  /** Other events that the case publishes. */
  readonly notices: string[];
}

/** The longest that close() may take, because the process ends after it. */
const CLOSE_MS = 5_000;
/** The pause before a redelivery that the suite requests. */
const PAUSE_MS = 1_000;
/** Timers may fire this much early. */
const TOLERANCE_MS = 50;
const PROBE_MS = 5_000;
const LEASE = 'a message is not delivered again while it is handled';
const POLL_MS = 100;

/** Tests that a message broker fulfills its contract. */
export function brokerSuite(test: TestFunction, tested: BrokerUnderTest): void {
  const { patienceMs = 60_000, leaseMs = 0, module, type, skip } = tested;
  const waitUntil: typeof waitAtMost = (condition, message) => waitAtMost(condition, message, patienceMs);
  const skipped =
    leaseMs > 0 || typeof skip === 'string' ? skip : { [LEASE]: 'no leaseMs: the server has no leases', ...skip };

  let probed: Promise<void> | undefined;

  suite(test, { name: tested.name, skip: skipped }, (on) => {
    const withBroker = async (body: (context: BrokerCase) => Promise<void>): Promise<void> => {
      const id = randomUUID();
      const [event, queue, product] = [`approvals.test.${id}`, `svc.test.${id}`, `p${id}`];
      const notices: string[] = [];
      const proxy = await startTcpProxy(tested.server.host, tested.server.port);
      probed ??= probe(tested.server);
      const reached = probed;
      const opening = tested.openClient();
      // What is wrong with openClient itself is said first; without a server it may never end.
      const client = await Promise.race([
        opening.then((opened) => reached.then(() => opened)),
        reached.then(() => opening),
      ]);
      const options = tested.options(proxy.host, proxy.port);
      const opened: Broker[] = [];
      const createBroker = () => {
        const kernel = new Kernel();
        applyPlugin(kernel, tested.plugin, tested.plugin.name);
        const broker = kernel.brokers.get(tested.type)(options);
        opened.push(broker);
        return broker;
      };
      try {
        await proxy.connect();
        await body({ client, proxy, options, createBroker, broker: createBroker(), event, queue, product, notices });
      } finally {
        await Promise.all(opened.map((broker) => broker.close()));
        proxy.disconnect();
        const decisions = decisionQueue(product);
        await client.close({ events: [event, ...notices], queues: [queue, decisions] });
      }
    };

    /** Sends messages until `ms` have passed: each that arrives shows that the server has delivered what came before it. */
    const sendRounds = async (client: BrokerClient, queue: string, ms: number, bodies: readonly unknown[]) => {
      const until = Date.now() + ms;
      for (let round = 0; Date.now() < until; round++) {
        await send(client, queue, `round ${round}`);
        await waitUntil(() => bodies.includes(`round ${round}`), 'nothing more is delivered');
        await wait(POLL_MS);
      }
    };
    /** A message that was handled, but not acknowledged, is delivered again: at once, after a pause, or at the end of its lease. */
    const assertQueueIsEmpty = async ({
      createBroker,
      client,
      queue,
    }: Pick<BrokerCase, 'createBroker' | 'client' | 'queue'>) => {
      const bodies: string[] = [];
      const stop = await consume(createBroker(), queue, async (body) => void bodies.push(body));
      await sendRounds(client, queue, Math.max(PAUSE_MS, 2 * leaseMs), bodies);
      await stop();
      const late = bodies.filter((body) => !body.startsWith('round '));
      assert.deepEqual(late, [], 'messages were delivered again after they had been handled');
    };

    declareEventCases(on, withBroker, waitUntil);

    on(
      'an event without subscribers is kept or rejected',
      () =>
        withBroker(async ({ broker, event, client }) => {
          const isKept = await broker.publish(createEvent(event, { early: true }), signal()).then(
            () => true,
            () => false,
          );
          const messages = await client.listen(event);
          if (isKept) await waitUntil(() => messages().length > 0, 'publish() resolved, but the event was lost');
          await broker.publish(createEvent(event, { early: false }), signal());
          await waitUntil(() => messages().some(({ body }) => body.includes('false')), 'the next event did not arrive');
        }),
      { promise: 'publish() does not resolve for an event that the broker dropped. The next attempt arrives.' },
    );

    on(
      'an event that the server refuses is not published',
      () =>
        withBroker(async ({ broker, event, client }) => {
          await client.listen(event);
          await broker.publish(createEvent(event, { refused: false }), signal());
          await client.refuse(event);
          await expectRejection(
            broker.publish(createEvent(event, { refused: true }), signal()),
            'publish() resolved although refuse() of openClient made the server refuse the event',
          );
        }),
      { promise: 'publish() throws if the server refuses the event, also over a connection that works.' },
    );

    on(
      'each attempt carries the id of its event',
      () =>
        withBroker(async ({ broker, event, client }) => {
          const messages = await client.listen(event);
          const one = createEvent(event, { number: 1 });
          await broker.publish(one, signal());
          await broker.publish(one, signal());
          const other = createEvent(event, { number: 2 });
          await broker.publish(other, signal());
          const hasArrived = ({ id }: BrokerEvent) => messages().some(({ body }) => body.includes(id));
          await waitUntil(
            () => hasArrived(one) && hasArrived(other),
            'publish() resolved, but an event did not arrive',
          );
          const ids = new Set(messages().map(({ id }) => id));
          const found = `events arrived without their id: ${[one.id, other.id]} are ${[...ids]}`;
          assert.deepEqual([...ids].sort(), [one.id, other.id].sort(), found);
        }),
      { promise: 'Publishing an event twice is not an error, and a receiver detects the second one by its id.' },
    );

    on(
      'concurrent events all arrive',
      () =>
        withBroker(async ({ broker, event, client, notices }) => {
          const other = `${event}.reminder`;
          notices.push(other);
          const [messages, others] = [await client.listen(event), await client.listen(other)];
          const events = Array.from({ length: 50 }, (_, number) => createEvent(number % 2 ? other : event, { number }));
          await Promise.all(events.map((one) => broker.publish(one, signal())));
          const all = () => [...messages(), ...others()].map(({ body }) => JSON.parse(body));
          const arrived = () => new Set(all().map(({ data }) => Number(data.number)));
          await waitUntil(() => arrived().size === events.length, 'publish() resolved for an event that never arrived');
          const strays = others().filter(({ body }) => JSON.parse(body).type !== other);
          assert.deepEqual(strays, [], 'an event arrived at those who listen for another name');
        }),
      {
        promise: 'Each of many concurrent calls of publish() resolves for its own event, which arrives under its name.',
      },
    );

    on(
      'an attempt ends with its signal',
      () =>
        withBroker(async ({ broker, event, client, proxy }) => {
          await client.listen(event);
          await broker.publish(createEvent(event, {}), signal());
          proxy.freeze();
          const attempt = new AbortController();
          const publishing = expectRejection(
            broker.publish(createEvent(event, {}), attempt.signal),
            'publish() resolved without a confirmation',
          );
          publishing.catch(() => undefined);
          attempt.abort(new Error('the attempt is over'));
          await publishing;
          proxy.disconnect();
        }),
      {
        promise: 'publish() throws when its AbortSignal is aborted: a server that does not respond blocks nothing.',
      },
    );

    on(
      'it reconnects when the server is back',
      () =>
        withBroker(async ({ broker, event, client, proxy }) => {
          const messages = await client.listen(event);
          proxy.disconnect();
          await expectRejection(
            broker.publish(createEvent(event, {}), signal()),
            'publish() resolved without a server',
          );
          await proxy.connect();
          await publishUntilConfirmed(broker, createEvent(event, { after: 'its first start' }), tested.patienceMs);
          proxy.disconnect();
          await expectRejection(
            broker.publish(createEvent(event, {}), signal()),
            'publish() resolved without a server',
          );
          await proxy.connect();
          await publishUntilConfirmed(broker, createEvent(event, { after: 'a lost connection' }), tested.patienceMs);
          const came = (text: string) => messages().some(({ body }) => body.includes(text));
          await waitUntil(() => came('first start') && came('lost connection'), 'a published event did not arrive');
        }),
      {
        promise: 'It connects on first use and reconnects by itself: a call that throws works once the server is back.',
      },
    );

    on(
      'errors and warnings contain no secret',
      () =>
        withBroker(async ({ broker, createBroker, event, queue, proxy }) => {
          const reported: unknown[] = [];
          const onWarning = (warning: Error) => void reported.push(warning);
          process.on('warning', onWarning);
          try {
            const publish = async (publisher: Broker) =>
              reported.push(
                await expectRejection(publisher.publish(createEvent(event, {}), signal(1_000)), 'it resolved'),
              );
            await broker.publish(createEvent(event, {}), signal()).catch((error: unknown) => reported.push(error));
            proxy.freeze();
            await publish(broker);
            proxy.disconnect();
            const stop = await broker.consume?.(queue, async () => {});
            await publish(broker);
            await publish(createBroker());
            await stop?.();
          } finally {
            process.off('warning', onWarning);
          }
          const texts = reported.map((one) => inspect(one, { depth: 5 }));
          for (const secret of tested.secrets) {
            const found = texts.find((text) => text.includes(secret));
            assert.equal(found, undefined, `an error or warning contains a secret: ${found}`);
          }
        }),
      { promise: 'Errors are stored in the audit, and warnings in logs: none contains a password.' },
    );

    on(
      'a message is delivered as the bytes that were sent',
      () =>
        withBroker(async (context) => {
          const { broker, client, queue } = context;
          const sent = [
            Buffer.from('{ "text": "ü😀", "key": 1, "key": 9007199254740993 }'),
            Buffer.from('no json'),
            Buffer.from([0x22, 0xff, 0x22]),
          ];
          const bodies: unknown[] = [];
          const stop = await consumeBytes(broker, queue, async (body) => void bodies.push(body));
          await send(client, queue, ...sent);
          await waitUntil(() => bodies.length === sent.length, 'not every message was delivered');
          const hex = bodies.map((body) =>
            body instanceof Uint8Array ? Buffer.from(body).toString('hex') : typeof body,
          );
          const expected = sent.map((body) => body.toString('hex'));
          assert.deepEqual(hex.sort(), expected.sort(), 'handle() did not receive the bytes that were sent');
          await stop();
          assert.deepEqual(await client.takeDeadLetters(queue), []);
          await assertQueueIsEmpty(context);
        }),
      { promise: 'consume() creates the queue if it does not exist, and delivers its messages.' },
    );

    on(
      'a message of the largest size is delivered unchanged',
      () =>
        withBroker(async ({ broker, client, queue }) => {
          const sent = Buffer.from(JSON.stringify(largestParameters()));
          const bodies: Uint8Array[] = [];
          const stop = await consumeBytes(broker, queue, async (body) => void bodies.push(body));
          await send(client, queue, sent);
          await waitUntil(() => bodies.length > 0, 'nothing was delivered');
          await stop();
          const [body = new Uint8Array()] = bodies;
          assert.ok(sent.equals(body), `a message of ${sent.length} bytes was delivered as ${body.length} others`);
          assert.deepEqual(await client.takeDeadLetters(queue), []);
        }),
      { promise: 'A decision may have changed parameters of up to 256 KiB.' },
    );

    on(
      'a message that cannot be processed becomes a dead letter and blocks no other',
      () =>
        withBroker(async ({ broker, createBroker, client, queue }) => {
          const bodies: unknown[] = [];
          const stop = await consume(broker, queue, async (body) => {
            bodies.push(body);
            if (body === 'bad') throw new Error('it cannot be processed');
            if (body === 'final') throw new DeliveryFailed('it can never be processed', { retry: false });
          });
          await send(client, queue, 'bad', 'final', 'good');
          const dead: string[] = [];
          await waitUntil(async () => {
            dead.push(...(await client.takeDeadLetters(queue)));
            return dead.length >= 2 && bodies.includes('good');
          }, 'it did not become a dead letter');
          await stop();
          const left: unknown[] = [];
          const stopOther = await consume(createBroker(), queue, async (body) => void left.push(body));
          await send(client, queue, 'next');
          await waitUntil(() => left.includes('next'), 'nothing is delivered after a dead letter');
          await stopOther();
          assert.deepEqual(
            { bodies: bodies.sort(), dead: dead.sort(), left },
            { bodies: ['bad', 'final', 'good'], dead: ['bad', 'final'], left: ['next'] },
          );
        }),
      {
        promise:
          'A message on which handle() throws, also a DeliveryFailed with `retry: false`, becomes a dead letter, unchanged: not lost, and not redelivered.',
      },
    );

    on(
      'a message that failed temporarily is redelivered after a pause',
      () =>
        withBroker(async (context) => {
          const { broker, client, queue } = context;
          const attempts: { readonly body: unknown; readonly at: number }[] = [];
          const stop = await consume(broker, queue, async (body) => {
            attempts.push({ body, at: performance.now() });
            if (attempts.length === 1) throw new DeliveryFailed('the store is down', { afterMs: PAUSE_MS });
            if (attempts.length === 2) throw fromAnotherCopy(new DeliveryFailed('the store is still down'));
          });
          await send(client, queue, 'later');
          await waitUntil(() => attempts.length === 3, 'it was not redelivered');
          await stop();
          assert.deepEqual(await client.takeDeadLetters(queue), []);
          const [first, second] = attempts.map(({ at }) => at);
          const pause = (second ?? 0) - (first ?? 0);
          assert.ok(pause >= PAUSE_MS - TOLERANCE_MS, `it was redelivered after ${pause} ms instead of ${PAUSE_MS}`);
          assert.deepEqual(
            attempts.map(({ body }) => body),
            ['later', 'later', 'later'],
          );
          await assertQueueIsEmpty(context);
        }),
      {
        promise:
          'A message on which handle() throws an error that isDeliveryFailed() recognizes, with `retry: true`, is redelivered after `afterMs`.',
      },
    );

    on(
      'a message that waits for its redelivery is not lost with its process',
      () =>
        withBroker(async ({ broker, createBroker, client, queue }) => {
          let attempts = 0;
          await consume(broker, queue, async () => {
            attempts += 1;
            throw new DeliveryFailed('the store is down', { afterMs: PAUSE_MS });
          });
          await send(client, queue, 'later');
          await waitUntil(() => attempts > 0, 'nothing was delivered');
          await broker.close();
          const closedAfter = attempts;
          const bodies: unknown[] = [];
          const stop = await consume(createBroker(), queue, async (body) => void bodies.push(body));
          await waitUntil(() => bodies.length > 0, 'it is lost');
          await stop();
          assert.deepEqual([bodies, attempts], [['later'], closedAfter]);
        }),
      { promise: 'During the pause before a redelivery the message is in the queue, not in the memory of a process.' },
    );

    on(
      'a message is acknowledged after it was handled',
      () =>
        withBroker(async (context) => {
          const { broker, client, event, queue, proxy } = context;
          await client.listen(event);
          const release = new AbortController();
          const bodies: unknown[] = [];
          const stop = await consume(broker, queue, async (body) => {
            bodies.push(body);
            if (bodies.length === 1) await new Promise((resolve) => release.signal.addEventListener('abort', resolve));
          });
          try {
            await send(client, queue, 'important');
            await waitUntil(() => bodies.length === 1, 'nothing was delivered');
            // An acknowledgement that was sent too early has reached the server before what is confirmed after it.
            for (let round = 0; round < 3; round++) await broker.publish(createEvent(event, { round }), signal());
            proxy.disconnect();
            await proxy.connect();
            const seconds = patienceMs / 1000;
            await waitUntil(
              () => bodies.length === 2,
              `the connection was lost while handle() ran; the consumer did not reconnect and receive the message again within ${seconds} s; do not wait for handle() before you reconnect, and let a lease be shorter than patienceMs`,
            );
          } finally {
            release.abort();
          }
          await stop();
          assert.deepEqual(bodies, ['important', 'important']);
          assert.deepEqual(await client.takeDeadLetters(queue), []);
          await assertQueueIsEmpty(context);
        }),
      {
        promise:
          'A message is in the queue until handle() resolves. It is redelivered if the process or its connection ends before that.',
      },
    );

    on(
      'two consumers share a queue',
      () =>
        withBroker(async (context) => {
          const { broker, createBroker, client, options, queue } = context;
          const bodies: unknown[] = [];
          const stops: (() => Promise<void>)[] = [];
          try {
            for (const one of [broker, createBroker()]) {
              stops.push(await consume(one, queue, async (body) => void bodies.push(body)));
            }
            if (module !== undefined) {
              const add = (body: Uint8Array) => void bodies.push(Buffer.from(body).toString());
              stops.push(await consumeInProcess({ module, type, options, queue }, add));
            }
            const texts = Array.from({ length: 40 }, (_, index) => `message ${index}`);
            await send(client, queue, ...texts);
            await waitUntil(() => new Set(bodies).size === texts.length, 'not every message was delivered');
            for (const stop of stops.splice(0)) await stop();
            assert.deepEqual(bodies.sort(), [...texts].sort(), 'a message was delivered to both');
          } finally {
            await Promise.allSettled(stops.map((stop) => stop()));
          }
          await assertQueueIsEmpty(context);
        }),
      {
        promise:
          module === undefined
            ? 'Each message of a queue goes to one of the instances that consume it.'
            : 'Each message of a queue goes to one of the instances and processes that consume it.',
      },
    );

    on(
      'a consumer survives a lost connection',
      () =>
        withBroker(async ({ broker, client, queue, proxy }) => {
          const bodies: unknown[] = [];
          proxy.disconnect();
          const stop = await consume(broker, queue, async (body) => void bodies.push(body));
          await proxy.connect();
          await send(client, queue, 'before');
          await waitUntil(() => bodies.includes('before'), 'nothing was delivered');
          proxy.disconnect();
          await proxy.connect();
          await send(client, queue, 'after');
          await waitUntil(() => bodies.includes('after'), 'nothing is delivered after the connection was lost');
          await stop();
        }),
      { promise: 'consume() can start without a server, and continues by itself when the connection is back.' },
    );

    on(
      'a consumer survives a server that stops responding',
      () =>
        withBroker(async ({ broker, client, queue, proxy }) => {
          const bodies: unknown[] = [];
          const stop = await consume(broker, queue, async (body) => void bodies.push(body));
          await send(client, queue, 'before');
          await waitUntil(() => bodies.includes('before'), 'nothing was delivered');
          proxy.stall();
          await send(client, queue, 'after');
          await waitUntil(
            () => bodies.includes('after'),
            'the server stopped responding without ending the connection, and nothing is delivered any more: let the client library send heartbeats, more often than patienceMs',
          );
          await stop();
        }),
      {
        promise:
          'The connection detects by itself that the server no longer responds: no message waits for a connection that is dead.',
        timeoutMs: 2 * patienceMs + 20_000,
      },
    );

    on(
      LEASE,
      () =>
        withBroker(async ({ broker, createBroker, client, queue }) => {
          const release = new AbortController();
          const bodies: unknown[] = [];
          const handle = async (body: string) => {
            bodies.push(body);
            if (bodies.length === 1) await new Promise((resolve) => release.signal.addEventListener('abort', resolve));
          };
          const stops = [await consume(broker, queue, handle), await consume(createBroker(), queue, handle)];
          try {
            await send(client, queue, 'slow');
            await waitUntil(() => bodies.length === 1, 'nothing was delivered');
            // It would be delivered again at the end of its lease: on some servers only while nothing else is, on others only then.
            await wait(1.5 * leaseMs);
            await sendRounds(client, queue, leaseMs, bodies);
            assert.equal(
              bodies.filter((body) => body === 'slow').length,
              1,
              'it was delivered again: extend its lease',
            );
          } finally {
            release.abort();
          }
          for (const stop of stops) await stop();
        }),
      {
        promise: 'A message whose handler takes longer than a lease is not delivered to another process.',
        timeoutMs: 3 * leaseMs + patienceMs + 20_000,
      },
    );

    on(
      'a consumer that stops finishes its message and leaves the rest',
      () =>
        withBroker(async ({ broker, createBroker, client, queue }) => {
          let finish = () => {};
          const busy = new Promise<void>((resolve) => {
            finish = resolve;
          });
          const first: unknown[] = [];
          const stop = await consume(broker, queue, async (body) => {
            first.push(body);
            await busy;
          });
          await send(client, queue, 'first');
          await waitUntil(() => first.length === 1, 'nothing was delivered');
          let hasStopped = false;
          const stopping = stop().then(() => {
            hasStopped = true;
          });
          const rest = Array.from({ length: 20 }, (_, index) => `rest ${index}`);
          await send(client, queue, ...rest);
          assert.ok(!hasStopped, 'it stopped while handle() was running');
          finish();
          await stopping;
          const later: unknown[] = [];
          const stopOther = await consume(createBroker(), queue, async (body) => void later.push(body));
          await waitUntil(
            () => later.length >= rest.length - first.length + 1,
            'messages that arrived after the stop were lost',
          );
          await stopOther();
          assert.deepEqual([...first, ...later].sort(), ['first', ...rest].sort());
        }),
      {
        promise:
          'The function that consume() returns waits for handle(), acknowledges its message, and leaves the rest to other consumers.',
      },
    );

    on(
      'it can be closed before use, after use, and twice',
      () =>
        withBroker(async ({ broker, createBroker, event, client, proxy }) => {
          await createBroker().close();
          await client.listen(event);
          await broker.publish(createEvent(event, {}), signal());
          await broker.close();
          await broker.close();
          const isClosed = () => proxy.connections() === 0;
          await waitAtMost(isClosed, 'close() left a connection open: the program would not exit', CLOSE_MS);
          await expectRejection(broker.publish(createEvent(event, {}), signal()), 'publish() resolved after close()');
        }),
      {
        promise: 'close() ends every connection and can be called at any time. Nothing is published after it.',
      },
    );

    on(
      'it lets the program end once it is closed',
      () =>
        withBroker(async ({ createBroker, event, queue, client }) => {
          await client.listen(event);
          const timers = await timersOf(async () => {
            const broker = createBroker();
            await broker.publish(createEvent(event, {}), signal());
            await broker.consume?.(queue, async () => {});
            await broker.close();
          });
          const isFree = () => timers().every((timer) => !timer.hasRef());
          await waitAtMost(isFree, 'close() left a timer: the program would not exit', CLOSE_MS);
        }),
      { promise: 'close() ends every timer, also that of a consumer: a program ends when nothing else keeps it.' },
    );

    on(
      'it can be closed although the server does not respond',
      () =>
        withBroker(async ({ broker, createBroker, event, queue, client, proxy }) => {
          await client.listen(event);
          await broker.publish(createEvent(event, {}), signal());
          await broker.consume?.(queue, async () => {});
          proxy.freeze();
          const opening = createBroker();
          const pending = [broker, opening].map((one) =>
            expectRejection(one.publish(createEvent(event, {}), signal()), 'publish() resolved without a confirmation'),
          );
          for (const one of pending) one.catch(() => undefined);
          try {
            await withTimeout(CLOSE_MS, 'close()', () => Promise.all([broker.close(), opening.close()]));
          } finally {
            proxy.disconnect();
          }
          await Promise.all(pending);
        }),
      {
        promise:
          'close() ends soon, also while connecting, publishing and consuming, when the server does not respond.',
      },
    );

    const throughGate = (
      { event, product, options }: BrokerCase,
      body: (gate: GateUnderTest) => Promise<void>,
    ): Promise<void> =>
      withGate(
        {
          config: { product, plugins: [tested.plugin], brokers: { bus: { type: tested.type, ...options } } },
          approvals: { decisions: { broker: 'bus' } },
          humanInLoop: { approvalBroker: { broker: 'bus', event }, approvalTimeout: 60_000 },
        },
        body,
      );

    on(
      'a request is published as a CloudEvent, and its decision is received',
      () =>
        withBroker(async (context) => {
          const messages = await context.client.listen(context.event);
          await throughGate(context, async ({ refund, refunds, svc }) => {
            const stop = await svc.approvals.consumeDecisions();
            const card = '4111-1111-1111-1111';
            const { request, outcome } = await refund();
            await refund({ orderId: '2', amount: 1, card });
            await waitUntil(() => messages().length >= 2, 'no event arrived');
            assert.ok(!JSON.stringify(messages()).includes(card), 'a sensitive value was sent');
            const event = messages()
              .map(({ body }) => JSON.parse(body))
              .find(({ subject }) => subject === request.requestId);
            const { specversion, type, source, id, data } = event;
            const { token, ...rest } = data;
            assert.deepEqual(
              { specversion, type, source, id },
              { specversion: '1.0', type: context.event, source: `/svc/${context.product}/dev`, id: request.requestId },
            );
            assert.deepEqual(rest, request);
            const decision = { requestId: request.requestId, token, approved: true, modifiedParams: { amount: 15 } };
            await send(context.client, decisionQueue(context.product), JSON.stringify(decision));
            assert.equal((await outcome).status, 'completed');
            assert.equal(JSON.stringify(refunds), '[{"orderId":"1234","amount":15}]');
            await stop?.();
          });
        }),
      {
        promise: 'The body of an event arrives unchanged, and a decision in the queue reaches the request.',
      },
    );

    on(
      'a reminder and an escalation are events of their own',
      () =>
        withBroker(async ({ client, event, product, options, notices }) => {
          const [reminder, escalation] = [`${event}.reminder`, `${event}.escalation`];
          notices.push(reminder, escalation);
          const requests = await client.listen(event);
          const reminders = await client.listen(reminder);
          const escalations = await client.listen(escalation);
          const escalate = [{ after: '2s', to: 'heads' }];
          await withGate(
            {
              config: { product, plugins: [tested.plugin], brokers: { bus: { type: tested.type, ...options } } },
              approvals: {
                roles: { finance: ['group:finance'], heads: ['group:heads'] },
                rules: [{ approve: [{ role: 'finance' }], remind: '1s', escalate, expires: '1h' }],
              },
              humanInLoop: { approvalBroker: { broker: 'bus', event }, approvalTimeout: 60_000 },
            },
            async ({ refund }) => {
              const { request } = await refund();
              await waitUntil(() => escalations().length > 0, 'no escalation arrived');
              const events = [...requests(), ...reminders(), ...escalations()].map(({ body }) => JSON.parse(body));
              assert.deepEqual(
                events.map(({ type, subject }) => [type, subject]),
                [event, reminder, escalation].map((type) => [type, request.requestId]),
              );
              assert.equal(new Set(events.map(({ id }) => id)).size, 3, 'two events have the same id');
              assert.deepEqual(events[2].data.notice.to, [{ role: 'heads', members: ['group:heads'] }]);
            },
          );
        }),
      { promise: 'Events of several names arrive, each at those who listen for its name.' },
    );

    on(
      'an invalid decision becomes a dead letter',
      () =>
        withBroker(async (context) => {
          const { client, product } = context;
          const messages = await client.listen(context.event);
          await throughGate(context, async ({ refund, svc }) => {
            const stop = await svc.approvals.consumeDecisions();
            const { request } = await refund();
            const { requestId } = request;
            await waitUntil(() => messages().length > 0, 'no event arrived');
            const { token } = JSON.parse(messages()[0]?.body ?? '').data;
            const decision = JSON.stringify({ requestId, token, approved: true });
            const texts = [
              'no json',
              '{}',
              JSON.stringify({ requestId, approved: true }),
              JSON.stringify({ requestId, token: 'v1.no', approved: true }),
              decision.replace('{', '{"approved":false,'),
              decision.replace('}', ',"modifiedParams":{"amount":1,"amou\\u006et":15}}'),
              decision.replace('}', ',"modifiedParams":{"amount":9007199254740993}}'),
            ];
            await send(client, decisionQueue(product), ...texts);
            const dead: string[] = [];
            await waitUntil(async () => {
              dead.push(...(await client.takeDeadLetters(decisionQueue(product))));
              return dead.length >= texts.length;
            }, 'not every message became a dead letter');
            assert.deepEqual(dead.sort(), texts.sort());
            // As text, its byte 0xff would be U+FFFD.
            await send(client, decisionQueue(product), notUtf8(decision.replace('}', ',"reason":"?"}')));
            await waitUntil(
              async () => (await client.takeDeadLetters(decisionQueue(product))).length > 0,
              'a decision that is not UTF-8 did not become a dead letter',
            );
            assert.equal((await svc.approvals.get(requestId)).status, 'waiting');
            await stop?.();
          });
        }),
      { promise: 'A message that is not a decision becomes a dead letter, unchanged, and the request keeps waiting.' },
    );
  });
}

/** Without it, each case would wait for a server that is not there until its own timeout. */
async function probe({ host, port }: BrokerUnderTest['server']): Promise<void> {
  const socket = connect({ host, port, timeout: PROBE_MS });
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('timeout', () => reject(new Error(`no response within ${PROBE_MS} ms`)));
      socket.once('error', reject);
    });
  } catch (error) {
    throw new Error(`No server answers at ${host}:${port}, the "server" of the suite: ${(error as Error).message}`);
  } finally {
    socket.destroy();
  }
}

const decisionQueue = (product: string): string => `svc.approvals.decisions.${product}.dev`;

async function consumeBytes(broker: Broker, queue: string, handle: (body: Uint8Array) => Promise<void>) {
  assert.ok(broker.consume, 'there is no consume(): skip this case, and give the reason');
  return broker.consume(queue, handle);
}

const consume = (broker: Broker, queue: string, handle: (text: string) => Promise<void>) =>
  consumeBytes(broker, queue, (body) => handle(Buffer.from(body).toString()));

/** The text with 0xff in place of each `?`. */
const notUtf8 = (text: string): Uint8Array => Buffer.from(text.replaceAll('?', '\xff'), 'latin1');

/** An error as a plugin receives it whose package has its own copy of the class. */
function fromAnotherCopy({ message, name, retry, afterMs }: DeliveryFailed): Error {
  return Object.assign(new Error(message), { name, retry, afterMs });
}

/** Publishes until it succeeds, as the gate does. */
function publishUntilConfirmed(broker: Broker, event: BrokerEvent, patienceMs: number | undefined): Promise<void> {
  const attempt = () =>
    broker.publish(event, signal()).then(
      () => true,
      () => false,
    );
  return waitAtMost(attempt, 'the server is back, but publish() still throws', patienceMs);
}

/** Sends messages once the consumer has created its queue. */
async function send(client: BrokerClient, queue: string, ...bodies: readonly (string | Uint8Array)[]): Promise<void> {
  for (const body of bodies) {
    await waitAtMost(() => client.send(queue, Buffer.from(body)), `the queue ${queue} was never created`);
  }
}
