import { PLUGIN_API_VERSION } from '../../core/kernel.ts';
import { type PluginFiles, propertyName } from './templates.ts';

/** A channel with buttons, and an endpoint for them. Its tests simulate a service that is made up, and pass at once. */
export function channelFiles(name: string, identifier: string): PluginFiles {
  const type = `${identifier.charAt(0).toUpperCase()}${identifier.slice(1)}`;
  return {
    description: `channel that requests approval through ${name}`,
    configExample: `approvals: { channels: { ${propertyName(name)}: { type: '${name}', url: 'https://${name}.example/messages' } } },`,
    steps: [
      'the fake of the service in `test/service.ts`: what it answers, refuses, shows and sends, in the terms of its documentation. The suite then fails where the channel does not speak them',
      '`src/index.ts`: the message with its buttons, how it is edited, its longest text, and the escape of its markup',
      '`src/presses.ts`: the signature of a press, and what is in it',
    ],
    files: {
      'src/index.ts': channelSource(name, identifier),
      'src/presses.ts': pressesSource(name, identifier, type),
      'test/service.ts': serviceSource(identifier, type),
      'test/suite.test.ts': testSource(name, identifier),
    },
  };
}

const channelSource = (
  name: string,
  identifier: string,
): string => `import { type Channel, definePlugin } from '@svc/sdk';
import { decisionText, escapeHtml, postJson, requestText, urlOption } from '@svc/sdk/channel';

export { ${identifier}Presses } from './presses.ts';

/** To do: the longest text that the service accepts, less the title; and the function that escapes its markup. */
const LIMIT = { maxLength: 3_000, escape: escapeHtml };

export function ${identifier}(url: string): Channel<string> {
  return {
    name: '${name}',
    /** Makes one attempt. Throws if the request did not arrive. What it returns is stored, and passed to \`onDecided\`. */
    async deliver(delivery, signal) {
      const { title, parameters, footer, buttons } = requestText(delivery, LIMIT);
      // To do: the message that the service expects. Each button sends the request id, with which \`presses.ts\` decides.
      const message = {
        text: \`\${title}\\n\${parameters}\\n\${footer}\`,
        buttons: buttons.map((button) => ({ button, requestId: delivery.requestId })),
        link: delivery.callbackUrl,
      };
      const sent = await postJson<{ id: string }>(url, message, { signal });
      return sent?.id ?? '';
    },
    /** Replaces the message and its buttons, also if somebody decided elsewhere. */
    async onDecided(record, signal, receipts) {
      for (const id of receipts)
        await postJson(\`\${url}/\${id}\`, { text: decisionText(record, LIMIT), buttons: [] }, { signal, method: 'PATCH' });
    },
  };
}

export default definePlugin({
  name: '${name}',
  api: ${PLUGIN_API_VERSION},
  apply: (kernel) => kernel.channels.register('${name}', (options) => ${identifier}(urlOption(options, ['https', 'http']))),
});
`;

const pressesSource = (
  name: string,
  identifier: string,
  type: string,
): string => `import { parseDecision, type Svc } from '@svc/sdk';
import { escapeHtml, isSignedBy, pressEndpoint } from '@svc/sdk/channel';

export interface ${type}PressesOptions {
  readonly svc: Svc;
  /** With which the service signs what it sends. */
  readonly secret: string;
  /** The chat that requests are delivered to. A press in another one decides nothing. */
  readonly chat: string;
}

/** To do: what the service sends for a pressed button. */
interface Press {
  readonly user: string;
  readonly chat: string;
  readonly button: 'approve' | 'reject';
  readonly requestId: string;
}

/** The handler of pressed buttons, with web-standard requests: for Hono, Next.js and others. */
export const ${identifier}Presses = ({ svc, secret, chat }: ${type}PressesOptions) =>
  pressEndpoint({
    svc,
    chats: [chat],
    /** To do: the signature of the service. \`publicKey\` in place of \`secret\` is an Ed25519 key. */
    verify(headers, body) {
      const [time, signature] = [headers.get('x-time') ?? '', headers.get('x-signature') ?? ''];
      return isSignedBy({ secret, content: [\`\${time}.\`, body], signature, signedAt: Number(time) });
    },
    read(body) {
      const { user, chat: pressedIn, button, requestId } = parseDecision(body) as Press;
      return { button, requestId, actor: \`${name}:\${user}\`, chat: pressedIn };
    },
    /** To do: how the person sees the result. \`onDecided\` replaces the message. */
    show: ({ text }) => new Response(escapeHtml(text)),
  });
`;

const serviceSource = (identifier: string, type: string): string => `import { createHmac } from 'node:crypto';
import type { Svc } from '@svc/sdk';
import { type ButtonPress, type ChannelMessage, type DecisionReceiver, httpReceiver } from '@svc/sdk/testing';
import { ${identifier}Presses } from '../src/index.ts';

/** To do: the service as its documentation describes it. */

const [SECRET, CHAT] = ['not-a-real-secret', 'payments'];

interface Message {
  readonly text: string;
  readonly buttons: readonly { readonly button: 'approve' | 'reject'; readonly requestId: string }[];
}

const unescaped = (text: string) => text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');

/** Accepts messages, and returns an id of its own for each. */
export const receiver = () =>
  httpReceiver({
    options: (url) => ({ url }),
    displayed: (body) => unescaped((JSON.parse(body) as Message).text),
    responses: { accepts: (response, number) => response.end(JSON.stringify({ id: \`message-\${number}\` })) },
  });

/** The request that the service sends for a pressed button; undefined if the message has none. */
function pressRequest({ raw }: ChannelMessage, press: ButtonPress): Request | undefined {
  // \`raw\` is the request as JSON, a line feed, and its body.
  const { buttons } = JSON.parse(raw.slice(raw.indexOf('\\n'))) as Message;
  const pressed = buttons.find(({ button }) => button === press.button);
  if (!pressed) return undefined;
  const body = JSON.stringify({ ...pressed, user: press.user, chat: press.isElsewhere ? 'another' : CHAT });
  const time = String(press.sentAt.getTime());
  const hmac = createHmac('sha256', press.isForged ? 'another secret' : SECRET);
  const headers = { 'x-time': time, 'x-signature': hmac.update(\`\${time}.\${body}\`).digest('hex') };
  return new Request('https://shop.example/${identifier}', { method: 'POST', headers, body });
}

/** ${type} with people who press its buttons. */
export async function open(svc: Svc): Promise<DecisionReceiver> {
  const handle = ${identifier}Presses({ svc, secret: SECRET, chat: CHAT });
  return {
    request: pressRequest,
    handle: async (request) => unescaped(await (await handle(request)).text()),
    close: () => undefined,
  };
}
`;

const testSource = (name: string, identifier: string): string => `import { test } from 'node:test';
import { channelSuite } from '@svc/sdk/testing';
import ${identifier} from '../src/index.ts';
import { open, receiver } from './service.ts';

channelSuite(test, {
  name: '${name}',
  plugin: ${identifier},
  type: '${name}',
  reader: 'person',
  // To do: what the service would show as markup, such as <!channel>; [] if it shows every text as it is.
  markup: ['<b>bold</b>', '<a href="https://evil.example">'],
  // Without buttons, a text: the reason. Then remove src/presses.ts.
  decisions: { open },
  receiver,
});
`;
