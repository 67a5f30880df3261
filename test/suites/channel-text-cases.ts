import * as assert from 'node:assert/strict';
import type { Channel, Decided, Delivery, Notice } from '../../core/approval/channel.ts';
import { frozenClone } from '../../core/tool/safe-json.ts';
import {
  decisionRecord,
  delivery,
  notice,
  onlyMessage,
  signal,
  storedReceipts,
  TOKEN,
  UNSAFE_TEXTS,
} from './channel-fixtures.ts';
import type { ChannelReceiver, ChannelUnderTest } from './channel-under-test.ts';
import { expectRejection } from './expect-error.ts';
import type { GateUnderTest } from './gate-client.ts';
import { assertHarmless, assertShown, excerpt, hostileTexts, missingTexts, unfolded } from './harmless-text.ts';
import type { DeclareCase } from './suite.ts';
import { waitUntil } from './wait-until.ts';

const LONG = 40_000;
const PLAIN = [
  '"quotes" and \\ and \'',
  '<b>bold</b> & more',
  '# 1 *two* _three_ `four`',
  '日本語 😀 ñ',
  '{{x}} $(y) %s',
];

interface TextCase {
  withReceiver(body: (receiver: ChannelReceiver, tested: Channel) => Promise<void>): Promise<void>;
  throughGate(receiver: ChannelReceiver, body: (gate: GateUnderTest) => Promise<void>): Promise<void>;
}

/** Declares what a message shows, and what it must not contain. */
export function declareTextCases(
  on: DeclareCase,
  channel: ChannelUnderTest,
  { withReceiver, throughGate }: TextCase,
): void {
  on(
    'hostile text is harmless',
    () =>
      withReceiver(async (receiver, tested) => {
        const texts = [...hostileTexts(channel), ...PLAIN];
        const parameters = Object.fromEntries(texts.map((text, index) => [`p${index}`, text]));
        const request = delivery({ ...parameters, ...Object.fromEntries(UNSAFE_TEXTS.map((name) => [name, 1])) });
        await tested.deliver({ ...request, reason: texts.join(' '), agentTag: `payouts ${texts.join(' ')}` }, signal());
        const message = onlyMessage(receiver);
        if (channel.reader === 'program')
          assert.deepEqual(missingTexts(texts, message.displayed), [], 'some texts were changed');
        assertHarmless(channel, message, 'the request');
        assertShown(channel, message, 'the request');
      }),
    {
      promise:
        channel.reader === 'person'
          ? 'Parameters are written by a model: show them with displayText() or displayJson(), and escape the markup of the medium.'
          : 'A program receives every text unchanged.',
    },
  );

  on(
    'shortened text is marked',
    () =>
      withReceiver(async (receiver, tested) => {
        const long = `${'x'.repeat(LONG)}and nothing else`;
        await tested.deliver(delivery({ note: long, orderId: '1234' }), signal());
        const { displayed } = onlyMessage(receiver);
        assert.ok(displayed.includes('xxx'), `the message shows no parameters: ${excerpt(displayed)}`);
        assert.ok(unfolded(displayed).includes(long) || displayed.includes('…'), 'the text was cut without a mark');
      }),
    { promise: 'A long request is delivered. Omitted text is marked with …, as shortenText() does.' },
  );

  on(
    'the longest texts are accepted together',
    () =>
      withReceiver(async (receiver, tested) => {
        for (const [name, long] of [
          ['', 'x'.repeat(LONG)],
          [' of markup', `${channel.markup.join(' ')} & < > * _ \\`.repeat(LONG / 20)],
        ] as const) {
          const { request, about, decision } = longest(long);
          const attempt = async (what: string, send: () => unknown) => {
            try {
              return await send();
            } catch (error) {
              const [last] = receiver.received().slice(-1);
              assert.fail(
                `${what} with the longest texts${name} was refused, ${last?.displayed.length} characters: take what surrounds the parameters off \`maxLength\` (${(error as Error).message})`,
              );
            }
          };
          const receipts = storedReceipts(await attempt('deliver()', () => tested.deliver(request, signal())));
          await attempt('notify()', () => tested.notify?.(request, about, signal(), receipts));
          await attempt('onDecided()', () => tested.onDecided?.(decision, signal(), receipts));
        }
      }),
    {
      promise:
        'The service accepts a message in which the parameters, the reason, and the names of the agent, the tool, the product and people are as long as they may be, plain or escaped.',
    },
  );

  on(
    'a request without callbackUrl and token is delivered',
    () =>
      withReceiver(async (receiver, tested) => {
        const { callbackUrl, pressUrl, token, description, ...request } = delivery();
        await tested.deliver(frozenClone(request), signal());
        const { displayed } = onlyMessage(receiver);
        assert.ok(!/\bundefined\b|\[object |\bNaN\b/.test(displayed), displayed);
        assert.ok(!displayed.includes(TOKEN));
      }),
    {
      promise: '`callbackUrl`, `pressUrl`, `token` and `description` may be absent: the command line can decide too.',
    },
  );

  on(
    'no secret is sent or in an error',
    () =>
      withReceiver(async (receiver, tested) => {
        const secrets = [...receiver.secrets, TOKEN];
        receiver.setBehaviour('fails');
        const errors = [await expectRejection(tested.deliver(delivery(), signal()), 'deliver() resolved')];
        await receiver.close();
        errors.push(
          await expectRejection(tested.deliver(delivery(), signal()), 'deliver() resolved without a receiver'),
        );
        for (const { message } of errors) {
          for (const secret of secrets) assert.ok(!message.includes(secret), `an error contains a secret: ${message}`);
        }
        for (const { displayed } of receiver.received()) {
          for (const secret of receiver.secrets) assert.ok(!displayed.includes(secret), 'the reader sees a secret');
          const text = displayed.replaceAll(delivery().callbackUrl ?? '', '');
          assert.ok(
            channel.reader === 'program' || !text.includes(TOKEN),
            'a person sees the token, with which anybody decides who copies it: only the link contains it',
          );
        }
      }),
    {
      promise:
        'Errors are stored in the audit: none contains the token, the callbackUrl or a secret of the options. A person sees the token at most in the link.',
    },
  );

  on(
    'sensitive parameters are not sent',
    () =>
      withReceiver(async (receiver) => {
        const card = '4111-1111-1111-1111';
        await throughGate(receiver, async ({ refund }) => {
          await refund({ orderId: '1', amount: 2, card });
          await waitUntil(() => receiver.received().length > 0, 'nothing was delivered');
        });
        for (const { raw } of receiver.received()) assert.ok(!raw.includes(card), 'a sensitive value was sent');
      }),
    { promise: 'Sensitive parameters arrive masked, and the channel does not look them up.' },
  );
}

/** A request, a notice about it and its decision whose texts are as long as they may be. */
function longest(text: string): { request: Delivery; about: Notice; decision: Decided } {
  const tool = 'x'.repeat(128);
  const [reason, role, product] = [text.slice(0, 10_000), text.slice(0, 64), 'x'.repeat(63)];
  const names = { tool, reason, agentTag: text.slice(0, 128), parameters: { note: text } };
  return {
    request: frozenClone({ ...delivery(), ...names, product, env: product, description: reason }),
    about: frozenClone({
      ...notice('escalation'),
      to: Array.from({ length: 9 }, () => ({ role, members: [reason] })),
      missing: Array.from({ length: 9 }, () => ({ role, count: 1 })),
    }),
    decision: frozenClone({
      ...decisionRecord('approved'),
      ...names,
      decidedBy: reason,
      decisionReason: reason,
      modifiedParams: names.parameters,
    }),
  };
}
