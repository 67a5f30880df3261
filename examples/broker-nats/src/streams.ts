import { createHash } from 'node:crypto';
import { type JetStreamManager, RetentionPolicy, type StreamConfig } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';

type Stream = Pick<StreamConfig, 'name' | 'subjects'> & Partial<StreamConfig>;

const DAY_MS = 86_400_000;

/** Every event, under `svc.events.<name>`, for a week: nothing waits longer for a decision than its owner wants to read of it. */
export const EVENTS: Stream = { name: 'svc_events', subjects: ['svc.events.>'], max_age: nanos(7 * DAY_MS) };

export const eventSubject = (name: string): string => `svc.events.${subjectOf(name)}`;

/** A subject is words between dots, without blanks and the wildcards `*` and `>`. */
export function subjectOf(name: string): string {
  return name.replace(/[^\w.-]/gu, (character) => `%${character.codePointAt(0)?.toString(16)}`);
}

/** A queue is a stream from which a message goes when somebody has settled it; beside it lies what nobody could use. */
export function queueStreams(queue: string): { readonly live: Stream; readonly dead: Stream } {
  // A name has no dots: the hash keeps "a.b" and "a_b" apart.
  const hash = createHash('sha256').update(queue).digest('hex').slice(0, 8);
  const name = `${queue.replace(/[^\w-]/g, '_')}_${hash}`;
  const subject = subjectOf(queue);
  return {
    live: { name, subjects: [subject], retention: RetentionPolicy.Workqueue },
    dead: { name: `${name}_dead`, subjects: [`${subject}.dead`] },
  };
}

/** One that is there stays as its administrator wants it. */
export async function ensureStream(manager: JetStreamManager, stream: Stream): Promise<void> {
  await manager.streams.info(stream.name).catch(() => manager.streams.add(stream));
}
