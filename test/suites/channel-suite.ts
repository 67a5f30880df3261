import * as assert from 'node:assert/strict';
import { type Channel, type Delivery, DeliveryFailed } from '../../core/approval/channel.ts';
import { displayText } from '../../core/approval/display.ts';
import type { ApprovalRecord } from '../../core/approval/request.ts';
import { frozenClone } from '../../core/tool/safe-json.ts';
import { Kernel, type Plugin } from '../../core/kernel.ts';
import { applyPlugin } from '../../core/plugin.ts';
import type { ToolParameters as CallParameters } from '../../core/tool/parameters.ts';
import { expectRejection } from './expect-error.ts';
import { type GateUnderTest, withGate } from './gate-client.ts';
import { suite, type TestFunction, type UnderTest } from './suite.ts';
import { waitUntil } from './wait-until.ts';

/** A channel, and a place where what it delivers arrives. */
export interface ChannelUnderTest extends UnderTest {
  /** As its package exports it. */
  readonly plugin: Plugin;
  /** The name under which the plugin registers the channel. */
  readonly type: string;
  /** A person must not be shown what deceives; a program must get every character as it was. */
  readonly reader: 'person' | 'program';
  /** What means something in the medium, and must arrive as text: `['<!channel>']` on Slack. */
  readonly markup?: readonly string[];
  /** A stand-in for the service, of this case alone. */
  receiver(): Promise<ChannelReceiver>;
}

export interface ChannelReceiver {
  /** What `approvals.channels` says beside the `type`. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Texts in the options that no error may quote. */
  readonly secrets: readonly string[];
  /** Everything that came, oldest first; what was not taken too. */
  received(): readonly ChannelMessage[];
  /** From now on; at first it takes everything. */
  setBehaviour(as: ReceiverBehaviour): void;
  /** Nobody answers there any more. Called twice it does nothing. */
  close(): void | Promise<void>;
}

export interface ChannelMessage {
  /** Everything that was sent. */
  readonly raw: string;
  /** What the reader is shown of it; of a program's message, the JSON that it reads. */
  readonly displayed: string;
}

/** `pauses`: refuses, and wants to be left alone for PAUSE_SECONDS, in the words of the service. */
export type ReceiverBehaviour = 'takes' | 'refuses' | 'pauses' | 'hangs';

/** What a receiver that `pauses` asks for: seven seconds. */
export const RETRY_AFTER_SECONDS = 7;

const TOKEN = 'v1.a-token-that-decides';
const LONG = 40_000;
/** ANSI, a text direction override, a zero-width space, a null, a tag character: nothing that a person would see. */
const UNSAFE_TEXTS = ['\u001b[2Jgone', '\u202etxt.exe', 'pay\u200bpal', 'nul\u0000l', 'tag\u{e0041}ged'];
const PLAIN = [
  '"quotes" and \\ and \'',
  '<b>bold</b> & more',
  '# 1 *two* _three_ `four`',
  '日本語 😀 ñ',
  '{{x}} $(y) %s',
];

