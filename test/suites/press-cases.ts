import * as assert from 'node:assert/strict';
import { hasInvisible } from '../../core/display/misleading.ts';
import type { ChannelMessage, ChannelUnderTest } from './channel-under-test.ts';
import {
  type Button,
  type DecisionCase,
  type DeclareDecisionCase,
  type PendingCall,
  PRESS,
  type WithDecisions,
  withoutIds,
} from './decision-case.ts';
import { assertHarmless, hostileTexts, unfolded } from './harmless-text.ts';

const CARD = '4111-1111-1111-1111';
/** Longer than the message of any service may be. */
const LONG = 60_000;

/** Declares what the press of a button does, and what people see of it. */
export function declarePressCases(
  on: DeclareDecisionCase,
  channel: ChannelUnderTest,
  withDecisions: WithDecisions,
): void {
  const { reader } = channel;
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
    'a press after a decision does not replace what all see',
    () =>
      withDecisions(async ({ startCall, answer, awaitReport, received }) => {
        const call = await startCall();
        const decision = await answer(call.press('approve', 'ada'));
        await call.outcome;
        await awaitReport(call.request.requestId);
        const undeclared =
          'nothing took the place of a message that was decided: say with `replaces` what does (`replaces` of httpReceiver, and of what seen() returns), or skip this case with the reason why nothing can';
        assert.ok([decision, ...received()].some(isReplacement), undeclared);
        const before = received().length;
        for (const button of ['approve', 'reject'] as const) {
          const late = await answer(call.press(button, 'bob'));
          assert.ok(!isReplacement(late), `a late press to ${button} replaced the message, for all who see it`);
        }
        // What was sent before it has arrived.
        await startCall();
        assert.ok(!received().slice(before).some(isReplacement), 'a message was replaced after a late press');
      }),
    {
      promise:
        'A press that comes too late answers the person who pressed. The message keeps saying what was decided, to all who see it.',
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

const isReplacement = ({ replaces }: ChannelMessage): boolean => replaces === true;

/** The message about a call as if it were about another one. */
function messageFor({ request }: PendingCall, { message, request: of }: PendingCall): ChannelMessage {
  const rename = (text: string) =>
    text.replaceAll(of.requestId, request.requestId).replaceAll(of.executionId, request.executionId);
  return { raw: rename(message.raw), displayed: rename(message.displayed) };
}
