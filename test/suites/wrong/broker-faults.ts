import { randomUUID } from 'node:crypto';
import { type Broker, type BrokerEvent, DeliveryFailed, isDeliveryFailed } from '../../../core/approval/channel.ts';
import { tryParseJson } from '../../../core/json.ts';
import { Kernel, type Plugin } from '../../../core/kernel.ts';
import { applyPlugin, definePlugin } from '../../../core/plugin.ts';
import type { BrokerUnderTest } from '../broker-suite.ts';
import { forgetful } from './forgetful-broker.ts';

type Handler = (body: Uint8Array) => Promise<void>;

interface BrokerFault {
  readonly fault: string;
  /** The case of the suite that must fail, and how. */
  readonly detectedBy: string;
  readonly failure: RegExp;
  /** How long it is waited for, in milliseconds; default 3,000. */
  readonly patienceMs?: number;
  /** The module of a broker that is wrong between processes. */
  readonly module?: URL;
  /** Other options of the right broker. */
  options?(options: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
  /** Wraps a right broker. */
  apply(broker: Broker, options: Readonly<Record<string, unknown>>): Partial<Broker>;
}

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
const EXPIRY = 'an event expires with its request';
const NAMES = 'events whose names differ in a letter do not mix';
const SHARED = 'two consumers share a queue';
const RECONNECT = 'it reconnects when the server is back';

const KIB_64 = 64 * 1024;
/** The lease of the broker that has one. */
const LEASE_MS = 500;

/** Brokers that each break one promise of the contract. */
export const BROKER_FAULTS: readonly BrokerFault[] = [
  {
    fault: 'selects the queue of an event and sends the event in two steps that mix',
    detectedBy: 'concurrent events all arrive',
    failure: /an event arrived at those who listen for another name/,
    apply(broker) {
      let selected = '';
      return {
        async publish(event, signal) {
          selected = event.name;
          await Promise.resolve();
          await broker.publish({ ...event, name: selected }, signal);
        },
      };
    },
  },
  {
    fault: 'resolves publish() before the server confirms',
    detectedBy: 'an attempt ends with its signal',
    failure: /publish\(\) resolved without a confirmation/,
    apply: (broker) => ({
      async publish(event, signal) {
        void broker.publish(event, signal).catch(() => undefined);
      },
    }),
  },
  {
    fault: 'keeps events in memory while the server is down',
    detectedBy: RECONNECT,
    failure: /publish\(\) resolved without a server/,
    apply(broker) {
      const kept: Parameters<Broker['publish']>[] = [];
      return {
        async publish(...one) {
          for (const each of [...kept.splice(0), one]) await broker.publish(...each).catch(() => void kept.push(each));
        },
      };
    },
  },
  {
    fault: 'does not connect again after a failure',
    detectedBy: RECONNECT,
    failure: /the server is back, but publish\(\) still throws/,
    apply(broker) {
      let failed: Promise<void> | undefined;
      return {
        async publish(event, signal) {
          await failed;
          const publishing = broker.publish(event, signal);
          publishing.catch(() => {
            failed = publishing;
          });
          await publishing;
        },
      };
    },
  },
  {
    fault: 'drops an event that no queue receives',
    detectedBy: 'an event without subscribers is kept or rejected',
    failure: /publish\(\) resolved, but the event was lost/,
    apply: (broker) => ({
      publish: (event, signal) =>
        broker.publish(event, signal).catch((error: Error) => {
          if (!error.message.includes('no queue')) throw error;
        }),
    }),
  },
  {
    fault: 'ignores what the server refuses',
    detectedBy: 'an event that the server refuses is not published',
    failure: /publish\(\) resolved although/,
    apply: (broker) => ({
      publish: (event, signal) =>
        broker.publish(event, signal).catch((error: Error) => {
          if (!error.message.includes('rejected')) throw error;
        }),
    }),
  },
  {
    fault: 'gives each attempt an id of its own',
    detectedBy: 'each attempt carries the id of its event',
    failure: /events arrived without their id/,
    apply: (broker) => ({ publish: (event, signal) => broker.publish({ ...event, id: randomUUID() }, signal) }),
  },
  {
    fault: 'publishes an event without its id',
    detectedBy: 'each attempt carries the id of its event',
    failure: /events arrived without their id/,
    apply: (broker) => ({ publish: (event, signal) => broker.publish({ ...event, id: '' }, signal) }),
  },
  {
    fault: 'publishes every event once, and no other',
    detectedBy: 'each attempt carries the id of its event',
    failure: /an event did not arrive/,
    apply(broker) {
      let published: Promise<void> | undefined;
      return {
        publish(event, signal) {
          published ??= broker.publish(event, signal);
          return published;
        },
      };
    },
  },
  {
    fault: 'ignores how long an event is valid',
    detectedBy: EXPIRY,
    failure: /45,000 ms became \d{9,} ms/,
    apply: (broker) => ({ publish: (event, signal) => broker.publish({ ...event, expiresInMs: 2 ** 40 }, signal) }),
  },
  {
    fault: 'keeps an event that nobody receives, and publishes it when it has expired',
    detectedBy: EXPIRY,
    failure: /after it had expired/,
    apply(broker) {
      const kept: BrokerEvent[] = [];
      return {
        async publish(event, signal) {
          for (const one of kept.splice(0)) await broker.publish({ ...one, expiresInMs: 60_000 }, signal);
          await broker.publish(event, signal).catch((error: Error) => {
            if (!error.message.includes('no queue')) throw error;
            kept.push(event);
          });
        },
      };
    },
  },
  {
    fault: 'publishes the first 64 KiB of an event',
    detectedBy: 'an event of the largest size arrives unchanged',
    failure: /an event of \d+ characters arrived as \d+ others/,
    apply: (broker) => ({
      publish: (event, signal) =>
        broker.publish({ ...event, body: JSON.stringify(event.body).slice(0, KIB_64) }, signal),
    }),
  },
  {
    fault: 'publishes events under their names in lower case',
    detectedBy: NAMES,
    failure: /no event arrived at those who listen for \S+\.Paid-Out/,
    apply: (broker) => ({
      publish: (event, signal) => broker.publish({ ...event, name: event.name.toLowerCase() }, signal),
    }),
  },
  {
    fault: 'publishes events under every spelling of their names',
    detectedBy: NAMES,
    failure: /other events arrived at those who listen for \S+\.paid-out/,
    apply: (broker) => ({
      async publish(event, signal) {
        for (const name of new Set([event.name, event.name.toLowerCase()]))
          await broker.publish({ ...event, name }, signal);
      },
    }),
  },
  {
    fault: 'writes the URL with its password into errors',
    detectedBy: 'errors and warnings contain no secret',
    failure: /contains a secret/,
    apply: (broker, { url }) => ({
      publish: (event, signal) =>
        broker.publish(event, signal).catch((error: Error) => {
          throw new Error(error.message, { cause: new Error(`cannot connect to ${url}`) });
        }),
    }),
  },
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
    fault: 'keeps a timer after it is closed',
    detectedBy: 'it lets the program end once it is closed',
    failure: /close\(\) left a timer/,
    apply: (broker) => ({
      async publish(event, signal) {
        setTimeout(() => {}, 20_000);
        await broker.publish(event, signal);
      },
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
    fault: 'leaves its connection open',
    detectedBy: 'it can be closed before use, after use, and twice',
    failure: /the program would not exit/,
    apply(broker) {
      let isClosed = false;
      return {
        publish: (event, signal) =>
          isClosed ? Promise.reject(new Error('it is closed')) : broker.publish(event, signal),
        async close() {
          isClosed = true;
          // So that the test program itself ends.
          setTimeout(() => void broker.close(), 10_000);
        },
      };
    },
  },
  {
    fault: 'waits in close() for what the server does not confirm',
    detectedBy: 'it can be closed although the server does not respond',
    failure: /close\(\) did not end/,
    apply(broker) {
      const pending: Promise<void>[] = [];
      return {
        publish(event, signal) {
          const publishing = broker.publish(event, signal);
          pending.push(publishing);
          return publishing;
        },
        async close() {
          await Promise.allSettled(pending);
          await broker.close();
        },
      };
    },
  },
];

/** How long a wrong broker is waited for, in milliseconds. */
const PATIENCE_MS = 3_000;

/** The handlers of all "processes", by queue. */
const subscribers = new Map<string, Set<Handler>>();

/** A right broker with a fault. */
export function withBrokerFault(right: BrokerUnderTest, fault: BrokerFault): BrokerUnderTest {
  const { apply, module, patienceMs = PATIENCE_MS, options = (given) => given } = fault;
  const plugin: Plugin = definePlugin({
    name: right.plugin.name,
    apply(kernel) {
      const inner = new Kernel();
      applyPlugin(inner, right.plugin, right.plugin.name);
      kernel.brokers.register(right.type, (options) => {
        const broker = inner.brokers.get(right.type)(options);
        return { ...broker, ...apply(broker, options) };
      });
    },
  });
  return {
    ...right,
    plugin,
    module,
    patienceMs,
    leaseMs: LEASE_MS,
    options: (host, port) => options(right.options(host, port)),
  };
}
