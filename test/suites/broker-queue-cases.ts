import * as assert from 'node:assert/strict';
import { DeliveryFailed } from '../../core/approval/channel.ts';
import { type BrokerCase, type BrokerCases, consume, consumeBytes, PAUSE_MS, send } from './broker-case.ts';
import { createEvent, largestParameters, signal } from './broker-event-cases.ts';
import type { DeclareCase } from './suite.ts';
import { startTcpProxy } from './tcp-proxy.ts';

/** Timers may fire this much early. */
const TOLERANCE_MS = 50;
/** The packets after which a connection ends: before, between and in those that make a dead letter. */
const CUTS = [0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4];
/** Longer than what names it, so that half of what a client sends at once ends in it. */
const DEAD = `bad ${'x'.repeat(1_000)}`;

/** Declares what becomes of a message in a queue: delivered, again, or a dead letter. */
export function declareQueueCases(
  on: DeclareCase,
  { tested, withBroker, waitUntil, assertQueueIsEmpty }: BrokerCases,
): void {
  const { patienceMs = 60_000 } = tested;

  /** A consumer that rejects a message, and whose connection ends after the next so many packets that it sends. */
  const loseConnection = async (context: BrokerCase, pieces: number, at: number): Promise<void> => {
    const { client, createBroker, queues } = context;
    const queue = `${context.queue}.${at}`;
    queues.push(queue);
    const { server } = tested;
    const proxy = await startTcpProxy(server.host, server.port);
    await proxy.connect();
    const broker = createBroker(tested.options(proxy.host, proxy.port));
    let isOver = false;
    /** The connection may end only when the broker closes, after which nothing may listen again. */
    const reconnect = async (): Promise<void> => (isOver ? undefined : proxy.connect());
    try {
      let deliveries = 0;
      await consume(broker, queue, async () => {
        deliveries += 1;
        if (deliveries === 1) void proxy.disconnectAfter(pieces).then(reconnect);
        throw new Error('it cannot be processed');
      });
      await send(client, queue, DEAD);
      const dead: string[] = [];
      await waitUntil(
        async () => {
          dead.push(...(await client.takeDeadLetters(queue)));
          return dead.length > 0;
        },
        `a message is lost: handle() threw, the connection was cut ${cutText(pieces)}, and the message is neither a dead letter nor delivered again`,
      );
      assert.deepEqual(new Set(dead), new Set([DEAD]));
    } finally {
      isOver = true;
      await broker.close();
      proxy.disconnect();
    }
  };

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
    'a message is not lost while it becomes a dead letter',
    () =>
      withBroker(async (context) => {
        const lost = await Promise.allSettled(CUTS.map((pieces, at) => loseConnection(context, pieces, at)));
        for (const outcome of lost) if (outcome.status === 'rejected') throw outcome.reason;
      }),
    {
      promise:
        'A message is stored with the dead letters before it is removed from its queue: if the connection ends in between, it is in both.',
    },
  );
}

/** `in the middle of the 2nd packet that the consumer sent after that` */
function cutText(pieces: number): string {
  const whole = Math.ceil(pieces);
  const nth = ['1st', '2nd', '3rd'][whole - 1] ?? `${whole}th`;
  return `${whole === pieces ? 'after' : 'in the middle of'} the ${nth} packet that the consumer sent then`;
}

/** An error as a plugin receives it whose package has its own copy of the class. */
function fromAnotherCopy({ message, name, retry, afterMs }: DeliveryFailed): Error {
  return Object.assign(new Error(message), { name, retry, afterMs });
}
