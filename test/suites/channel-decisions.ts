import * as assert from 'node:assert/strict';
import type { Svc } from '../../config/sdk/index.ts';
import type { Channel } from '../../core/approval/channel.ts';
import type { ApprovalRequest } from '../../core/approval/request.ts';
import { hasInvisible } from '../../core/display/misleading.ts';
import {
  ambiguousBodies,
  bareRequest,
  isPress,
  ODD_USER,
  unknownPress,
  withCarelessProofs,
} from './changed-presses.ts';
import { TESTED_PRESS_URL } from './channel-fixtures.ts';
import { type ChannelMessage, type ChannelReceiver, type ChannelUnderTest, containsText } from './channel-suite.ts';
import type { GateUnderTest } from './gate-client.ts';
import { assertHarmless, hostileTexts, unfolded } from './harmless-text.ts';
import type { CaseOptions, DeclareCase } from './suite.ts';
import { waitUntil } from './wait-until.ts';

/** How buttons are pressed: those of a channel with `presses`, or of one with an endpoint of its own. */
export type DecisionsUnderTest = PressesUnderTest | EndpointUnderTest;

/** The service of a channel, when somebody presses a button. */
export interface PressedButtons {
  /**
   * Builds the HTTP request that the service sends when a person presses a button of a message. Returns undefined if the
   * message has no such button.
   */
  request(message: ChannelMessage, press: ButtonPress): Request | undefined;
  /**
   * The press without the proof that the service sent it, if that is in the body, such as a token. Default: the press without
   * headers and query.
   */
  withoutProof?(press: Request): Request | Promise<Request>;
}

/** What a person sees, alone or with what the service was sent to show it. */
export type Seen = string | ChannelMessage;

/** Of a channel with `presses`: the suite passes requests to the handler of the client, as `svc approvals serve` does. */
export interface PressesUnderTest extends PressedButtons {
  /**
   * What the person then sees of a press, `''` if nothing. Default: the text of the response. Also called for requests that
   * the service did not send. If what was sent to show it is not the response, return both: markup is searched in `raw`.
   */
  seen?(response: Response, press: Request): Seen | Promise<Seen>;
}

/** Of a channel without `presses`, whose endpoint an application serves itself. */
export interface EndpointUnderTest {
  /** Starts it for a client, as an application does. */
  open(svc: Svc): Promise<DecisionReceiver>;
}

export interface DecisionReceiver extends PressedButtons {
  /** Passes a request to the channel. Resolves, when it is processed, to what the person then sees; `''` if nothing. */
  handle(request: Request): Promise<Seen>;
  close(): void | Promise<void>;
}

export interface ButtonPress {
  /**
   * With `unknown`, the suite has written `unknown` for `approve` in the message, as in one of another version of the channel:
   * build the press of that button, whose value has this word. Return undefined if there cannot be one.
   */
  readonly button: 'approve' | 'reject' | 'unknown';
  /** The press URL of a channel with `presses`, to which the service sends the request. */
  readonly url: string;
  /** The person's id in the service. */
  readonly user: string;
  /** The name that the person has chosen, if the service sends one with a press. */
  readonly name: string;
  /** When the service signs the request. */
  readonly sentAt: Date;
  /** Whether the request is signed with a secret that is not the service's. */
  readonly isForged: boolean;
  /**
   * Whether it is pressed in another chat than the one that the message was delivered to, as in a forwarded copy. If the
   * service has no chats, skip the case about it.
   */
  readonly isElsewhere: boolean;
}

/** The cases that a channel without decisions skips. */
const DECISION_CASES = [
  'a press decides its request, once, and the person sees the result',
  'a press after a decision changes nothing, and the person sees that',
  'a press after the deadline changes nothing, and the person sees that',
  'a press that the service did not sign decides nothing',
  'a press with the signature of another decides nothing',
  'a press that was signed long ago decides nothing',
  'a press in another chat decides nothing',
  'a press of an unknown button decides nothing',
  'a press whose body can be read in two ways decides nothing',
  'hostile text in what a press shows is harmless',
  'a press does not approve what the message does not show',
] as const;

/** The cases to skip, with the reasons. */
export function skippedCases({ decisions, skip }: ChannelUnderTest): ChannelUnderTest['skip'] {
  if (typeof decisions !== 'string' || typeof skip === 'string') return skip;
  return { ...Object.fromEntries(DECISION_CASES.map((name) => [name, decisions])), ...skip };
}

