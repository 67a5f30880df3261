import * as assert from 'node:assert/strict';
import { mock } from 'node:test';
import { inspect } from 'node:util';
import { type Broker, type BrokerEvent, DeliveryFailed, isDeliveryFailed } from '../core/approval/channel.ts';
import { isSvcError, SvcError } from '../core/errors.ts';
import { type BrokerDriver, type Received, reconnectingBroker } from '../plugins/brokers/toolkit.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

/** `reconnectingBroker` with a driver in memory, for what a real server does rarely. The broker suites test the rest. */

interface Connection {
  readonly closed: Promise<void>;
  lose(): void;
}

function connection(): Connection {
  let lose = () => {};
  const closed = new Promise<void>((resolve) => {
    lose = resolve;
  });
  return { closed, lose };
}

const EVENT: BrokerEvent = { name: 'requested', id: '1', body: {}, expiresInMs: 1_000 };
const signal = () => AbortSignal.timeout(15_000);

async function withBroker(
  driver: Partial<BrokerDriver<Connection>>,
  body: (broker: Broker, opened: readonly Connection[]) => Promise<void>,
): Promise<void> {
  const opened: Connection[] = [];
  const broker = reconnectingBroker<Connection>({
    url: 'acme://svc:p%40ss-word@127.0.0.1',
    async connect() {
      const one = connection();
      opened.push(one);
      return one;
    },
    closed: ({ closed }) => closed,
    publish: async () => {},
    close: async ({ lose }) => lose(),
    ...driver,
  });
  try {
    await body(broker, opened);
  } finally {
    await broker.close();
  }
}

const rejection = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => assert.fail('it resolved'),
    (error: unknown) => error,
  );

test('an error of the driver has no password in it, and keeps when to retry', () => {
  const publish = async () => {
    const cause = new Error('acme://svc:p%40ss-word@127.0.0.1');
    throw Object.assign(new DeliveryFailed('login as svc:p%40ss-word (p@ss-word) failed', { afterMs: 5 }), { cause });
  };
  return withBroker({ publish }, async (broker) => {
    const error = await rejection(broker.publish(EVENT, signal()));
    assert.ok(isDeliveryFailed(error));
    assert.deepEqual([error.afterMs, error.message], [5, 'login as *** (***) failed']);
    assert.doesNotMatch(inspect(error, { depth: 5 }), /ss-word/);
  });
});

test('a publish in progress fails when its connection is lost, and the next one connects again', () =>
  withBroker({ publish: () => new Promise(() => {}) }, async (broker, opened) => {
    for (const count of [1, 2]) {
      const publishing = rejection(broker.publish(EVENT, signal()));
      await waitUntil(() => opened.length === count, 'it did not connect');
      opened.at(-1)?.lose();
      assert.match(String(await publishing), /the connection to the broker was lost/);
    }
  }));

test('a connection whose server no longer answers a ping is closed, and the next call opens another', async () => {
  let isFrozen = false;
  const closed: Connection[] = [];
  const ping = () => (isFrozen ? Promise.reject(new Error('no answer')) : Promise.resolve());
  const close = async (one: Connection) => void closed.push(one);
  await withBroker({ ping, close }, async (broker, opened) => {
    await broker.publish(EVENT, signal());
    isFrozen = true;
    await waitUntil(() => closed.length === 1, 'the connection was not closed');
    isFrozen = false;
    await broker.publish(EVENT, signal());
    assert.equal(opened.length, 2);
    assert.equal(closed[0], opened[0]);
  });
});

test('one connection serves concurrent calls, and a failed one is not kept', async () => {
  let attempts = 0;
  const connect = async () => {
    attempts += 1;
    if (attempts === 1) throw new Error('refused');
    return connection();
  };
  await withBroker({ connect }, async (broker) => {
    const failed = await Promise.allSettled([1, 2, 3].map(() => broker.publish(EVENT, signal())));
    assert.deepEqual(
      failed.map(({ status }) => status),
      ['rejected', 'rejected', 'rejected'],
    );
    await Promise.all([1, 2, 3].map(() => broker.publish(EVENT, signal())));
    assert.equal(attempts, 2);
  });
});

