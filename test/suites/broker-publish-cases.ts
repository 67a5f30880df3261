import * as assert from 'node:assert/strict';
import { inspect } from 'node:util';
import type { Broker, BrokerEvent } from '../../core/approval/channel.ts';
import type { BrokerCases } from './broker-case.ts';
import { createEvent, signal } from './broker-event-cases.ts';
import { expectRejection } from './expect-error.ts';
import type { DeclareCase } from './suite.ts';
import { waitUntil as waitAtMost } from './wait-until.ts';

/** Declares when a call of publish() resolves, and what becomes of it without a server. */
export function declarePublishCases(on: DeclareCase, { tested, withBroker, waitUntil }: BrokerCases): void {
  on(
    'an event without subscribers is kept or rejected',
    () =>
      withBroker(async ({ broker, event, client }) => {
        const isKept = await broker.publish(createEvent(event, { early: true }), signal()).then(
          () => true,
          () => false,
        );
        const messages = await client.listen(event);
        if (isKept) await waitUntil(() => messages().length > 0, 'publish() resolved, but the event was lost');
        await broker.publish(createEvent(event, { early: false }), signal());
        await waitUntil(() => messages().some(({ body }) => body.includes('false')), 'the next event did not arrive');
      }),
    { promise: 'publish() does not resolve for an event that the broker dropped. The next attempt arrives.' },
  );

  on(
    'an event that the server refuses is not published',
    () =>
      withBroker(async ({ broker, event, client }) => {
        await client.listen(event);
        await broker.publish(createEvent(event, { refused: false }), signal());
        await client.refuse(event);
        await expectRejection(
          broker.publish(createEvent(event, { refused: true }), signal()),
          'publish() resolved although refuse() of openClient made the server refuse the event',
        );
      }),
    { promise: 'publish() throws if the server refuses the event, also over a connection that works.' },
  );

  on(
    'each attempt carries the id of its event',
    () =>
      withBroker(async ({ broker, event, client }) => {
        const messages = await client.listen(event);
        const one = createEvent(event, { number: 1 });
        await broker.publish(one, signal());
        await broker.publish(one, signal());
        const other = createEvent(event, { number: 2 });
        await broker.publish(other, signal());
        const hasArrived = ({ id }: BrokerEvent) => messages().some(({ body }) => body.includes(id));
        await waitUntil(() => hasArrived(one) && hasArrived(other), 'publish() resolved, but an event did not arrive');
        const ids = new Set(messages().map(({ id }) => id));
        const found = `events arrived without their id: ${[one.id, other.id]} are ${[...ids]}`;
        assert.deepEqual([...ids].sort(), [one.id, other.id].sort(), found);
      }),
    { promise: 'Publishing an event twice is not an error, and a receiver detects the second one by its id.' },
  );

  on(
    'concurrent events all arrive',
    () =>
      withBroker(async ({ broker, event, client, notices }) => {
        const other = `${event}.reminder`;
        notices.push(other);
        const [messages, others] = [await client.listen(event), await client.listen(other)];
        const events = Array.from({ length: 50 }, (_, number) => createEvent(number % 2 ? other : event, { number }));
        await Promise.all(events.map((one) => broker.publish(one, signal())));
        const all = () => [...messages(), ...others()].map(({ body }) => JSON.parse(body));
        const arrived = () => new Set(all().map(({ data }) => Number(data.number)));
        await waitUntil(() => arrived().size === events.length, 'publish() resolved for an event that never arrived');
        const strays = others().filter(({ body }) => JSON.parse(body).type !== other);
        assert.deepEqual(strays, [], 'an event arrived at those who listen for another name');
      }),
    {
      promise: 'Each of many concurrent calls of publish() resolves for its own event, which arrives under its name.',
    },
  );

  on(
    'an attempt ends with its signal',
    () =>
      withBroker(async ({ broker, event, client, proxy }) => {
        await client.listen(event);
        await broker.publish(createEvent(event, {}), signal());
        proxy.freeze();
        const attempt = new AbortController();
        const publishing = expectRejection(
          broker.publish(createEvent(event, {}), attempt.signal),
          'publish() resolved without a confirmation',
        );
        publishing.catch(() => undefined);
        attempt.abort(new Error('the attempt is over'));
        await publishing;
        proxy.disconnect();
      }),
    {
      promise: 'publish() throws when its AbortSignal is aborted: a server that does not respond blocks nothing.',
    },
  );

  on(
    'it reconnects when the server is back',
    () =>
      withBroker(async ({ broker, event, client, proxy }) => {
        const messages = await client.listen(event);
        proxy.disconnect();
        await expectRejection(broker.publish(createEvent(event, {}), signal()), 'publish() resolved without a server');
        await proxy.connect();
        await publishUntilConfirmed(broker, createEvent(event, { after: 'its first start' }), tested.patienceMs);
        proxy.disconnect();
        await expectRejection(broker.publish(createEvent(event, {}), signal()), 'publish() resolved without a server');
        await proxy.connect();
        await publishUntilConfirmed(broker, createEvent(event, { after: 'a lost connection' }), tested.patienceMs);
        const came = (text: string) => messages().some(({ body }) => body.includes(text));
        await waitUntil(() => came('first start') && came('lost connection'), 'a published event did not arrive');
      }),
    {
      promise: 'It connects on first use and reconnects by itself: a call that throws works once the server is back.',
    },
  );

  on(
    'errors and warnings contain no secret',
    () =>
      withBroker(async ({ broker, createBroker, event, queue, proxy }) => {
        const reported: unknown[] = [];
        const onWarning = (warning: Error) => void reported.push(warning);
        process.on('warning', onWarning);
        try {
          const publish = async (publisher: Broker) =>
            reported.push(
              await expectRejection(publisher.publish(createEvent(event, {}), signal(1_000)), 'it resolved'),
            );
          await broker.publish(createEvent(event, {}), signal()).catch((error: unknown) => reported.push(error));
          proxy.freeze();
          await publish(broker);
          proxy.disconnect();
          const stop = await broker.consume?.(queue, async () => {});
          await publish(broker);
          await publish(createBroker());
          await stop?.();
        } finally {
          process.off('warning', onWarning);
        }
        const texts = reported.map((one) => inspect(one, { depth: 5 }));
        for (const secret of tested.secrets) {
          const found = texts.find((text) => text.includes(secret));
          assert.equal(found, undefined, `an error or warning contains a secret: ${found}`);
        }
      }),
    { promise: 'Errors are stored in the audit, and warnings in logs: none contains a password.' },
  );
}

/** Publishes until it succeeds, as the gate does. */
function publishUntilConfirmed(broker: Broker, event: BrokerEvent, patienceMs: number | undefined): Promise<void> {
  const attempt = () =>
    broker.publish(event, signal()).then(
      () => true,
      () => false,
    );
  return waitAtMost(attempt, 'the server is back, but publish() still throws', patienceMs);
}