/** A call that waits for a decision, and the message about it. */
interface PendingCall {
  readonly request: ApprovalRequest;
  readonly message: ChannelMessage;
  readonly outcome: Promise<{ readonly status: string }>;
  /** The HTTP request of a press. Fails if the message has no such button. */
  press(button: Button, user: string, options?: Partial<ButtonPress>): Request;
}

type Button = 'approve' | 'reject';

interface DecisionCase extends GateUnderTest, PressedButtons {
  readonly tested: Channel;
  startCall(parameters?: object): Promise<PendingCall>;
  /** Passes a request to the channel. Returns what the person sees. */
  handle(request: Request): Promise<string>;
  /** As `handle`, with what was sent to show it. */
  answer(request: Request): Promise<ChannelMessage>;
  /** Presses a button of a request that waits, and awaits the end of its call. Returns what the person sees. */
  decide(call: PendingCall, button: Button, user: string): Promise<string>;
  assertWaiting(call: PendingCall, message: string): Promise<void>;
  /** Every message that the service got. */
  received(): readonly ChannelMessage[];
}

type ThroughGate = (
  body: (gate: GateUnderTest, receiver: ChannelReceiver, tested: Channel) => Promise<void>,
  options?: { readonly timeoutMs?: number },
) => Promise<void>;

/** A press of the person whom the service knows as ada. */
const PRESS = {
  button: 'approve',
  url: TESTED_PRESS_URL,
  user: 'ada',
  name: 'Ada',
  sentAt: new Date(),
  isForged: false,
  isElsewhere: false,
} as const;
const CARD = '4111-1111-1111-1111';
const REPORT_MS = 2_000;
const OLD_MS = 3_600_000;
/** Longer than the message of any service may be. */
const LONG = 60_000;

