import type { Channel } from '../../../core/approval/channel.ts';
import { CHANNEL, SIGNING_SECRET, slackUnderTest } from '../../../examples/channel-slack/test/slack.ts';
import type { ChannelUnderTest } from '../channel-under-test.ts';
import { httpReceiver } from '../http-receiver.ts';
import { type ChannelFault, deliveringBy, provenInBody, unpacked } from './wrong-slack.ts';

const NEVER = new AbortController().signal;
const SIGNAL = 'an attempt ends with its signal';
const REPORT = 'a decision is reported, also by a process that did not deliver the request';
const EVERY_MESSAGE = 'a report reaches every message of its request';

const UNESCAPED: ChannelUnderTest = {
  ...slackUnderTest,
  async receiver() {
    const receiver = await slackUnderTest.receiver();
    const unescaped = (raw: string) => raw.replaceAll('&lt;', '<').replaceAll('&gt;', '>');
    return {
      ...receiver,
      received: () => receiver.received().map(({ raw, displayed }) => ({ raw: unescaped(raw), displayed })),
    };
  },
};

/** The texts of the sections of a message. */
const textOf = (body: string): string =>
  (JSON.parse(body) as { blocks: { text?: { text: string } }[] }).blocks.map(({ text }) => text?.text).join('\n');

/** Right channels, and cases of the suite that pass. */
export const RIGHT_CHANNELS: readonly { readonly channel: ChannelUnderTest; readonly passes: readonly string[] }[] = [
  {
    channel: provenInBody(unpacked),
    passes: [
      'a press that the service did not sign decides nothing',
      'a press with the signature of another decides nothing',
      'a press that was signed long ago decides nothing',
    ],
  },
  { channel: { ...UNESCAPED, markupArea: () => '' }, passes: ['hostile text is harmless'] },
];

