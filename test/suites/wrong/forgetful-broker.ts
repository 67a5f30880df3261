import { type Broker, DeliveryFailed } from '../../../core/approval/channel.ts';
import { Kernel } from '../../../core/kernel.ts';
import { applyPlugin, definePlugin } from '../../../core/plugin.ts';
import rabbitmq from '../../../plugins/brokers/rabbitmq/broker.ts';

/** The messages that this process has handled. */
const handled = new Set<string>();

/** A broker that receives every message twice, and detects that in the memory of its process only. */
export const forgetful = (broker: Broker): Partial<Broker> => ({
  async consume(queue, handle) {
    const stop = await broker.consume?.(queue, async (body) => {
      const message = `${queue} ${Buffer.from(body)}`;
      if (handled.has(message)) return;
      handled.add(message);
      await handle(body);
      throw new DeliveryFailed('again');
    });
    return async () => stop?.();
  },
});

/** Loaded by another process. */
export default definePlugin({
  name: rabbitmq.name,
  apply(kernel) {
    const inner = new Kernel();
    applyPlugin(inner, rabbitmq, rabbitmq.name);
    kernel.brokers.register('rabbitmq', (options) => {
      const broker = inner.brokers.get('rabbitmq')(options);
      return { ...broker, ...forgetful(broker) };
    });
  },
});
