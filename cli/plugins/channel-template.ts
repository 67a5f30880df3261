import { PLUGIN_API_VERSION } from '../../core/kernel.ts';
import { type PluginFiles, propertyName } from './templates.ts';

/** A channel with buttons, and how they are received. Its tests simulate a service that is made up, and pass at once. */
export function channelFiles(name: string, identifier: string): PluginFiles {
  const type = `${identifier.charAt(0).toUpperCase()}${identifier.slice(1)}`;
  const options = `url: 'https://${name}.example/messages', chat: 'payments', secret: process.env.${name.toUpperCase().replaceAll('-', '_')}_SECRET`;
  return {
    description: `channel that requests approval through ${name}`,
    configExample: `databases: { main: { dialect: 'postgresql', url: process.env.DATABASE_URL } },
  approvals: {
    // For svc approvals serve.
    store: { database: 'main' },
    callbackBase: 'https://shop.example/svc',
    callbackKey: process.env.SVC_CALLBACK_KEY,
    channels: {
      ${propertyName(name)}: { type: '${name}', ${options} },
    },
  },`,
    steps: [
      'the fake of the service in `test/service.ts`: what it answers, refuses, shows and sends, in the terms of its documentation. The suite then fails where the channel does not speak them',
      '`src/index.ts`: the message with its buttons, how it is edited, its longest text, and the escape of its markup; the signature of a press, and what is in it',
      'the URL to which the service sends presses: `svc approvals serve` prints it, `{callbackBase}/channels/<name in approvals.channels>`',
    ],
    files: {
      'src/index.ts': channelSource(name, identifier, type),
      'test/service.ts': SERVICE_SOURCE,
      'test/suite.test.ts': testSource(name, identifier),
    },
  };
}

const channelSource = (
  name: string,
  identifier: string,
  type: string,
): string => `import { type Channel, definePlugin, parseDecision } from '@svc/sdk';
import { decisionText, escapeHtml, isSignedBy, postJson, requestText, textOptions } from '@svc/sdk/channel';

export interface ${type}Options {
  readonly url: string;
  /** The chat that requests are delivered to. A press in another one decides nothing. */
  readonly chat: string;
  /** With which the service signs what it sends. */
  readonly secret: string;
}

/** To do: what the service sends for a pressed button. */
interface Pressed {
  readonly user: string;
  readonly chat: string;
  readonly button: 'approve' | 'reject';
  readonly requestId: string;
}

/**
 * To do: the longest text that the service accepts, less what surrounds the parameters: 500 for the title, 72 for the footer (more if
 * it is escaped), and what you write yourself; 690 in a report. Escapes count. And the function that escapes its markup.
 */
const LIMIT = { maxLength: 3_000, escape: escapeHtml };
/** To do: where the service says why it refuses a message. */
const REASON = ['error'];

export function ${identifier}({ url, chat, secret }: ${type}Options): Channel<string> {
  return {
    name: '${name}',
    /** Makes one attempt. Throws if the request did not arrive. What it returns is stored, and passed to \`onDecided\`. */
    async deliver(delivery, signal) {
      const { title, parameters, footer, buttons } = requestText(delivery, LIMIT);
      // To do: the message that the service expects. If its buttons carry a URL, that is \`delivery.pressUrl\`.
      const message = {
        chat,
        text: \`\${title}\\n\${parameters}\\n\${footer}\`,
        buttons: buttons.map((button) => ({ button, requestId: delivery.requestId })),
        link: delivery.callbackUrl,
      };
      const sent = await postJson<{ id: string }>(url, message, { signal, reason: REASON });
      return sent?.id ?? '';
    },
    /** Replaces the message and its buttons, also if somebody decided elsewhere. */
    async onDecided(record, signal, receipts) {
      const message = { text: decisionText(record, LIMIT), buttons: [] };
      await Promise.all(receipts.map((id) => postJson(\`\${url}/\${id}\`, message, { signal, reason: REASON, method: 'PATCH' })));
    },
    presses: {
      chats: [chat],
      /** To do: the signature of the service. \`publicKey\` in place of \`secret\` is an Ed25519 key. */
      verify(headers, body) {
        const [time, signature] = [headers.get('x-time') ?? '', headers.get('x-signature') ?? ''];
        return isSignedBy({ secret, content: [\`\${time}.\`, body], signature, signedAt: Number(time) });
      },
      read(body) {
        const { user, chat, button, requestId } = parseDecision(body) as Pressed;
        return { button, requestId, actor: \`${name}:\${user}\`, chat };
      },
      /** To do: how the person sees the result. \`onDecided\` replaces the message. */
      show: ({ text }) => new Response(escapeHtml(text)),
    },
  };
}

export default definePlugin({
  name: '${name}',
  api: ${PLUGIN_API_VERSION},
  apply: (kernel) =>
    kernel.channels.register('${name}', (options) =>
      ${identifier}(textOptions(options, ['url', 'chat', 'secret'], [], { url: ['https', 'http'] })),
    ),
});
`;

