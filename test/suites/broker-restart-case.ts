import { type BrokerCases, consume, send } from './broker-case.ts';
import { createEvent, signal } from './broker-event-cases.ts';
import type { DeclareCase } from './suite.ts';

export const RESTART = 'messages survive a restart of the server';

const TIMEOUT_MS = 400_000;

/** Declares that what the server confirmed is still there after it was restarted. */
export function declareRestartCase(on: DeclareCase, { tested, withBroker, waitUntil }: BrokerCases): void {
  on(
    RESTART,
    () =>
      withBroker(async ({ broker, createBroker, client, reopenClient, event, queue }) => {
        const one = createEvent(event, { durable: true });
        // A server that keeps no event without subscribers rejects it until there is one.
        await broker.publish(one, signal()).catch(async () => {
          await client.listen(event);
          await broker.publish(one, signal());
        });
        let failed = 0;
        const stop = await consume(broker, queue, async () => {
          failed += 1;
          throw new Error('it cannot be processed');
        });
        await send(client, queue, 'dead');
        await waitUntil(() => failed > 0, 'nothing was delivered');
        await stop();
        await send(client, queue, 'waiting');

        const other = await reopenClient(async () => {
          await broker.close();
          await tested.restart?.();
        });
        const events = await other.listen(event);
        await waitUntil(
          () => events().some(({ body }) => body.includes(one.id)),
          'publish() resolved, but the restarted server has no such event: publish it as durable (persistent), and let what listen() of openClient subscribes survive too',
        );
        const dead: string[] = [];
        await waitUntil(async () => {
          dead.push(...(await other.takeDeadLetters(queue)));
          return dead.includes('dead');
        }, 'the restarted server has no such dead letter: make the queue of dead letters durable, and its messages');
        const bodies: string[] = [];
        await consume(createBroker(), queue, async (body) => void bodies.push(body));
        await waitUntil(
          () => bodies.includes('waiting'),
          'the restarted server has no such message: make the queue that consume() creates durable, and what send() of openClient sends',
        );
      }),
    {
      promise:
        'What the server has confirmed survives its restart: an event, a dead letter, and a message in a queue that consume() created.',
      timeoutMs: TIMEOUT_MS,
    },
  );
}
