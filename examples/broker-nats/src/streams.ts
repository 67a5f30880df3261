import { createHash } from 'node:crypto';
import { type JetStreamManager, RetentionPolicy, type StreamConfig } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';

type Stream = Pick<StreamConfig, 'name' | 'subjects'> & Partial<StreamConfig>;

const DAY_MS = 86_400_000;

/** Stores every event for a week, with the subject `svc.events.<name>`. */
export const EVENTS: Stream = { name: 'svc_events', subjects: ['svc.events.>'], max_age: nanos(7 * DAY_MS) };

export const eventSubject = (name: string): string => `svc.events.${subjectOf(name)}`;

/** A subject is a list of tokens separated by dots, without spaces and the wildcards `*` and `>`. */
export function subjectOf(name: string): string {
  return name.replace(/[^\w.-]/gu, (character) => `%${character.codePointAt(0)?.toString(16)}`);
}

/** A queue is a stream that deletes acknowledged messages, with a second stream for dead letters. */
export function queueStreams(queue: string): { readonly live: Stream; readonly dead: Stream } {
  // A stream name has no dots. The hash keeps "a.b" and "a_b" distinct.
  const hash = createHash('sha256').update(queue).digest('hex').slice(0, 8);
  const name = `${queue.replace(/[^\w-]/g, '_')}_${hash}`;
  const subject = subjectOf(queue);
  return {
    live: { name, subjects: [subject], retention: RetentionPolicy.Workqueue },
    dead: { name: `${name}_dead`, subjects: [`${subject}.dead`] },
  };
}

/** Creates the stream. An existing one is not changed. */
export async function ensureStream(manager: JetStreamManager, stream: Stream): Promise<void> {
  await manager.streams.info(stream.name).catch(() => manager.streams.add(stream));
}
