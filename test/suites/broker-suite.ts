import * as assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Broker, type BrokerEvent, DeliveryFailed } from '../../core/approval/channel.ts';
import type { Json } from '../../core/json.ts';
import { Kernel, type Plugin } from '../../core/kernel.ts';
import { applyPlugin } from '../../core/plugin.ts';
import { expectRejection } from './expect-error.ts';
import { type GateUnderTest, withGate } from './gate-client.ts';
import { suite, type TestFunction, type UnderTest } from './suite.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';
import { waitUntil } from './wait-until.ts';

/** A broker, and the server that it connects to. */
export interface BrokerUnderTest extends UnderTest {
  /** The plugin that its package exports. */
  readonly plugin: Plugin;
  /** The name under which the plugin registers the broker. */
  readonly type: string;
  /** A real server. The suite connects the broker to it through a proxy that it disconnects and freezes. */
  readonly server: { readonly host: string; readonly port: number };
  /** The options in `brokers` other than `type`, for a server at this address. */
  options(host: string, port: number): Readonly<Record<string, unknown>>;
  /** Texts in the options that must not occur in an error. */
  readonly secrets?: readonly string[];
  /** Opens a client of the server that is independent of the broker. */
  openClient(): Promise<BrokerClient>;
}

export interface BrokerClient {
  /** Subscribes to events of a name. The returned function lists the messages so far, including any that the server kept. */
  listen(event: string): Promise<() => readonly BrokerMessage[]>;
  /** Sends a message to a queue. Returns false if the queue does not exist. */
  send(queue: string, text: string): Promise<boolean>;
  /** Removes and returns the dead letters of a queue. */
  takeDeadLetters(queue: string): Promise<readonly string[]>;
  /** Deletes these events and queues from the server, and disconnects. */
  close(used: { readonly events: readonly string[]; readonly queues: readonly string[] }): Promise<void>;
}

export interface BrokerMessage {
  readonly body: string;
  /** The id of the event, wherever the broker stores it. */
  readonly id: string | undefined;
}

interface BrokerCase {
  readonly client: BrokerClient;
  readonly proxy: TcpProxy;
  readonly options: Readonly<Record<string, unknown>>;
  /** Creates another instance, as another process would. It is closed at the end. */
  createBroker(): Broker;
  readonly broker: Broker;
  readonly event: string;
  readonly queue: string;
  readonly product: string;
}

