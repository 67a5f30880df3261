import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { type Broker, DeliveryFailed } from '../../../core/approval/channel.ts';
import { SvcError } from '../../../core/errors.ts';
import { definePlugin } from '../../../core/plugin.ts';
import { withoutPassword } from '../../../core/url.ts';
import { type Driver, loadDriver } from '../../shared/driver.ts';
import { consumeUntilStopped } from './consume.ts';
import { closeWithTimeout, publishConfirmed } from './publish.ts';

interface RabbitmqOptions {
  /** `amqp://` or `amqps://`. */
  readonly url: string;
  /** A durable topic exchange; default `svc.events`. */
  readonly exchange?: string;
}

interface OpenConnection {
  readonly model: ChannelModel;
  readonly channel: ConfirmChannel;
}

const DEFAULT_EXCHANGE = 'svc.events';
const CONNECT_TIMEOUT_MS = 10_000;

const driver: Driver<typeof import('amqplib')> = {
  name: 'The RabbitMQ driver',
  package: 'amqplib',
  load: () => import('amqplib'),
};

/** RabbitMQ with a durable exchange, persistent messages and publisher confirms. Fails for an event that no queue receives. */
export function rabbitmq({ url, exchange = DEFAULT_EXCHANGE }: RabbitmqOptions): Broker {
  const stopping = new AbortController();
  let current: Promise<OpenConnection> | undefined;

  const connection = (): Promise<OpenConnection> => {
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
      const { channel } = await connection();
      await publishConfirmed(channel, exchange, event, signal);
    },
    async consume(queue, handle) {
      const stopped = new AbortController();
      const consuming = consumeUntilStopped(
        queue,
        handle,
        connection,
        AbortSignal.any([stopped.signal, stopping.signal]),
      );
      return async () => {
        stopped.abort();
        await consuming;
      };
    },
    async close() {
      stopping.abort();
      // A connection that is being opened is closed once it is open, which may take longer than this call.
      if (current) await closeWithTimeout(current.then(({ model }) => model.close()));
    },
  };
}

/** Calls `onLost` when the connection is closed or could not be opened. */
async function open(url: string, exchange: string, onLost: () => void): Promise<OpenConnection> {
  try {
    const amqp = await loadDriver(driver);
    const model = await amqp.connect(url, { timeout: CONNECT_TIMEOUT_MS }).catch((error: Error) => {
      throw new DeliveryFailed(`${withoutPassword(url)}: ${error.message || 'no response'}`);
    });
    // An error without a listener would end the process. Every error is followed by a close.
    model.on('error', () => {}).on('close', onLost);
    const channel = await model.createConfirmChannel();
    channel
      // Each pending event adds listeners.
      .setMaxListeners(0)
      .on('error', () => {})
      .on('close', () => {
        onLost();
        void closeWithTimeout(model.close());
      });
    await channel.assertExchange(exchange, 'topic', { durable: true });
    return { model, channel };
  } catch (error) {
    // The caller compares with the promise of this call, which it only has once the call returns.
    queueMicrotask(onLost);
    throw error;
  }
}

export default definePlugin({
  name: 'rabbitmq',
  apply(kernel) {
    // The options documented for the type 'rabbitmq', which nothing checks before.
    kernel.brokers.register('rabbitmq', (options) => rabbitmq(options as unknown as RabbitmqOptions));
  },
});
