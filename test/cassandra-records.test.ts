import * as assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { Connection } from '../core/dialect.ts';
import { allRows, anyDefinition, type RecordDefinition } from '../core/records.ts';
import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { type FreshKeyspace, freshKeyspace, unavailable } from './kit/cassandra.ts';
import { test } from './kit/test.ts';

interface Request {
  readonly id: string;
  readonly status: string;
  readonly agent: string;
  readonly at: Date | null;
}

const requests: RecordDefinition<Request> = {
  collection: '_svc_requests',
  key: 'id',
  columns: {
    id: { type: 'string' },
    status: { type: 'string' },
    agent: { type: 'string' },
    at: { type: 'timestamp', nullable: true },
  },
  indexes: [
    { name: 'byStatus', equals: ['status'], sort: 'id' },
    { name: 'byTime', equals: ['status', 'agent'], sort: 'at' },
    { name: 'all', equals: [], sort: 'at' },
  ],
};

/** The partition of a value is split into eight shards. */
const shardOf = (key: string) => (createHash('sha256').update(key).digest()[0] ?? 0) % 8;

const request = (id: string, status: string, at: number | null = 1): Request => ({
  id,
  status,
  agent: 'a',
  at: at === null ? null : new Date(at),
});

if (unavailable) test.skip('records on Cassandra', unavailable);
else {
  const on = (
    name: string,
    body: (connection: Connection, keyspace: FreshKeyspace, again: () => Promise<Connection>) => Promise<void>,
  ) =>
    test(
      name,
      async () => {
        const keyspace = await freshKeyspace();
        const open: Connection[] = [];
        const again = async () => {
          const connection = await cassandra.connect(keyspace.url, {});
          open.push(connection);
          return connection;
        };
        try {
          const connection = await again();
          await connection.ensureTables([anyDefinition(requests)]);
          await body(connection, keyspace, again);
        } finally {
          for (const connection of open) await connection.close();
          await keyspace.drop();
        }
      },
      { timeoutMs: 120_000 },
    );
  const hints = (keyspace: FreshKeyspace, table: string) => keyspace.query(`SELECT * FROM "_svc_requests_${table}"`);

  on('every index lists the current values of a record, and no former ones', async (connection, keyspace) => {
    const store = connection.records(requests);
    await store.insert(request('r', 'waiting', 5));
    await store.insert(request('nowhere', 'waiting', null));
    const listed = async (status: string) =>
      (await store.page('byStatus', { equals: { status }, limit: 10 })).records.map(({ record }) => record.id);
    assert.deepEqual(await listed('waiting'), ['nowhere', 'r']);
    assert.deepEqual(
      (await store.page('all', { limit: 10 })).records.map(({ record }) => record.id),
      ['r'],
    );
    assert.equal(await store.replace('r', 1, request('r', 'done', 7)), 'replaced');
    assert.deepEqual([await listed('waiting'), await listed('done')], [['nowhere'], ['r']]);
    assert.equal(await store.replace('r', 2, request('r', 'waiting', 7)), 'replaced');
    assert.equal(await store.replace('r', 3, request('r', 'waiting', 7)), 'replaced');
    assert.equal((await hints(keyspace, 'byStatus')).length, 2);
    assert.equal((await hints(keyspace, 'byTime')).length, 1);
    assert.equal(await store.replace('r', 2, request('r', 'done', 7)), 'stale');
    assert.equal(await store.remove('r', 4), 'removed');
    assert.equal(await store.remove('nowhere', 1), 'removed');
    for (const table of ['byStatus', 'byTime', 'all']) assert.deepEqual(await hints(keyspace, table), [], table);
  });

  on(
    'an index row that its record does not confirm is left out, and removed once no write can confirm it',
    async (connection, keyspace) => {
      const store = connection.records(requests);
      await store.insert(request('r', 'waiting'));
      const [hint] = await hints(keyspace, 'byStatus');
      const put = (status: string, key: string, shard: unknown, version: number, at: number) =>
        keyspace.query(
          'INSERT INTO "_svc_requests_byStatus" ("equals_status", shard, sort, key, version, at) VALUES (?, ?, ?, ?, ?, ?)',
          [status, shard, key, key, BigInt(version), new Date(at)],
        );
      await put('done', 'r', hint?.shard, 1, Date.now()); // one that lost
      await put('done', 'r', hint?.shard, 2, Date.now()); // one under way
      await put('done', 'gone', shardOf('gone'), 1, Date.now() - 3_600_000); // of a process that died
      await put('done', 'soon', shardOf('soon'), 1, Date.now()); // of an insert under way
      assert.deepEqual((await store.page('byStatus', { equals: { status: 'done' }, limit: 10 })).records, []);
      const left = (await hints(keyspace, 'byStatus')).filter((row) => row.equals_status === 'done');
      assert.deepEqual(left.map((row) => `${row.key} ${row.version}`).sort(), ['r 1', 'r 2', 'soon 1']);
      assert.equal(await store.replace('r', 1, request('r', 'done')), 'replaced');
      const page = await store.page('byStatus', { equals: { status: 'done' }, limit: 10 });
      assert.deepEqual(
        page.records.map(({ version }) => version),
        [2],
      );
    },
  );

  on('pages are in order where one shard has most of what comes first', async (connection) => {
    const store = connection.records(requests);
    const ids = Array.from({ length: 400 }, (_, index) => `r${index}`);
    const crowded = ids.filter((id) => shardOf(id) === 3).slice(0, 36);
    const others = ids.filter((id) => shardOf(id) !== 3).slice(0, 12);
    const rows = [...crowded, ...others].map((id, index) => ({
      ...request(id, 'waiting', index),
      agent: index % 3 === 0 ? 'a' : 'b',
    }));
    await Promise.all(rows.map((row) => store.insert(row)));
    for (const direction of ['asc', 'desc'] as const) {
      for (const limit of [1, 5, 30]) {
        const query = { equals: { status: 'waiting' }, anyOf: [{ agent: 'a' }, { agent: 'b' }], direction, limit };
        const found: string[] = [];
        for await (const { record } of allRows(store, 'byTime', query)) found.push(record.id);
        const expected = rows.map(({ id }) => id);
        assert.deepEqual(found, direction === 'asc' ? expected : expected.reverse(), `${direction} by ${limit}`);
      }
    }
  });

  on('concurrent writers leave every index consistent with the records', async (connection, _keyspace, again) => {
    const stores = [connection, await again(), await again()].map((one) => one.records(requests));
    const ids = ['a', 'b', 'c', 'd'];
    for (const id of ids) await stores[0]?.insert(request(id, 's0'));
    await Promise.all(
      stores.flatMap((store, writer) =>
        ids.map(async (id) => {
          for (let round = 0; round < 8; round += 1) {
            const found = await store.get(id);
            if (!found) throw new Error(`${id} is gone`);
            const next = request(id, `s${(round + writer) % 3}`, 1000 + round);
            await store.replace(id, found.version, next);
          }
        }),
      ),
    );
    const [store] = stores;
    const truth = new Map<string, string>();
    for (const id of ids) truth.set(id, (await store?.get(id))?.record.status ?? '');
    for (const status of ['s0', 's1', 's2']) {
      const listed = (await store?.page('byStatus', { equals: { status }, limit: 10 }))?.records.map(
        ({ record }) => record.id,
      );
      assert.deepEqual(
        listed,
        ids.filter((id) => truth.get(id) === status),
        status,
      );
      const timed = (await store?.page('byTime', { equals: { status, agent: 'a' }, limit: 10 }))?.records.length;
      assert.equal(timed, listed?.length);
    }
  });

  on('pages of many records are complete and in order, over all shards', async (connection) => {
    const store = connection.records(requests);
    const count = 120;
    await Promise.all(Array.from({ length: count }, (_, n) => store.insert(request(`r${n}`, 'waiting', n % 10))));
    for (const direction of ['asc', 'desc'] as const) {
      const seen: [number, string][] = [];
      let cursor: string | undefined;
      do {
        const page = await store.page('byTime', {
          equals: { status: 'waiting', agent: 'a' },
          from: new Date(2),
          to: new Date(8),
          limit: 7,
          direction,
          ...(cursor !== undefined && { cursor }),
        });
        seen.push(...page.records.map(({ record }): [number, string] => [record.at?.getTime() ?? -1, record.id]));
        cursor = page.cursor;
      } while (cursor !== undefined);
      assert.equal(seen.length, (count / 10) * 7);
      const sorted = [...seen].sort(([a, x], [b, y]) => a - b || Buffer.compare(Buffer.from(x), Buffer.from(y)));
      assert.deepEqual(seen, direction === 'asc' ? sorted : sorted.reverse());
    }
  });
}