/** Tests that a message broker fulfills its contract. */
export function brokerSuite(test: TestFunction, tested: BrokerUnderTest): void {
  suite(test, tested, (on) => {
    const withBroker = async (body: (context: BrokerCase) => Promise<void>): Promise<void> => {
      const id = randomUUID();
      const [event, queue, product] = [`approvals.test.${id}`, `svc.test.${id}`, `p${id}`];
      const proxy = await startTcpProxy(tested.server.host, tested.server.port);
      const client = await tested.openClient();
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
        await body({ client, proxy, options, createBroker, broker: createBroker(), event, queue, product });
      } finally {
        await Promise.all(opened.map((broker) => broker.close()));
        proxy.disconnect();
        const decisions = decisionQueue(product);
        await client.close({ events: [event], queues: [queue, decisions] });
      }
    };

    on(
      'an event arrives unchanged',
      () =>
        withBroker(async ({ broker, event, client }) => {
          const messages = await client.listen(event);
          const body = { text: 'ünï "quoted" \u202e 😀\n', list: [1, 2.5, null, true], of: { nothing: {} } };
          await broker.publish(createEvent(event, body), signal());
          await waitUntil(() => messages().length > 0, 'publish() resolved, but no event arrived');
          assert.deepEqual(JSON.parse(messages()[0]?.body ?? ''), body);
        }),
      { promise: 'publish() resolves when the broker has stored the event. Its body is JSON.' },
    );

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
      'each attempt carries the id of its event',
      () =>
        withBroker(async ({ broker, event, client }) => {
          const messages = await client.listen(event);
          const one = createEvent(event, { number: 1 });
          await broker.publish(one, signal());
          await broker.publish(one, signal());
          const other = createEvent(event, { number: 2 });
          await broker.publish(other, signal());
          await waitUntil(
            () => messages().some(({ id }) => id === other.id),
            'an event arrived without its id, or not at all',
          );
          const ids = new Set(messages().map(({ id }) => id));
          assert.deepEqual([...ids].sort(), [one.id, other.id].sort());
        }),
      { promise: 'Publishing an event twice is not an error, and a receiver detects the second one by its id.' },
    );

    on(
      'concurrent events all arrive',
      () =>
        withBroker(async ({ broker, event, client }) => {
          const messages = await client.listen(event);
          const events = Array.from({ length: 50 }, (_, number) => createEvent(event, { number }));
          await Promise.all(events.map((one) => broker.publish(one, signal())));
          const arrived = () => new Set(messages().map(({ body }) => Number(JSON.parse(body).number)));
          await waitUntil(() => arrived().size === events.length, 'publish() resolved for an event that never arrived');
        }),
      { promise: 'Each of many concurrent calls of publish() resolves for its own event.' },
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
          await publishUntilConfirmed(broker, createEvent(event, { after: 'its first start' }));
          proxy.disconnect();
          await expectRejection(
            broker.publish(createEvent(event, {}), signal()),
            'publish() resolved without a server',
          );
          await proxy.connect();
          await publishUntilConfirmed(broker, createEvent(event, { after: 'a lost connection' }));
          const came = (text: string) => messages().some(({ body }) => body.includes(text));
          await waitUntil(() => came('first start') && came('lost connection'), 'a published event did not arrive');
        }),
      {
        promise: 'It connects on first use and reconnects by itself: a call that throws works once the server is back.',
      },
    );

    on(
      'errors contain no secret',
      () =>
        withBroker(async ({ broker, event, proxy }) => {
          proxy.disconnect();
          const { message } = await expectRejection(
            broker.publish(createEvent(event, {}), signal()),
            'publish() resolved',
          );
          for (const secret of tested.secrets ?? [])
            assert.ok(!message.includes(secret), `an error contains a secret: ${message}`);
        }),
      { promise: 'Errors are stored in the audit: none contains a password.' },
    );

    on(
      'a message is delivered as JSON, or as text',
      () =>
        withBroker(async ({ broker, client, queue }) => {
          const bodies: unknown[] = [];
          const stop = await consume(broker, queue, async (body) => void bodies.push(body));
          await send(client, queue, '{"approved":true,"text":"ü😀"}', 'no json');
          await waitUntil(() => bodies.length === 2, 'not every message was delivered');
          assert.deepEqual(sortedJson(bodies), sortedJson([{ approved: true, text: 'ü😀' }, 'no json']));
          await stop();
          assert.deepEqual(await client.takeDeadLetters(queue), []);
        }),
      { promise: 'consume() creates the queue if it does not exist, and delivers its messages.' },
    );

    on(
      'a message that cannot be processed becomes a dead letter and blocks no other',
      () =>
        withBroker(async ({ broker, client, queue }) => {
          const bodies: unknown[] = [];
          const stop = await consume(broker, queue, async (body) => {
            bodies.push(body);
            if (body === 'bad') throw new Error('it cannot be processed');
          });
          await send(client, queue, 'bad', 'good');
          const dead: string[] = [];
          await waitUntil(async () => {
            dead.push(...(await client.takeDeadLetters(queue)));
            return dead.length > 0 && bodies.length >= 2;
          }, 'it did not become a dead letter');
          await stop();
          assert.deepEqual([bodies.sort(), dead], [['bad', 'good'], ['bad']]);
        }),
      {
        promise: 'A message on which handle() throws becomes a dead letter, unchanged: not lost, and not redelivered.',
      },
    );

    on(
      'a message that failed temporarily is redelivered',
      () =>
        withBroker(async ({ broker, client, queue }) => {
          let attempts = 0;
          const stop = await consume(broker, queue, async () => {
            attempts += 1;
            if (attempts === 1) throw new DeliveryFailed('the store cannot be reached');
          });
          await send(client, queue, 'later');
          await waitUntil(() => attempts === 2, 'it was not redelivered');
          await stop();
          assert.deepEqual(await client.takeDeadLetters(queue), []);
        }),
      {
        promise: 'A message on which handle() throws a DeliveryFailed with `retry: true` is redelivered after a pause.',
      },
    );

    on(
      'a consumer survives a lost connection',
      () =>
        withBroker(async ({ broker, client, queue, proxy }) => {
          const bodies: unknown[] = [];
          const stop = await consume(broker, queue, async (body) => void bodies.push(body));
          await send(client, queue, 'before');
          await waitUntil(() => bodies.includes('before'), 'nothing was delivered');
          proxy.disconnect();
          await proxy.connect();
          await send(client, queue, 'after');
          await waitUntil(() => bodies.includes('after'), 'nothing is delivered after the connection was lost');
          await stop();
        }),
      { promise: 'consume() continues by itself when the connection is back.' },
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
          assert.deepEqual(sortedJson([...first, ...later]), sortedJson(['first', ...rest]));
        }),
      {
        promise:
          'The function that consume() returns waits for handle(), acknowledges its message, and leaves the rest to other consumers.',
      },
    );

    on(
      'it can be closed before use, after use, and twice',
      () =>
        withBroker(async ({ broker, createBroker, event, client }) => {
          await createBroker().close();
          await client.listen(event);
          await broker.publish(createEvent(event, {}), signal());
          await broker.close();
          await broker.close();
          await expectRejection(broker.publish(createEvent(event, {}), signal()), 'publish() resolved after close()');
        }),
      {
        promise: 'close() ends every connection and can be called at any time. Nothing is published after it.',
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
      'an invalid decision becomes a dead letter',
      () =>
        withBroker(async (context) => {
          const { client, product } = context;
          await client.listen(context.event);
          await throughGate(context, async ({ refund, svc }) => {
            const stop = await svc.approvals.consumeDecisions();
            const { request } = await refund();
            const { requestId } = request;
            const invalid = [
              'no json',
              {},
              { requestId, approved: true },
              { requestId, token: 'v1.no', approved: true },
            ];
            const texts = invalid.map((one) => (typeof one === 'string' ? one : JSON.stringify(one)));
            await send(client, decisionQueue(product), ...texts);
            const dead: string[] = [];
            await waitUntil(async () => {
              dead.push(...(await client.takeDeadLetters(decisionQueue(product))));
              return dead.length >= texts.length;
            }, 'not every message became a dead letter');
            assert.deepEqual(dead.sort(), texts.sort());
            assert.equal((await svc.approvals.get(requestId)).status, 'waiting');
            await stop?.();
          });
        }),
      { promise: 'A message that is not a decision becomes a dead letter, unchanged, and the request keeps waiting.' },
    );
  });
}

const decisionQueue = (product: string): string => `svc.approvals.decisions.${product}.dev`;

const createEvent = (name: string, body: Json): BrokerEvent => ({ name, id: randomUUID(), body, expiresInMs: 60_000 });

/** The timeout that the gate sets for an attempt. */
const signal = (): AbortSignal => AbortSignal.timeout(15_000);

async function consume(broker: Broker, queue: string, handle: (body: unknown) => Promise<void>) {
  assert.ok(broker.consume, 'there is no consume(): skip this case, and give the reason');
  return broker.consume(queue, handle);
}

/** Publishes until it succeeds, as the gate does. */
function publishUntilConfirmed(broker: Broker, event: BrokerEvent): Promise<void> {
  const attempt = () =>
    broker.publish(event, signal()).then(
      () => true,
      () => false,
    );
  return waitUntil(attempt, 'the server is back, but publish() still throws');
}

/** Sends messages once the consumer has created its queue. */
async function send(client: BrokerClient, queue: string, ...texts: readonly string[]): Promise<void> {
  for (const text of texts) await waitUntil(() => client.send(queue, text), `the queue ${queue} was never created`);
}

function sortedJson(values: readonly unknown[]): readonly string[] {
  return values.map((value) => JSON.stringify(value)).sort();
}
