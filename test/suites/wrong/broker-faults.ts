import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import amqp from 'amqplib';
import type { Broker, BrokerEvent } from '../../../core/approval/channel.ts';
import type { BrokerFault } from './broker-fault.ts';

const EXPIRY = 'an event expires with its request';
const NAMES = 'events whose names differ in a letter do not mix';
const RECONNECT = 'it reconnects when the server is back';

const KIB_64 = 64 * 1024;

/** Publishes to RabbitMQ, which confirms what it keeps in memory only. */
function forgettingOnRestart(url: string): Broker['publish'] {
  return async ({ name, id, body }) => {
    const model = await amqp.connect(url);
    const channel = await model.createConfirmChannel();
    const isReturned = new Promise<never>((_, reject) => channel.on('return', () => reject(new Error('no queue'))));
    isReturned.catch(() => undefined);
    try {
      channel.publish('svc.events', name, Buffer.from(JSON.stringify(body)), { messageId: id, mandatory: true });
      await Promise.race([channel.waitForConfirms().then(() => setImmediate()), isReturned]);
    } finally {
      await model.close();
    }
  };
}

/** A broker whose messages do not survive a restart of the server. */
export const RESTART_FAULT: BrokerFault = {
  fault: 'publishes without persistence',
  detectedBy: 'messages survive a restart of the server',
  failure: /the restarted server has no such event/,
  apply: (_broker, { url }) => ({ publish: forgettingOnRestart(String(url)) }),
};

/** Brokers that each break one promise about events and their connection. */
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