/** Channels that each break one promise about messages and reports. */
export const CHANNEL_FAULTS: readonly ChannelFault[] = [
  {
    fault: 'counts a rejected message as delivered',
    detectedBy: ['a rejected message is not delivered', 'a failed attempt is repeated until it succeeds'],
    failure: /counts as delivered|not_delivered/,
    channel: deliveringBy(({ deliver }) => ({
      deliver: (delivery, signal) => deliver(delivery, signal).catch(() => undefined),
    })),
  },
  {
    fault: 'ignores how long the service asks it to wait',
    detectedBy: ['a rate limit delays the next attempt'],
    failure: /it threw a Error/,
    channel: deliveringBy(({ deliver }) => ({
      deliver: (delivery, signal) =>
        deliver(delivery, signal).catch((error: Error) => {
          throw new Error(error.message);
        }),
    })),
  },
  {
    fault: 'does not name the product and the environment',
    detectedBy: ['one attempt sends one message that shows the whole request'],
    failure: /the message does not show "acme"/,
    channel: deliveringBy(({ deliver }) => ({
      deliver: (delivery, signal) => deliver({ ...delivery, product: '', env: '' }, signal),
    })),
  },
  {
    fault: 'waits for a service that hangs',
    detectedBy: [SIGNAL],
    failure: /deliver\(\) did not end/,
    channel: deliveringBy(({ deliver }) => ({ deliver: (delivery) => deliver(delivery, NEVER) })),
  },
  {
    fault: 'leaves the connection of an aborted attempt open',
    detectedBy: [SIGNAL],
    failure: /its connection is still open/,
    channel: deliveringBy(({ deliver }) => ({
      async deliver(delivery, signal) {
        const aborted = new Promise<never>((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
        });
        await Promise.race([deliver(delivery, NEVER), aborted]);
      },
    })),
  },
  {
    fault: 'keeps its options in a variable of its module',
    detectedBy: ['two channels of a type do not share their options'],
    failure: /one attempt sent 0 messages|delivered to another channel/,
    channel: deliveringBy((channel) => {
      latest = channel;
      return { deliver: (delivery, signal) => (latest as Channel).deliver(delivery, signal) };
    }),
  },
  {
    fault: 'writes its token into errors',
    detectedBy: ['no secret is sent or in an error'],
    failure: /contains a secret/,
    channel: deliveringBy(({ deliver }, { token }) => ({
      deliver: (delivery, signal) =>
        deliver(delivery, signal).catch((error: Error) => {
          throw new Error(`${error.message} (token ${token})`);
        }),
    })),
  },
  {
    fault: 'sends a message that is longer than the service accepts',
    detectedBy: ['shortened text is marked'],
    failure: /was answered with 400/,
    channel: {
      ...slackUnderTest,
      receiver: () =>
        httpReceiver({
          options: (api) => ({ token: 'xoxb-1', channel: CHANNEL, signingSecret: SIGNING_SECRET, api }),
          displayed: (body) => body,
          responses: {
            accepts: (response, _number, { body }) =>
              response.writeHead(body.length > 2_000 ? 400 : 200).end('{"ok":true,"ts":"1"}'),
          },
        }),
    },
  },
  {
    fault: 'leaves no room for the title and the footer',
    detectedBy: ['the longest texts are accepted together'],
    failure: /deliver\(\) with the longest texts was refused, \d+ characters: take what surrounds the parameters off/,
    channel: {
      ...slackUnderTest,
      receiver: () =>
        httpReceiver({
          options: (api) => ({ token: 'xoxb-1', channel: CHANNEL, signingSecret: SIGNING_SECRET, api }),
          displayed: textOf,
          responses: {
            accepts: (response, _number, { body }) =>
              response.writeHead(textOf(body).length > 3_300 ? 400 : 200).end('{"ok":true,"ts":"1"}'),
          },
        }),
    },
  },
  {
    fault: 'reminds nobody',
    detectedBy: ['a reminder and an escalation are messages that name the request'],
    failure: /two notices sent 0 messages/,
    channel: deliveringBy(() => ({ notify: async () => undefined })),
  },
  {
    fault: 'hides that a reminder was not accepted',
    detectedBy: ['a rejected message is not delivered'],
    failure: /notify\(\) resolved/,
    channel: deliveringBy(({ notify }) => ({ notify: async (...args) => notify?.(...args).catch(() => undefined) })),
  },
  {
    fault: 'hides that a report was not accepted',
    detectedBy: ['a rejected message is not delivered'],
    failure: /onDecided\(\) resolved/,
    channel: deliveringBy(({ onDecided }) => ({
      onDecided: async (...args) => onDecided?.(...args).catch(() => undefined),
    })),
  },
  {
    fault: 'reports every decision as an approval',
    detectedBy: [REPORT],
    failure: /two different decisions look the same/,
    channel: deliveringBy(({ onDecided }) => ({
      onDecided: async (record, ...rest) => onDecided?.({ ...record, status: 'approved' }, ...rest),
    })),
  },
  {
    fault: 'does not say who decided',
    detectedBy: [REPORT],
    failure: /does not show who decided/,
    channel: deliveringBy(({ onDecided }) => ({
      onDecided: async ({ decidedBy: _decidedBy, ...record }, ...rest) => onDecided?.(record, ...rest),
    })),
  },
  {
    fault: 'edits only the first message about a request',
    detectedBy: [EVERY_MESSAGE],
    failure: /one of 2, was not updated/,
    channel: deliveringBy(({ onDecided }) => ({
      onDecided: async (record, signal, receipts) => onDecided?.(record, signal, receipts.slice(0, 1)),
    })),
  },
  {
    fault: 'edits only the last message about a request, a reminder',
    detectedBy: [EVERY_MESSAGE],
    failure: /one of 3, was not updated/,
    channel: deliveringBy(({ deliver, onDecided }) => ({
      notify: (delivery, _notice, signal) => deliver(delivery, signal),
      onDecided: async (record, signal, receipts) => onDecided?.(record, signal, receipts.slice(-1)),
    })),
  },
  {
    fault: 'edits the request, delivered twice, and not its reminder',
    detectedBy: [EVERY_MESSAGE],
    failure: /one of 3, was not updated/,
    channel: deliveringBy(({ deliver, onDecided }) => ({
      notify: (delivery, _notice, signal) => deliver(delivery, signal),
      onDecided: async (record, signal, receipts) => onDecided?.(record, signal, receipts.slice(0, 2)),
    })),
  },
  {
    fault: 'edits its first message after every decision',
    detectedBy: [REPORT],
    failure: /a report edits another message/,
    channel: deliveringBy(({ onDecided }) => ({
      onDecided: async (record, signal) => onDecided?.(record, signal, ['1700000000.1']),
    })),
  },
  {
    fault: 'edits the message after its own',
    detectedBy: [REPORT],
    failure: /a report edits another message/,
    channel: deliveringBy(({ onDecided }) => ({
      onDecided: async (record, signal, receipts) =>
        onDecided?.(
          record,
          signal,
          receipts.map((ts) => `${ts}0`),
        ),
    })),
  },
  {
    fault: 'shows the token',
    detectedBy: ['no secret is sent or in an error'],
    failure: /a person sees the token/,
    channel: deliveringBy(({ deliver }) => ({
      deliver: (delivery, signal) =>
        deliver({ ...delivery, reason: `${delivery.reason} To decide, use ${delivery.token}` }, signal),
    })),
  },
  {
    fault: 'does not escape markup',
    detectedBy: ['hostile text is harmless'],
    failure: /<!channel> was sent unescaped/,
    channel: UNESCAPED,
  },
];

/** The channel that was created last. */
let latest: Channel | undefined;
