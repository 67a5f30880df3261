import { definePlugin } from '../../../core/plugin.ts';
import { type RabbitmqOptions, rabbitmq } from './broker.ts';

export default definePlugin({
  name: 'rabbitmq',
  apply(kernel) {
    kernel.brokers.register('rabbitmq', (options) => rabbitmq(options as unknown as RabbitmqOptions));
  },
});
