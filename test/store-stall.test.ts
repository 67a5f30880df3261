import * as assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import type { Config } from '../config/define.ts';
import { reconnectingBackend, type StorageBackend } from '../core/approval/backend.ts';
import { isSvcError, SvcError } from '../core/errors.ts';
import { freshKeyspace, unavailable as noCassandra } from './kit/cassandra.ts';
import { freshPrefix } from './kit/dynamodb.ts';
import { committingEngines, engines } from './kit/engines.ts';
import { freshMongo, missing as noMongo } from './kit/mongodb.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { test } from './kit/test.ts';
import { find } from './servers/find.ts';
import { withGate } from './suites/gate-client.ts';
import { startTcpProxy } from './suites/tcp-proxy.ts';
import type { TestDatabase } from './suites/test-database.ts';

// A server that keeps its connections and no longer responds, as on a suspended machine or after a failover.

interface Store {
  readonly name: string;
  readonly missing: string | undefined;
  readonly options: object;
  withUrl(body: (url: string) => Promise<void>): Promise<void>;
}

const withFresh = (fresh: () => Promise<TestDatabase> | TestDatabase): Store['withUrl'] => {
  return async (body) => {
    const { url, drop } = await fresh();
    try {
      await body(url);
    } finally {
      await drop();
    }
  };
};

const dynamodb = await find('dynamodb');
const DEFAULT_PORTS: Readonly<Record<string, number>> = {
  postgresql: 5432,
  mysql: 3306,
  mariadb: 3306,
  mongodb: 27017,
  cassandra: 9042,
};
const LIMITS = { connectTimeoutMs: 500, requestTimeoutMs: 500 };
const stores: readonly Store[] = [
  { name: 'postgresql', missing: await unavailable(), options: LIMITS, withUrl: withFresh(freshDatabase) },
  ...committingEngines.map((engine) => ({
    name: engine.name,
    missing: engine.missing,
    options: LIMITS,
    withUrl: (body: (url: string) => Promise<void>) => engine.withUrl(body),
  })),
  {
    name: 'mongodb',
    missing: noMongo,
    options: { connectTimeoutMs: 500 },
    withUrl: withFresh(async () => {
      const { url, drop } = await freshMongo();
      return { url: `${url}${url.includes('?') ? '&' : '?'}heartbeatFrequencyMS=500`, drop };
    }),
  },
  {
    name: 'dynamodb',
    missing: 'missing' in dynamodb ? dynamodb.missing : undefined,
    options: { ...LIMITS, retryTimeoutMs: 500 },
    withUrl: withFresh(() => freshPrefix('url' in dynamodb ? Number(new URL(dynamodb.url).port) : 0)),
  },
  {
    name: 'cassandra',
    missing: noCassandra,
    options: { connectTimeoutMs: 500, readTimeoutMs: 500 },
    withUrl: withFresh(() => freshKeyspace()),
  },
];

async function exercise({ name, options, withUrl }: Store): Promise<void> {
  await withUrl(async (direct) => {
    const url = new URL(direct);
    const proxy = await startTcpProxy(url.hostname, Number(url.port || DEFAULT_PORTS[name]));
    await proxy.connect();
    url.hostname = proxy.host;
    url.port = String(proxy.port);
    const config = { databases: { main: { dialect: name, url: { dev: url.href }, options } } } as unknown as Config;
    try {
      await withGate({ config, approvals: { store: { database: 'main' } } }, async ({ svc, refund, refunds }) => {
        const { request, outcome } = await refund({ orderId: '1', amount: 5 });
        const { executionId, requestId } = request;
        const count = async () => (await svc.approvals.list()).records.length;
        proxy.stall();
        assert.equal(await count(), 1);

        proxy.freeze();
        for (const result of await Promise.allSettled([count(), count(), svc.approvals.get(requestId)])) {
          assert.ok(result.status === 'rejected' && isSvcError(result.reason), JSON.stringify(result));
          assert.match(result.reason.code, /^connection_(lost|failed)$/);
        }
        await proxy.connect();
        assert.equal(await count(), 1);
        await svc.agents.signal({ executionId, signal: 'approve', payload: { requestId } });
        assert.equal((await outcome).status, 'completed');
        assert.equal(refunds.length, 1);
      });
    } finally {
      proxy.disconnect();
    }
  });
}

for (const store of stores) {
  const title = `${store.name}: a store that no longer responds is left for one that does, and calls in between fail`;
  if (store.missing !== undefined) {
    test.skip(title, store.missing);
    continue;
  }
  // All at once, because they only wait.
  const exercised = exercise(store);
  exercised.catch(() => undefined);
  test(title, () => exercised);
}

test('a call that waited longer for its lost connection than retries take is retried all the same', async () => {
  const patienceMs = 60;
  let opened = 0;
  const backend = reconnectingBackend(async () => {
    const isFirst = ++opened === 1;
    const now = async (): Promise<Date> => {
      if (!isFirst) return new Date(0);
      await wait(patienceMs + 10);
      throw new SvcError('connection_lost', 'No response.');
    };
    return { now, close: async () => {} } as unknown as StorageBackend;
  }, patienceMs);
  assert.equal((await backend.now()).getTime(), 0);
  assert.equal(opened, 2);
});

for (const engine of [...engines.filter(({ name }) => name === 'postgresql'), ...committingEngines]) {
  const title = `${engine.name}: a reading of the clock ends when the server no longer responds`;
  if (engine.missing !== undefined) test.skip(title, engine.missing);
  else
    test(title, () =>
      engine.withUrl(async (direct) => {
        const url = new URL(direct);
        const proxy = await startTcpProxy(url.hostname, Number(url.port || DEFAULT_PORTS[engine.name]));
        await proxy.connect();
        url.hostname = proxy.host;
        url.port = String(proxy.port);
        const connection = await engine.dialect.connect(url.href, LIMITS);
        try {
          await connection.now();
          proxy.stall();
          await assert.rejects(connection.now(), { code: 'connection_lost' });
        } finally {
          await connection.close();
          proxy.disconnect();
        }
      }),
    );
}
