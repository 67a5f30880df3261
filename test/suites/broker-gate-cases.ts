import * as assert from 'node:assert/strict';
import { type BrokerCase, type BrokerCases, decisionQueue, send } from './broker-case.ts';
import { type GateUnderTest, withGate } from './gate-client.ts';
import type { DeclareCase } from './suite.ts';

/** Declares what a client does through the broker: requests, reminders and decisions. */
export function declareGateCases(on: DeclareCase, { tested, withBroker, waitUntil }: BrokerCases): void {
  const throughGate = (
    { event, product, options }: BrokerCase,
    body: (gate: GateUnderTest) => Promise<void>,
  ): Promise<void> =>
    withGate(
      {
        config: { product, plugins: [tested.plugin], brokers: { bus: { type: tested.type, ...options } } },
        approvals: { decisions: { broker: 'bus' } },
        humanInLoop: { approvalBroker: { broker: 'bus', event }, approvalTimeout: 60_000 },
      },
      body,
    );

  on(
    'a request is published as a CloudEvent, and its decision is received',
    () =>
      withBroker(async (context) => {
        const messages = await context.client.listen(context.event);
        await throughGate(context, async ({ refund, refunds, svc }) => {
          const stop = await svc.approvals.consumeDecisions();
          const card = '4111-1111-1111-1111';
          const { request, outcome } = await refund();
          await refund({ orderId: '2', amount: 1, card });
          await waitUntil(() => messages().length >= 2, 'no event arrived');
          assert.ok(!JSON.stringify(messages()).includes(card), 'a sensitive value was sent');
          const event = messages()
            .map(({ body }) => JSON.parse(body))
            .find(({ subject }) => subject === request.requestId);
          const { specversion, type, source, id, data } = event;
          const { token, ...rest } = data;
          assert.deepEqual(
            { specversion, type, source, id },
            { specversion: '1.0', type: context.event, source: `/svc/${context.product}/dev`, id: request.requestId },
          );
          assert.deepEqual(rest, request);
          const decision = { requestId: request.requestId, token, approved: true, modifiedParams: { amount: 15 } };
          await send(context.client, decisionQueue(context.product), JSON.stringify(decision));
          assert.equal((await outcome).status, 'completed');
          assert.equal(JSON.stringify(refunds), '[{"orderId":"1234","amount":15}]');
          await stop?.();
        });
      }),
    {
      promise: 'The body of an event arrives unchanged, and a decision in the queue reaches the request.',
    },
  );

  on(
    'a reminder and an escalation are events of their own',
    () =>
      withBroker(async ({ client, event, product, options, notices }) => {
        const [reminder, escalation] = [`${event}.reminder`, `${event}.escalation`];
        notices.push(reminder, escalation);
        const requests = await client.listen(event);
        const reminders = await client.listen(reminder);
        const escalations = await client.listen(escalation);
        const escalate = [{ after: '2s', to: 'heads' }];
        await withGate(
          {
            config: { product, plugins: [tested.plugin], brokers: { bus: { type: tested.type, ...options } } },
            approvals: {
              roles: { finance: ['group:finance'], heads: ['group:heads'] },
              rules: [{ approve: [{ role: 'finance' }], remind: '1s', escalate, expires: '1h' }],
            },
            humanInLoop: { approvalBroker: { broker: 'bus', event }, approvalTimeout: 60_000 },
          },
          async ({ refund }) => {
            const { request } = await refund();
            await waitUntil(() => escalations().length > 0, 'no escalation arrived');
            const events = [...requests(), ...reminders(), ...escalations()].map(({ body }) => JSON.parse(body));
            assert.deepEqual(
              events.map(({ type, subject }) => [type, subject]),
              [event, reminder, escalation].map((type) => [type, request.requestId]),
            );
            assert.equal(new Set(events.map(({ id }) => id)).size, 3, 'two events have the same id');
            assert.deepEqual(events[2].data.notice.to, [{ role: 'heads', members: ['group:heads'] }]);
          },
        );
      }),
    { promise: 'Events of several names arrive, each at those who listen for its name.' },
  );

  on(
    'an invalid decision becomes a dead letter',
    () =>
      withBroker(async (context) => {
        const { client, product } = context;
        const messages = await client.listen(context.event);
        await throughGate(context, async ({ refund, svc }) => {
          const stop = await svc.approvals.consumeDecisions();
          const { request } = await refund();
          const { requestId } = request;
          await waitUntil(() => messages().length > 0, 'no event arrived');
          const { token } = JSON.parse(messages()[0]?.body ?? '').data;
          const decision = JSON.stringify({ requestId, token, approved: true });
          const texts = [
            'no json',
            '{}',
            JSON.stringify({ requestId, approved: true }),
            JSON.stringify({ requestId, token: 'v1.no', approved: true }),
            decision.replace('{', '{"approved":false,'),
            decision.replace('}', ',"modifiedParams":{"amount":1,"amou\\u006et":15}}'),
            decision.replace('}', ',"modifiedParams":{"amount":9007199254740993}}'),
          ];
          await send(client, decisionQueue(product), ...texts);
          const dead: string[] = [];
          await waitUntil(async () => {
            dead.push(...(await client.takeDeadLetters(decisionQueue(product))));
            return dead.length >= texts.length;
          }, 'not every message became a dead letter');
          assert.deepEqual(dead.sort(), texts.sort());
          // As text, its byte 0xff would be U+FFFD.
          await send(client, decisionQueue(product), notUtf8(decision.replace('}', ',"reason":"?"}')));
          await waitUntil(
            async () => (await client.takeDeadLetters(decisionQueue(product))).length > 0,
            'a decision that is not UTF-8 did not become a dead letter',
          );
          assert.equal((await svc.approvals.get(requestId)).status, 'waiting');
          await stop?.();
        });
      }),
    { promise: 'A message that is not a decision becomes a dead letter, unchanged, and the request keeps waiting.' },
  );
}

/** The text with 0xff in place of each `?`. */
const notUtf8 = (text: string): Uint8Array => Buffer.from(text.replaceAll('?', '\xff'), 'latin1');
