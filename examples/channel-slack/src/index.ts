import { definePlugin } from '@svc/sdk';
import { textOptions } from '@svc/sdk/channel';
import { slack } from './channel.ts';

export { type SlackOptions, slack } from './channel.ts';
export { type SlackInteractionsOptions, slackInteractions } from './interactions.ts';

export default definePlugin({
  name: 'channel-slack',
  apply: (kernel) =>
    kernel.channels.register('slack', (options) =>
      slack(textOptions(options, ['token', 'channel'], ['api'], { api: ['https', 'http'] })),
    ),
});
