import amqp from 'amqplib';
import rabbitmq from '../../plugins/brokers/rabbitmq/broker.ts';
import { find } from '../servers/find.ts';
import type { BrokerClient, BrokerMessage, BrokerUnderTest } from '../suites/broker-under-test.ts';
import type { OwnBroker } from './own-rabbitmq.ts';

const found = await find('rabbitmq');
const server = new URL('missing' in found ? 'amqp://guest:guest@127.0.0.1:5672' : found.url);

export const rabbitmqUnderTest = {
  name: 'rabbitmq',
  plugin: rabbitmq,
  type: 'rabbitmq',
  module: new URL('../../plugins/brokers/rabbitmq/broker.ts', import.meta.url),
  skip: 'missing' in found ? found.missing : undefined,
  server: { host: server.hostname, port: Number(server.port || 5672) },
  options(host, port) {
    const url = new URL(server);
    url.hostname = host;
    url.port = String(port);
    url.searchParams.set('heartbeat', '2');
    return { url: url.href };
  },
  secrets: [`:${server.password}@`],
  openClient: () => openRabbitmqClient(server.href),
} satisfies BrokerUnderTest;

/** The same broker on a server of its own, which may be restarted. */
export const onOwnServer = ({ url, restart }: OwnBroker): BrokerUnderTest => {
  const { hostname, port } = new URL(url);
  return {
    ...rabbitmqUnderTest,
    skip: undefined,
    server: { host: hostname, port: Number(port) },
    openClient: () => openRabbitmqClient(url),
    restart,
  };
};

/** A client that receives events and sends decisions, independent of the broker under test. */
async function openRabbitmqClient(url: string): Promise<BrokerClient> {
  const connection = await amqp.connect(url);
  connection.on('error', () => {});
  const channel = await connection.createConfirmChannel();
  await channel.assertExchange('svc.events', 'topic', { durable: true });
  const full: string[] = [];
  const exists = async (queue: string): Promise<boolean> => {
    // A check of a missing queue closes the channel.
    const checkChannel = await connection.createChannel();
    checkChannel.on('error', () => {});
    return checkChannel.checkQueue(queue).then(
      () => checkChannel.close().then(() => true),
      () => false,
    );
  };
  return {
    async listen(event) {
      // Durable, and read without acknowledgements: what was published is there after a restart.
      const { queue } = await channel.assertQueue(event, { durable: true });
      await channel.bindQueue(queue, 'svc.events', event);
      const messages: BrokerMessage[] = [];
      await channel.consume(queue, (message) => {
        if (!message) return;
        const { messageId, expiration } = message.properties;
        const expiresInMs = expiration === undefined ? undefined : Number(expiration);
        messages.push({ body: message.content.toString(), id: messageId, expiresInMs });
      });
      return () => messages;
    },
    async send(queue, body) {
      if (!(await exists(queue))) return false;
      channel.sendToQueue(queue, Buffer.from(body), { persistent: true });
      await channel.waitForConfirms();
      return true;
    },
    async takeDeadLetters(queue) {
      const texts: string[] = [];
      if (!(await exists(`${queue}.dead`))) return texts;
      for (;;) {
        const message = await channel.get(`${queue}.dead`, { noAck: true });
        if (!message) return texts;
        texts.push(message.content.toString());
      }
    },
    async refuse(event) {
      const { queue } = await channel.assertQueue('', {
        autoDelete: true,
        arguments: { 'x-max-length': 0, 'x-overflow': 'reject-publish' },
      });
      full.push(queue);
      await channel.bindQueue(queue, 'svc.events', event);
    },
    async close({ events, queues }) {
      for (const queue of [...full, ...events]) await channel.deleteQueue(queue);
      for (const queue of queues) for (const name of [queue, `${queue}.dead`]) await channel.deleteQueue(name);
      await connection.close();
    },
  };
}