test('after close() nothing is published, and a connection that is opened late is closed', async () => {
  const late = connection();
  let open = (_one: Connection) => {};
  const connect = () =>
    new Promise<Connection>((resolve) => {
      open = resolve;
    });
  await withBroker({ connect }, async (broker) => {
    const publishing = rejection(broker.publish(EVENT, AbortSignal.abort()));
    await publishing;
    const closing = broker.close();
    await waitUntil(async () => (await rejection(broker.publish(EVENT, signal()))) !== undefined, 'it publishes');
    open(late);
    await Promise.all([closing, late.closed]);
    const error = await rejection(broker.publish(EVENT, signal()));
    assert.ok(isSvcError(error) && error.code === 'interrupted');
  });
});

test('an attempt to connect that is given up is ended by its signal', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  const attempts: AbortSignal[] = [];
  const connect = (attempt: AbortSignal) => {
    attempts.push(attempt);
    return new Promise<Connection>(() => {});
  };
  try {
    await withBroker({ connect }, async (broker) => {
      const publishing = rejection(broker.publish(EVENT, new AbortController().signal));
      assert.equal(attempts[0]?.aborted, false);
      mock.timers.tick(10_000);
      assert.match(String(await publishing), /did not respond in time/);
      assert.equal(attempts[0]?.aborted, true);
    });
  } finally {
    mock.timers.reset();
  }
});

test('a message that arrives after the stop returns to the queue, and one that cannot be acknowledged is not a dead letter', async () => {
  const log: string[] = [];
  const message = (name: string): Received => ({
    body: Buffer.from(name),
    ack() {
      log.push(`ack ${name}`);
      throw new Error('the connection is lost');
    },
    requeue: () => log.push(`requeue ${name}`),
    deadLetter: () => log.push(`dead ${name}`),
  });
  const consume: BrokerDriver<Connection>['consume'] = async (_connection, { receive, stopped }) => {
    await receive(message('first'));
    await stopped;
    await receive(message('late'));
  };
  await withBroker({ consume }, async (broker) => {
    const stop = await broker.consume?.('queue', async (body) => void log.push(`handle ${Buffer.from(body)}`));
    await waitUntil(() => log.includes('ack first'), 'nothing was handled');
    await stop?.();
    assert.deepEqual(log, ['handle first', 'ack first', 'requeue late']);
  });
});

/** What the process warns of while `body` runs. */
async function withWarnings(body: (warnings: readonly Error[]) => Promise<void>): Promise<void> {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning);
  process.on('warning', onWarning);
  try {
    await body(warnings);
  } finally {
    process.off('warning', onWarning);
  }
}

test('a consumer without its driver warns with the command that installs it', () =>
  withWarnings(async (warnings) => {
    const connect = async () => {
      throw new SvcError('driver_missing', 'The RabbitMQ driver is not installed.', { next: ['npm install amqplib'] });
    };
    await withBroker({ connect, consume: async () => {} }, async (broker) => {
      await broker.consume?.('queue', async () => {});
      await waitUntil(() => warnings.length > 0, 'there was no warning');
    });
    assert.equal(
      warnings[0]?.message,
      'Cannot consume from the queue queue: The RabbitMQ driver is not installed (next: npm install amqplib). Retrying.',
    );
  }));

test('many messages that fail at once and pause cause no warning', () =>
  withWarnings(async (warnings) => {
    let requeued = 0;
    const message = { body: Buffer.from('{}'), ack() {}, deadLetter() {}, requeue: () => void requeued++ };
    const consume: BrokerDriver<Connection>['consume'] = async (_connection, { receive, stopped }) => {
      await Promise.all(Array.from({ length: 64 }, () => receive(message)));
      await stopped;
    };
    await withBroker({ consume }, async (broker) => {
      await broker.consume?.('queue', async () => {
        throw new DeliveryFailed('the store is down');
      });
      await waitUntil(() => requeued === 64, 'the messages did not return to the queue');
    });
    assert.deepEqual(warnings, []);
  }));
