import { test } from 'node:test';
import { connect } from '@nats-io/transport-node';
import { brokerSuite } from '@svc/sdk/testing';
import plugin from '../src/index.ts';
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
  skip: missing,
  server: { host: hostname, port: Number(port || 4222) },
  options: (address, proxyPort) => ({ url: `nats://${address}:${proxyPort}` }),
  openClient: () => openClient(host),
});