/** Declares what a channel must do with decisions that are made in its medium. */
export function declareDecisionCases(declare: DeclareCase, channel: ChannelUnderTest, throughGate: ThroughGate): void {
  const { decisions, reader } = channel;
  const on = (name: (typeof DECISION_CASES)[number], body: () => Promise<void>, options: CaseOptions) =>
    declare(name, body, options);

  const withDecisions = (body: (context: DecisionCase) => Promise<void>, options?: { readonly timeoutMs: number }) =>
    throughGate(async (gate, receiver, tested) => {
      assert.ok(typeof decisions !== 'string');
      const medium = 'open' in decisions ? await decisions.open(gate.svc) : servedBy(gate.svc, decisions);
      const started: string[] = [];
      /** A client that closes earlier warns about a report in progress. A missing one fails the case about reports. */
      const awaitReports = async () => {
        for (const requestId of tested.onDecided ? started : []) {
          if ((await gate.svc.approvals.get(requestId)).status === 'waiting') continue;
          const messages = () => receiver.received().filter((message) => containsText(message, requestId));
          await waitUntil(() => messages().length > 1, 'no report', REPORT_MS).catch(() => undefined);
          for (const message of messages().slice(1)) {
            for (const button of ['approve', 'reject'] as const) {
              const press = medium.request(message, { ...PRESS, button });
              assert.equal(press, undefined, `the message about a decision still has a button to ${button}`);
            }
          }
        }
      };
      const startCall = async (parameters?: object): Promise<PendingCall> => {
        const { request, outcome } = await gate.refund(parameters);
        started.push(request.requestId);
        const find = () => receiver.received().find((message) => containsText(message, request.requestId));
        await waitUntil(() => find() !== undefined, 'the request was not delivered');
        const message = find() as ChannelMessage;
        const press: PendingCall['press'] = (button, user, options) => {
          const built = medium.request(message, { ...PRESS, button, user, name: user, sentAt: new Date(), ...options });
          assert.ok(built, `the message has no button to ${button}`);
          return built;
        };
        return { request, outcome, message, press };
      };
      const assertWaiting = async ({ request }: PendingCall, message: string) => {
        assert.equal((await gate.svc.approvals.get(request.requestId)).status, 'waiting', message);
      };
      const answer: DecisionCase['answer'] = async (request) => {
        const seen = await medium.handle(request);
        return typeof seen === 'string' ? { raw: '', displayed: seen } : seen;
      };
      const handle: DecisionCase['handle'] = async (request) => (await answer(request)).displayed;
      const decide: DecisionCase['decide'] = async (call, button, user) => {
        const shown = await handle(call.press(button, user));
        const { status } = await gate.svc.approvals.get(call.request.requestId);
        assert.equal(status, button === 'approve' ? 'approved' : 'rejected', `after a press to ${button}`);
        await call.outcome;
        return shown;
      };
      try {
        const received = () => receiver.received();
        await body({ ...gate, ...medium, tested, startCall, handle, answer, decide, assertWaiting, received });
        await awaitReports();
      } finally {
        await medium.close();
      }
    }, options);

  const assertVisible = (text: string): void => {
    assert.notEqual(text.trim(), '', 'the person who pressed sees nothing');
    if (reader === 'person') {
      assert.ok(!hasInvisible(text), 'a person sees misleading characters');
    }
  };
  /** What a person sees who decides a new request, without its ids. */
  const resultOf = async ({ startCall, decide }: DecisionCase, button: Button, user: string) => {
    const call = await startCall();
    return withoutIds(await decide(call, button, user), call);
  };

  on(
    'a press decides its request, once, and the person sees the result',
    () =>
      withDecisions(async ({ startCall, decide, assertWaiting, handle, svc, refunds }) => {
        const first = await startCall({ orderId: '1', amount: 1 });
        const second = await startCall({ orderId: '2', amount: 2 });
        const press = second.press('approve', 'ada');
        const approval = await handle(press.clone());
        const record = await svc.approvals.get(second.request.requestId);
        assert.equal(record.status, 'approved', 'a press to approve approved nothing');
        assert.ok(record.decidedBy?.includes('ada'), `the decision is recorded as made by ${record.decidedBy}`);
        assert.equal((await second.outcome).status, 'completed');
        await assertWaiting(first, 'a press decided another request');
        await handle(press.clone());
        await assertWaiting(first, 'a repeated press decided another request');
        const rejection = await decide(first, 'reject', 'ada');
        const runs = JSON.stringify(refunds);
        assert.equal(runs, '[{"orderId":"2","amount":2}]', 'the tool did not run once, for the approved call');
        for (const shown of [approval, rejection]) assertVisible(shown);
        assert.notEqual(withoutIds(approval, second), withoutIds(rejection, first), 'the result is not shown');
      }),
    {
      promise:
        'A press decides the request of its message, is recorded with the id of the person, and shows them the result. The same press again changes nothing.',
    },
  );

  on(
    'a press after a decision changes nothing, and the person sees that',
    () =>
      withDecisions(async (context) => {
        const { startCall, decide, handle, svc, refunds } = context;
        for (const decision of ['approve', 'reject'] as const) {
          const call = await startCall();
          await decide(call, decision, 'ada');
          const { status } = await svc.approvals.get(call.request.requestId);
          const runs = refunds.length;
          for (const button of ['approve', 'reject'] as const) {
            const shown = await handle(call.press(button, 'bob'));
            assertVisible(shown);
            const result = await resultOf(context, button, 'bob');
            assert.notEqual(withoutIds(shown, call), result, 'the person sees a decision that they did not make');
          }
          const record = await svc.approvals.get(call.request.requestId);
          assert.equal(record.status, status, 'the decision changed');
          assert.ok(record.decidedBy?.includes('ada'), `the decision changed to one of ${record.decidedBy}`);
          // The other run is of the request that bob approved.
          assert.equal(refunds.length, runs + 1, 'the tool ran again');
        }
      }),
    {
      promise:
        'The first decision is final. A person who presses later sees that it was made, not that it is their decision.',
    },
  );

  on(
    'a press after the deadline changes nothing, and the person sees that',
    async () => {
      let result = '';
      await withDecisions(async (context) => {
        result = await resultOf(context, 'approve', 'ada');
      });
      await withDecisions(
        async ({ startCall, handle, svc, refunds }) => {
          const call = await startCall();
          assert.equal((await call.outcome).status, 'rejected');
          const shown = await handle(call.press('approve', 'ada'));
          assert.equal((await svc.approvals.get(call.request.requestId)).cause, 'timeout');
          assert.deepEqual(refunds, [], 'the tool ran');
          assertVisible(shown);
          assert.notEqual(withoutIds(shown, call), result, 'the person sees a decision that was not made');
        },
        { timeoutMs: 1_500 },
      );
    },
    { promise: 'An expired request is rejected, and a person who presses later sees that it has expired.' },
  );

  on(
    'a press that the service did not sign decides nothing',
    () =>
      withDecisions(async ({ startCall, decide, assertWaiting, handle, withoutProof }) => {
        const call = await startCall();
        const press = () => call.press('approve', 'ada');
        const unsigned = (body: string) => bareRequest(press(), body);
        const requests: [string, Request][] = [
          ['signed with another secret', call.press('approve', 'ada', { isForged: true })],
          ['without a signature', (await withoutProof?.(press())) ?? unsigned(await press().text())],
          ['without a body', unsigned('')],
          ['with a body that is not of the service', unsigned('{"payload":{}}')],
        ];
        requests.push(...(await withCarelessProofs(press())));
        for (const [name, request] of requests) {
          assert.equal(await handle(request), '', `somebody sees the result of a request ${name}`);
          await assertWaiting(call, `a request ${name} decided`);
        }
        await decide(call, 'approve', 'ada');
      }),
    { promise: 'The channel verifies that the service sent a request, answers any other, and does nothing about it.' },
  );

  on(
    'a press with the signature of another decides nothing',
    () =>
      withDecisions(async ({ startCall, assertWaiting, handle, svc, withoutProof }) => {
        const [call, other] = [await startCall(), await startCall()];
        const signed = call.press('approve', 'ada');
        const body = await signed.clone().text();
        const bodies = [
          // With a proof in the body, this would be a press of its own.
          ...(withoutProof ? [] : [await other.press('approve', 'ada').text()]),
          body
            .replaceAll(call.request.requestId, other.request.requestId)
            .replaceAll(call.request.executionId, other.request.executionId),
        ];
        const attempt = async () => {
          for (const changed of bodies) {
            await handle(new Request(signed.url, { method: signed.method, headers: signed.headers, body: changed }));
            await assertWaiting(other, 'a press decided with the signature of another');
          }
        };
        await attempt();
        await handle(signed.clone());
        assert.equal((await svc.approvals.get(call.request.requestId)).status, 'approved');
        // A signature that was used is not valid for another body either.
        await attempt();
      }),
    { promise: 'The signature covers the body, so that a person who may press one button cannot decide for all.' },
  );

  on(
    'a press that was signed long ago decides nothing',
    () =>
      withDecisions(async ({ startCall, decide, assertWaiting, handle }) => {
        const call = await startCall();
        const old = call.press('approve', 'ada', { sentAt: new Date(Date.now() - OLD_MS) });
        assert.equal(await handle(old), '', 'somebody sees the result of an old request');
        await assertWaiting(call, 'a request that was signed an hour ago decided');
        await decide(call, 'approve', 'ada');
      }),
    { promise: 'A request whose signature is old is a replay. The channel compares its time with the clock.' },
  );

  on(
    'a press in another chat decides nothing',
    () =>
      withDecisions(async ({ startCall, decide, assertWaiting, handle }) => {
        const call = await startCall();
        for (const button of ['approve', 'reject'] as const) {
          await handle(call.press(button, 'ada', { isElsewhere: true }));
          await assertWaiting(call, 'a press in another chat decided');
        }
        await decide(call, 'approve', 'ada');
      }),
    {
      promise:
        'Only those who can see the chat that the request was delivered to decide. The service signs presses in any chat, also on a forwarded message.',
    },
  );

  on(
    'a press of an unknown button decides nothing',
    () =>
      withDecisions(async ({ startCall, decide, assertWaiting, handle, request }) => {
        const call = await startCall();
        const press = await unknownPress(call.message, (message, button) =>
          request(message, { ...PRESS, button, sentAt: new Date() }),
        );
        if (press) await handle(press);
        await assertWaiting(call, 'a press of a button that the channel does not have decided');
        await decide(call, 'approve', 'ada');
      }),
    { promise: 'Only the buttons of the channel decide: a message of another version may have others.' },
  );

  on(
    'a press whose body can be read in two ways decides nothing',
    () =>
      withDecisions(async ({ startCall, decide, tested: { presses } }) => {
        const call = await startCall();
        const body = new Uint8Array(await call.press('approve', ODD_USER).arrayBuffer());
        for (const [name, changed] of presses && isPress(presses, body) ? ambiguousBodies(body) : []) {
          assert.ok(presses && !isPress(presses, changed), `read() returns the press of a body with ${name}`);
        }
        await decide(call, 'approve', 'ada');
      }),
    {
      promise:
        'read() parses JSON with parseDecision() or parseFormDecision(): a key that occurs twice, or bytes that are not UTF-8, are rejected.',
    },
  );

  on(
    'hostile text in what a press shows is harmless',
    () =>
      withDecisions(async ({ startCall, decide, answer, svc }) => {
        const hostile = hostileTexts(channel).join(' ');
        for (const [name, person] of [
          // What is stored has no null, so that the decision would not be that of the person.
          ['the id of the person', { user: `ada ${hostile.replaceAll('\0', '')}` }],
          ['the name of the person', { name: `Ada ${hostile}` }],
        ] as const) {
          const call = await startCall({ orderId: `1 ${channel.markup.join(' ')}`, amount: 1 });
          const pressed = await answer(call.press('approve', 'ada', person));
          assertHarmless(channel, pressed, `${name} who pressed`);
          // A channel may reject such an id.
          if ((await svc.approvals.get(call.request.requestId)).status === 'waiting')
            await decide(call, 'approve', 'bob');
          await call.outcome;
          assertHarmless(channel, await answer(call.press('reject', 'bob')), `${name} who decided before`);
        }
        for (const signal of ['approve', 'reject'] as const) {
          const { request, press, outcome } = await startCall();
          const payload = { requestId: request.requestId, reason: hostile };
          await svc.agents.signal({ signal, payload }, { actor: `bob ${hostile}` });
          await outcome;
          for (const button of ['approve', 'reject'] as const)
            assertHarmless(channel, await answer(press(button, 'ada')), 'a decision that was made elsewhere');
        }
      }),
    {
      promise:
        'show() shows and escapes as deliver() does: names and ids of people, and the reason of a decision, are written by people.',
    },
  );

  on(
    'a press does not approve what the message does not show',
    () =>
      withDecisions(async ({ startCall, assertWaiting, request, handle, received, refunds }) => {
        const approve = { ...PRESS, sentAt: new Date() };
        const masked = await startCall({ orderId: '1', amount: 2, card: CARD });
        const press = request(masked.message, approve);
        if (press) assertVisible(await handle(press));
        await assertWaiting(masked, 'sensitive parameters were approved that the message masks');
        // A client may send a press that no message offered: that of another message, for this request.
        const open = await startCall({ orderId: '3', amount: 3 });
        const unoffered = request(messageFor(masked, open), approve);
        const seen = unoffered ? await handle(unoffered) : '';
        await assertWaiting(masked, 'sensitive parameters were approved by a press that no message offered');
        const texts = [seen, ...received().map(({ raw }) => raw)];
        assert.ok(!texts.some((text) => text.includes(CARD)), 'a press showed a sensitive value');
        assert.equal(press, undefined, 'a message with masked parameters has a button to approve, which cannot');
        const orderId = `${'x'.repeat(LONG)}and nothing else`;
        const long = await startCall({ orderId, amount: 2 });
        if (!unfolded(long.message.displayed).includes(orderId)) {
          assert.equal(request(long.message, approve), undefined, 'a shortened message has a button to approve');
        }
        assert.deepEqual(refunds, []);
      }),
    {
      promise:
        'Sensitive parameters are neither approved nor shown by a press, which the person learns, and a message that does not show every parameter has no button to approve.',
    },
  );
}

