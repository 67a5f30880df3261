import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib';
import { isDeliveryFailed } from '../../../core/approval/channel.ts';
import { closeWithTimeout } from './publish.ts';

/** Exchange for messages that no consumer could process; each goes to the queue `<queue>.dead`. */
const DEAD_LETTER_EXCHANGE = 'svc.dead';
/** Unacknowledged messages per consumer. */
const PREFETCH = 16;
const FIRST_RETRY_MS = 200;
const MAX_RETRY_MS = 10_000;

type MessageHandler = (body: Uint8Array) => Promise<void>;

/** Consumes until `signal` aborts, and reconnects after a lost connection. Repeated errors are reported once. */
export async function consumeUntilStopped(
  queue: string,
  handle: MessageHandler,
  connection: () => Promise<{ readonly model: ChannelModel }>,
  signal: AbortSignal,
): Promise<void> {
  let pause = FIRST_RETRY_MS;
  let reported: string | undefined;
  while (!signal.aborted) {
    try {
      const { model } = await connection();
      await consumeOn(await model.createChannel(), queue, handle, signal);
      pause = FIRST_RETRY_MS;
      reported = undefined;
    } catch (error) {
      if (signal.aborted) return;
      const why = error instanceof Error ? error.message : String(error);
      if (why !== reported)
        process.emitWarning(`Cannot consume from the queue ${queue}: ${why}. Retrying.`, 'SvcWarning');
      reported = why;
      await wait(pause, undefined, { signal }).catch(() => undefined);
      pause = Math.min(pause * 2, MAX_RETRY_MS);
    }
  }
}

/** Ends when the channel closes. When stopped, it first finishes the messages it has received. */
async function consumeOn(channel: Channel, queue: string, handle: MessageHandler, signal: AbortSignal): Promise<void> {
  const closed = once(channel, 'close', { signal }).catch(() => undefined);
  channel.on('error', () => {});
  await channel.assertExchange(DEAD_LETTER_EXCHANGE, 'direct', { durable: true });
  await channel.assertQueue(`${queue}.dead`, { durable: true });
  await channel.bindQueue(`${queue}.dead`, DEAD_LETTER_EXCHANGE, queue);
  await channel.assertQueue(queue, {
    durable: true,
    deadLetterExchange: DEAD_LETTER_EXCHANGE,
    deadLetterRoutingKey: queue,
  });
  await channel.prefetch(PREFETCH);
  const pending = new Set<Promise<void>>();
  const { consumerTag } = await channel.consume(queue, (message) => {
    if (!message) return;
    const work = handleMessage(channel, message, handle).catch(() => undefined);
    pending.add(work);
    void work.finally(() => pending.delete(work));
  });
  await closed;
  if (!signal.aborted) return;
  await closeWithTimeout(channel.cancel(consumerTag));
  await Promise.all(pending);
  await closeWithTimeout(channel.close());
}

async function handleMessage(channel: Channel, message: ConsumeMessage, handle: MessageHandler): Promise<void> {
  try {
    await handle(message.content);
    channel.ack(message);
  } catch (error) {
    // Redelivered after a pause if the handler asks for it; dead-lettered otherwise.
    const requeue = isDeliveryFailed(error) && error.retry;
    if (requeue) await wait(Math.max(FIRST_RETRY_MS, error.afterMs));
    channel.nack(message, false, requeue);
  }
}
