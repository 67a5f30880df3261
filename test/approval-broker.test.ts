import * as assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import amqp from 'amqplib';
import { CloudEvent } from 'cloudevents';
import type { Config } from '../config/define.ts';
import { decisionQueue } from '../config/sdk/broker-decisions.ts';
import { definePlugin } from '../core/plugin.ts';
import { ownBroker, ownBrokerMissing } from './kit/own-rabbitmq.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { test } from './kit/test.ts';
import { find } from './servers/find.ts';
import { CALLBACK_KEY, type GateUnderTest, withGate } from './suites/gate-client.ts';
import { startTcpProxy, type TcpProxy } from './suites/tcp-proxy.ts';
import { waitUntil } from './suites/wait-until.ts';

test('names with dots share no queue of decisions, nor one of dead letters', () => {
  const pairs = [
    ['a.b', 'c'],
    ['a', 'b.c'],
    ['a', 'b.dead'],
    ['a', 'b'],
    ['a.b', 'dead'],
  ] as const;
  const queues = pairs.map(([product, env]) => decisionQueue({ product, env }));
  assert.equal(new Set(queues.flatMap((queue) => [queue, `${queue}.dead`])).size, 2 * pairs.length);
  assert.equal(decisionQueue({ product: 'shop', env: 'prd' }), 'svc.approvals.decisions.shop.prd');
});

const server = await find('rabbitmq');
const on = (name: string, body: (url: string) => Promise<void>, timeoutMs = 30_000) => {
  if ('missing' in server) test.skip(name, server.missing);
  else test(name, () => body(server.url), { timeoutMs });
};

interface Message {
  readonly body: Record<string, unknown>;
  readonly properties: amqp.MessageProperties;
}

interface Listener {
  /** The name of the event, which only this test uses. */
  readonly event: string;
  readonly messages: readonly Message[];
  /** Sends a decision to a queue. */
  send(queue: string, body: unknown): void;
  /** Removes and returns the messages of a queue. */
  takeAll(queue: string): Promise<string[]>;
}

/** Runs `body` with a queue that receives the events of a test. A durable queue is kept. */
async function withListener(url: string, body: (listener: Listener) => Promise<void>, durable?: string): Promise<void> {
  const event = durable ?? `approvals.test.${randomUUID()}`;
  const connection = await amqp.connect(url);
  connection.on('error', () => {});
  try {
    const channel = await connection.createChannel();
    channel.on('error', () => {});
    await channel.assertExchange('svc.events', 'topic', { durable: true });
    const lasting = durable !== undefined;
    const { queue } = await channel.assertQueue(durable ?? '', { durable: lasting, exclusive: !lasting });
    await channel.bindQueue(queue, 'svc.events', event);
    const messages: Message[] = [];
    await channel.consume(
      queue,
      (message) => {
        if (message) messages.push({ body: JSON.parse(message.content.toString()), properties: message.properties });
      },
      { noAck: true },
    );
    await body({
      event,
      messages,
      send: (to, value) =>
        void channel.sendToQueue(to, Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))),
      async takeAll(from) {
        const found: string[] = [];
        for (;;) {
          const message = await channel.get(from, { noAck: true });
          if (!message) return found;
          found.push(message.content.toString());
        }
      },
    });
  } finally {
    await connection.close().catch(() => undefined);
  }
}

/** The token of the event of a request. */
function tokenOf({ messages }: Listener, requestId: string): string {
  const event = messages.find(({ body }) => body.subject === requestId);
  if (!event) throw new Error(`no event of ${requestId}`);
  return (event.body.data as { token: string }).token;
}

/** Waits until a queue has a consumer. */
async function untilConsumed(url: string, queue: string): Promise<void> {
  await waitUntil(async () => {
    const connection = await amqp.connect(url);
    connection.on('error', () => {});
    try {
      const channel = await connection.createChannel();
      channel.on('error', () => {});
      return (await channel.checkQueue(queue)).consumerCount > 0;
    } catch {
      return false;
    } finally {
      await connection.close().catch(() => undefined);
    }
  }, `nobody consumes ${queue}`);
}

