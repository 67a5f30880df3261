import { test } from 'node:test';
import { channelSuite, httpReceiver } from '@svc/sdk/testing';
import plugin from '../src/index.ts';

const TOKEN = 'xoxb-not-a-real-token';

interface Block {
  readonly text?: { readonly text: string };
}

channelSuite(test, {
  name: 'slack',
  plugin,
  type: 'slack',
  reader: 'person',
  markup: ['<!channel>', '<@U0123456789>', '<https://evil.example|Approve>'],
  receiver: () =>
    httpReceiver({
      options: (api) => ({ api, token: TOKEN, channel: 'C0123456789' }),
      secrets: [TOKEN],
      displayed: (body) =>
        (JSON.parse(body).blocks as Block[]).map(({ text }) => unescaped(text?.text ?? '')).join('\n'),
      responses: {
        accepts: (response) => response.end('{ "ok": true }'),
        fails: (response) => response.end('{ "ok": false, "error": "not_in_channel" }'),
      },
    }),
});

const unescaped = (text: string) => text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
