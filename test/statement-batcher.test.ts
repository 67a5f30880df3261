import * as assert from 'node:assert/strict';
import { anyDefinition, type RecordDefinition } from '../core/records.ts';
import { notifyOf, notifySql } from '../plugins/dialects/postgresql/records/notifications.ts';
import { ReadsByKey } from '../plugins/dialects/sql/reads-by-key.ts';
import type { ExecSql, Result } from '../plugins/dialects/sql/session.ts';
import { StatementBatcher } from '../plugins/dialects/sql/statement-batcher.ts';
import { engines } from './kit/engines.ts';
import { test } from './kit/test.ts';

// Concurrent requests are sent together, and each caller gets its own result.

interface Thing {
  readonly id: string;
  readonly amount: number;
}

const things: RecordDefinition<Thing> = {
  collection: '_svc_test_things',
  key: 'id',
  columns: { id: { type: 'string' }, amount: { type: 'integer' } },
  indexes: [],
};

/** Sends to nobody: each statement has one result, which counts its characters. `answer` lets the oldest text be answered. */
function fakeSession() {
  const sent: string[] = [];
  const waiting: (() => void)[] = [];
  const exec: ExecSql = async (text) => {
    sent.push(text);
    await new Promise<void>((resolve) => waiting.push(resolve));
    if (text.includes('bad')) throw new Error(`refused: ${text}`);
    return text.split(';\n').map((one): Result => ({ rows: [], count: one.length }));
  };
  const answer = async () => {
    waiting.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { sent, exec, answer };
}

test('requests of one turn, and those made while two texts are under way, are sent together', async () => {
  const { sent, exec, answer } = fakeSession();
  const group = new StatementBatcher(exec);
  const counts: (number | undefined)[] = [];
  const request = async (text: string, next?: string): Promise<void> => {
    counts.push((await group.send(text))?.count);
    if (next !== undefined) await request(next);
  };
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const first = [request('a', 'fffff'), request('bb', 'gggggg')];
  await turn();
  const second = [request('ccc'), request('dddd')];
  await turn();
  const third = [request('e'), request('ee')];
  await turn();
  assert.deepEqual(sent, ['a;\nbb', 'ccc;\ndddd'], 'at most two are under way');
  await answer();
  assert.deepEqual(sent[2], 'e;\nee;\nfffff;\ngggggg', 'with what those who got a result asked for next');
  await answer();
  await answer();
  await Promise.all([...first, ...second, ...third]);
  assert.deepEqual(counts, [1, 2, 3, 4, 1, 2, 5, 6]);
});

test('a long queue is sent in several texts', async () => {
  const { sent, exec, answer } = fakeSession();
  const group = new StatementBatcher(exec);
  const all = Promise.all(Array.from({ length: 70 }, (_, at) => group.send(`s${at}`)));
  for (let left = 4; left > 0; left--) await answer();
  await all;
  assert.deepEqual(
    sent.map((text) => text.split(';\n').length),
    [32, 32, 6],
  );
});

test('a failed request does not affect the others', async () => {
  const { exec, answer } = fakeSession();
  const group = new StatementBatcher(exec);
  const all = Promise.allSettled(['first', 'good', 'bad', 'fine'].map((text) => group.send(text)));
  for (let left = 6; left > 0; left--) await answer();
  assert.deepEqual(
    (await all).map((one) => (one.status === 'rejected' ? one.reason.message : one.value?.count)),
    [5, 4, 'refused: bad', 4],
  );
});

test('the notices of a batch are sent with it, and those of a failed one with each request', async () => {
  const { sent, exec, answer } = fakeSession();
  const group = new StatementBatcher<string>(exec, (notices) => (notices.length > 0 ? [notices.join('+')] : []));
  const all = Promise.allSettled([group.send('a', 'x'), group.send('bad', 'y'), group.send('c')]);
  for (let left = 6; left > 0; left--) await answer();
  await all;
  assert.deepEqual(sent, ['a;\nbad;\nc;\nx+y', 'a;\nx', 'bad;\ny', 'c']);
});

test('reads of one turn are one read of their keys, each with its own row', async () => {
  const read: (readonly string[])[] = [];
  const rows = new ReadsByKey(async (keys) => {
    read.push(keys);
    if (keys.includes('bad')) throw new Error('refused');
    return new Map(keys.filter((key) => key !== 'missing').map((key) => [key, { key }]));
  });
  const found = await Promise.all(['a', 'b', 'missing', 'a'].map((key) => rows.get(key)));
  assert.deepEqual(found, [{ key: 'a' }, { key: 'b' }, undefined, { key: 'a' }]);
  assert.deepEqual(read, [['a', 'b', 'missing']]);
  const answers = await Promise.allSettled(['c', 'bad', 'd'].map((key) => rows.get(key)));
  assert.deepEqual(
    answers.map((one) => (one.status === 'rejected' ? one.reason.message : one.value)),
    [{ key: 'c' }, 'refused', { key: 'd' }],
  );
  await Promise.all(Array.from({ length: 100 }, (_, at) => rows.get(`k${at}`)));
  assert.deepEqual(
    read.slice(-2).map(({ length }) => length),
    [64, 36],
  );
});

test('a payload of NOTIFY has as many keys as there is room for', () => {
  const notices = Array.from({ length: 32 }, (_, at) => ({
    collection: 'things',
    key: `${at}${'\u0001'.repeat(250)}`,
  }));
  const statements = notifySql('"public".', [...notices, notices[0]!, { collection: 'others', key: "it's" }]);
  const payloads = statements.map((text) => /^NOTIFY "svc_\w{32}", (.*)$/s.exec(text)?.[1] ?? '');
  assert.equal(payloads.at(-1), `'["it''s"]'`);
  const things = payloads.slice(0, -1).map((payload) => payload.slice(1, -1));
  assert.ok(things.every((payload) => Buffer.byteLength(payload) < 8_000));
  const keysIn = (payload: string): (string | undefined)[] => {
    const keys: (string | undefined)[] = [];
    notifyOf(payload, (key) => keys.push(key));
    return keys;
  };
  assert.deepEqual(
    things.flatMap((payload) => keysIn(payload)),
    notices.map(({ key }) => key),
  );
  assert.equal(things.length, 11, 'three keys of 1,500 bytes in each');
  const others = ['["a","b"]', '', 'of somebody else', '{}'].map(keysIn);
  assert.deepEqual(others, [['a', 'b'], [undefined], [undefined], [undefined]]);
});

for (const engine of engines) {
  const name = `${engine.name}: concurrent writes each get their own result`;
  if (engine.missing !== undefined) test.skip(name, engine.missing);
  else
    test(name, () =>
      engine.withDatabase(async ({ connection }, again) => {
        await connection.ensureTables([anyDefinition(things)]);
        const stores = [connection, (await again()).connection].map((one) => one.records(things));
        const inserts = await Promise.allSettled(
          Array.from({ length: 200 }, (_, at) =>
            stores[at % 2]!.insert({ id: at % 50 === 7 ? `\0${at}` : `thing ${at % 90}`, amount: at }),
          ),
        );
        const refused = inserts.filter(({ status }) => status === 'rejected');
        assert.equal(refused.length, 4, 'each error is about a NUL character');
        const inserted = inserts.filter((one) => one.status === 'fulfilled' && one.value === 'inserted');
        assert.equal(inserted.length, 90, 'each name once');
        const changes = await Promise.all(
          Array.from({ length: 300 }, (_, at) =>
            stores[at % 2]!.replace(`thing ${at % 100}`, 1, { id: `thing ${at % 100}`, amount: -at }),
          ),
        );
        const count = (answer: string) => changes.filter((one) => one === answer).length;
        assert.deepEqual([count('replaced'), count('stale'), count('missing')], [90, 180, 30]);
      }),
    );
}

for (const engine of engines) {
  const name = `${engine.name}: statements that the session no longer has are prepared again`;
  if (engine.missing !== undefined) test.skip(name, engine.missing);
  else
    test(name, () =>
      engine.withDatabase(async ({ connection }) => {
        await connection.ensureTables([anyDefinition(things)]);
        const store = connection.records(things);
        const prepared = async () => (await connection.query('SELECT name FROM pg_prepared_statements')).length;
        const used = async (round: number) => {
          const ids = Array.from({ length: 20 }, (_, at) => `thing ${round}.${at}`);
          assert.deepEqual(
            new Set(await Promise.all(ids.map((id) => store.insert({ id, amount: 1 })))),
            new Set(['inserted']),
          );
          const replaced = await Promise.all(ids.map((id) => store.replace(id, 1, { id, amount: 2 })));
          assert.deepEqual(new Set(replaced), new Set(['replaced']));
          for (const id of ids) assert.deepEqual(await store.get(id), { record: { id, amount: 2 }, version: 2 });
        };
        await used(1);
        assert.equal(await prepared(), 3);
        await connection.query('DEALLOCATE ALL');
        await used(2);
        assert.equal(await prepared(), 3);
      }),
    );

  const plan = `${engine.name}: a plan from when a table was small does not scan all of it later`;
  if (engine.missing !== undefined) test.skip(plan, engine.missing);
  else
    test(plan, () =>
      engine.withDatabase(async ({ connection }) => {
        await connection.ensureTables([anyDefinition(things)]);
        const store = connection.records(things);
        await store.insert({ id: 'a', amount: 1 });
        await connection.query(`ANALYZE ${things.collection}`);
        for (let round = 0; round < 20; round++) await store.get('a');
        const [statement] = await connection.query('SELECT name FROM pg_prepared_statements');
        const [, ...lines] = await connection.query(
          `SET plan_cache_mode = force_generic_plan; EXPLAIN EXECUTE ${statement?.name}(ARRAY['a'])`,
        );
        assert.match(JSON.stringify(lines), /Index Scan/);
      }),
    );
}