/** Runs `body` with a gate. Each test has its own product, and therefore its own queue of decisions. */
async function withBroker(
  {
    url,
    event,
    takesDecisions = false,
    timeoutMs = 60_000,
    product = `p${randomUUID().replaceAll('-', '')}`,
    config = {},
    store,
  }: {
    url: string;
    event: string;
    takesDecisions?: boolean;
    timeoutMs?: number;
    product?: string;
    config?: Config;
    store?: { database: string };
  },
  body: (gate: GateUnderTest, queue: string) => Promise<void>,
): Promise<void> {
  const queue = `svc.approvals.decisions.${product}.dev`;
  try {
    await withGate(
      {
        config: { product, brokers: { bus: { type: 'rabbitmq', url } }, ...config },
        approvals: { ...(takesDecisions && { decisions: { broker: 'bus' } }), ...(store && { store }) },
        humanInLoop: { approvalBroker: { broker: 'bus', event }, approvalTimeout: timeoutMs },
      },
      (gate) => body(gate, queue),
    );
  } finally {
    if (!('missing' in server)) {
      const connection = await amqp.connect(server.url);
      const channel = await connection.createChannel();
      for (const name of [queue, `${queue}.dead`]) await channel.deleteQueue(name);
      await connection.close();
    }
  }
}

on('the event is a CloudEvents document with the request in it, persistent and expiring, and carries no token', (url) =>
  withListener(url, (listener) =>
    withBroker({ url, event: listener.event }, async ({ refund }) => {
      const { request } = await refund({ orderId: '1', amount: 2, card: '4111' });
      await waitUntil(() => listener.messages.length === 1, 'no event arrived');
      const [{ body, properties }] = listener.messages as [Message];
      const event = new CloudEvent(body as never, true);
      assert.equal(event.type, listener.event);
      assert.equal(event.subject, request.requestId);
      assert.equal(event.id, request.requestId);
      assert.deepEqual(event.data, { ...request, parameters: { orderId: '1', amount: 2, card: { masked: true } } });
      assert.equal(properties.messageId, request.requestId);
      assert.equal(properties.deliveryMode, 2);
      assert.ok(Number(properties.expiration) > 50_000 && Number(properties.expiration) <= 60_000);
      assert.ok(!JSON.stringify(body).includes(CALLBACK_KEY));
    }),
  ),
);

on('a decision arrives through a queue, with the token of its request', (url) =>
  withListener(url, (listener) =>
    withBroker({ url, event: listener.event, takesDecisions: true }, async ({ refund, svc, refunds }, queue) => {
      const stop = await svc.approvals.consumeDecisions();
      await untilConsumed(url, queue);
      const { outcome, request } = await refund();
      await waitUntil(() => listener.messages.length === 1, 'no event arrived');
      const token = tokenOf(listener, request.requestId);
      const decision = { requestId: request.requestId, token, approved: true, reason: null };
      listener.send(queue, { ...decision, modifiedParams: { amount: 15 } });
      assert.equal((await outcome).status, 'completed');
      assert.equal((refunds[0] as { amount: number }).amount, 15);
      assert.equal((await svc.approvals.get(request.requestId)).decidedBy, 'broker token, unverified');
      const second = await refund();
      await waitUntil(() => listener.messages.length === 2, 'no second event arrived');
      const { requestId } = second.request;
      const rejection = { requestId, token: tokenOf(listener, requestId), approved: false };
      listener.send(queue, { ...rejection, reason: null, modifiedParams: null });
      assert.equal((await second.outcome).status, 'rejected');
      await stop?.();
    }),
  ),
);

