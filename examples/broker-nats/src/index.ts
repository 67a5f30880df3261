import { definePlugin } from '@svc/sdk';
import { urlOption } from '@svc/sdk/broker';
import { nats } from './broker.ts';

export { nats } from './broker.ts';

export default definePlugin({
  name: 'broker-nats',
  apply: (kernel) => kernel.brokers.register('nats', (options) => nats(urlOption(options, ['nats', 'tls']))),
});
