import * as assert from 'node:assert/strict';
import type { Channel } from '../../core/approval/channel.ts';
import { frozenClone } from '../../core/tool/safe-json.ts';
import { delivery, onlyMessage, signal, TOKEN, UNSAFE_TEXTS } from './channel-fixtures.ts';
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
