import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ChannelUnderTest, type DecisionsUnderTest, httpReceiver } from '@svc/sdk/testing';
import plugin, { slackInteractions } from '../src/index.ts';

const TOKEN = 'xoxb-not-a-real-token';
export const CHANNEL = 'C0123456789';
export const SIGNING_SECRET = 'a signing secret';

interface Block {
  readonly text?: { readonly text: string };
  readonly elements?: readonly { readonly action_id: string; readonly value: string }[];
}

export interface SlackPayload {
  readonly user: { readonly id: string };
  readonly channel: { readonly id: string };
  readonly actions: readonly { readonly action_id: string; readonly value: string }[];
  readonly response_url: string;
}

/** The request that Slack sends when somebody presses a button. */
export const signedRequest = (payload: SlackPayload, options?: SigningOptions): Request =>
  signedBody(new URLSearchParams({ payload: JSON.stringify(payload) }).toString(), options);

interface SigningOptions {
  readonly sentAt?: Date;
  readonly secret?: string;
}

export function signedBody(
  body: string,
  { sentAt = new Date(), secret = SIGNING_SECRET }: SigningOptions = {},
): Request {
  const seconds = Math.floor(sentAt.getTime() / 1000);
  const signature = `v0=${createHmac('sha256', secret).update(`v0:${seconds}:${body}`).digest('hex')}`;
  return new Request('https://shop.example/slack', {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'x-slack-request-timestamp': String(seconds),
      'x-slack-signature': signature,
    },
    body,
  });
}

/** Slack's `response_url`, which shows its texts to the person who pressed a button. */
export async function startResponseUrl() {
  const texts: string[] = [];
  const server = createServer(async (request, response) => {
    texts.push((JSON.parse(Buffer.concat(await request.toArray()).toString()) as { text: string }).text);
    response.end('ok');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { url, texts, close: () => void server.close() };
}

/** Decisions through a handler of button presses. */
export const decisionsThrough = (createHandler: typeof slackInteractions): DecisionsUnderTest => ({
  async open(svc) {
    const handler = createHandler({ svc, signingSecret: SIGNING_SECRET, channel: CHANNEL });
    const { url, texts, close } = await startResponseUrl();
    return {
      request({ raw }, { button, user, sentAt, isForged, isElsewhere }) {
        const { blocks } = JSON.parse(raw.slice(raw.indexOf('\n'))) as { blocks: readonly Block[] };
        const pressed = blocks
          .flatMap(({ elements = [] }) => elements)
          .find(({ action_id }) => action_id === `svc_${button}`);
        const channel = { id: isElsewhere ? 'C9999999999' : CHANNEL };
        const payload = pressed && { user: { id: user }, channel, actions: [pressed], response_url: url };
        return payload && signedRequest(payload, { sentAt, ...(isForged && { secret: 'another secret' }) });
      },
      async handle(request) {
        await handler(request);
        return texts.splice(0).join('\n');
      },
      close,
    };
  },
});

export const slackUnderTest: ChannelUnderTest = {
  name: 'slack',
  plugin,
  type: 'slack',
  reader: 'person',
  markup: ['<!channel>', '<@U0123456789>', '<https://evil.example|Approve>'],
  decisions: decisionsThrough(slackInteractions),
  receiver: () =>
    httpReceiver({
      options: (api) => ({ api, token: TOKEN, channel: CHANNEL }),
      secrets: [TOKEN],
      displayed: (body) =>
        (JSON.parse(body).blocks as Block[]).map(({ text }) => unescaped(text?.text ?? '')).join('\n'),
      responses: {
        accepts: (response, number) => response.end(JSON.stringify({ ok: true, ts: `1700000000.${number}` })),
        fails: (response) => response.end('{ "ok": false, "error": "not_in_channel" }'),
      },
    }),
};

const unescaped = (text: string) => text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
