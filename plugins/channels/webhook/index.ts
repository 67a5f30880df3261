import { definePlugin } from '../../../core/plugin.ts';
import { type WebhookOptions, webhook } from './channel.ts';

export default definePlugin({
  name: 'webhook',
  apply(kernel) {
    kernel.channels.register('webhook', (options) => webhook(options as unknown as WebhookOptions));
  },
});
