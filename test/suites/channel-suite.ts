import * as assert from 'node:assert/strict';
import { type Channel, isDeliveryFailed } from '../../core/approval/channel.ts';
import { displayText } from '../../core/display/text.ts';
import { Kernel } from '../../core/kernel.ts';
import { applyPlugin } from '../../core/plugin.ts';
import { decisionRecord, delivery, notice, onlyMessage, signal, storedReceipts } from './channel-fixtures.ts';
import { declareReportCases } from './channel-reports.ts';
import { declareTextCases } from './channel-text-cases.ts';
import {
  type ChannelReceiver,
  type ChannelUnderTest,
  containsText,
  RETRY_AFTER_SECONDS,
} from './channel-under-test.ts';
import { decisionCases, type GateOptions, skippedCases } from './decision-case.ts';
import { expectError, expectRejection } from './expect-error.ts';
import { declareForgedPressCases } from './forged-press-cases.ts';
import { type GateUnderTest, withGate } from './gate-client.ts';
import { declarePressCases } from './press-cases.ts';
import { suite, type TestFunction, withTimeout } from './suite.ts';
import { waitUntil } from './wait-until.ts';

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
      { timeoutMs = 60_000, channels }: GateOptions = {},
    ) =>
      withGate(
        {
          config: { plugins: [channel.plugin] },
          approvals: { channels: { tested: { type: channel.type, ...receiver.options }, ...channels } },
          humanInLoop: { approvalTimeout: timeoutMs },
        },
        body,
      );
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

    declareTextCases(on, channel, { withReceiver, throughGate });
    declareReportCases(on, channel, { withReceiver, createChannel });

    const withDecisions = decisionCases(channel, (body, options) =>
      withReceiver((receiver, tested) => throughGate(receiver, (gate) => body(gate, receiver, tested), options)),
    );
    declarePressCases(on, channel, withDecisions);
    declareForgedPressCases(on, channel, withDecisions);
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
