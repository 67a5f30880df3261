import * as assert from 'node:assert/strict';
import { anyDefinition, type RecordDefinition } from '../core/records.ts';
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

test('requests made during a round trip are sent as one', async () => {
  const sent: string[] = [];
  const exec: ExecSql = async (text) => {
    sent.push(text);
    await new Promise((resolve) => setImmediate(resolve));
    return text.split(';\n').map((one): Result => ({ rows: [{ one }], count: one.length }));
  };
  const group = new StatementBatcher(exec);
  const answers = await Promise.all([['a'], ['bb', 'c'], ['ddd'], ['e']].map((statements) => group.send(statements)));
  assert.deepEqual(sent, ['a', 'bb;\nc;\nddd;\ne']);
  assert.deepEqual(
    answers.map((results) => results.map(({ count }) => count)),
    [[1], [2, 1], [3], [1]],
  );
});

test('a failed request does not affect the others', async () => {
  const exec: ExecSql = async (text) => {
    await new Promise((resolve) => setImmediate(resolve));
    if (text.includes('bad')) throw new Error(`refused: ${text}`);
    return text.split(';\n').map((): Result => ({ rows: [], count: 1 }));
  };
  const group = new StatementBatcher(exec);
  const answers = await Promise.allSettled(['first', 'good', 'bad', 'fine'].map((text) => group.send([text])));
  assert.deepEqual(
    answers.map((answer) => (answer.status === 'rejected' ? answer.reason.message : answer.value.length)),
    [1, 1, 'refused: bad', 1],
  );
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
          `SET plan_cache_mode = force_generic_plan; EXPLAIN EXECUTE ${statement?.name}('a')`,
        );
        assert.match(JSON.stringify(lines), /Index Scan/);
      }),
    );
}
