import { definePlugin, SvcError } from '@svc/sdk';
import { nats } from './broker.ts';

export { type NatsOptions, nats } from './broker.ts';

export default definePlugin({
  name: 'broker-nats',
  apply(kernel) {
    kernel.brokers.register('nats', ({ url }) => {
      if (typeof url !== 'string' || !/^(nats|tls):\/\/./.test(url)) {
        throw new SvcError('config_invalid', 'The NATS broker in brokers is invalid.', {
          why: 'It needs a "url" that starts with nats:// or tls://.',
          next: ["{ type: 'nats', url: process.env.NATS_URL }"],
        });
      }
      return nats({ url });
    });
  },
});