/** What a channel promises, whatever it goes through. */
export function channelSuite(test: TestFunction, channel: ChannelUnderTest): void {
  suite(test, channel, (on) => {
    const made = (options: ChannelReceiver['options']): Channel => {
      const kernel = new Kernel();
      applyPlugin(kernel, channel.plugin, channel.plugin.name);
      return kernel.channels.get(channel.type)(options);
    };
    const withReceiver = async (body: (to: ChannelReceiver, tested: Channel) => Promise<void>) => {
      const to = await channel.receiver();
      try {
        await body(to, made(to.options));
      } finally {
        await to.close();
      }
    };
    /** Through the gate, as an application uses it. */
    const throughGate = (to: ChannelReceiver, body: (gate: GateUnderTest) => Promise<void>) =>
      withGate(
        {
          config: { plugins: [channel.plugin] },
          approvals: { channels: { tested: { type: channel.type, ...to.options } } },
          humanInLoop: { approvalTimeout: 60_000 },
        },
        body,
      );
    const only = (to: ChannelReceiver): ChannelMessage => {
      const messages = to.received();
      assert.equal(messages.length, 1, `${messages.length} messages came of one attempt`);
      return messages[0] as ChannelMessage;
    };

    on(
      'one attempt brings one message, which says who asks for what',
      () =>
        withReceiver(async (to, tested) => {
          const asked = delivery({ orderId: '1234', amount: 20.5, items: ['lamp', 'service'], express: true });
          await tested.deliver(asked, signal());
          const { displayed: shown, raw } = only(to);
          for (const word of ['payouts', 'refund', 'orderId', '1234', 'amount', '20.5', 'lamp', 'service', 'express']) {
            assert.ok(shown.includes(word), `the message does not show "${word}": ${shown}`);
          }
          assert.ok(raw.includes(asked.requestId), 'nothing in the message leads back to the request');
        }),
      { promise: 'deliver() sends one message, with the agent, the tool, every parameter and the id of the request.' },
    );

    on(
      'what is refused has not arrived',
      () =>
        withReceiver(async (to, tested) => {
          to.setBehaviour('refuses');
          await expectRejection(
            tested.deliver(delivery(), signal()),
            'deliver() resolved, and the request is taken for delivered',
          );
        }),
      { promise: 'deliver() throws where the receiver did not take the request.' },
    );

    on(
      'who wants a pause gets it',
      () =>
        withReceiver(async (to, tested) => {
          to.setBehaviour('pauses');
          const error = await expectRejection(tested.deliver(delivery(), signal()), 'deliver() resolved');
          assert.ok(error instanceof DeliveryFailed, `it threw a ${error.name}: ${error.message}`);
          assert.equal(error.retry, true);
          // A date has no fractions of a second.
          assert.ok(error.afterMs > (RETRY_AFTER_SECONDS - 2) * 1000, `afterMs is ${error.afterMs}`);
        }),
      {
        promise: 'A receiver that names a pause is not asked before it is over: DeliveryFailed with `afterMs`, in milliseconds.',
      },
    );

    on(
      'an attempt ends with its signal',
      () =>
        withReceiver(async (to, tested) => {
          to.setBehaviour('hangs');
          const attempt = new AbortController();
          const delivering = expectRejection(
            tested.deliver(delivery(), attempt.signal),
            'deliver() resolved without an answer',
          );
          delivering.catch(() => undefined);
          await waitUntil(() => to.received().length === 1, 'the receiver never got anything');
          attempt.abort(new Error('the attempt is over'));
          await delivering;
        }),
      { promise: 'deliver() throws when its AbortSignal says so, and leaves no connection behind.' },
    );

    on(
      'a failed attempt is made again, until it arrives',
      () =>
        withReceiver(async (to) => {
          to.setBehaviour('refuses');
          await throughGate(to, async ({ refund, svc }) => {
            const { request } = await refund();
            const attempts = () => attemptsOf(svc, request.requestId);
            await waitUntil(async () => (await attempts()).length > 0, 'no attempt was recorded');
            to.setBehaviour('takes');
            await waitUntil(async () => (await attempts()).includes('delivered'), 'it was not tried again');
            assert.equal((await attempts())[0], 'not_delivered');
            assert.equal(to.received().length, (await attempts()).length, 'attempts and messages differ');
          });
        }),
      { promise: 'A failure is no last word: unless DeliveryFailed says `retry: false`, the gate calls deliver() again.' },
    );

    on(
      'many at once stay apart',
      () =>
        withReceiver(async (to, tested) => {
          const all = Array.from({ length: 8 }, (_, index) =>
            delivery({ amount: 1000 + index }, `apr_number-${index}`),
          );
          await Promise.all(all.map((one) => tested.deliver(one, signal())));
          const found = to.received().map(({ raw, displayed: shown }) => {
            const [one, ...others] = all.filter(({ requestId }) => raw.includes(requestId));
            assert.ok(one && others.length === 0, `a message speaks of ${others.length + 1} requests: ${raw}`);
            assert.ok(shown.includes(String(one.parameters.amount)), `another request's parameters: ${shown}`);
            return one.requestId;
          });
          assert.deepEqual(found.sort(), all.map(({ requestId }) => requestId).sort());
        }),
      { promise: 'Every request is a message of its own, however many are delivered at once.' },
    );

    on(
      'hostile text is harmless',
      () =>
        withReceiver(async (to, tested) => {
          const texts = [...UNSAFE_TEXTS, ...PLAIN, ...(channel.markup ?? [])];
          const parameters = Object.fromEntries(texts.map((text, index) => [`p${index}`, text]));
          const asked = delivery({ ...parameters, ...Object.fromEntries(UNSAFE_TEXTS.map((name) => [name, 1])) });
          await tested.deliver({ ...asked, reason: texts.join(' '), agentTag: `payouts ${texts.join(' ')}` }, signal());
          const { displayed: shown, raw } = only(to);
          if (channel.reader === 'program') assert.deepEqual(strangers(texts, shown), [], 'not as it was');
          else assert.equal(displayText(shown, { lines: true }), shown, 'a person is shown characters that deceive');
          for (const text of channel.markup ?? []) {
            assert.ok(!raw.includes(text), `${text} was sent as it is, and means something there`);
          }
        }),
      {
        promise:
          channel.reader === 'person'
            ? 'A model writes the parameters: show them with displayText() or displayJson(), and escape what the medium reads as markup.'
            : 'A program gets every text as it was.',
      },
    );

    on(
      'what does not fit is marked',
      () =>
        withReceiver(async (to, tested) => {
          const long = `${'x'.repeat(LONG)}and nothing else`;
          await tested.deliver(delivery({ note: long, orderId: '1234' }), signal());
          const { displayed: shown } = only(to);
          assert.ok(shown.includes(long) || shown.includes('…'), 'the end is missing and nothing says so');
        }),
      { promise: 'A long request arrives too. What is left out of it is marked with …, as shortenText() does.' },
    );

    on(
      'without a way back it is told all the same',
      () =>
        withReceiver(async (to, tested) => {
          const { callbackUrl, token, description, ...asked } = delivery();
          await tested.deliver(frozenClone(asked), signal());
          const { displayed: shown } = only(to);
          assert.ok(!/\bundefined\b|\[object |\bNaN\b/.test(shown), shown);
          assert.ok(!shown.includes(TOKEN));
        }),
      { promise: '`callbackUrl`, `token` and `description` may be absent: svc approvals decides as well.' },
    );

    on(
      'no secret is sent or told',
      () =>
        withReceiver(async (to, tested) => {
          const secrets = [...to.secrets, TOKEN];
          to.setBehaviour('refuses');
          const errors = [await expectRejection(tested.deliver(delivery(), signal()), 'deliver() resolved')];
          await to.close();
          errors.push(
            await expectRejection(tested.deliver(delivery(), signal()), 'deliver() resolved with nobody there'),
          );
          for (const { message } of errors) {
            for (const secret of secrets) assert.ok(!message.includes(secret), `an error quotes a secret: ${message}`);
          }
          for (const { displayed: shown } of to.received()) {
            for (const secret of to.secrets) assert.ok(!shown.includes(secret), 'a reader is shown a secret');
          }
        }),
      { promise: 'Errors are kept in the audit: none quotes the token, the callbackUrl or a secret of the options.' },
    );

    on(
      'sensitive parameters stay here',
      () =>
        withReceiver(async (to) => {
          const card = '4111-1111-1111-1111';
          await throughGate(to, async ({ refund }) => {
            await refund({ orderId: '1', amount: 2, card });
            await waitUntil(() => to.received().length > 0, 'nothing came');
          });
          for (const { raw } of to.received()) assert.ok(!raw.includes(card), 'a sensitive value was sent');
        }),
      { promise: 'Parameters that a tool calls sensitive come masked, and a channel does not look them up.' },
    );

    on(
      'a decision is told, also by another process than the one that delivered',
      () =>
        withReceiver(async (to, tested) => {
          assert.ok(tested.onDecided, 'there is no onDecided(): skip this case, and say why nobody is told');
          await tested.deliver(delivery(), signal());
          const before = to.received().length;
          await tested.onDecided(decided('approved'), signal());
          const other = made(to.options);
          for (const status of ['rejected', 'cancelled'] as const) await other.onDecided?.(decided(status), signal());
          const told = to.received().slice(before);
          assert.equal(told.length, 3, 'of three decisions not each was told once');
          for (const { displayed: shown } of told) {
            assert.ok(channel.reader === 'program' || displayText(shown, { lines: true }) === shown, 'it deceives');
          }
        }),
      { promise: 'onDecided() reports every decision and needs nothing that deliver() remembered.' },
    );
  });
}

function delivery(
  parameters: CallParameters = { orderId: '1234', amount: 20 },
  requestId = 'apr_01939a51-2b30-7aa0-8f0e-0e3d2a5a9c11',
): Delivery {
  return frozenClone({
    requestId,
    executionId: 'exe_01939a51-2b30-7aa0-8f0e-0e3d2a5a9c12',
    agentTag: 'payouts',
    tool: 'refund',
    parameters,
    reason: 'The tool asks for confirmation.',
    timestamp: new Date().toISOString(),
    timeout: new Date(Date.now() + 300_000).toISOString(),
    product: 'shop',
    env: 'dev',
    expiresInMs: 300_000,
    description: 'Pays money back.',
    token: TOKEN,
    callbackUrl: `https://shop.example/svc/approvals/${requestId}/respond?token=${TOKEN}`,
  });
}

function decided(status: ApprovalRecord['status']): ApprovalRecord {
  const { product, env, expiresInMs, description, token, callbackUrl, ...request } = delivery();
  const by = `ada ${UNSAFE_TEXTS.join('')}`;
  const at = request.timestamp;
  return frozenClone({
    ...request,
    status,
    run: 'none',
    decidedAt: at,
    decidedBy: by,
    events: [{ type: 'requested', at }],
  });
}

/** As long as the gate gives an attempt. */
const signal = (): AbortSignal => AbortSignal.timeout(15_000);

async function attemptsOf(svc: GateUnderTest['svc'], requestId: string): Promise<string[]> {
  const found: string[] = [];
  for await (const entry of svc.approvals.export()) {
    if (entry.requestId === requestId && entry.type.endsWith('delivered')) found.push(entry.type);
  }
  return found;
}

/** Those of the texts that no string of the JSON has in it. */
function strangers(texts: readonly string[], json: string): readonly string[] {
  const strings: string[] = [];
  JSON.parse(json, (_key, value) => {
    if (typeof value === 'string') strings.push(value);
    return value;
  });
  return texts.filter((text) => !strings.some((one) => one.includes(text)));
}
