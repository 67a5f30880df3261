import type { ConfirmChannel, ConsumeMessage } from 'amqplib';
import { type BrokerEvent, DeliveryFailed } from '../../../core/approval/channel.ts';

/** The longest expiration that the server takes. */
const LONGEST_MS = 2 ** 32 - 1;

/** Resolves when the server has the event on disk in every queue that asked for it. */
export function confirmed(
  channel: ConfirmChannel,
  exchange: string,
  event: BrokerEvent,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const lost = () => fail(new DeliveryFailed('the connection to the broker was lost'));
    const late = () => fail(new DeliveryFailed('the broker did not confirm in time'));
    // Comes before the confirmation of the same message.
    const returned = ({
      properties,
      fields,
    }: ConsumeMessage | { properties: { messageId?: unknown }; fields: object }) => {
      if (properties.messageId !== event.id || (fields as { routingKey?: string }).routingKey !== event.name) return;
      fail(new DeliveryFailed(`no queue of the broker takes events named "${event.name}"`));
    };
    const end = () => {
      channel.off('close', lost).off('return', returned);
      signal.removeEventListener('abort', late);
    };
    const fail = (error: Error) => {
      end();
      reject(error);
    };
    // It may be over since before there was a connection.
    if (signal.aborted) return late();
    channel.once('close', lost).on('return', returned);
    signal.addEventListener('abort', late, { once: true });
    try {
      channel.publish(
        exchange,
        event.name,
        Buffer.from(JSON.stringify(event.body)),
        {
          persistent: true,
          mandatory: true,
          messageId: event.id,
          contentType: 'application/cloudevents+json',
          expiration: String(Math.min(Math.ceil(event.expiresInMs), LONGEST_MS)),
        },
        (error) => {
          end();
          if (error) reject(new DeliveryFailed('the broker refused the event'));
          else resolve();
        },
      );
    } catch {
      lost();
    }
  });
}
