import { definePlugin, SvcError } from '@svc/sdk';
import { slack } from './channel.ts';

export { type SlackOptions, slack } from './channel.ts';
export { type SlackInteractionsOptions, slackInteractions } from './interactions.ts';

export default definePlugin({
  name: 'channel-slack',
  apply(kernel) {
    kernel.channels.register('slack', ({ token, channel, api }) => {
      if (typeof token !== 'string' || typeof channel !== 'string' || !(api === undefined || typeof api === 'string')) {
        throw new SvcError('config_invalid', 'The Slack channel in approvals.channels is invalid.', {
          why: 'It needs a "token" and a "channel", both strings.',
          next: ["{ type: 'slack', token: process.env.SLACK_BOT_TOKEN, channel: 'C0123456789' }"],
        });
      }
      return slack({ token, channel, ...(api !== undefined && { api }) });
    });
  },
});