const SERVICE_SOURCE = `import { createHmac } from 'node:crypto';
import { type ButtonPress, type ChannelMessage, httpReceiver, type PressesUnderTest } from '@svc/sdk/testing';

/** To do: the service as its documentation describes it. */

const [SECRET, CHAT, OTHER_CHAT] = ['not-a-real-secret', 'payments', 'another'];

/** Of a text. */
const LONGEST = 4_000;

interface Message {
  readonly text: string;
  readonly buttons: readonly { readonly button: 'approve' | 'reject'; readonly requestId: string }[];
}

const unescaped = (text: string) => text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');

/** Accepts messages, and returns an id of its own for each. */
export const receiver = () =>
  httpReceiver({
    options: (url) => ({ url, chat: CHAT, secret: SECRET }),
    secrets: [SECRET],
    displayed: (body) => unescaped((JSON.parse(body) as Message).text),
    replaces: ({ method }) => method === 'PATCH',
    responses: {
      accepts(response, number, { body }) {
        const isLong = (JSON.parse(body) as Message).text.length > LONGEST;
        if (isLong) response.writeHead(400).end('{ "error": "the text is too long" }');
        else response.end(JSON.stringify({ id: \`message-\${number}\` }));
      },
    },
  });

/** The request that the service sends for a pressed button; undefined if the message has none. */
function pressRequest({ raw }: ChannelMessage, press: ButtonPress): Request | undefined {
  // \`raw\` is the request as JSON, a line feed, and its body.
  const { buttons } = JSON.parse(raw.slice(raw.indexOf('\\n'))) as Message;
  const pressed = buttons.find(({ button }) => button === press.button);
  if (!pressed) return undefined;
  const body = JSON.stringify({ ...pressed, user: press.user, chat: press.isElsewhere ? OTHER_CHAT : CHAT });
  const time = String(press.sentAt.getTime());
  const hmac = createHmac('sha256', press.isForged ? 'another secret' : SECRET);
  const headers = { 'x-time': time, 'x-signature': hmac.update(\`\${time}.\${body}\`).digest('hex') };
  return new Request(press.url, { method: 'POST', headers, body });
}

/** People who press its buttons, and what they see then. */
export const presses: PressesUnderTest = {
  request: pressRequest,
  seen: async (response) => unescaped(await response.text()),
  elsewhere: { chat: OTHER_CHAT },
};
`;

const testSource = (name: string, identifier: string): string => `import { test } from 'node:test';
import { channelSuite } from '@svc/sdk/testing';
import ${identifier} from '../src/index.ts';
import { presses, receiver } from './service.ts';

channelSuite(test, {
  name: '${name}',
  plugin: ${identifier},
  type: '${name}',
  reader: 'person',
  // To do: what the service would show as markup, such as <!channel>; [] if it shows every text as it is.
  markup: ['<b>bold</b>', '<a href="https://evil.example">'],
  // Without buttons, a text: the reason. Then remove \`presses\` from the channel.
  decisions: presses,
  receiver,
});
`;
