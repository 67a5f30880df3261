import * as assert from 'node:assert/strict';
import type { Connection } from '../core/dialect.ts';
import { type AnyRecordDefinition, anyDefinition, type RecordDefinition, recordWrite } from '../core/records.ts';
import { dynamodb } from '../plugins/dialects/dynamodb/dialect.ts';
import { freshPrefix } from './kit/dynamodb.ts';
import { ownDynamodb, unavailable } from './kit/own-dynamodb.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

interface Job {
  readonly id: string;
  readonly status: string;
  readonly owner: string | null;
  readonly due: Date | null;
  readonly n: number;
  readonly body: object | null;
}

const jobs: RecordDefinition<Job> = {
  collection: '_svc_jobs',
  key: 'id',
  columns: {
    id: { type: 'string' },
    status: { type: 'string' },
    owner: { type: 'string', nullable: true },
    due: { type: 'timestamp', nullable: true },
    n: { type: 'integer' },
    body: { type: 'json', nullable: true },
  },
  indexes: [
    { name: 'byStatus', equals: ['status'], sort: 'due', sharded: true },
    { name: 'byOwner', equals: ['owner', 'status'], sort: 'n' },
    { name: 'byN', equals: [], sort: 'n' },
  ],
};

const job = (id: string, more: Partial<Job> = {}): Job => ({
  id,
  status: 'waiting',
  owner: null,
  due: new Date(Number(id.slice(1)) * 1000),
  n: Number(id.slice(1)),
  body: null,
  ...more,
});

const missing = unavailable();
if (missing) test.skip('records on DynamoDB', missing);
else {
  const server = await ownDynamodb();
  test.after(() => server.kill());
  const on = async (body: (connection: Connection) => Promise<void>): Promise<void> => {
    const fresh = freshPrefix(server.port);
    const connection = await dynamodb.connect(fresh.url, {});
    try {
      await body(connection);
    } finally {
      await connection.close();
      await fresh.drop();
    }
  };

  test('a sharded index has one order over all shards, in both directions and within bounds', () =>
    on(async (connection) => {
      await connection.ensureTables([anyDefinition(jobs)]);
      const store = connection.records(jobs);
      for (let n = 0; n < 60; n += 1) await store.insert(job(`j${n}`));
      await store.insert(job('j99', { status: 'done' }));
      await store.insert(job('j98', { due: null }));
      for (const direction of ['asc', 'desc'] as const) {
        const found: string[] = [];
        let cursor: string | undefined;
        do {
          const query = { equals: { status: 'waiting' }, limit: 7, direction, ...(cursor !== undefined && { cursor }) };
          const page = await store.page('byStatus', query);
          found.push(...page.records.map(({ record }) => record.id));
          cursor = page.cursor;
        } while (cursor !== undefined);
        const expected = [...Array.from({ length: 60 }, (_, n) => `j${n}`), 'j98'];
        assert.deepEqual(found, direction === 'asc' ? expected : expected.reverse());
      }
      const bounded = { equals: { status: 'waiting' }, from: new Date(10_000), to: new Date(12_000), limit: 1000 };
      const some = await store.page('byStatus', { ...bounded, columns: ['n'] });
      assert.deepEqual(
        some.records.map(({ record }) => record),
        [{ n: 10 }, { n: 11 }, { n: 12 }],
      );
      assert.equal(some.cursor, undefined);
      const keys = await store.page('byStatus', { ...bounded, limit: 2, unconfirmed: true });
      const fromIndex = (id: string) => ({ record: { id }, version: 0 });
      assert.deepEqual(keys, { records: [fromIndex('j10'), fromIndex('j11')] }, 'no records are read');
    }));

  test('a changed record leaves its former index entries, and a null value is in no index', () =>
    on(async (connection) => {
      await connection.ensureTables([anyDefinition(jobs)]);
      const store = connection.records(jobs);
      await store.insert(job('j1', { owner: 'me' }));
      await store.insert(job('j2'));
      const mine = async () =>
        (await store.page('byOwner', { equals: { owner: 'me', status: 'waiting' }, limit: 10 })).records.map(
          ({ record }) => record.id,
        );
      assert.deepEqual(await mine(), ['j1']);
      await store.replace('j2', 1, job('j2', { owner: 'me' }));
      assert.deepEqual(await mine(), ['j1', 'j2']);
      await store.replace('j1', 1, job('j1', { owner: null }));
      await store.remove('j2', 2);
      assert.deepEqual(await mine(), []);
    }));

  test('a long document is compressed, and one that no item can store is rejected', () =>
    on(async (connection) => {
      await connection.ensureTables([anyDefinition(jobs)]);
      const store = connection.records(jobs);
      const long = { text: 'long '.repeat(200_000) };
      await store.insert(job('j1', { body: long }));
      assert.deepEqual((await store.get('j1'))?.record.body, long);
      const noise = Array.from({ length: 60_000 }, (_, n) => Math.sin(n));
      const { next } = await expectError(store.insert(job('j2', { body: { noise } })), 'value_invalid');
      assert.deepEqual(next, ['Store less: a reference instead of the content.']);
    }));

  test('a newer definition finds older records in its new index', () =>
    on(async (connection) => {
      const older: AnyRecordDefinition = { ...anyDefinition(jobs), indexes: [] };
      await connection.ensureTables([older]);
      for (let n = 0; n < 30; n += 1) await connection.records(older).insert({ ...job(`j${n}`, { owner: 'me' }) });
      await connection.ensureTables([anyDefinition(jobs)]);
      const page = await connection
        .records(jobs)
        .page('byOwner', { equals: { owner: 'me', status: 'waiting' }, limit: 100 });
      assert.equal(page.records.length, 30);
    }));

  test('a write with a version keeps the columns it leaves out, and hundreds of writes are accepted', () =>
    on(async (connection) => {
      await connection.withLock(async (epoch) => {
        await connection.ensureTables([anyDefinition(jobs)]);
        const many = Array.from({ length: 250 }, (_, n) => recordWrite(jobs, job(`j${n}`)));
        const all = await connection.run([{ transactional: true, statements: [], writes: many }], epoch);
        assert.equal(all.failure, undefined);
        const write = { ...recordWrite(jobs, job('j3'), 1), record: { id: 'j3', body: { x: 1 } } };
        const part = await connection.run([{ transactional: true, statements: [], writes: [write] }], epoch);
        assert.equal(part.failure, undefined);
        const found = await connection.records(jobs).get('j3');
        assert.deepEqual([found?.version, found?.record.body, found?.record.status], [2, { x: 1 }, 'waiting']);
        assert.equal((await connection.records(jobs).page('byN', { limit: 1000 })).records.length, 250);
      });
    }));
}
