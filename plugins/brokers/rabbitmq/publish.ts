import type { ConfirmChannel, ConsumeMessage } from 'amqplib';
import { type BrokerEvent, DeliveryFailed } from '../../../core/approval/channel.ts';

/** The longest message expiration that RabbitMQ accepts. */
const MAX_EXPIRATION_MS = 2 ** 32 - 1;

/** Resolves when RabbitMQ confirms the event: every bound queue has it on disk. */
export function publishConfirmed(
  channel: ConfirmChannel,
  exchange: string,
  event: BrokerEvent,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const onClose = () => fail(new DeliveryFailed('the connection to the broker was lost'));
    const onTimeout = () => fail(new DeliveryFailed('the broker did not confirm in time'));
    // An unroutable message is returned before it is confirmed.
    const onReturned = ({
      properties,
      fields,
    }: ConsumeMessage | { properties: { messageId?: unknown }; fields: object }) => {
      if (properties.messageId !== event.id || (fields as { routingKey?: string }).routingKey !== event.name) return;
      fail(new DeliveryFailed(`no queue is bound for events named "${event.name}"`));
    };
    const removeListeners = () => {
      channel.off('close', onClose).off('return', onReturned);
      signal.removeEventListener('abort', onTimeout);
    };
    const fail = (error: Error) => {
      removeListeners();
      reject(error);
    };
    // It may have timed out while connecting.
    if (signal.aborted) return onTimeout();
    channel.once('close', onClose).on('return', onReturned);
    signal.addEventListener('abort', onTimeout, { once: true });
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
          expiration: String(Math.min(Math.ceil(event.expiresInMs), MAX_EXPIRATION_MS)),
        },
        (error) => {
          removeListeners();
          if (error) reject(new DeliveryFailed('the broker rejected the event'));
          else resolve();
        },
      );
    } catch {
      onClose();
    }
  });
}
