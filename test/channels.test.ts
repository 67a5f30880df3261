import * as assert from 'node:assert/strict';
import type { Decided } from '../core/approval/channel.ts';
import { definePlugin } from '../core/plugin.ts';
import { consoleChannel } from '../plugins/channels/console.ts';
import webhook from '../plugins/channels/webhook.ts';
import { test } from './kit/test.ts';
import { channelSuite } from './suites/channel-suite.ts';
import { freePort } from './suites/free-port.ts';
import { WEBHOOK_SECRET, withGate } from './suites/gate-client.ts';
import { httpReceiver } from './suites/http-receiver.ts';
import { waitUntil } from './suites/wait-until.ts';

channelSuite(test, {
  name: 'webhook',
  plugin: webhook,
  type: 'webhook',
  reader: 'program',
  markup: [],
  decisions: 'a webhook only sends requests; its receiver decides through the callback',
  skip: {
    'a decision is reported, also by a process that did not deliver the request':
      'a webhook only sends requests; its receiver reads decisions from svc.approvals',
  },
  receiver: () =>
    httpReceiver({
      options: (url) => ({ url, secrets: [WEBHOOK_SECRET], context: true }),
      secrets: [WEBHOOK_SECRET],
      displayed: (body) => body,
    }),
});

const lines: string[] = [];
const cannotFail = 'a terminal accepts everything';
channelSuite(test, {
  name: 'console',
  plugin: definePlugin({
    name: 'console',
    apply: (kernel) => kernel.channels.register('console', () => consoleChannel((line) => void lines.push(line))),
  }),
  type: 'console',
  reader: 'person',
  markup: [],
  decisions: 'a terminal shows a command that decides',
  skip: {
    'two channels of a type do not share their options': 'every console writes to the same terminal',
    'a rejected message is not delivered': cannotFail,
    'a rate limit delays the next attempt': cannotFail,
    'an attempt ends with its signal': cannotFail,
    'a failed attempt is repeated until it succeeds': cannotFail,
    'no secret is sent or in an error': cannotFail,
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

test('a terminal distinguishes a timeout from a rejection by a human', async () => {
  lines.length = 0;
  const { onDecided } = consoleChannel((line) => void lines.push(line));
  const record = { requestId: 'apr_1', status: 'rejected', decidedBy: 'system' } as Decided;
  const { signal } = new AbortController();
  await onDecided?.({ ...record, cause: 'timeout' }, signal, []);
  await onDecided?.({ ...record, cause: 'human', decidedBy: 'ada' }, signal, []);
  assert.deepEqual(lines, ['approval apr_1 is rejected by timeout', 'approval apr_1 is rejected by ada']);
});

test('a delivery that failed is stored with the code of its cause', async () => {
  const url = `http://127.0.0.1:${await freePort()}/`;
  const plugin = definePlugin({
    name: 'pager',
    apply: (kernel) =>
      kernel.channels.register('pager', () => ({
        name: 'pager',
        async deliver(_delivery, signal) {
          await fetch(url, { method: 'POST', signal });
        },
      })),
  });
  const approvals = { channels: { ops: { type: 'pager' } } };
  await withGate({ config: { plugins: [plugin] }, approvals }, async ({ refund, svc }) => {
    const { request } = await refund();
    let stored: unknown[] = [];
    await waitUntil(async () => {
      stored = [];
      for await (const entry of svc.approvals.export()) {
        if (entry.requestId === request.requestId && entry.type === 'not_delivered') stored.push(entry);
      }
      return stored.length > 0;
    }, 'no failed delivery is stored');
    assert.match(JSON.stringify(stored[0]), /"fetch failed \(ECONNREFUSED\)"/);
  });
});
