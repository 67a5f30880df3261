import * as assert from 'node:assert/strict';
import type { ApprovalsConfig } from '../../config/define.ts';
import type { Svc } from '../../config/sdk/index.ts';
import type { Channel } from '../../core/approval/channel.ts';
import type { ApprovalRequest } from '../../core/approval/request.ts';
import { OTHER_PRESS_URL, TESTED_PRESS_URL } from './channel-fixtures.ts';
import {
  type ButtonPress,
  type ChannelMessage,
  type ChannelReceiver,
  type ChannelUnderTest,
  containsText,
  type DecisionReceiver,
  type PressedButtons,
  type PressesUnderTest,
} from './channel-under-test.ts';
import type { GateUnderTest } from './gate-client.ts';
import type { CaseOptions } from './suite.ts';
import { waitUntil } from './wait-until.ts';

/** The cases that a channel without decisions skips. */
const DECISION_CASES = [
  'a press decides its request, once, and the person sees the result',
  'a press after a decision changes nothing, and the person sees that',
  'a press after the deadline changes nothing, and the person sees that',
  'a press after a decision does not replace what all see',
  'a press that the service did not sign decides nothing',
  'a press with the signature of another decides nothing',
  'a press that was signed long ago decides nothing',
  'a press in another chat decides nothing',
  'a press for another channel with the same secret decides nothing',
  'a press of an unknown button decides nothing',
  'a press whose body can be read in two ways decides nothing',
  'hostile text in what a press shows is harmless',
  'a press does not approve what the message does not show',
] as const;

const TWO_CHANNELS: (typeof DECISION_CASES)[number] =
  'a press for another channel with the same secret decides nothing';

/** The cases to skip, with the reasons. */
export function skippedCases({ decisions, skip }: ChannelUnderTest): ChannelUnderTest['skip'] {
  if (typeof skip === 'string') return skip;
  if (typeof decisions === 'string') {
    return { ...Object.fromEntries(DECISION_CASES.map((name) => [name, decisions])), ...skip };
  }
  return 'open' in decisions ? { [TWO_CHANNELS]: 'an application has one endpoint of its own', ...skip } : skip;
}

/** A call that waits for a decision, and the message about it. */
export interface PendingCall {
  readonly request: ApprovalRequest;
  readonly message: ChannelMessage;
  readonly outcome: Promise<{ readonly status: string }>;
  /** The HTTP request of a press. Fails if the message has no such button. */
  press(button: Button, user: string, options?: Partial<ButtonPress>): Request;
}

export type Button = 'approve' | 'reject';

export interface DecisionCase extends GateUnderTest, PressedButtons {
  readonly tested: Channel;
  startCall(parameters?: object): Promise<PendingCall>;
  /** Passes a request to the channel. Returns what the person sees. */
  handle(request: Request): Promise<string>;
  /** As `handle`, with what was sent to show it. */
  answer(request: Request): Promise<ChannelMessage>;
  /** Presses a button of a request that waits, and awaits the end of its call. Returns what the person sees. */
  decide(call: PendingCall, button: Button, user: string): Promise<string>;
  assertWaiting(call: PendingCall, message: string): Promise<void>;
  /** Waits for the report of a decision about a request; a channel without reports, or one that fails, takes no longer. */
  awaitReport(requestId: string): Promise<void>;
  /** Every message that the service got. */
  received(): readonly ChannelMessage[];
}

export interface GateOptions {
  /** When a request expires. */
  readonly timeoutMs?: number;
  /** Other entries of `approvals.channels`. */
  readonly channels?: NonNullable<ApprovalsConfig['channels']>;
}

export type ThroughGate = (
  body: (gate: GateUnderTest, receiver: ChannelReceiver, tested: Channel) => Promise<void>,
  options?: GateOptions,
) => Promise<void>;

export type WithDecisions = (body: (context: DecisionCase) => Promise<void>, options?: GateOptions) => Promise<void>;

export type DeclareDecisionCase = (
  name: (typeof DECISION_CASES)[number],
  body: () => Promise<void>,
  options: CaseOptions,
) => void;

/** A press of the person whom the service knows as ada. */
export const PRESS = {
  button: 'approve',
  url: TESTED_PRESS_URL,
  user: 'ada',
  name: 'Ada',
  sentAt: new Date(),
  isForged: false,
  isElsewhere: false,
} as const;
export const REPORT_MS = 2_000;

/** Runs cases with a client that has the channel, and somebody who presses its buttons. */
export function decisionCases({ decisions }: ChannelUnderTest, throughGate: ThroughGate): WithDecisions {
  return (body, options) =>
    throughGate(async (gate, receiver, tested) => {
      assert.ok(typeof decisions !== 'string');
      const medium = 'open' in decisions ? await decisions.open(gate.svc) : servedBy(gate.svc, decisions);
      const started: string[] = [];
      const messagesOf = (requestId: string) =>
        receiver.received().filter((message) => containsText(message, requestId));
      const awaitReport: DecisionCase['awaitReport'] = async (requestId) => {
        if (!tested.onDecided) return;
        await waitUntil(() => messagesOf(requestId).length > 1, 'no report', REPORT_MS).catch(() => undefined);
      };
      /** A client that closes earlier warns about a report in progress. A missing one fails the case about reports. */
      const awaitReports = async () => {
        for (const requestId of tested.onDecided ? started : []) {
          if ((await gate.svc.approvals.get(requestId)).status === 'waiting') continue;
          await awaitReport(requestId);
          for (const message of messagesOf(requestId).slice(1)) {
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
        const calls = { startCall, handle, answer, decide, assertWaiting, awaitReport, received };
        await body({ ...gate, ...medium, tested, ...calls });
        await awaitReports();
      } finally {
        await medium.close();
      }
    }, options);
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
      const urls = [TESTED_PRESS_URL, OTHER_PRESS_URL].map((url) => `POST ${url}`);
      assert.ok(urls.includes(sent), `request() builds ${sent} in place of a POST to press.url`);
      const response = await handler(request.clone());
      assert.notEqual(response.status, 404, 'the channel has no presses, and decisions has no open()');
      const raw = await response.clone().text();
      const shown = await seen(response, request);
      return typeof shown === 'string' ? { raw, displayed: shown } : shown;
    },
    close: () => undefined,
  };
}

/** A text without the ids of its request. */
export const withoutIds = (text: string, { request }: PendingCall): string =>
  text.replaceAll(request.requestId, '').replaceAll(request.executionId, '');
