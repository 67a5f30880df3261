import * as assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { Broker } from '../../core/approval/channel.ts';
import { Kernel } from '../../core/kernel.ts';
import { applyPlugin } from '../../core/plugin.ts';
import type { BrokerClient, BrokerUnderTest } from './broker-under-test.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';
import { waitUntil as waitAtMost } from './wait-until.ts';

/** What each case has: a broker, names of its own, and a client of the server. */
export interface BrokerCase {
  readonly client: BrokerClient;
  /** Disconnects the client, calls `between`, and resolves to another client. */
  reopenClient(between: () => Promise<void>): Promise<BrokerClient>;
  readonly proxy: TcpProxy;
  readonly options: Readonly<Record<string, unknown>>;
  /** Creates another instance, as another process would. It is closed at the end. */
  createBroker(options?: BrokerCase['options']): Broker;
  readonly broker: Broker;
  readonly event: string;
  readonly queue: string;
  readonly product: string;
  /** Other events that the case publishes. */
  readonly notices: string[];
  /** Other queues that the case consumes. */
  readonly queues: string[];
}

export interface BrokerCases {
  readonly tested: BrokerUnderTest;
  withBroker(body: (context: BrokerCase) => Promise<void>): Promise<void>;
  /** Waits for as long as a message may take. */
  waitUntil(condition: () => boolean | Promise<boolean>, message: string): Promise<void>;
  /** Sends messages until `ms` have passed: each that arrives shows that the server has delivered what came before it. */
  sendRounds(client: BrokerClient, queue: string, ms: number, bodies: readonly unknown[]): Promise<void>;
  /** A message that was handled, but not acknowledged, is delivered again: at once, after a pause, or at the end of its lease. */
  assertQueueIsEmpty(context: Pick<BrokerCase, 'createBroker' | 'client' | 'queue'>): Promise<void>;
}

/** The pause before a redelivery that the suite requests. */
export const PAUSE_MS = 1_000;
const PROBE_MS = 5_000;
const POLL_MS = 100;

export function brokerCases(tested: BrokerUnderTest): BrokerCases {
  const { patienceMs = 60_000, leaseMs = 0 } = tested;
  const waitUntil: BrokerCases['waitUntil'] = (condition, message) => waitAtMost(condition, message, patienceMs);
  let probed: Promise<void> | undefined;

  const withBroker: BrokerCases['withBroker'] = async (body) => {
    const id = randomUUID();
    const [event, queue, product] = [`approvals.test.${id}`, `svc.test.${id}`, `p${id}`];
    const notices: string[] = [];
    const queues: string[] = [];
    const proxy = await startTcpProxy(tested.server.host, tested.server.port);
    probed ??= probe(tested.server);
    const reached = probed;
    const opening = tested.openClient();
    // What is wrong with openClient itself is said first; without a server it may never end.
    let client = await Promise.race([
      opening.then((opened) => reached.then(() => opened)),
      reached.then(() => opening),
    ]);
    const reopenClient: BrokerCase['reopenClient'] = async (between) => {
      await client.close({ events: [], queues: [] });
      await between();
      client = await tested.openClient();
      return client;
    };
    const options = tested.options(proxy.host, proxy.port);
    const opened: Broker[] = [];
    const createBroker: BrokerCase['createBroker'] = (given = options) => {
      const kernel = new Kernel();
      applyPlugin(kernel, tested.plugin, tested.plugin.name);
      const broker = kernel.brokers.get(tested.type)(given);
      opened.push(broker);
      return broker;
    };
    try {
      await proxy.connect();
      const names = { event, queue, product, notices, queues };
      await body({ client, reopenClient, proxy, options, createBroker, broker: createBroker(), ...names });
    } finally {
      await Promise.all(opened.map((broker) => broker.close()));
      proxy.disconnect();
      const decisions = decisionQueue(product);
      await client.close({ events: [event, ...notices], queues: [queue, decisions, ...queues] });
    }
  };

  const sendRounds: BrokerCases['sendRounds'] = async (client, queue, ms, bodies) => {
    const until = Date.now() + ms;
    for (let round = 0; Date.now() < until; round++) {
      await send(client, queue, `round ${round}`);
      await waitUntil(() => bodies.includes(`round ${round}`), 'nothing more is delivered');
      await wait(POLL_MS);
    }
  };
  const assertQueueIsEmpty: BrokerCases['assertQueueIsEmpty'] = async ({ createBroker, client, queue }) => {
    const bodies: string[] = [];
    const stop = await consume(createBroker(), queue, async (body) => void bodies.push(body));
    await sendRounds(client, queue, Math.max(PAUSE_MS, 2 * leaseMs), bodies);
    await stop();
    const late = bodies.filter((body) => !body.startsWith('round '));
    assert.deepEqual(late, [], 'messages were delivered again after they had been handled');
  };
  return { tested, withBroker, waitUntil, sendRounds, assertQueueIsEmpty };
}

/** Without it, each case would wait for a server that is not there until its own timeout. */
async function probe({ host, port }: BrokerUnderTest['server']): Promise<void> {
  const socket = connect({ host, port, timeout: PROBE_MS });
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('timeout', () => reject(new Error(`no response within ${PROBE_MS} ms`)));
      socket.once('error', reject);
    });
  } catch (error) {
    throw new Error(`No server answers at ${host}:${port}, the "server" of the suite: ${(error as Error).message}`);
  } finally {
    socket.destroy();
  }
}

/** The queue of the decisions about requests of a product. */
export const decisionQueue = (product: string): string => `svc.approvals.decisions.${product}.dev`;

export async function consumeBytes(broker: Broker, queue: string, handle: (body: Uint8Array) => Promise<void>) {
  assert.ok(broker.consume, 'there is no consume(): skip this case, and give the reason');
  return broker.consume(queue, handle);
}

export const consume = (broker: Broker, queue: string, handle: (text: string) => Promise<void>) =>
  consumeBytes(broker, queue, (body) => handle(Buffer.from(body).toString()));

/** Sends messages once the consumer has created its queue. */
export async function send(
  client: BrokerClient,
  queue: string,
  ...bodies: readonly (string | Uint8Array)[]
): Promise<void> {
  for (const body of bodies) {
    await waitAtMost(() => client.send(queue, Buffer.from(body)), `the queue ${queue} was never created`);
  }
}
