import * as assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import { type BrokerCases, consume, send } from './broker-case.ts';
import { consumeInProcess } from './start-broker-process.ts';
import type { DeclareCase } from './suite.ts';

/** Of a server that delivers a message again after a while. */
export const LEASE = 'a message is not delivered again while it is handled';

/** Declares how consumers share a queue, reconnect and stop. */
export function declareConsumerCases(
  on: DeclareCase,
  { tested, withBroker, waitUntil, sendRounds, assertQueueIsEmpty }: BrokerCases,
): void {
  const { module, type, patienceMs = 60_000, leaseMs = 0 } = tested;

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
          assert.equal(bodies.filter((body) => body === 'slow').length, 1, 'it was delivered again: extend its lease');
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
}
