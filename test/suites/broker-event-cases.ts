import * as assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { BrokerEvent } from '../../core/approval/channel.ts';
import { type Json, tryParseJson } from '../../core/json.ts';
import { MAX_PARAMETERS_BYTES } from '../../core/tool/call-digest.ts';
import type { BrokerCases } from './broker-case.ts';
import type { DeclareCase } from './suite.ts';

/** The timeout that the gate sets for an attempt. */
const ATTEMPT_MS = 15_000;
const DAY_MS = 86_400_000;
/** How long an event is valid that nobody receives in time. */
const SHORT_MS = 1_000;

/** Declares what becomes of the content, the name and the expiry of an event. */
export function declareEventCases(on: DeclareCase, { withBroker, waitUntil }: BrokerCases): void {
  on(
    'an event arrives unchanged',
    () =>
      withBroker(async ({ broker, event, client }) => {
        const messages = await client.listen(event);
        const data = { text: 'ünï "quoted" \u202e 😀\n', list: [1, 2.5, null, true], of: { nothing: {} } };
        const published = createEvent(event, data);
        await broker.publish(published, signal());
        await waitUntil(() => messages().length > 0, 'publish() resolved, but no event arrived');
        assert.deepEqual(JSON.parse(messages()[0]?.body ?? ''), published.body);
      }),
    { promise: 'publish() resolves when the broker has stored the event. Its body is JSON.' },
  );

  on(
    'an event of the largest size arrives unchanged',
    () =>
      withBroker(async ({ broker, event, client }) => {
        const messages = await client.listen(event);
        const published = createEvent(event, largestParameters());
        await broker.publish(published, signal());
        await waitUntil(() => messages().length > 0, 'publish() resolved, but no event arrived');
        const { body = '' } = messages()[0] ?? {};
        const sent = `an event of ${JSON.stringify(published.body).length} characters`;
        assert.ok(isDeepStrictEqual(tryParseJson(body), published.body), `${sent} arrived as ${body.length} others`);
      }),
    { promise: 'The parameters in an event have up to 256 KiB.' },
  );

  on(
    'events whose names differ in a letter do not mix',
    () =>
      withBroker(async ({ broker, event, client, notices }) => {
        const names = ['Paid-Out', 'paid-out', 'paid.out'].map((end) => `${event}.${end}`);
        notices.push(...names);
        const listeners = new Map<string, Awaited<ReturnType<typeof client.listen>>>();
        for (const name of names) listeners.set(name, await client.listen(name));
        // Those of the second round arrive after those of the first one.
        for (const round of [1, 2]) {
          for (const name of names) await broker.publish(createEvent(name, { round }), signal());
          for (const [name, messages] of listeners) {
            const hasArrived = () => messages().some(({ body }) => body.includes(`"round":${round}`));
            await waitUntil(hasArrived, `publish() resolved, but no event arrived at those who listen for ${name}`);
          }
        }
        for (const [name, messages] of listeners) {
          const types = new Set(messages().map(({ body }) => JSON.parse(body).type));
          assert.deepEqual([...types], [name], `other events arrived at those who listen for ${name}`);
        }
      }),
    { promise: 'The name of an event keeps its dots, its dashes, and its upper-case and lower-case letters.' },
  );

  on(
    'an event expires with its request',
    () =>
      withBroker(async ({ broker, event, client, notices }) => {
        const messages = await client.listen(event);
        await broker.publish({ ...createEvent(event, {}), expiresInMs: 45_000 }, signal());
        await waitUntil(() => messages().length > 0, 'no event arrived');
        const { expiresInMs = Number.POSITIVE_INFINITY } = messages()[0] ?? {};
        assert.ok(expiresInMs > 30_000 && expiresInMs <= 46_000, `45,000 ms became ${expiresInMs} ms`);
        // A server that keeps events without a listener drops this one; any other has rejected it.
        const early = `${event}.early`;
        notices.push(early);
        const expired = createEvent(early, {});
        await broker.publish({ ...expired, expiresInMs: SHORT_MS }, signal()).catch(() => undefined);
        await wait(2 * SHORT_MS);
        const late = await client.listen(early);
        const next = createEvent(early, {});
        await broker.publish(next, signal());
        const hasArrived = ({ id }: BrokerEvent) => late().some(({ body }) => body.includes(id));
        await waitUntil(() => hasArrived(next), 'the next event did not arrive');
        assert.ok(!hasArrived(expired), `an event arrived ${SHORT_MS} ms after it had expired`);
      }),
    { promise: 'The server drops an event after `expiresInMs`, when its request can no longer be decided.' },
  );

  on(
    'an event of any duration arrives',
    () =>
      withBroker(async ({ broker, event, client }) => {
        const messages = await client.listen(event);
        const durations = [5_000.25, 20 * DAY_MS, 100 * DAY_MS];
        for (const expiresInMs of durations) {
          await broker.publish({ ...createEvent(event, { expiresInMs }), expiresInMs }, signal());
        }
        const arrived = () => durations.every((one) => messages().some(({ body }) => body.includes(String(one))));
        await waitUntil(arrived, 'publish() resolved, but an event was lost');
      }),
    { promise: '`expiresInMs` may have a fraction, and be longer than a server supports.' },
  );
}

/** An event as the gate publishes it: a CloudEvents document with the id of the event. */
export function createEvent(name: string, data: Json): BrokerEvent {
  const id = randomUUID();
  const [time, subject] = [new Date().toISOString(), randomUUID()];
  const about = { specversion: '1.0', id, source: '/test', type: name, subject, time };
  return { name, id, body: { ...about, datacontenttype: 'application/json', data }, expiresInMs: 60_000 };
}

/** Parameters that just have the largest size, in which every part is another. */
export function largestParameters(): Json {
  const note = Array.from({ length: MAX_PARAMETERS_BYTES / 4 }, (_, index) => String(index)).join(' ');
  return { parameters: { note: note.slice(0, MAX_PARAMETERS_BYTES - '{"note":""}'.length) } };
}

export const signal = (timeoutMs = ATTEMPT_MS): AbortSignal => AbortSignal.timeout(timeoutMs);
