import { once } from 'node:events';
import amqp from 'amqplib';
import { type Broker, DeliveryFailed, isDeliveryFailed } from '../../../core/approval/channel.ts';
import { tryParseJson } from '../../../core/json.ts';
import { consumeQueue } from '../../../plugins/brokers/rabbitmq/consume.ts';
import { reconnectingBroker } from '../../../plugins/brokers/reconnecting.ts';
import { type BrokerFault, LEASE_MS } from './broker-fault.ts';
import { forgetful } from './forgetful-broker.ts';

type Handler = (body: Uint8Array) => Promise<void>;

/** Changes what a broker does around the handler of its messages. */
const wrapHandler =
  (wrap: (handle: Handler) => Handler) =>
  (broker: Broker): Partial<Broker> => ({ consume: consumeOf(broker, wrap) });

function consumeOf(broker: Broker, wrap: (handle: Handler) => Handler): NonNullable<Broker['consume']> {
  return async (queue, handle) => {
    const stop = await broker.consume?.(queue, wrap(handle));
    return async () => stop?.();
  };
}

const REDELIVERY = 'a message that failed temporarily is redelivered after a pause';
const DEAD_LETTER = 'a message that cannot be processed becomes a dead letter and blocks no other';
const BYTES = 'a message is delivered as the bytes that were sent';
const SHARED = 'two consumers share a queue';

const KIB_64 = 64 * 1024;

/** The handlers of all "processes", by queue. */
const subscribers = new Map<string, Set<Handler>>();

/** RabbitMQ with dead letters that the client stores, after it has acknowledged the message. */
function removingFirst(url: string): Broker {
  return reconnectingBroker({
    url,
    async connect() {
      const model = await amqp.connect(url);
      model.on('error', () => {});
      return { model, closed: once(model, 'close') };
    },
    closed: ({ closed }) => closed,
    close: ({ model }) => model.close(),
    publish: async () => {},
    consume: ({ model }, subscription) =>
      consumeQueue(model, {
        ...subscription,
        receive: (message) =>
          subscription.receive({
            ...message,
            async deadLetter() {
              message.ack();
              const channel = await model.createConfirmChannel();
              channel.sendToQueue(`${subscription.queue}.dead`, Buffer.from(message.body));
              await channel.waitForConfirms();
              await channel.close();
            },
          }),
      }),
  });
}

