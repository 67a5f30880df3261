import * as assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Broker, type BrokerEvent, DeliveryFailed } from '../../core/approval/channel.ts';
import type { Json } from '../../core/json.ts';
import { Kernel, type Plugin } from '../../core/kernel.ts';
import { applyPlugin } from '../../core/plugin.ts';
import { expectRejection } from './expect-error.ts';
import { type GateUnderTest, withGate } from './gate-client.ts';
import { suite, type TestFunction, type UnderTest } from './suite.ts';
import { type TcpProxy, startTcpProxy } from './tcp-proxy.ts';
import { waitUntil } from './wait-until.ts';

/** A broker, and the server that it speaks to. */
export interface BrokerUnderTest extends UnderTest {
  /** As its package exports it. */
  readonly plugin: Plugin;
  /** The name under which the plugin registers the broker. */
  readonly type: string;
  /** A real server. The suite leads the broker to it through a door of its own, which it shuts now and then. */
  readonly server: { readonly host: string; readonly port: number };
  /** What `brokers` says beside the `type`, for a server that is reached there. */
  options(host: string, port: number): Readonly<Record<string, unknown>>;
  /** Texts in the options that no error may quote. */
  readonly secrets?: readonly string[];
  /** Everybody else who uses that server, with a client of their own. */
  openClient(): Promise<BrokerClient>;
}

export interface BrokerClient {
  /** Subscribes to events of that name: what has come so far, and what the server kept from before, if it keeps any. */
  listen(event: string): Promise<() => readonly BrokerMessage[]>;
  /** Puts a message on a queue; false where there is no such queue. */
  send(queue: string, text: string): Promise<boolean>;
  /** Takes away what the broker put aside of a queue, as texts. */
  takeDeadLetters(queue: string): Promise<readonly string[]>;
  /** Leaves nothing of these behind on the server, and disconnects. */
  close(used: { readonly events: readonly string[]; readonly queues: readonly string[] }): Promise<void>;
}

export interface BrokerMessage {
  readonly body: string;
  /** The id of the event, from wherever the broker puts it. */
  readonly id: string | undefined;
}

interface BrokerContext {
  readonly client: BrokerClient;
  readonly proxy: TcpProxy;
  readonly options: Readonly<Record<string, unknown>>;
  /** Another instance, as another process would have it. Closed at the end. */
  another(): Broker;
  readonly broker: Broker;
  readonly event: string;
  readonly queue: string;
  readonly product: string;
}

