import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { type Broker, DeliveryFailed } from '../../../core/approval/channel.ts';
import { definePlugin } from '../../../core/plugin.ts';
import { withoutPassword } from '../../../core/url.ts';
import { type Driver, loadDriver } from '../../shared/driver.ts';
import { reconnectingBroker } from '../reconnecting.ts';
import { consumeQueue } from './consume.ts';
import { publishConfirmed } from './publish.ts';

interface RabbitmqOptions {
  /** `amqp://` or `amqps://`. */
  readonly url: string;
  /** A durable topic exchange; default `svc.events`. */
  readonly exchange?: string;
}

interface OpenConnection {
  readonly model: ChannelModel;
  readonly channel: ConfirmChannel;
  readonly closed: Promise<void>;
}

const DEFAULT_EXCHANGE = 'svc.events';
const CONNECT_TIMEOUT_MS = 10_000;
/** A server that misses two in a row counts as disconnected. */
const HEARTBEAT_S = 10;

const driver: Driver<typeof import('amqplib')> = {
  name: 'The RabbitMQ driver',
  package: 'amqplib',
  load: () => import('amqplib'),
};

/** RabbitMQ with a durable exchange, persistent messages and publisher confirms. Fails for an event that no queue receives. */
export const rabbitmq = ({ url, exchange = DEFAULT_EXCHANGE }: RabbitmqOptions): Broker =>
  reconnectingBroker({
    url,
    connect: () => open(url, exchange),
    closed: ({ closed }) => closed,
    publish: ({ channel }, event, signal) => publishConfirmed(channel, exchange, event, signal),
    consume: ({ model }, subscription) => consumeQueue(model, subscription),
    close: ({ model }) => model.close(),
  });

/** With the server's default, a connection that is dead would be noticed after two minutes. */
function withHeartbeat(url: string): string {
  const parsed = new URL(url);
  if (!parsed.searchParams.has('heartbeat')) parsed.searchParams.set('heartbeat', String(HEARTBEAT_S));
  return parsed.href;
}

async function open(url: string, exchange: string): Promise<OpenConnection> {
  const amqp = await loadDriver(driver);
  const model = await amqp.connect(withHeartbeat(url), { timeout: CONNECT_TIMEOUT_MS }).catch((error: Error) => {
    throw new DeliveryFailed(`${withoutPassword(url)}: ${error.message || 'no response'}`);
  });
  // An error without a listener would end the process. Every error is followed by a close.
  model.on('error', () => {});
  const channel = await model.createConfirmChannel();
  const closed = new Promise<void>((resolve) => {
    model.on('close', resolve);
    channel.on('close', resolve);
  });
  // Each pending event adds listeners.
  channel.setMaxListeners(0).on('error', () => {});
  // The next connection replaces one whose channel failed.
  void closed.then(() => model.close()).catch(() => undefined);
  await channel.assertExchange(exchange, 'topic', { durable: true });
  return { model, channel, closed };
}

export default definePlugin({
  name: 'rabbitmq',
  apply(kernel) {
    // The options documented for the type 'rabbitmq', which nothing checks before.
    kernel.brokers.register('rabbitmq', (options) => rabbitmq(options as unknown as RabbitmqOptions));
  },
});
