import rabbitmq from '../plugins/brokers/rabbitmq/broker.ts';
import { brokerSuite } from './suites/broker-suite.ts';
import { rabbitmqOutside } from './kit/rabbitmq-outside.ts';
import { test } from './kit/test.ts';
import { find } from './servers/find.ts';

const found = await find('rabbitmq');
const server = new URL('missing' in found ? 'amqp://guest:guest@127.0.0.1:5672' : found.url);

brokerSuite(test, {
  name: 'rabbitmq',
  plugin: rabbitmq,
  type: 'rabbitmq',
  skip: 'missing' in found ? found.missing : undefined,
  server: { host: server.hostname, port: Number(server.port || 5672) },
  options(host, port) {
    const url = new URL(server);
    url.hostname = host;
    url.port = String(port);
    return { url: url.href };
  },
  secrets: [`:${server.password}@`],
  openClient: () => rabbitmqOutside(server.href),
});
