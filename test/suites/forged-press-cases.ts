import * as assert from 'node:assert/strict';
import type { ApprovalRequest } from '../../core/approval/request.ts';
import {
  ambiguousBodies,
  bareRequest,
  isPress,
  ODD_USER,
  unknownPress,
  withCarelessProofs,
} from './changed-presses.ts';
import { OTHER_PRESS_URL, TESTED_PRESS_URL } from './channel-fixtures.ts';
import { type ChannelMessage, type ChannelUnderTest, containsText } from './channel-under-test.ts';
import { type DeclareDecisionCase, PRESS, REPORT_MS, type WithDecisions } from './decision-case.ts';
import { waitUntil } from './wait-until.ts';

/** Longer than `isSignedBy` and `isRecent` accept by default. */
const OLD_MS = 6 * 60_000;

/** Declares that nothing decides that the service did not send for a button of the channel, in its chat. */
export function declareForgedPressCases(
  on: DeclareDecisionCase,
  channel: ChannelUnderTest,
  withDecisions: WithDecisions,
): void {
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
        await assertWaiting(call, 'a request that was signed six minutes ago decided');
        await decide(call, 'approve', 'ada');
      }),
    {
      promise:
        'A request that was signed more than five minutes ago is a replay. The channel compares its time with the clock.',
    },
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
    'a press for another channel with the same secret decides nothing',
    async () => {
      const { decisions, type } = channel;
      assert.ok(typeof decisions !== 'string' && !('open' in decisions));
      const missing =
        'there is no `elsewhere`: write the options of a channel of the other chat, or skip this case with the reason why two channels cannot share a secret';
      assert.ok(decisions.elsewhere, missing);
      const second = await channel.receiver();
      const channels = { other: { type, ...second.options, ...decisions.elsewhere } };
      const messageOf = async ({ requestId }: ApprovalRequest) => {
        const find = () => second.received().find((message) => containsText(message, requestId));
        await waitUntil(() => find() !== undefined, 'the request was not delivered to the second channel');
        return find() as ChannelMessage;
      };
      try {
        await withDecisions(
          async ({ startCall, decide, assertWaiting, handle, request, tested }) => {
            const call = await startCall();
            const copy = await messageOf(call.request);
            const pressOfCopy = (url: string) => {
              const press = request(copy, { ...PRESS, url, sentAt: new Date(), isElsewhere: true });
              assert.ok(press, 'the message of the second channel has no button to approve');
              return press;
            };
            for (const [name, press] of [
              ['of its chat, sent to the other channel,', call.press('approve', 'ada', { url: OTHER_PRESS_URL })],
              ['of the chat of the other channel', pressOfCopy(TESTED_PRESS_URL)],
            ] as const) {
              await handle(press);
              await assertWaiting(call, `a press ${name} decided`);
            }
            // Both work, each by its own presses.
            await handle(pressOfCopy(OTHER_PRESS_URL));
            assert.equal((await call.outcome).status, 'completed');
            await decide(await startCall(), 'approve', 'ada');
            const reports = tested.onDecided ? 2 : 0;
            await waitUntil(() => second.received().length >= 2 + reports, 'no report', REPORT_MS).catch(
              () => undefined,
            );
          },
          { channels },
        );
      } finally {
        await second.close();
      }
    },
    {
      promise:
        'One app of a service often serves several channels. Each accepts only the presses of its own chat, although all are signed with one secret.',
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
}
