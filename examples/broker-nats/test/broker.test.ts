import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { extname } from 'node:path';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { connect } from '@nats-io/transport-node';
import { brokerSuite } from '@svc/sdk/testing';
import { ACK_MS } from '../src/broker.ts';
import plugin, { nats } from '../src/index.ts';
import { openClient } from './nats-client.ts';

const { host, hostname, port } = new URL(process.env.NATS_URL ?? 'nats://127.0.0.1:4222');

const missing = await connect({ servers: host, reconnect: false, timeout: 2_000 }).then(
  (connection) => connection.close().then(() => undefined),
  (error: Error) => `no NATS server responds on ${host} (${error.message}); set NATS_URL`,
);

brokerSuite(test, {
  name: 'nats',
  plugin,
  type: 'nats',
  module: new URL(`../src/index${extname(import.meta.url)}`, import.meta.url),
  skip: missing ?? { 'an event expires with its request': 'the stream keeps every event for a week' },
  server: { host: hostname, port: Number(port || 4222) },
  // A server without users accepts any.
  options: (address, proxyPort) => ({ url: `nats://svc:not-a-secret@${address}:${proxyPort}` }),
  secrets: ['not-a-secret'],
  openClient: () => openClient(host),
});

test('nats: a message whose handler takes longer than ACK_MS is delivered once', { skip: missing }, async () => {
  const client = await openClient(host);
  const broker = nats(`nats://${host}`);
  const queue = `svc.test.${randomUUID()}`;
  let deliveries = 0;
  let finish = () => {};
  const handled = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const handle = async () => {
    deliveries += 1;
    await wait(ACK_MS + 2_000);
    finish();
  };
  try {
    // A second process would receive it.
    for (let process = 0; process < 2; process++) await broker.consume?.(queue, handle);
    while (!(await client.send(queue, Buffer.from('{}')))) await wait(10);
    await handled;
    assert.equal(deliveries, 1);
  } finally {
    await broker.close();
    await client.close({ events: [], queues: [queue] });
  }
});
