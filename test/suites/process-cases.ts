import * as assert from 'node:assert/strict';
import { isSvcError } from '../../core/errors.ts';
import type { SchemaModel } from '../../core/schema/model.ts';
import type { Operation } from '../../core/schema/operation.ts';
import { connectUnlessInUse } from './connect-when-free.ts';
import type { DeclareDialectCase } from './dialect-case.ts';
import type { DialectUnderTest } from './dialect-under-test.ts';
import { things } from './record-store-suite.ts';
import { runOperations } from './run-operations.ts';
import { ID } from './supported-operations.ts';

const TABLE = 'kept';
const KEY = 'written by another process';
const ROUNDS = 5;
/** Records that each of two processes writes. */
const WRITES = 100;
const HOUR_MS = 3_600_000;

/** Cases with several processes, some of which are killed. */
export function processCases(on: DeclareDialectCase, engine: DialectUnderTest): void {
  const { dialect, options = {} } = engine;

  on(
    'what a killed process wrote is there for the next one',
    'When `run`, `insert` and `withLock` have returned, their effects survive the death of the process. The lock of a dead process is released, and the next epoch is one higher.',
    async ({ url, connect, start, engine }) => {
      const child = start();
      const operations: Operation[] = [
        { type: 'createCollection', name: TABLE, fields: [ID] },
        { type: 'raw', dialect: dialect.name, ...engine.raw(TABLE) },
      ];
      const epoch = await child.run('write', url, options, operations, KEY);
      await child.kill();
      const connection = await connect();
      assert.deepEqual([...(await connection.introspect()).keys()], [TABLE]);
      assert.deepEqual(
        (await engine.read(connection, TABLE)).map(({ id }) => Number(id)),
        [7],
      );
      assert.equal((await connection.records(things).get(KEY))?.record.size, 1);
      assert.equal(await connection.withLock(async (next) => next), epoch + 1);
    },
  );

  on(
    'what was acknowledged while another process wrote survives a kill',
    'A write of a record that has been acknowledged, under the lock or not, survives the death of its process, also if writes before it failed because another process was writing.',
    async ({ url, connect, start }) => {
      const names = ['one', 'two'];
      const writers = names.map(() => start());
      // Both have loaded the dialect before the first one writes.
      await Promise.all(writers.map((writer) => writer.run('identify', url)));
      const acknowledged = await Promise.all(
        writers.map(async (writer, at) => {
          const keys = await writer.run('acknowledge', url, options, names[at]!, WRITES);
          await writer.kill();
          return keys;
        }),
      );
      const store = (await connect()).records(things);
      for (const [at, keys] of acknowledged.entries()) {
        const found = await Promise.all(keys.map((key) => store.get(key)));
        const lost = keys.filter((_, index) => found[index] === undefined);
        const message = `${lost.length} of ${WRITES} records that process ${names[at]} wrote are lost: ${lost.slice(0, 5)}`;
        assert.equal(lost.length, 0, message);
      }
    },
  );

  on(
    'the lock excludes other processes until its holder dies',
    'While another process holds the lock, `withLock` fails with `lock_timeout` and `isLocked` is true, or `connect` fails with `database_in_use`. When the holder is killed, the next process acquires the lock with an epoch that is one higher.',
    async ({ url, connect, start }) => {
      const holder = start();
      const epoch = await holder.run('hold', url, options);
      const other = await connectUnlessInUse(dialect, url, options);
      try {
        if (other) {
          await assert.rejects(
            other.withLock(async () => {}, { timeoutMs: 300 }),
            (error) => isSvcError(error) && error.code === 'lock_timeout',
            'the lock was acquired while another process held it',
          );
          assert.equal(await other.isLocked(), true);
        }
        await holder.kill();
      } finally {
        await other?.close();
      }
      const next = await connect();
      assert.equal(await next.withLock(async (one) => one, { timeoutMs: 90_000 }), epoch + 1);
      assert.equal(await next.isLocked(), false);
    },
  );

  on(
    'two processes that compete for the lock hold it in turn',
    'The lock has one holder across all processes, and each holder has an epoch of its own, one higher than that of the previous holder.',
    async ({ url, start }) => {
      const racers = [start(), start()];
      const epochs = (await Promise.all(racers.map((racer) => racer.run('race', url, options, ROUNDS)))).flat();
      const first = Math.min(...epochs);
      assert.deepEqual(
        epochs.sort((a, b) => a - b),
        Array.from({ length: 2 * ROUNDS }, (_, index) => first + index),
      );
    },
  );

  on(
    'a deadline does not depend on the clock of the process',
    '`now` and the deadline of `replace` use the clock of the engine, also in a process whose clock is wrong.',
    async ({ connect, start, url }) => {
      // The clock of this process is right.
      const connection = await connect();
      const now = (await connection.now()).getTime();
      await connection.close();
      const halfAnHour = HOUR_MS / 2;
      for (const clockMs of [HOUR_MS, -HOUR_MS]) {
        const clock = `the clock of the process is an hour ${clockMs > 0 ? 'ahead' : 'late'}`;
        const found = await start().run('replaceAround', url, options, clockMs, [now + halfAnHour, now - halfAnHour]);
        assert.deepEqual(found.outcomes, ['replaced', 'late'], clock);
        assert.ok(Math.abs(found.now - now) < halfAnHour, `now() depends on the clock of the process: ${clock}`);
      }
    },
  );

  on(
    'the catalog is read again each time',
    '`introspect` returns what the database has at that moment, also after a change by another connection or process.',
    async ({ url, connect, start }) => {
      const [connection, other] = [await connect(), await connect()];
      const create = (name: string): Operation => ({ type: 'createCollection', name, fields: [ID] });
      const add = (name: string): Operation => ({
        type: 'addField',
        collection: TABLE,
        field: { name, type: 'integer' },
      });
      const assertSeen = async (tables: readonly string[], fields: readonly string[], changedBy: string) => {
        const read = async () => [
          [...(await connection.introspect()).keys()].sort(),
          [...((await connection.introspect([TABLE])).get(TABLE)?.fields.keys() ?? [])],
          [...((await connection.introspectWhole?.())?.model.keys() ?? tables)].sort(),
        ];
        assert.deepEqual(
          await read(),
          [tables, fields, tables],
          `the tables, and the fields of "${TABLE}", ${changedBy}`,
        );
      };
      await assertSeen([], [], 'of a new database');
      let model: SchemaModel = new Map();
      for (const [operation, tables, fields] of [
        [create(TABLE), [TABLE], ['id']],
        [add('a'), [TABLE], ['id', 'a']],
        [create('other'), [TABLE, 'other'], ['id', 'a']],
        [{ type: 'dropCollection', collection: 'other' }, [TABLE], ['id', 'a']],
      ] as const) {
        model = await runOperations(dialect, other, [operation], model);
        await assertSeen(tables, fields, `after a change by another connection: ${operation.type}`);
      }
      const operations = [add('b'), create('other')];
      if (!(await start().run('change', url, options, operations, model))) return;
      await assertSeen([TABLE, 'other'], ['id', 'a', 'b'], 'after a change by another process');
    },
  );

  on(
    'a database has one identity in every process, without credentials',
    '`identify` returns the same for every URL of a database, in every process and with any credentials, which it does not contain. Two databases have different identities.',
    async ({ url, start }) => {
      const identity = dialect.identify(url);
      assert.equal(dialect.identify(url), identity, 'a second call');
      assert.equal(await start().run('identify', url), identity, 'another process');
      const other = await engine.createDatabase();
      try {
        assert.notEqual(dialect.identify(other.url), identity, 'another database');
      } finally {
        await other.drop();
      }
      const withCredentials = identifyWith(engine, url, 'somebody', 'p4ssw0rd');
      if (withCredentials === undefined) return;
      assert.doesNotMatch(withCredentials, /p4ssw0rd/, 'the identity contains the password');
      assert.equal(withCredentials, identity, 'the URL with other credentials');
    },
  );
}

/** The identity of a URL with credentials; undefined if the URLs of the dialect have none. */
function identifyWith({ dialect }: DialectUnderTest, url: string, user: string, password: string): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const withCredentials = new URL(url);
  withCredentials.username = user;
  withCredentials.password = password;
  try {
    return dialect.identify(withCredentials.href);
  } catch (error) {
    if (isSvcError(error) && error.code === 'url_invalid') return undefined;
    throw error;
  }
}
