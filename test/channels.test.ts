import * as assert from 'node:assert/strict';
import type { ApprovalRecord } from '../core/approval/request.ts';
import { definePlugin } from '../core/plugin.ts';
import { consoleChannel } from '../plugins/channels/console.ts';
import webhook from '../plugins/channels/webhook.ts';
import { WEBHOOK_SECRET } from './suites/gate-client.ts';
import { channelSuite } from './suites/channel-suite.ts';
import { docsBlocks } from './kit/docs-blocks.ts';
import { docsPlugin } from './kit/docs-plugin.ts';
import { httpReceiver } from './suites/http-receiver.ts';
import { test } from './kit/test.ts';

channelSuite(test, {
  name: 'webhook',
  plugin: webhook,
  type: 'webhook',
  reader: 'program',
  skip: {
    'a decision is told, also by another process than the one that delivered':
      'a webhook asks, and whoever asked for it learns the decision from svc.approvals',
  },
  receiver: () =>
    httpReceiver({
      options: (url) => ({ url, secrets: [WEBHOOK_SECRET], context: true }),
      secrets: [WEBHOOK_SECRET],
      displayed: (body) => body,
    }),
});

const lines: string[] = [];
const unfailing = 'a terminal takes what is written to it';
channelSuite(test, {
  name: 'console',
  plugin: definePlugin({
    name: 'console',
    apply: (kernel) => kernel.channels.register('console', () => consoleChannel((line) => void lines.push(line))),
  }),
  type: 'console',
  reader: 'person',
  skip: {
    'what is refused has not arrived': unfailing,
    'who wants a pause gets it': unfailing,
    'an attempt ends with its signal': unfailing,
    'a failed attempt is made again, until it arrives': unfailing,
    'no secret is sent or told': unfailing,
  },
  async receiver() {
    lines.length = 0;
    return {
      options: {},
      secrets: [],
      received() {
        const messages = lines.join('\n').split(/^(?=approval )/m);
        return messages.filter(Boolean).map((text) => ({ raw: text, displayed: text.trimEnd() }));
      },
      setBehaviour() {},
      close() {},
    };
  },
});

test('a terminal tells a time-out from the no of a human', async () => {
  lines.length = 0;
  const { onDecided } = consoleChannel((line) => void lines.push(line));
  const record = { requestId: 'apr_1', status: 'rejected', decidedBy: 'system' } as ApprovalRecord;
  const { signal } = new AbortController();
  await onDecided?.({ ...record, cause: 'timeout' }, signal);
  await onDecided?.({ ...record, cause: 'human', decidedBy: 'ada' }, signal);
  assert.deepEqual(lines, ['approval apr_1 is rejected by timeout', 'approval apr_1 is rejected by ada']);
});

const [written] = docsBlocks().filter(
  ({ page, text }) => page === 'docs/how-to/write-a-channel.md' && text.includes('definePlugin('),
);
if (!written) throw new Error('docs/how-to/write-a-channel.md shows no channel');
channelSuite(test, {
  name: 'the channel of docs/how-to/write-a-channel.md',
  plugin: await docsPlugin(written),
  type: 'pager',
  reader: 'person',
  skip: { 'a decision is told, also by another process than the one that delivered': 'a pager is not told' },
  receiver: () =>
    httpReceiver({
      options: (url) => ({ url }),
      displayed: (body) => `${JSON.parse(body).title}\n${JSON.parse(body).text}`,
    }),
});
