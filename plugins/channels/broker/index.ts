import { definePlugin } from '../../../core/plugin.ts';
import { type BrokerChannelOptions, brokerChannel } from './channel.ts';

export default definePlugin({
  name: 'broker',
  apply(kernel) {
    kernel.channels.register('broker', (options) => brokerChannel(options as unknown as BrokerChannelOptions));
  },
});
