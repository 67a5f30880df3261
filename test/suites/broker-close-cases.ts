import type { BrokerCases } from './broker-case.ts';
import { createEvent, signal } from './broker-event-cases.ts';
import { expectRejection } from './expect-error.ts';
import { type DeclareCase, withTimeout } from './suite.ts';
import { timersOf } from './timers-of.ts';
import { waitUntil as waitAtMost } from './wait-until.ts';

/** The longest that close() may take, because the process ends after it. */
const CLOSE_MS = 5_000;

/** Declares that a closed broker leaves nothing that keeps a program running. */
export function declareCloseCases(on: DeclareCase, { withBroker }: BrokerCases): void {
  on(
    'it can be closed before use, after use, and twice',
    () =>
      withBroker(async ({ broker, createBroker, event, client, proxy }) => {
        await createBroker().close();
        await client.listen(event);
        await broker.publish(createEvent(event, {}), signal());
        await broker.close();
        await broker.close();
        const isClosed = () => proxy.connections() === 0;
        await waitAtMost(isClosed, 'close() left a connection open: the program would not exit', CLOSE_MS);
        await expectRejection(broker.publish(createEvent(event, {}), signal()), 'publish() resolved after close()');
      }),
    {
      promise: 'close() ends every connection and can be called at any time. Nothing is published after it.',
    },
  );

  on(
    'it lets the program end once it is closed',
    () =>
      withBroker(async ({ createBroker, event, queue, client }) => {
        await client.listen(event);
        const timers = await timersOf(async () => {
          const broker = createBroker();
          await broker.publish(createEvent(event, {}), signal());
          await broker.consume?.(queue, async () => {});
          await broker.close();
        });
        const isFree = () => timers().every((timer) => !timer.hasRef());
        await waitAtMost(isFree, 'close() left a timer: the program would not exit', CLOSE_MS);
      }),
    { promise: 'close() ends every timer, also that of a consumer: a program ends when nothing else keeps it.' },
  );

  on(
    'it can be closed although the server does not respond',
    () =>
      withBroker(async ({ broker, createBroker, event, queue, client, proxy }) => {
        await client.listen(event);
        await broker.publish(createEvent(event, {}), signal());
        await broker.consume?.(queue, async () => {});
        proxy.freeze();
        const opening = createBroker();
        const pending = [broker, opening].map((one) =>
          expectRejection(one.publish(createEvent(event, {}), signal()), 'publish() resolved without a confirmation'),
        );
        for (const one of pending) one.catch(() => undefined);
        try {
          await withTimeout(CLOSE_MS, 'close()', () => Promise.all([broker.close(), opening.close()]));
        } finally {
          proxy.disconnect();
        }
        await Promise.all(pending);
      }),
    {
      promise: 'close() ends soon, also while connecting, publishing and consuming, when the server does not respond.',
    },
  );
}
