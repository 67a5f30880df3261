import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import type { BrokerMessage, BrokerOutside } from '@svc/sdk/testing';
import { EVENTS, ensureStream, eventSubject, queueStreams, subjectOf } from '../src/streams.ts';

/** Those who listen and decide, on a NATS server. */
export async function outside(host: string): Promise<BrokerOutside> {
  const connection = await connect({ servers: host });
  const client = jetstream(connection);
  const manager = await jetstreamManager(connection);
  return {
    async listen(event) {
      await ensureStream(manager, EVENTS);
      const consumer = await client.consumers.get(EVENTS.name, { filter_subjects: eventSubject(event) });
      const messages: BrokerMessage[] = [];
      await consumer.consume({
        callback(message) {
          messages.push({ body: message.string(), id: message.headers?.get('Nats-Msg-Id') });
        },
      });
      return () => messages;
    },
    send: (queue, text) =>
      client.publish(subjectOf(queue), text).then(
        () => true,
        () => false, // No stream takes it: the queue is not there yet.
      ),
    async takeDead(queue) {
      const { name } = queueStreams(queue).dead;
      const info = await manager.streams.info(name).catch(() => undefined);
      const texts: string[] = [];
      if (!info || info.state.messages === 0) return texts;
      for (let seq = info.state.first_seq; seq <= info.state.last_seq; seq++) {
        const message = await manager.streams.getMessage(name, { seq });
        if (message) texts.push(message.string());
      }
      await manager.streams.purge(name, { seq: info.state.last_seq + 1 });
      return texts;
    },
    async close({ events, queues }) {
      for (const event of events) {
        await manager.streams.purge(EVENTS.name, { filter: eventSubject(event) }).catch(() => undefined);
      }
      for (const { live, dead } of queues.map(queueStreams)) {
        for (const { name } of [live, dead]) await manager.streams.delete(name).catch(() => undefined);
      }
      await connection.close();
    },
  };
}
