import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import type { BrokerClient, BrokerMessage } from '@svc/sdk/testing';
import { EVENTS, ensureStream, eventSubject, queueStreams, subjectOf } from '../src/streams.ts';

/** A client of the NATS server: a consumer of events and a sender of decisions. */
export async function openClient(host: string): Promise<BrokerClient> {
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
          messages.push({ body: message.string(), id: message.headers?.get('Nats-Msg-Id'), expiresInMs: undefined });
        },
      });
      return () => messages;
    },
    send: (queue, body) =>
      client.publish(subjectOf(queue), body).then(
        () => true,
        () => false, // No stream has the subject: the queue does not exist yet.
      ),
    async takeDeadLetters(queue) {
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
    /** Every message is larger, of any name: cases run one after the other. */
    refuse: async () => void (await manager.streams.update(EVENTS.name, { max_msg_size: 1 })),
    async close({ events, queues }) {
      await manager.streams.update(EVENTS.name, { max_msg_size: -1 }).catch(() => undefined);
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