/** Brokers that each break one promise about the messages of a queue. */
export const BROKER_QUEUE_FAULTS: readonly BrokerFault[] = [
  {
    fault: 'acknowledges a message before it is handled',
    detectedBy: 'a message is acknowledged after it was handled',
    failure: /did not reconnect and receive the message again within 3 s; do not wait for handle\(\)/,
    apply: wrapHandler((handle) => async (body) => {
      void handle(body).catch(() => undefined);
    }),
  },
  {
    fault: 'acknowledges what failed temporarily',
    detectedBy: REDELIVERY,
    failure: /it was not redelivered/,
    apply: wrapHandler((handle) => async (body) => {
      await handle(body).catch((error) => {
        if (!isDeliveryFailed(error) || !error.retry) throw error;
      });
    }),
  },
  {
    fault: 'ignores the pause that a handler asks for',
    detectedBy: REDELIVERY,
    failure: /instead of 1000/,
    apply: wrapHandler((handle) => async (body) => {
      await handle(body).catch((error) => {
        throw isDeliveryFailed(error) ? new DeliveryFailed(error.message, { retry: error.retry }) : error;
      });
    }),
  },
  {
    fault: 'recognizes only the DeliveryFailed of its own copy of the package',
    detectedBy: REDELIVERY,
    failure: /it was not redelivered/,
    apply: wrapHandler((handle) => async (body) => {
      await handle(body).catch((error) => {
        // The fault.
        throw error instanceof DeliveryFailed ? error : new Error(String(error));
      });
    }),
  },
  {
    fault: 'repeats failed messages from its memory',
    detectedBy: 'a message that waits for its redelivery is not lost with its process',
    failure: /it is lost/,
    apply: wrapHandler((handle) => async (body) => {
      await handle(body).catch((error) => {
        if (!isDeliveryFailed(error) || !error.retry) throw error;
        setTimeout(() => void handle(body).catch(() => undefined), error.afterMs);
      });
    }),
  },
  {
    fault: 'redelivers what can never be processed',
    detectedBy: DEAD_LETTER,
    failure: /it did not become a dead letter/,
    apply: wrapHandler((handle) => async (body) => {
      await handle(body).catch((error) => {
        throw isDeliveryFailed(error) ? new DeliveryFailed(error.message) : error;
      });
    }),
  },
  {
    fault: 'drops what cannot be processed',
    detectedBy: DEAD_LETTER,
    failure: /it did not become a dead letter/,
    apply: wrapHandler((handle) => async (body) => {
      await handle(body).catch((error) => {
        if (isDeliveryFailed(error) && error.retry) throw error;
      });
    }),
  },
  {
    fault: 'drops messages that are not JSON',
    detectedBy: BYTES,
    failure: /not every message was delivered/,
    apply: wrapHandler((handle) => async (body) => {
      if (tryParseJson(Buffer.from(body).toString()) !== undefined) await handle(body);
    }),
  },
  {
    fault: 'returns a message that was handled to its queue, once',
    detectedBy: BYTES,
    failure: /delivered again after they had been handled/,
    apply: wrapHandler((handle) => {
      const returned = new Set<string>();
      return async (body) => {
        const text = Buffer.from(body).toString('hex');
        await handle(body);
        if (returned.has(text)) return;
        returned.add(text);
        throw new DeliveryFailed('later', { afterMs: 200 });
      };
    }),
  },
  {
    fault: 'hands over messages as text',
    detectedBy: BYTES,
    failure: /did not receive the bytes/,
    apply: wrapHandler(
      (handle) => (body) => (handle as (text: unknown) => Promise<void>)(Buffer.from(body).toString()),
    ),
  },
  {
    fault: 'replaces bytes that are not UTF-8',
    detectedBy: BYTES,
    failure: /did not receive the bytes/,
    apply: wrapHandler((handle) => (body) => handle(Buffer.from(Buffer.from(body).toString()))),
  },
  {
    fault: 'parses messages before it hands them over',
    detectedBy: BYTES,
    failure: /did not receive the bytes/,
    apply: wrapHandler((handle) => (body) => {
      const value = tryParseJson(Buffer.from(body).toString());
      return handle(value === undefined ? body : Buffer.from(JSON.stringify(value)));
    }),
  },
  {
    fault: 'delivers every message to every process',
    detectedBy: SHARED,
    failure: /a message was delivered to both/,
    apply: (broker) => ({
      async consume(queue, handle) {
        const handlers = subscribers.get(queue) ?? new Set();
        subscribers.set(queue, handlers.add(handle));
        const stop = await broker.consume?.(queue, async (body) => {
          await Promise.all([...handlers].map((each) => each(body)));
        });
        return async () => stop?.();
      },
    }),
  },
  {
    fault: 'delivers a message twice, and detects that in the memory of its process',
    detectedBy: SHARED,
    failure: /a message was delivered to both/,
    module: new URL('./forgetful-broker.ts', import.meta.url),
    apply: forgetful,
  },
  {
    fault: 'delivers the first 64 KiB of a message',
    detectedBy: 'a message of the largest size is delivered unchanged',
    failure: /a message of \d+ bytes was delivered as \d+ others/,
    apply: wrapHandler((handle) => (body) => handle(body.subarray(0, KIB_64))),
  },
  {
    fault: 'stops without waiting for the message in progress',
    detectedBy: 'a consumer that stops finishes its message and leaves the rest',
    failure: /it stopped while handle\(\) was running/,
    apply: (broker) => ({
      async consume(queue, handle) {
        const stop = await broker.consume?.(queue, handle);
        return async () => void stop?.();
      },
    }),
  },
  {
    fault: 'does not notice that the server stopped responding',
    detectedBy: 'a consumer survives a server that stops responding',
    failure: /nothing is delivered any more/,
    patienceMs: 12_000,
    options: ({ url }) => ({ url: String(url).replace(/heartbeat=\d+/, 'heartbeat=60') }),
    apply: (broker) => broker,
  },
  {
    fault: 'delivers a message again while it is handled',
    detectedBy: 'a message is not delivered again while it is handled',
    failure: /it was delivered again/,
    apply: wrapHandler((handle) => async (body) => {
      const timer = setTimeout(() => void handle(body).catch(() => undefined), LEASE_MS);
      await handle(body).finally(() => clearTimeout(timer));
    }),
  },
  {
    fault: 'removes a message from its queue before it stores it with the dead letters',
    detectedBy: 'a message is not lost while it becomes a dead letter',
    failure: /a message is lost: handle\(\) threw, the connection was cut (after|in the middle of) the \w+ packet/,
    apply: (_broker, { url }) => removingFirst(String(url)),
  },
];