/** What a message broker promises. */
export function brokerSuite(test: TestFunction, tested: BrokerUnderTest): void {
  suite(test, tested, (on) => {
    const withBroker = async (body: (place: BrokerContext) => Promise<void>): Promise<void> => {
      const id = randomUUID();
      const [event, queue, product] = [`approvals.test.${id}`, `svc.test.${id}`, `p${id}`];
      const way = await startTcpProxy(tested.server.host, tested.server.port);
      const outside = await tested.openClient();
      const options = tested.options(way.host, way.port);
      const opened: Broker[] = [];
      const another = () => {
        const kernel = new Kernel();
        applyPlugin(kernel, tested.plugin, tested.plugin.name);
        const broker = kernel.brokers.get(tested.type)(options);
        opened.push(broker);
        return broker;
      };
      try {
        await way.connect();
        await body({ client: outside, proxy: way, options, another, broker: another(), event, queue, product });
      } finally {
        await Promise.all(opened.map((broker) => broker.close()));
        way.disconnect();
        const decisions = decisionsOf(product);
        await outside.close({ events: [event], queues: [queue, decisions] });
      }
    };

    on(
      'an event is there when it is published, as it is',
      () =>
        withBroker(async ({ broker, event, client: outside }) => {
          const messages = await outside.listen(event);
          const body = { text: 'ünï "quoted" \u202e 😀\n', list: [1, 2.5, null, true], of: { nothing: {} } };
          await broker.publish(eventOf(event, body), signal());
          await waitUntil(() => messages().length > 0, 'publish() resolved, and no event came');
          assert.deepEqual(JSON.parse(messages()[0]?.body ?? ''), body);
        }),
      { promise: 'publish() resolves when the broker has the event, whose body is JSON.' },
    );

    on(
      'an event that nobody takes is kept or refused',
      () =>
        withBroker(async ({ broker, event, client: outside }) => {
          const kept = await broker.publish(eventOf(event, { early: true }), signal()).then(
            () => true,
            () => false,
          );
          const messages = await outside.listen(event);
          if (kept) await waitUntil(() => messages().length > 0, 'publish() resolved, and the event was lost');
          await broker.publish(eventOf(event, { early: false }), signal());
          await waitUntil(() => messages().some(({ body }) => body.includes('false')), 'the next event did not come');
        }),
      { promise: 'publish() never resolves for an event that the broker dropped; the next attempt arrives.' },
    );

    on(
      'each attempt carries the id of its event',
      () =>
        withBroker(async ({ broker, event, client: outside }) => {
          const messages = await outside.listen(event);
          const one = eventOf(event, { number: 1 });
          await broker.publish(one, signal());
          await broker.publish(one, signal());
          const other = eventOf(event, { number: 2 });
          await broker.publish(other, signal());
          await waitUntil(
            () => messages().some(({ id }) => id === other.id),
            'an event came without its id, or not at all',
          );
          const ids = new Set(messages().map(({ id }) => id));
          assert.deepEqual([...ids].sort(), [one.id, other.id].sort());
        }),
      { promise: 'Publishing an event twice is no error, and a receiver knows the second by its id.' },
    );

    on(
      'many at once all arrive',
      () =>
        withBroker(async ({ broker, event, client: outside }) => {
          const messages = await outside.listen(event);
          const events = Array.from({ length: 50 }, (_, number) => eventOf(event, { number }));
          await Promise.all(events.map((one) => broker.publish(one, signal())));
          const arrived = () => new Set(messages().map(({ body }) => Number(JSON.parse(body).number)));
          await waitUntil(() => arrived().size === events.length, 'publish() resolved for an event that never came');
        }),
      { promise: 'Each of many concurrent calls of publish() resolves for its own event.' },
    );

    on(
      'an attempt ends with its signal',
      () =>
        withBroker(async ({ broker, event, client: outside, proxy: way }) => {
          await outside.listen(event);
          await broker.publish(eventOf(event, {}), signal());
          way.freeze();
          const attempt = new AbortController();
          const publishing = expectRejection(
            broker.publish(eventOf(event, {}), attempt.signal),
            'publish() resolved unconfirmed',
          );
          publishing.catch(() => undefined);
          attempt.abort(new Error('the attempt is over'));
          await publishing;
          way.disconnect();
        }),
      {
        promise: 'publish() throws when its AbortSignal says so: a server that is silent holds nobody up.',
      },
    );

    on(
      'gone, and back again',
      () =>
        withBroker(async ({ broker, event, client: outside, proxy: way }) => {
          const messages = await outside.listen(event);
          way.disconnect();
          await expectRejection(broker.publish(eventOf(event, {}), signal()), 'publish() resolved without a server');
          await way.connect();
          await published(broker, eventOf(event, { after: 'its first start' }));
          way.disconnect();
          await expectRejection(broker.publish(eventOf(event, {}), signal()), 'publish() resolved without a server');
          await way.connect();
          await published(broker, eventOf(event, { after: 'a lost connection' }));
          const came = (text: string) => messages().some(({ body }) => body.includes(text));
          await waitUntil(() => came('first start') && came('lost connection'), 'what was published did not come');
        }),
      {
        promise: 'It connects when it is first used, and by itself again: what throws now works once the server is back.',
      },
    );

    on(
      'no secret is told',
      () =>
        withBroker(async ({ broker, event, proxy: way }) => {
          way.disconnect();
          const { message } = await expectRejection(broker.publish(eventOf(event, {}), signal()), 'publish() resolved');
          for (const secret of tested.secrets ?? []) assert.ok(!message.includes(secret), `it quotes one: ${message}`);
        }),
      { promise: 'Errors are kept in the audit: none quotes a password.' },
    );

    on(
      'a message is handed on as JSON, or as the text it is',
      () =>
        withBroker(async ({ broker, client: outside, queue }) => {
          const taken: unknown[] = [];
          const stop = await consume(broker, queue, async (body) => void taken.push(body));
          await sent(outside, queue, '{"approved":true,"text":"ü😀"}', 'no json');
          await waitUntil(() => taken.length === 2, 'not every message was handed on');
          assert.deepEqual(sorted(taken), sorted([{ approved: true, text: 'ü😀' }, 'no json']));
          await stop();
          assert.deepEqual(await outside.takeDeadLetters(queue), []);
        }),
      { promise: 'consume() makes the queue where it is missing, and hands on what comes.' },
    );

    on(
      'what cannot be used is put aside, and holds nothing up',
      () =>
        withBroker(async ({ broker, client: outside, queue }) => {
          const taken: unknown[] = [];
          const stop = await consume(broker, queue, async (body) => {
            taken.push(body);
            if (body === 'bad') throw new Error('it cannot be used');
          });
          await sent(outside, queue, 'bad', 'good');
          const dead: string[] = [];
          await waitUntil(async () => {
            dead.push(...(await outside.takeDeadLetters(queue)));
            return dead.length > 0 && taken.length >= 2;
          }, 'it was not put aside');
          await stop();
          assert.deepEqual([taken.sort(), dead], [['bad', 'good'], ['bad']]);
        }),
      { promise: 'A message on which take() throws is put aside as it is: never lost, and never handed on again.' },
    );

    on(
      'what may go another time comes again',
      () =>
        withBroker(async ({ broker, client: outside, queue }) => {
          let attempts = 0;
          const stop = await consume(broker, queue, async () => {
            attempts += 1;
            if (attempts === 1) throw new DeliveryFailed('the store cannot be reached');
          });
          await sent(outside, queue, 'later');
          await waitUntil(() => attempts === 2, 'it was not handed on again');
          await stop();
          assert.deepEqual(await outside.takeDeadLetters(queue), []);
        }),
      { promise: 'A message on which take() throws a DeliveryFailed that may be retried comes again, after a pause.' },
    );

    on(
      'a consumer outlives its connection',
      () =>
        withBroker(async ({ broker, client: outside, queue, proxy: way }) => {
          const taken: unknown[] = [];
          const stop = await consume(broker, queue, async (body) => void taken.push(body));
          await sent(outside, queue, 'before');
          await waitUntil(() => taken.includes('before'), 'nothing was handed on');
          way.disconnect();
          await way.connect();
          await sent(outside, queue, 'after');
          await waitUntil(() => taken.includes('after'), 'after the connection was lost nothing is handed on');
          await stop();
        }),
      { promise: 'consume() goes on by itself when the connection is back.' },
    );

    on(
      'a consumer that stops settles what it has, and leaves the rest',
      () =>
        withBroker(async ({ broker, another, client: outside, queue }) => {
          let finish = () => {};
          const busy = new Promise<void>((resolve) => {
            finish = resolve;
          });
          const first: unknown[] = [];
          const stop = await consume(broker, queue, async (body) => {
            first.push(body);
            await busy;
          });
          await sent(outside, queue, 'first');
          await waitUntil(() => first.length === 1, 'nothing was handed on');
          let hasStopped = false;
          const stopping = stop().then(() => {
            hasStopped = true;
          });
          const rest = Array.from({ length: 20 }, (_, index) => `rest ${index}`);
          await sent(outside, queue, ...rest);
          assert.ok(!hasStopped, 'it stopped while take() was busy');
          finish();
          await stopping;
          const later: unknown[] = [];
          const stopOther = await consume(another(), queue, async (body) => void later.push(body));
          await waitUntil(() => later.length >= rest.length - first.length + 1, 'what came after the stop was lost');
          await stopOther();
          assert.deepEqual(sorted([...first, ...later]), sorted(['first', ...rest]));
        }),
      { promise: 'What consume() gives waits for take(), settles its message, and takes no more: others do.' },
    );

    on(
      'it closes, used or not, and once more',
      () =>
        withBroker(async ({ broker, another, event, client: outside }) => {
          await another().close();
          await outside.listen(event);
          await broker.publish(eventOf(event, {}), signal());
          await broker.close();
          await broker.close();
          await expectRejection(broker.publish(eventOf(event, {}), signal()), 'publish() resolved after close()');
        }),
      { promise: 'close() ends every connection and may be called at any time; nothing is published after it.' },
    );

    const throughGate = (
      { event, product, options }: BrokerContext,
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
      'a request goes out as a CloudEvent, and its decision comes back',
      () =>
        withBroker(async (place) => {
          const messages = await place.client.listen(place.event);
          await throughGate(place, async ({ refund, refunds, svc }) => {
            const stop = await svc.approvals.takeDecisions();
            const card = '4111-1111-1111-1111';
            const { request, outcome } = await refund();
            await refund({ orderId: '2', amount: 1, card });
            await waitUntil(() => messages().length >= 2, 'no event came');
            assert.ok(!JSON.stringify(messages()).includes(card), 'a sensitive value was sent');
            const event = messages()
              .map(({ body }) => JSON.parse(body))
              .find(({ subject }) => subject === request.requestId);
            const { specversion, type, source, id, data } = event;
            const { token, ...told } = data;
            assert.deepEqual(
              { specversion, type, source, id },
              { specversion: '1.0', type: place.event, source: `/svc/${place.product}/dev`, id: request.requestId },
            );
            assert.deepEqual(told, request);
            const decision = { requestId: request.requestId, token, approved: true, modifiedParams: { amount: 15 } };
            await sent(place.client, decisionsOf(place.product), JSON.stringify(decision));
            assert.equal((await outcome).status, 'completed');
            assert.equal(JSON.stringify(refunds), '[{"orderId":"1234","amount":15}]');
            await stop?.();
          });
        }),
      { promise: 'The body of an event reaches the receiver unchanged, and a decision on the queue reaches the request.' },
    );

    on(
      'nonsense decides nothing, and is put aside',
      () =>
        withBroker(async (place) => {
          const { client: outside, product } = place;
          await outside.listen(place.event);
          await throughGate(place, async ({ refund, svc }) => {
            const stop = await svc.approvals.takeDecisions();
            const { request } = await refund();
            const { requestId } = request;
            const nonsense = [
              'no json',
              {},
              { requestId, approved: true },
              { requestId, token: 'v1.no', approved: true },
            ];
            const texts = nonsense.map((one) => (typeof one === 'string' ? one : JSON.stringify(one)));
            await sent(outside, decisionsOf(product), ...texts);
            const dead: string[] = [];
            await waitUntil(async () => {
              dead.push(...(await outside.takeDeadLetters(decisionsOf(product))));
              return dead.length >= texts.length;
            }, 'not all of it was put aside');
            assert.deepEqual(dead.sort(), texts.sort());
            assert.equal((await svc.approvals.get(requestId)).status, 'waiting');
            await stop?.();
          });
        }),
      { promise: 'What is no decision is put aside as it came, and the request waits.' },
    );
  });
}

const decisionsOf = (product: string): string => `svc.approvals.decisions.${product}.dev`;

const eventOf = (name: string, body: Json): BrokerEvent => ({ name, id: randomUUID(), body, expiresInMs: 60_000 });

/** As long as the gate gives an attempt. */
const signal = (): AbortSignal => AbortSignal.timeout(15_000);

async function consume(broker: Broker, queue: string, take: (body: unknown) => Promise<void>) {
  assert.ok(broker.consume, 'there is no consume(): skip this case, and say why decisions cannot come back');
  return broker.consume(queue, take);
}

/** As the gate does: until it succeeds. */
function published(broker: Broker, event: BrokerEvent): Promise<void> {
  const attempt = () =>
    broker.publish(event, signal()).then(
      () => true,
      () => false,
    );
  return waitUntil(attempt, 'the server is back, and publish() still throws');
}

/** The consumer makes its queue when it can. */
async function sent(outside: BrokerClient, queue: string, ...texts: readonly string[]): Promise<void> {
  for (const text of texts) await waitUntil(() => outside.send(queue, text), `nobody has made the queue ${queue}`);
}

function sorted(values: readonly unknown[]): readonly string[] {
  return values.map((value) => JSON.stringify(value)).sort();
}
