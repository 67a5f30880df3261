import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ChannelUnderTest, httpReceiver, type PressesUnderTest } from '@svc/sdk/testing';
import plugin from '../src/index.ts';

const TOKEN = 'xoxb-not-a-real-token';
export const CHANNEL = 'C0123456789';
const OTHER_CHANNEL = 'C9999999999';
export const SIGNING_SECRET = 'a signing secret';
export const PRESS_URL = 'https://shop.example/svc/channels/slack';

/** Of a section. */
const MAX_TEXT_LENGTH = 3_000;

interface Block {
  readonly text?: { readonly text: string };
  readonly elements?: readonly { readonly action_id: string; readonly value: string }[];
}

export interface SlackPayload {
  readonly user: { readonly id: string; readonly name?: string };
  readonly channel: { readonly id: string };
  readonly actions: readonly { readonly action_id: string; readonly value: string }[];
  readonly response_url: string;
}

/** The request that Slack sends when somebody presses a button. */
export const signedRequest = (payload: Partial<SlackPayload>, options?: SigningOptions): Request =>
  signedBody(new URLSearchParams({ payload: JSON.stringify(payload) }).toString(), options);

/** The payload in it; without one, an empty object. */
export async function payloadOf(request: Request): Promise<Partial<SlackPayload>> {
  return JSON.parse(new URLSearchParams(await request.clone().text()).get('payload') ?? '{}');
}

interface SigningOptions {
  /** The "Interactivity Request URL" of the Slack app. */
  readonly url?: string;
  readonly sentAt?: Date;
  readonly secret?: string;
}

export function signedBody(
  body: string,
  { url = PRESS_URL, sentAt = new Date(), secret = SIGNING_SECRET }: SigningOptions = {},
): Request {
  const seconds = Math.floor(sentAt.getTime() / 1000);
  const signature = `v0=${createHmac('sha256', secret).update(`v0:${seconds}:${body}`).digest('hex')}`;
  return new Request(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'x-slack-request-timestamp': String(seconds),
      'x-slack-signature': signature,
    },
    body,
  });
}

interface ShownMessage {
  readonly text: string;
  /** Takes the place of the message with the button. */
  readonly replace_original?: boolean;
}

/** Slack's `response_url`s, which show their texts to the person who pressed a button. */
async function startResponseUrls() {
  const messages = new Map<string, ShownMessage>();
  const server = createServer(async (request, response) => {
    messages.set(`${request.url}`, JSON.parse(Buffer.concat(await request.toArray()).toString()));
    response.end('ok');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  server.unref();
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let pressed = 0;
  return {
    /** Another one for each press. */
    next() {
      pressed += 1;
      return `${base}/${pressed}`;
    },
    /** What the person saw of a press since the last time. */
    take(url = ''): ShownMessage {
      const path = url.slice(base.length);
      const message = messages.get(path) ?? { text: '' };
      messages.delete(path);
      return message;
    },
  };
}

export const responseUrls = await startResponseUrls();

/** How Slack sends a pressed button, and where the person then sees what came of it. */
export const slackPresses: Required<Omit<PressesUnderTest, 'withoutProof'>> = {
  request({ raw }, { button, url, user, name, sentAt, isForged, isElsewhere }) {
    const { blocks } = JSON.parse(raw.slice(raw.indexOf('\n'))) as { blocks: readonly Block[] };
    const pressed = blocks
      .flatMap(({ elements = [] }) => elements)
      .find(({ action_id }) => action_id === `svc_${button}`);
    const channel = { id: isElsewhere ? OTHER_CHANNEL : CHANNEL };
    const response_url = responseUrls.next();
    const payload = pressed && { user: { id: user, name }, channel, actions: [pressed], response_url };
    return payload && signedRequest(payload, { url, sentAt, ...(isForged && { secret: 'another secret' }) });
  },
  async seen(_response, press) {
    const { text, replace_original } = responseUrls.take((await payloadOf(press)).response_url);
    return { raw: text, displayed: unescaped(text), replaces: replace_original === true };
  },
  elsewhere: { channel: OTHER_CHANNEL },
};

export const slackUnderTest: ChannelUnderTest = {
  name: 'slack',
  plugin,
  type: 'slack',
  reader: 'person',
  markup: ['<!channel>', '<@U0123456789>', '<https://evil.example|Approve>'],
  decisions: slackPresses,
  receiver: () =>
    httpReceiver({
      options: (api) => ({ api, token: TOKEN, channel: CHANNEL, signingSecret: SIGNING_SECRET }),
      secrets: [TOKEN, SIGNING_SECRET],
      displayed: (body) =>
        (JSON.parse(body).blocks as Block[]).map(({ text }) => unescaped(text?.text ?? '')).join('\n'),
      replaces: ({ path }) => path.endsWith('/chat.update'),
      responses: {
        accepts(response, number, { body }) {
          const { blocks } = JSON.parse(body) as { readonly blocks: readonly Block[] };
          const isLong = blocks.some(({ text }) => (text?.text.length ?? 0) > MAX_TEXT_LENGTH);
          const answer = isLong ? { ok: false, error: 'invalid_blocks' } : { ok: true, ts: `1700000000.${number}` };
          response.end(JSON.stringify(answer));
        },
        fails: (response) => response.end('{ "ok": false, "error": "not_in_channel" }'),
      },
    }),
};

const unescaped = (text: string) => text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
