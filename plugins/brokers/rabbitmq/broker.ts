import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { type Broker, DeliveryFailed } from '../../../core/approval/channel.ts';
import { SvcError } from '../../../core/errors.ts';
import { withoutPassword } from '../../../core/url.ts';
import { type Driver, loadDriver } from '../../driver.ts';
import { consumeFor } from './consume.ts';
import { goodBye } from './good-bye.ts';
import { confirmed } from './publish.ts';

export interface RabbitmqOptions {
  /** `amqp://` or `amqps://`. */
  readonly url: string;
  /** A durable topic exchange; default `svc.events`. */
  readonly exchange?: string;
}

interface Open {
  readonly model: ChannelModel;
  readonly channel: ConfirmChannel;
}

const EXCHANGE = 'svc.events';
const CONNECT_MS = 10_000;

const driver: Driver<typeof import('amqplib')> = {
  name: 'The driver of RabbitMQ',
  package: 'amqplib',
  load: () => import('amqplib'),
};

/** RabbitMQ: durable, persistent, confirmed. An event that no queue takes has not arrived. */
export function rabbitmq({ url, exchange = EXCHANGE }: RabbitmqOptions): Broker {
  const stopping = new AbortController();
  let current: Promise<Open> | undefined;

  const connected = (): Promise<Open> => {
    if (stopping.signal.aborted) throw new SvcError('interrupted', 'The broker is closed.');
    if (current) return current;
    const opening = open(url, exchange, () => {
      if (current === opening) current = undefined;
    });
    current = opening;
    return opening;
  };

  return {
    async publish(event, signal) {
      const { channel } = await connected();
      await confirmed(channel, exchange, event, signal);
    },
    async consume(queue, take) {
      const stopped = new AbortController();
      const working = consumeFor(queue, take, connected, AbortSignal.any([stopped.signal, stopping.signal]));
      return async () => {
        stopped.abort();
        await working;
      };
    },
    async close() {
      stopping.abort();
      const opened = await current?.catch(() => undefined);
      if (opened) await goodBye(opened.model.close());
    },
  };
}

/** `gone` is called once the connection cannot be used any more, or never could. */
async function open(url: string, exchange: string, gone: () => void): Promise<Open> {
  try {
    const amqp = await loadDriver(driver);
    const model = await amqp.connect(url, { timeout: CONNECT_MS }).catch((error: Error) => {
      throw new DeliveryFailed(`${withoutPassword(url)}: ${error.message || 'no answer'}`);
    });
    // Without a listener an error would end the process; a close follows every one.
    model.on('error', () => {}).on('close', gone);
    const channel = await model.createConfirmChannel();
    channel
      // Every event on its way listens.
      .setMaxListeners(0)
      .on('error', () => {})
      .on('close', () => {
        gone();
        void goodBye(model.close());
      });
    await channel.assertExchange(exchange, 'topic', { durable: true });
    return { model, channel };
  } catch (error) {
    // The caller has no promise to compare before this function gave one back.
    queueMicrotask(gone);
    throw error;
  }
}
