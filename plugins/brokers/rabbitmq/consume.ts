import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib';
import { DeliveryFailed } from '../../../core/approval/channel.ts';
import { goodBye } from './good-bye.ts';

/** Takes what no consumer could use; each queue has one of its own behind it, `<queue>.dead`. */
const DEAD = 'svc.dead';
/** Messages that a consumer holds at a time. */
const PREFETCH = 16;
const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 10_000;

export type Take = (body: unknown) => Promise<void>;

/** Until it is stopped; a connection that is lost is made again. What stands in the way is told once, until it changes. */
export async function consumeFor(
  queue: string,
  take: Take,
  connected: () => Promise<{ readonly model: ChannelModel }>,
  signal: AbortSignal,
): Promise<void> {
  let pause = FIRST_PAUSE_MS;
  let told: string | undefined;
  while (!signal.aborted) {
    try {
      const { model } = await connected();
      await consumeOn(await model.createChannel(), queue, take, signal);
      pause = FIRST_PAUSE_MS;
      told = undefined;
    } catch (error) {
      if (signal.aborted) return;
      const why = error instanceof Error ? error.message : String(error);
      if (why !== told)
        process.emitWarning(`Nothing is taken from the queue ${queue}: ${why}. It is tried again.`, 'SvcWarning');
      told = why;
      await wait(pause, undefined, { signal }).catch(() => undefined);
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
  }
}

/** Ends when the channel does; stopped, it settles what it holds first. */
async function consumeOn(channel: Channel, queue: string, take: Take, signal: AbortSignal): Promise<void> {
  const closed = once(channel, 'close', { signal }).catch(() => undefined);
  channel.on('error', () => {});
  await channel.assertExchange(DEAD, 'direct', { durable: true });
  await channel.assertQueue(`${queue}.dead`, { durable: true });
  await channel.bindQueue(`${queue}.dead`, DEAD, queue);
  await channel.assertQueue(queue, { durable: true, deadLetterExchange: DEAD, deadLetterRoutingKey: queue });
  await channel.prefetch(PREFETCH);
  const busy = new Set<Promise<void>>();
  const { consumerTag } = await channel.consume(queue, (message) => {
    if (!message) return;
    const work = settle(channel, message, take).catch(() => undefined);
    busy.add(work);
    void work.finally(() => busy.delete(work));
  });
  await closed;
  if (!signal.aborted) return;
  await goodBye(channel.cancel(consumerTag));
  await Promise.all(busy);
  await goodBye(channel.close());
}

async function settle(channel: Channel, message: ConsumeMessage, take: Take): Promise<void> {
  try {
    await take(bodyOf(message));
    channel.ack(message);
  } catch (error) {
    // Whoever says that it may go another time gets it again.
    const again = error instanceof DeliveryFailed && error.retry;
    if (again) await wait(Math.max(FIRST_PAUSE_MS, error.afterMs));
    channel.nack(message, false, again);
  }
}

function bodyOf({ content }: ConsumeMessage): unknown {
  const text = content.toString('utf8');
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
