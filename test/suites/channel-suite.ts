import * as assert from 'node:assert/strict';
import { type Channel, isDeliveryFailed } from '../../core/approval/channel.ts';
import { displayText } from '../../core/display/text.ts';
import { Kernel, type Plugin } from '../../core/kernel.ts';
import { applyPlugin } from '../../core/plugin.ts';
import { frozenClone } from '../../core/tool/safe-json.ts';
import { type DecisionsUnderTest, declareDecisionCases, skippedCases } from './channel-decisions.ts';
import { decisionRecord, delivery, notice, signal, storedReceipts, TOKEN, UNSAFE_TEXTS } from './channel-fixtures.ts';
import { declareReportCases } from './channel-reports.ts';
import { expectError, expectRejection } from './expect-error.ts';
import { type GateUnderTest, withGate } from './gate-client.ts';
import { assertHarmless, assertShown, excerpt, hostileTexts, missingTexts, unfolded } from './harmless-text.ts';
import { suite, type TestFunction, type UnderTest, withTimeout } from './suite.ts';
import { waitUntil } from './wait-until.ts';

/** A channel, and a receiver of what it delivers. */
export interface ChannelUnderTest extends UnderTest {
  /** The plugin that its package exports. */
  readonly plugin: Plugin;
  /** The name under which the plugin registers the channel. */
  readonly type: string;
  /** A person must not see misleading characters; a program must receive every character unchanged. */
  readonly reader: 'person' | 'program';
  /** Markup of the medium, which must arrive as text: `['<!channel>']` on Slack. Empty if the medium shows every text as it is. */
  readonly markup: readonly string[];
  /**
   * The parts of `raw` in which markup has an effect, such as all that is not in a code block. Default: all of it. Let `markup`
   * then also contain what would end a code block.
   */
  markupArea?(raw: string): string;
  /** How decisions are made in the medium, or why none are: the reason with which their cases are skipped. */
  readonly decisions: DecisionsUnderTest | string;
  /** Creates a fake of the service for one case. */
  receiver(): Promise<ChannelReceiver>;
}

export interface ChannelReceiver {
  /** The options in `approvals.channels` other than `type`. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Texts in the options that must not occur in an error. */
  readonly secrets: readonly string[];
  /** Every message, oldest first, including those it did not accept. */
  received(): readonly ChannelMessage[];
  /** Changes how it responds from now on. It starts as `accepts`. */
  setBehaviour(behaviour: ReceiverBehaviour): void;
  /** The number of senders that wait for a response. Without it, connections left open are not detected. */
  pending?(): number;
  /** Stops the receiver. A second call does nothing. */
  close(): void | Promise<void>;
}

export interface ChannelMessage {
  /** Everything that was sent. */
  readonly raw: string;
  /** What the reader sees of it; for a program, the JSON that it reads. */
  readonly displayed: string;
}

/** Whether a message contains a text, which the medium may escape. */
export const containsText = ({ raw, displayed }: ChannelMessage, text: string): boolean =>
  raw.includes(text) || displayed.includes(text);

/** `rateLimits`: rejects the message and requests a pause of RETRY_AFTER_SECONDS, as the service does. */
export type ReceiverBehaviour = 'accepts' | 'fails' | 'rateLimits' | 'hangs';

/** The pause that a receiver in the state `rateLimits` requests, in seconds. */
export const RETRY_AFTER_SECONDS = 7;

const LONG = 40_000;
const PLAIN = [
  '"quotes" and \\ and \'',
  '<b>bold</b> & more',
  '# 1 *two* _three_ `four`',
  '日本語 😀 ñ',
  '{{x}} $(y) %s',
];

const CLOSE_TIMEOUT_MS = 5_000;

