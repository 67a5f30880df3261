import amqp from 'amqplib';
import type { BrokerMessage, BrokerClient } from '../suites/broker-suite.ts';

/** Those who listen and decide, on a RabbitMQ server. */
export async function rabbitmqOutside(url: string): Promise<BrokerClient> {
  const connection = await amqp.connect(url);
  connection.on('error', () => {});
  const channel = await connection.createConfirmChannel();
  await channel.assertExchange('svc.events', 'topic', { durable: true });
  const isThere = async (queue: string): Promise<boolean> => {
    // A question about a queue that is missing ends the channel.
    const asking = await connection.createChannel();
    asking.on('error', () => {});
    return asking.checkQueue(queue).then(
      () => asking.close().then(() => true),
      () => false,
    );
  };
  return {
    async listen(event) {
      const { queue } = await channel.assertQueue('', { exclusive: true });
      await channel.bindQueue(queue, 'svc.events', event);
      const messages: BrokerMessage[] = [];
      await channel.consume(
        queue,
        (message) => {
          if (message) messages.push({ body: message.content.toString(), id: message.properties.messageId });
        },
        { noAck: true },
      );
      return () => messages;
    },
    async send(queue, text) {
      if (!(await isThere(queue))) return false;
      channel.sendToQueue(queue, Buffer.from(text), { persistent: true });
      await channel.waitForConfirms();
      return true;
    },
    async takeDeadLetters(queue) {
      const texts: string[] = [];
      if (!(await isThere(`${queue}.dead`))) return texts;
      for (;;) {
        const message = await channel.get(`${queue}.dead`, { noAck: true });
        if (!message) return texts;
        texts.push(message.content.toString());
      }
    },
    async close({ queues }) {
      for (const queue of queues) for (const name of [queue, `${queue}.dead`]) await channel.deleteQueue(name);
      await connection.close();
    },
  };
}
