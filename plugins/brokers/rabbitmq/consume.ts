import { once } from 'node:events';
import type { ChannelModel, ConsumeMessage } from 'amqplib';
import type { Subscription } from '../reconnecting.ts';

/** Exchange for messages that no consumer could process; each goes to the queue `<queue>.dead`. */
const DEAD_LETTER_EXCHANGE = 'svc.dead';
/** Unacknowledged messages per consumer: as many decisions fit in one batch of statements. */
const PREFETCH = 64;

/** Ends when the channel closes. When stopped, it first finishes the messages it has received. */
export async function consumeQueue(model: ChannelModel, subscription: Subscription): Promise<void> {
  const { queue, signal, stopped, receive, finished } = subscription;
  const channel = await model.createChannel();
  channel.on('error', () => {});
  const closed = once(channel, 'close', { signal }).catch(() => undefined);
  await channel.assertExchange(DEAD_LETTER_EXCHANGE, 'direct', { durable: true });
  await channel.assertQueue(`${queue}.dead`, { durable: true });
  await channel.bindQueue(`${queue}.dead`, DEAD_LETTER_EXCHANGE, queue);
  await channel.assertQueue(queue, {
    durable: true,
    deadLetterExchange: DEAD_LETTER_EXCHANGE,
    deadLetterRoutingKey: queue,
  });
  await channel.prefetch(PREFETCH);
  const receiveMessage = (message: ConsumeMessage | null) => {
    if (!message) return;
    void receive({
      body: message.content,
      ack: () => channel.ack(message),
      requeue: () => channel.nack(message, false, true),
      deadLetter: () => channel.nack(message, false, false),
    });
  };
  const { consumerTag } = await channel.consume(queue, receiveMessage);
  await Promise.race([closed, stopped]);
  if (!signal.aborted) throw new Error('the channel was closed');
  await channel.cancel(consumerTag);
  await finished();
  await channel.close();
}