on('invalid, forged and stale decisions become dead letters, and the request keeps waiting', (url) =>
  withListener(url, (listener) =>
    withBroker({ url, event: listener.event, takesDecisions: true }, async ({ refund, svc }, queue) => {
      const stop = await svc.approvals.consumeDecisions();
      await untilConsumed(url, queue);
      const { request } = await refund();
      const other = await refund({ orderId: '2', amount: 1 });
      await waitUntil(() => listener.messages.length === 2, 'no event arrived');
      const { requestId } = request;
      const bad = [
        'no json',
        {},
        { requestId, approved: true },
        { requestId, token: 'v1.forged', approved: true },
        { requestId, token: tokenOf(listener, other.request.requestId), approved: true },
        { requestId: '', token: 'v1.forged', approved: true },
        { requestId: 'apr_unknown', token: tokenOf(listener, requestId), approved: true },
        { requestId, token: tokenOf(listener, requestId), approved: 'yes' },
        { requestId, token: tokenOf(listener, requestId), approved: true, modifiedParams: { amount: -1 } },
      ];
      for (const one of bad) listener.send(queue, one);
      const dead: string[] = [];
      await waitUntil(async () => {
        dead.push(...(await listener.takeAll(`${queue}.dead`)));
        return dead.length === bad.length;
      }, 'not every message became a dead letter');
      assert.equal((await svc.approvals.get(requestId)).status, 'waiting');
      await stop?.();
    }),
  ),
);

const noDatabase = await unavailable();
const SKEW = 'an event expires with its request by the clock of the store, not of the process';
if (noDatabase !== undefined) test.skip(SKEW, noDatabase);
else
  on(SKEW, (url) =>
    withListener(url, async (listener) => {
      const database = await freshDatabase();
      const config: Config = { databases: { main: { dialect: 'postgresql', url: { dev: database.url } } } };
      const own = Date.now;
      Date.now = () => own() + 600_000;
      try {
        await withBroker({ url, event: listener.event, config, store: { database: 'main' } }, async ({ refund }) => {
          await refund();
          await waitUntil(() => listener.messages.length === 1, 'no event arrived');
          const expiration = Number(listener.messages[0]?.properties.expiration);
          assert.ok(expiration > 30_000 && expiration <= 60_000, `it expires in ${expiration} ms`);
        });
      } finally {
        Date.now = own;
      }
      await database.drop();
    }),
  );

const WAITS = 'a decision that the store temporarily rejects does not become a dead letter';
if (noDatabase !== undefined) test.skip(WAITS, noDatabase);
else
  on(
    WAITS,
    (url) =>
      withListener(url, async (listener) => {
        const database = await freshDatabase();
        let attempts = 0;
        const countAttempts = definePlugin({
          name: 'test-counts',
          apply: ({ hooks }) => hooks.beforeDecision.tap('test', () => void attempts++),
        });
        const config: Config = {
          databases: { main: { dialect: 'postgresql', url: { dev: database.url } } },
          plugins: [countAttempts],
        };
        const setup = { url, event: listener.event, takesDecisions: true, config, store: { database: 'main' } };
        await withBroker(setup, async ({ refund, svc }, queue) => {
          const stop = await svc.approvals.consumeDecisions();
          await untilConsumed(url, queue);
          const { outcome, request } = await refund();
          await waitUntil(() => listener.messages.length === 1, 'no event arrived');
          const token = tokenOf(listener, request.requestId);
          await database.alter('SET default_transaction_read_only = on');
          listener.send(queue, { requestId: request.requestId, token, approved: true });
          const dead: string[] = [];
          await waitUntil(async () => {
            dead.push(...(await listener.takeAll(`${queue}.dead`)));
            return dead.length > 0 || attempts >= 2;
          }, 'it was not redelivered');
          assert.deepEqual(dead, []);
          await database.alter('SET default_transaction_read_only = off');
          assert.equal((await outcome).status, 'completed');
          await stop?.();
        });
        await database.drop();
      }),
    90_000,
  );

on('an event that no queue receives is not delivered, and is published again', (url) =>
  withBroker({ url, event: `approvals.nobody.${randomUUID()}` }, async ({ refund, svc }) => {
    const { request } = await refund();
    await waitUntil(async () => {
      for await (const { type, details } of svc.approvals.export())
        if (type === 'not_delivered' && JSON.stringify(details).includes('no queue')) return true;
      return false;
    }, 'it was recorded as delivered');
    assert.equal((await svc.approvals.get(request.requestId)).status, 'waiting');
  }),
);