/** The medium of a channel whose presses the client serves. */
function servedBy({ approvals }: Svc, decisions: PressesUnderTest): DecisionReceiver {
  const { seen = (response) => response.text() } = decisions;
  const handler = approvals.handler();
  return {
    ...decisions,
    async handle(request) {
      const { origin, pathname } = new URL(request.url);
      const sent = `${request.method} ${origin}${pathname}`;
      assert.equal(sent, `POST ${TESTED_PRESS_URL}`, 'request() builds something else than a POST to press.url');
      const response = await handler(request.clone());
      assert.notEqual(response.status, 404, 'the channel has no presses, and decisions has no open()');
      const raw = await response.clone().text();
      const shown = await seen(response, request);
      return typeof shown === 'string' ? { raw, displayed: shown } : shown;
    },
    close: () => undefined,
  };
}

/** The message about a call as if it were about another one. */
function messageFor({ request }: PendingCall, { message, request: of }: PendingCall): ChannelMessage {
  const rename = (text: string) =>
    text.replaceAll(of.requestId, request.requestId).replaceAll(of.executionId, request.executionId);
  return { raw: rename(message.raw), displayed: rename(message.displayed) };
}

const withoutIds = (text: string, { request }: PendingCall): string =>
  text.replaceAll(request.requestId, '').replaceAll(request.executionId, '');