/** Tests that a channel fulfills its contract. */
export function channelSuite(test: TestFunction, channel: ChannelUnderTest): void {
  assertMarkup(channel);
  suite(test, { name: channel.name, skip: skippedCases(channel) }, (on) => {
    const createChannel = (options: ChannelReceiver['options']): Channel => {
      const kernel = new Kernel();
      applyPlugin(kernel, channel.plugin, channel.plugin.name);
      return kernel.channels.get(channel.type)(options);
    };
    const withReceiver = async (body: (receiver: ChannelReceiver, tested: Channel) => Promise<void>) => {
      const receiver = await channel.receiver();
      try {
        await body(receiver, createChannel(receiver.options));
      } finally {
        await receiver.close();
      }
    };
    /** Runs `body` with a gate that uses the channel, as an application does. */
    const throughGate = (
      receiver: ChannelReceiver,
      body: (gate: GateUnderTest) => Promise<void>,
      { timeoutMs = 60_000 }: { readonly timeoutMs?: number } = {},
    ) =>
      withGate(
        {
          config: { plugins: [channel.plugin] },
          approvals: { channels: { tested: { type: channel.type, ...receiver.options } } },
          humanInLoop: { approvalTimeout: timeoutMs },
        },
        body,
      );
    const onlyMessage = (receiver: ChannelReceiver): ChannelMessage => {
      const messages = receiver.received();
      assert.equal(messages.length, 1, `one attempt sent ${messages.length} messages`);
      return messages[0] as ChannelMessage;
    };

    on(
      'one attempt sends one message that shows the whole request',
      () =>
        withReceiver(async (receiver, tested) => {
          const request = delivery({ orderId: '1234', amount: 20.5, items: ['lamp', 'service'], express: true });
          await tested.deliver(request, signal());
          const { displayed, raw } = onlyMessage(receiver);
          for (const word of [
            'payouts',
            'refund',
            'acme',
            'staging',
            'orderId',
            '1234',
            'amount',
            '20.5',
            'lamp',
            'service',
            'express',
          ]) {
            assert.ok(displayed.includes(word), `the message does not show "${word}": ${displayed}`);
          }
          assert.ok(containsText({ displayed, raw }, request.requestId), 'the message does not contain the request id');
        }),
      {
        promise:
          'deliver() sends one message, with the product, the environment, the agent, the tool, every parameter and the id of the request.',
      },
    );

    on(
      'a rejected message is not delivered',
      () =>
        withReceiver(async (receiver, tested) => {
          const receipts = storedReceipts(await tested.deliver(delivery(), signal()));
          receiver.setBehaviour('fails');
          await expectRejection(
            tested.deliver(delivery(), signal()),
            'deliver() resolved although the receiver rejected the message, so the request counts as delivered',
          );
          if (tested.notify)
            await expectRejection(
              tested.notify(delivery(), notice('reminder'), signal(), receipts),
              'notify() resolved although the receiver rejected the message, so nobody is reminded',
            );
          if (tested.onDecided)
            await expectRejection(
              tested.onDecided(decisionRecord('approved'), signal(), receipts),
              'onDecided() resolved although the receiver rejected the message, so the audit does not say so',
            );
        }),
      { promise: 'deliver(), notify() and onDecided() throw if the receiver did not accept the message.' },
    );

    on(
      'a reminder and an escalation are messages that name the request',
      () =>
        withReceiver(async (receiver, tested) => {
          // Without it, svc delivers the request again.
          if (!tested.notify) return;
          const receipts = storedReceipts(await tested.deliver(delivery(), signal()));
          const before = receiver.received().length;
          for (const kind of ['reminder', 'escalation'] as const)
            await tested.notify(delivery(), notice(kind), signal(), receipts);
          const messages = receiver.received().slice(before);
          assert.equal(messages.length, 2, `two notices sent ${messages.length} messages`);
          for (const message of messages) {
            assert.ok(containsText(message, delivery().requestId), 'a notice does not contain the request id');
          }
          const [reminder, escalation] = messages.map(({ displayed }) => displayed);
          assert.notEqual(reminder, escalation, 'a reminder and an escalation look the same');
          assert.ok(escalation?.includes('heads'), 'an escalation does not name the role of those who may decide too');
        }),
      { promise: 'notify() sends one message that names the request and, with an escalation, who may decide too.' },
    );

    on(
      'a rate limit delays the next attempt',
      () =>
        withReceiver(async (receiver, tested) => {
          receiver.setBehaviour('rateLimits');
          const error = await expectRejection(tested.deliver(delivery(), signal()), 'deliver() resolved');
          assert.ok(isDeliveryFailed(error), `it threw a ${error.name}: ${error.message}`);
          assert.equal(error.retry, true);
          // Retry-After as a date has no fractions of a second.
          assert.ok(error.afterMs > (RETRY_AFTER_SECONDS - 2) * 1000, `afterMs is ${error.afterMs}`);
        }),
      {
        promise: 'deliver() throws DeliveryFailed with the requested pause as `afterMs`, in milliseconds.',
      },
    );

    on(
      'an attempt ends with its signal',
      () =>
        withReceiver(async (receiver, tested) => {
          receiver.setBehaviour('hangs');
          const attempt = new AbortController();
          const delivering = expectRejection(
            tested.deliver(delivery(), attempt.signal),
            'deliver() resolved without an answer',
          );
          delivering.catch(() => undefined);
          await waitUntil(() => receiver.received().length === 1, 'the receiver never got anything');
          attempt.abort(new Error('the attempt is over'));
          await withTimeout(CLOSE_TIMEOUT_MS, 'deliver()', () => delivering);
          const { pending } = receiver;
          if (pending) await waitUntil(() => pending() === 0, 'its connection is still open', CLOSE_TIMEOUT_MS);
        }),
      { promise: 'deliver() throws when its AbortSignal is aborted, and leaves no open connection.' },
    );

    on(
      'a failed attempt is repeated until it succeeds',
      () =>
        withReceiver(async (receiver) => {
          receiver.setBehaviour('fails');
          await throughGate(receiver, async ({ refund, svc }) => {
            const { request } = await refund();
            const attempts = () => attemptsOf(svc, request.requestId);
            await waitUntil(async () => (await attempts()).length > 0, 'no attempt was recorded');
            receiver.setBehaviour('accepts');
            await waitUntil(async () => (await attempts()).includes('delivered'), 'it was not retried');
            assert.equal((await attempts())[0], 'not_delivered');
            assert.equal(receiver.received().length, (await attempts()).length, 'attempts and messages differ');
          });
        }),
      { promise: 'The gate calls deliver() again after every error except a DeliveryFailed with `retry: false`.' },
    );

    on(
      'concurrent requests do not mix',
      () =>
        withReceiver(async (receiver, tested) => {
          const all = Array.from({ length: 8 }, (_, index) =>
            delivery({ amount: 1000 + index }, `apr_number-${index}`),
          );
          await Promise.all(all.map((one) => tested.deliver(one, signal())));
          const found = receiver.received().map(({ raw, displayed }) => {
            const [one, ...others] = all.filter(({ requestId }) => containsText({ raw, displayed }, requestId));
            assert.ok(one && others.length === 0, `a message contains ${others.length + 1} requests: ${raw}`);
            assert.ok(displayed.includes(String(one.parameters.amount)), `another request's parameters: ${displayed}`);
            return one.requestId;
          });
          assert.deepEqual(found.sort(), all.map(({ requestId }) => requestId).sort());
        }),
      { promise: 'Every request is a separate message, also if several are delivered concurrently.' },
    );

    on(
      'two channels of a type do not share their options',
      () =>
        withReceiver((first, tested) =>
          withReceiver(async (second, other) => {
            await tested.deliver(delivery({ amount: 1001 }), signal());
            await other.deliver(delivery({ amount: 1002 }), signal());
            for (const [receiver, amount] of [
              [first, '1001'],
              [second, '1002'],
            ] as const) {
              assert.ok(onlyMessage(receiver).displayed.includes(amount), 'a request was delivered to another channel');
            }
          }),
        ),
      { promise: 'The factory returns a new channel on every call, which delivers to its own receiver.' },
    );

    on(
      'missing options are rejected at startup',
      () =>
        withReceiver(async ({ options }) => {
          if (Object.keys(options).length === 0) return;
          await expectError((async () => createChannel({}))(), 'config_invalid');
        }),
      { promise: 'The factory throws `config_invalid` for invalid options, before the first request.' },
    );

    on(
      'hostile text is harmless',
      () =>
        withReceiver(async (receiver, tested) => {
          const texts = [...hostileTexts(channel), ...PLAIN];
          const parameters = Object.fromEntries(texts.map((text, index) => [`p${index}`, text]));
          const request = delivery({ ...parameters, ...Object.fromEntries(UNSAFE_TEXTS.map((name) => [name, 1])) });
          await tested.deliver(
            { ...request, reason: texts.join(' '), agentTag: `payouts ${texts.join(' ')}` },
            signal(),
          );
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
            for (const secret of secrets)
              assert.ok(!message.includes(secret), `an error contains a secret: ${message}`);
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

    declareReportCases(on, channel, { withReceiver, createChannel });

    declareDecisionCases(on, channel, (body, options) =>
      withReceiver((receiver, tested) => throughGate(receiver, (gate) => body(gate, receiver, tested), options)),
    );
  });
}

/** Throws for a text that no message shows, because it is written out. */
function assertMarkup({ name, markup }: ChannelUnderTest): void {
  assert.ok(Array.isArray(markup), 'declare markup: [] if the medium shows every text as it is');
  for (const text of markup) {
    const shown = displayText(text);
    const why = `displayText() and displayJson() write it as ${shown}, so that no reader sees it unchanged`;
    assert.equal(
      shown,
      text,
      `${name}: markup contains ${JSON.stringify(text)}, but ${why}: choose one line of plain text`,
    );
  }
}

async function attemptsOf(svc: GateUnderTest['svc'], requestId: string): Promise<string[]> {
  const found: string[] = [];
  for await (const entry of svc.approvals.export()) {
    if (entry.requestId === requestId && entry.type.endsWith('delivered')) found.push(entry.type);
  }
  return found;
}