/** A proxy to the server, and the URL of the broker through it. */
async function startBrokerProxy(url: string): Promise<TcpProxy & { readonly url: string }> {
  const { hostname, port } = new URL(url);
  const proxy = await startTcpProxy(hostname, Number(port || 5672));
  const through = new URL(url);
  through.hostname = proxy.host;
  through.port = String(proxy.port);
  return { ...proxy, url: through.href };
}

on(
  'a broker outage does not block requests; afterwards pending events are published and decisions received',
  (url) =>
    withListener(url, async (listener) => {
      const proxy = await startBrokerProxy(url);
      await withBroker(
        { url: proxy.url, event: listener.event, takesDecisions: true },
        async ({ refund, svc }, queue) => {
          const { outcome: first, request: early } = await refund();
          await svc.agents.signal({
            executionId: early.executionId,
            signal: 'approve',
            payload: { requestId: early.requestId },
          });
          assert.equal((await first).status, 'completed');
          const warnings: string[] = [];
          const onWarning = ({ message }: Error): void => void warnings.push(message);
          process.on('warning', onWarning);
          const stop = await svc.approvals.consumeDecisions();
          await waitUntil(
            () => warnings.some((text) => text.includes(`from the queue ${queue}: `)),
            'there was no warning',
          );
          process.off('warning', onWarning);
          assert.ok(warnings.every((text) => !text.includes('guest:guest')));
          const { outcome, request } = await refund();
          await proxy.connect();
          await waitUntil(
            () => listener.messages.some(({ body }) => body.subject === request.requestId),
            'it was not published again',
          );
          const token = tokenOf(listener, request.requestId);
          proxy.disconnect();
          await proxy.connect();
          await untilConsumed(url, queue);
          listener.send(queue, { requestId: request.requestId, token, approved: true });
          assert.equal((await outcome).status, 'completed');
          await stop?.();
          proxy.disconnect();
        },
      );
    }),
  90_000,
);

/** Whether the audit records that the broker delivered a request. */
async function isPublished({ svc }: GateUnderTest, requestId: string): Promise<boolean> {
  for await (const entry of svc.approvals.export())
    if (entry.requestId === requestId && entry.type === 'delivered' && entry.as === 'broker') return true;
  return false;
}

const unavailableReason = ownBrokerMissing();
const KILLED = 'a broker that is killed and restarted loses no confirmed event, and decisions are received';
if (unavailableReason !== undefined) test.skip(KILLED, unavailableReason);
else
  test(
    KILLED,
    async () => {
      const broker = await ownBroker();
      try {
        await broker.start();
        const event = `approvals.test.${randomUUID()}`;
        // Declares the queue without a consumer, so that confirmed events are in the broker when it dies.
        await withListener(broker.url, async () => {}, event);
        await withBroker({ url: broker.url, event, takesDecisions: true, timeoutMs: 600_000 }, async (gate, queue) => {
          const { refund, svc } = gate;
          const stop = await svc.approvals.consumeDecisions();
          const early = await refund();
          await waitUntil(() => isPublished(gate, early.request.requestId), 'it was not published');
          await broker.kill();
          const late = await refund({ orderId: '2', amount: 5 });
          await broker.start();
          await withListener(
            broker.url,
            async (listener) => {
              for (const { request, outcome } of [early, late]) {
                await waitUntil(
                  () => listener.messages.some(({ body }) => body.subject === request.requestId),
                  'an event is lost',
                );
                await untilConsumed(broker.url, queue);
                const token = tokenOf(listener, request.requestId);
                listener.send(queue, { requestId: request.requestId, token, approved: true });
                assert.equal((await outcome).status, 'completed');
              }
            },
            event,
          );
          await stop?.();
        });
      } finally {
        await broker.remove();
      }
    },
    { timeoutMs: 400_000 },
  );
