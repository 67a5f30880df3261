import * as assert from 'node:assert/strict';
import { drift } from '../core/migration/drift.ts';
import { History, historyModel } from '../core/migration/history.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import { listKept, purge } from '../core/migration/purge.ts';
import type { Target } from '../core/migration/target.ts';
import type { MigrationOperation } from '../core/schema/operation.ts';
import { cutConnection } from './kit/cut-connection.ts';
import { callsToInterrupt } from './kit/every-call.ts';
import { mapConcurrently } from './kit/map-concurrently.ts';
import { definedInCode, reversible } from './kit/migrations.ts';
import { prepareMigrators } from './kit/migrators.ts';
import { freshFolder } from './kit/pglite.ts';
import { sixEngines } from './kit/six-engines.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// A process that keeps, restores or purges is killed before any call to the database, or loses its connection between two
// statements. Every row is then in its place or kept, and the next run finishes.

const SLOW = { timeoutMs: 900_000 };
const KEEPING = ['postgresql', 'mysql', 'mariadb', 'mongodb'];
const key = { name: 'id', type: 'integer', primaryKey: true } as const;
const ground: readonly MigrationOperation[] = [
  { type: 'createCollection', name: 'orders', fields: [key, { name: 'note', type: 'string' }] },
  {
    type: 'createCollection',
    name: 'people',
    fields: [key, { name: 'code', type: 'string', length: 40, required: true, unique: true }],
  },
  { type: 'createIndex', collection: 'orders', index: 'orders_note', columns: [{ name: 'note' }] },
];
const drops: readonly MigrationOperation[] = [
  { type: 'dropField', collection: 'people', field: 'code' },
  { type: 'dropCollection', collection: 'orders' },
];
const first = reversible('20260101_000000_ground', ground);
const drop = reversible('20260102_000000_drop', drops, ground);
const both = [first, drop].map(definedInCode);

const rowsOf = {
  orders: [
    { id: 1, note: 'ß🎉' },
    { id: 2, note: null },
  ],
  people: [
    { id: 1, code: 'a' },
    { id: 2, code: 'b' },
  ],
};

async function fill({ connection, dialect }: Target): Promise<void> {
  for (const [table, rows] of Object.entries(rowsOf)) {
    if (dialect.name === 'mongodb') await connection.query(JSON.stringify({ insert: table, documents: rows }));
    else
      for (const row of rows)
        await connection.query(
          `INSERT INTO ${table} (${Object.keys(row).join(', ')}) VALUES (${Object.values(row)
            .map((value) => (typeof value === 'string' ? `'${value}'` : String(value)))
            .join(', ')})`,
        );
  }
}

async function assertRestored(target: Target): Promise<void> {
  const { connection, dialect } = target;
  assert.deepEqual(await drift(connection, await historyModel(target), await connection.introspect()), []);
  for (const [table, rows] of Object.entries(rowsOf)) {
    const text =
      dialect.name === 'mongodb'
        ? JSON.stringify({ find: table, sort: { id: 1 }, projection: { _id: 0 } })
        : `SELECT * FROM ${table} ORDER BY id`;
    assert.deepEqual(structuredClone(await connection.query(text)), rows);
  }
  assert.deepEqual(await listKept(target), []);
}

const isDropApplied = async ({ connection }: Target): Promise<boolean> =>
  (await History.read(connection)).records.get(drop.tag)?.row.status === 'completed';

type Action = 'migrate' | 'rollback' | 'purge';

/** A database before an action. */
async function prepare(target: Target, action: Action): Promise<void> {
  await migrate(target, both.slice(0, 1));
  await fill(target);
  if (action !== 'migrate') await migrate(target, both, { keepMs: 0 });
}

/** What a person does after an interruption, and what must then be seen. */
async function finish(target: Target, action: Action): Promise<void> {
  if (action === 'purge') {
    await purge(target, { allowDestructive: true });
    assert.deepEqual(await listKept(target), []);
    assert.deepEqual(
      await drift(target.connection, await historyModel(target), await target.connection.introspect()),
      [],
    );
    return;
  }
  if (action === 'migrate') {
    await migrate(target, both, { keepMs: 0 });
    assert.equal((await listKept(target)).length, 2);
  }
  const history = await History.read(target.connection);
  if (history.records.get(drop.tag)?.row.status !== 'rolled_back') await rollback(target);
  assert.equal(await isDropApplied(target), false);
  await assertRestored(target);
}

const servers = sixEngines.filter(({ name }) => KEEPING.includes(name));
const engines = [
  ...servers.map((engine) => ({
    ...engine,
    title: engine.name as string,
    step: engine.name === 'postgresql' ? 5 : 13,
  })),
  { ...servers[0], name: 'postgresql', title: 'pglite', step: 17, missing: undefined, createDatabase: freshFolder },
];

for (const { name, title, dialect, step, missing, createDatabase } of engines) {
  const it = (what: string, body: () => Promise<void>) =>
    missing === undefined ? test(`${title}: ${what}`, body, SLOW) : test.skip(`${title}: ${what}`, missing);
  assert.ok(dialect);

  for (const action of ['migrate', 'rollback', 'purge'] as const) {
    it(`after a kill before any call of a ${action}, nothing is lost and the next run finishes`, async () => {
      const start = await prepareMigrators(name, [first, drop]);
      let isFinished = false;
      const places = function* () {
        // The others begin at random, where a short action may be over.
        yield 3;
        yield* callsToInterrupt(step, () => isFinished);
      };
      const kills = await mapConcurrently(places(), async (at) => {
        const { url, drop: remove } = await createDatabase();
        const within = async (body: (target: Target) => Promise<void>) => {
          const target = await connectTarget(dialect, url);
          await body(target).finally(() => target.connection.close());
        };
        try {
          await within((target) => prepare(target, action));
          const options = action === 'migrate' ? { keepMs: 0 } : { action };
          const { code, signal, err } = await start(url, at, options).ended;
          if (signal !== 'SIGKILL') assert.equal(code, 0, err);
          isFinished ||= signal !== 'SIGKILL';
          await within((target) => finish(target, action));
          return signal === 'SIGKILL';
        } catch (error) {
          throw new Error(`killed at ${at}: ${error}`, { cause: error });
        } finally {
          await remove();
        }
      });
      assert.ok(kills.filter(Boolean).length >= 1, 'nothing was killed');
    });

    if (dialect.capabilities.transactionalDdl) continue;
    it(`after a connection is lost between any two statements of a ${action}, nothing is lost`, async () => {
      for (let at = 1; ; at += 1) {
        const { url, drop: remove } = await createDatabase();
        const target = await connectTarget(dialect, url);
        try {
          await prepare(target, action);
          const cut = { ...target, connection: cutConnection(target.connection, at) };
          const run = {
            migrate: () => migrate(cut, both, { keepMs: 0 }),
            rollback: () => rollback(cut),
            purge: () => purge(cut, { allowDestructive: true }),
          }[action];
          const failure = await run().then(
            () => undefined,
            (error) => error,
          );
          if (failure) await expectError(Promise.reject(failure), 'connection_lost');
          await finish(target, action).catch((error) => {
            throw new Error(`cut at ${at}: ${error}`, { cause: error });
          });
          if (!failure) {
            assert.ok(at > 3, `only ${at} points`);
            return;
          }
        } finally {
          await target.connection.close();
          await remove();
        }
      }
    });
  }
}
