import { definePlugin } from '@svc/sdk';
import { textOptions } from '@svc/sdk/channel';
import { slack } from './channel.ts';

export { type SlackOptions, slack } from './channel.ts';

export default definePlugin({
  name: 'channel-slack',
  apply: (kernel) =>
    kernel.channels.register('slack', (options) =>
      slack(textOptions(options, ['token', 'channel', 'signingSecret'], ['api'], { api: ['https', 'http'] })),
    ),
});
