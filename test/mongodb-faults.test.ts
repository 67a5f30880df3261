import * as assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { type Document, Long } from 'mongodb';
import type { Statement } from '../core/dialect.ts';
import { isSvcError, type SvcError } from '../core/errors.ts';
import { migration } from '../core/migration/builder.ts';
import { migrate } from '../core/migration/migrate.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import { resolveMigration } from '../core/migration/resolve.ts';
import { anyDefinition, type RecordDefinition, recordWrite } from '../core/records.ts';
import type { Operation } from '../core/schema/operation.ts';
import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { withClockAhead } from './kit/clock-ahead.ts';
import { definedInCode } from './kit/migrations.ts';
import { prepareMigrators } from './kit/migrators.ts';
import { freshMongo, missing } from './kit/mongodb.ts';
import { type ProxiedCommand, type ProxyAction, startMongoProxy } from './kit/mongodb-proxy.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { freePort } from './suites/free-port.ts';
import { waitUntil } from './suites/wait-until.ts';

// A server that is down, slow or dies; a primary that steps down; a lock owner that dies or sleeps.

const LEASE_MS = 2000;
const SLOW = { timeoutMs: 180_000 };

async function rejectionOf(work: Promise<unknown>): Promise<SvcError> {
  try {
    await work;
  } catch (error) {
    if (isSvcError(error)) return error;
    throw error;
  }
  throw new Error('an error was expected');
}

const tables = migration('20260101_000000_tables')
  .createCollection('users', [{ name: 'n', type: 'integer' }])
  .build();
const filled = migration('20260102_000000_filled')
  .addField('users', { name: 'kind', type: 'text', default: 'person', required: true })
  .build();

const orders = migration('20260103_000000_orders')
  .createCollection('orders', [
    { name: 'n', type: 'integer', unique: true },
    { name: 's', type: 'string', length: 5, required: true },
  ])
  .build();

/** The partial filter of a unique index on an optional number. */
const NUMBERS = { n: { $gte: { $numberDouble: '-Infinity' } } };

/** Whether a command on a collection of svc has no time limit. Writing a new epoch to records needs none. */
function hasNoTimeLimit(name: string, target: string, command: Document): boolean {
  if (!target.startsWith('_svc_')) return false;
  if (name === 'find') return !command.maxTimeMS;
  if (!['insert', 'update', 'delete', 'findAndModify'].includes(name)) return false;
  const confirmed = command.autocommit !== undefined || command.writeConcern?.wtimeout;
  return !confirmed || !(command.maxTimeMS || command.updates?.[0].multi);
}

const notes: RecordDefinition<{ readonly id: string; readonly n: number }> = {
  collection: '_svc_notes',
  key: 'id',
  columns: { id: { type: 'string' }, n: { type: 'integer' } },
  indexes: [],
};

/** On a database with 500 documents in `users`, through a proxy that decides the fate of each command. */
async function withProxy(
  decide: (passing: ProxiedCommand) => ProxyAction | undefined,
  body: (url: string, direct: string, count: (filter: object) => Promise<number>) => Promise<void>,
): Promise<void> {
  const database = await freshMongo();
  const proxy = await startMongoProxy(database.url, decide);
  try {
    const adapter = await connectTarget(mongodb, database.url);
    await new MigrationEngine(adapter).up(tables);
    await adapter.connection.close();
    const documents = Array.from({ length: 500 }, (_, n) => ({ n }));
    await database.on((client, name) => client.db(name).collection('users').insertMany(documents));
    await body(proxy.url, database.url, (filter) =>
      database.on((client, name) => client.db(name).collection('users').countDocuments(filter)),
    );
  } finally {
    await proxy.close();
    await database.drop();
  }
}

if (missing) test.skip('faults on MongoDB', missing);
else {
  test('no server, a server that does not answer, an invalid URL', async () => {
    const port = await freePort();
    const down = await rejectionOf(mongodb.connect(`mongodb://127.0.0.1:${port}/shop`, { connectTimeoutMs: 300 }));
    assert.equal(down.code, 'connection_failed');
    assert.equal(down.state, 'Nothing was changed.');
    const silent = await startMongoProxy('mongodb://127.0.0.1:1/shop', () => 'hang');
    const nothing = await rejectionOf(mongodb.connect(silent.url, { connectTimeoutMs: 300 }));
    assert.equal(nothing.code, 'connection_failed');
    await silent.close();
    for (const url of [
      'mongodb://host',
      'mongodb://host/',
      'http://host/shop',
      'mongodb://user:p%zz@/x',
      'mongodb://a:se%cret@host/x',
    ]) {
      const error = await rejectionOf(mongodb.connect(url, { connectTimeoutMs: 300 }));
      assert.equal(error.code, 'url_invalid', url);
      assert.doesNotMatch(JSON.stringify([error.message, error.why, error.next]), /se%cret|p%zz/);
    }
    assert.equal(mongodb.identify('mongodb://u:p@B:1,a/shop?x=1'), 'mongodb:a:27017,b:1/shop');
    const option = await rejectionOf(mongodb.connect('mongodb://host/shop', { leaseMs: -1 }));
    assert.equal(option.code, 'config_invalid');
  });

  test('credentials that are wrong, missing, or not supported by the server', async () => {
    const database = await freshMongo();
    const seen: string[] = [];
    const rejectedWith = async (code: number, command: string, user: string) => {
      const proxy = await startMongoProxy(database.url, ({ name }) => {
        seen.push(name);
        return name === command ? { code, errmsg: `no such command: '${name}'` } : 'pass';
      });
      try {
        const url = proxy.url.replace('//', `//${user}`);
        const error = await rejectionOf(
          (async () => {
            const { connection } = await connectTarget(mongodb, url, { connectTimeoutMs: 2000 });
            await connection.introspect().finally(() => connection.close());
          })(),
        );
        assert.doesNotMatch(JSON.stringify([error.message, error.why, error.next]), /s3cret/);
        return error;
      } finally {
        await proxy.close();
      }
    };
    try {
      const wrong = await rejectedWith(18, 'saslStart', 'ann:s3cret@');
      assert.equal(wrong.code, 'authentication_failed');
      assert.match(wrong.next?.join() ?? '', /authSource/);
      assert.equal(wrong.state, 'Nothing was changed.');
      const useless = await rejectedWith(59, 'saslStart', 'ann:s3cret@');
      assert.equal(useless.code, 'authentication_failed');
      assert.match(useless.next?.join() ?? '', /[Ll]eave user and password out/);
      // Without a user the driver does not authenticate, and the first command that needs a user fails.
      const missing = await rejectedWith(13, 'listCollections', '');
      assert.equal(missing.code, 'permission_denied', seen.join());
      assert.match(missing.next?.join() ?? '', /user/);
    } finally {
      await database.drop();
    }
  });

  test(
    'after a primary stepped down or a connection broke, the command is sent again and takes effect once',
    async () => {
      const fates = new Map<string, ProxyAction[]>([
        ['collMod', [{ code: 189 }, 'lose']],
        ['update users', ['lose', { code: 11600 }, 'lose', { code: 89 }]],
        // The cursor of a server that was restarted.
        ['getMore', [{ code: 43 }, 'lose']],
        ['createIndexes', [{ code: 10107 }, { code: 6 }]],
        // The driver retries these by itself.
        ['update _svc_registry', ['lose', 'lose']],
      ]);
      let bad = 0;
      await withProxy(
        ({ name, command }) => {
          const fate = fates.get(name === 'update' ? `update ${command.update}` : name)?.shift();
          if (fate) bad += 1;
          return fate;
        },
        async (url, _direct, count) => {
          const adapter = await connectTarget(mongodb, url, { batchSize: 100, leaseMs: 10_000 });
          const result = await new MigrationEngine(adapter).up(
            migration('20260103_000000_all')
              .addField('users', { name: 'kind', type: 'text', default: 'person', required: true })
              .createIndex('users', 'users_kind', [{ name: 'kind' }])
              .build(),
          );
          assert.equal(result.status, 'completed');
          assert.equal(await count({ kind: 'person' }), 500);
          await adapter.connection.close();
        },
      );
      assert.equal(bad, 12);
    },
    SLOW,
  );

  test(
    'a lost server stops the run, and the next run continues from there',
    async () => {
      let gone = false;
      let updates = 0;
      await withProxy(
        ({ name, command }) => {
          if (name === 'update' && command.update === 'users' && ++updates === 3) gone = true;
          return gone ? 'lose' : 'pass';
        },
        async (url, direct, count) => {
          const adapter = await connectTarget(mongodb, url, { batchSize: 100, leaseMs: LEASE_MS });
          const error = await rejectionOf(new MigrationEngine(adapter).up(filled));
          assert.ok(['connection_lost', 'lock_lost'].includes(error.code), error.code);
          await adapter.connection.close();
          gone = false;
          updates = 10;
          const next = await connectTarget(mongodb, direct, { leaseMs: LEASE_MS });
          await migrate(next, [tables, filled].map(definedInCode));
          assert.equal(await count({ kind: 'person' }), 500);
          await next.connection.close();
        },
      );
    },
    SLOW,
  );

  test(
    'a duplicate inserted between the check and the index build is an error, and the rest runs once it is removed',
    async () => {
      await withProxy(
        () => 'pass',
        async (_url, direct, count) => {
          const adapter = await connectTarget(mongodb, direct, { leaseMs: LEASE_MS });
          const index = migration('20260103_000000_index')
            .createIndex('users', 'users_n', [{ name: 'n' }], { unique: true })
            .build();
          const racing = await startMongoProxy(direct, ({ name }) =>
            name === 'createIndexes' ? { code: 11000 } : 'pass',
          );
          const late = await connectTarget(mongodb, racing.url, { leaseMs: LEASE_MS });
          const error = await rejectionOf(new MigrationEngine(late).up(index));
          assert.equal(error.code, 'data_violates');
          await late.connection.close();
          await racing.close();
          assert.equal((await new MigrationEngine(adapter).up(index)).status, 'completed');
          assert.equal(await count({}), 500);
          await adapter.connection.close();
        },
      );
    },
    SLOW,
  );

  test(
    'a listed index may still be building: the command is sent again and reports the result',
    async () => {
      await withProxy(
        () => 'pass',
        async (_url, direct) => {
          const index = migration('20260103_000000_index')
            .createIndex('users', 'users_n', [{ name: 'n' }], { unique: true })
            .build();
          const adapter = await connectTarget(mongodb, direct, { leaseMs: LEASE_MS });
          const build = { name: 'users_n', key: { n: 1 }, unique: true, partialFilterExpression: NUMBERS };
          await adapter.connection.query(JSON.stringify({ createIndexes: 'users', indexes: [build] }));
          const failing = await startMongoProxy(direct, ({ name }) =>
            name === 'createIndexes' ? { code: 11000 } : 'pass',
          );
          const late = await connectTarget(mongodb, failing.url, { leaseMs: LEASE_MS });
          const error = await rejectionOf(new MigrationEngine(late).up(index));
          assert.equal(error.code, 'data_violates');
          assert.match(error.why ?? '', /11000: an injected fault/);
          await late.connection.close();
          await failing.close();
          assert.equal((await new MigrationEngine(adapter).up(index)).status, 'completed');
          assert.deepEqual(
            [...((await adapter.connection.introspect()).get('users')?.indexes.keys() ?? [])],
            ['users_n'],
          );
          await adapter.connection.close();
        },
      );
    },
    SLOW,
  );

  test(
    'an index build waits for a majority of members, not for one that is down, if the server supports commitQuorum',
    async () => {
      const unknown = "BSON field 'createIndexes.commitQuorum' is an unknown field.";
      for (const known of [true, false]) {
        const quorums: unknown[] = [];
        await withProxy(
          ({ name, command }) => {
            if (name !== 'createIndexes') return 'pass';
            quorums.push(command.commitQuorum);
            return known || !command.commitQuorum ? 'pass' : { answer: { ok: 0, code: 40415, errmsg: unknown } };
          },
          async (url) => {
            const adapter = await connectTarget(mongodb, url, { leaseMs: LEASE_MS });
            const { connection } = adapter;
            const [hello] = await connection.query('{ "hello": 1 }');
            const hasMembers = hello?.setName !== undefined || hello?.msg === 'isdbgrid';
            const index = { name: 'byN', equals: [], sort: 'n' } as const;
            await connection.withLock(() => connection.ensureTables([anyDefinition({ ...notes, indexes: [index] })]));
            await new MigrationEngine(adapter).up(
              migration('20260103_000000_index')
                .createIndex('users', 'users_n', [{ name: 'n' }])
                .build(),
            );
            const each = [...(hasMembers ? ['majority'] : []), ...(hasMembers && known ? [] : [undefined])];
            assert.deepEqual(quorums.slice(-2 * each.length), [...each, ...each]);
            const model = await connection.introspect();
            assert.deepEqual([...(model.get('users')?.indexes.keys() ?? [])], ['users_n']);
            await connection.close();
          },
        );
      }
    },
    SLOW,
  );

  test(
    'an announcement without a collection does not claim a collection of another program',
    async () => {
      await withProxy(
        () => 'pass',
        async (_url, direct) => {
          const adapter = await connectTarget(mongodb, direct, { leaseMs: LEASE_MS });
          const engine = new MigrationEngine(adapter);
          const write = (command: object) => adapter.connection.query(JSON.stringify(command));
          const others = { insert: 'orders', documents: [{ theirs: true }] };
          const isOthers = async () => {
            const error = await rejectionOf(engine.up(orders));
            assert.equal(error.code, 'collection_exists');
            assert.match(error.message, /already exists/);
            assert.deepEqual(
              [...((await adapter.connection.introspect()).get('orders')?.fields.keys() ?? [])],
              ['_id', 'theirs'],
            );
            assert.deepEqual(
              (await engine.getHistory({ all: true })).map(({ tag }) => tag),
              [tables.tag],
            );
          };
          // The server rejects the create command.
          const refusing = await startMongoProxy(direct, ({ name }) => (name === 'create' ? { code: 13 } : 'pass'));
          const first = await connectTarget(mongodb, refusing.url, { leaseMs: LEASE_MS });
          assert.equal((await rejectionOf(new MigrationEngine(first).up(orders))).code, 'permission_denied');
          await first.connection.close();
          await refusing.close();
          assert.deepEqual(await write({ find: '_svc_registry', filter: { _id: 'orders' } }), []);
          await write(others);
          await isOthers();
          await write({ drop: 'orders' });
          // The state after a process died between announcement and creation.
          const [create] = mongodb.compile(orders.up[0] as Operation, new Map()) as [Statement];
          const { entry } = create.run as { entry: string };
          await write({ insert: '_svc_registry', documents: [{ _id: 'orders', entry, creating: true, _epoch: 1 }] });
          await write(others);
          await isOthers();
          await write({ drop: 'orders' });
          // Servers before MongoDB 7 report an equal collection as existing: it is the one of the lost attempt.
          let sent = 0;
          const old = await startMongoProxy(direct, ({ name }) => {
            if (name !== 'create') return 'pass';
            sent += 1;
            return sent === 1 ? 'lose' : { code: 48 };
          });
          const last = await connectTarget(mongodb, old.url, { leaseMs: LEASE_MS });
          assert.equal((await new MigrationEngine(last).up(orders)).status, 'completed');
          assert.equal(sent, 2);
          await last.connection.close();
          await old.close();
          await adapter.connection.close();
        },
      );
    },
    SLOW,
  );

  test(
    'without a majority commands time out, and an unconfirmed write may have been applied',
    async () => {
      const unlimited: string[] = [];
      let late: string | undefined;
      await withProxy(
        ({ name, command }) => {
          const target = String(command[name]);
          if (name === 'commitTransaction' ? !command.writeConcern?.wtimeout : hasNoTimeLimit(name, target, command)) {
            unlimited.push(`${name} ${target}`);
          }
          return late === `${name} ${target}` ? 'unconfirmed' : 'pass';
        },
        async (url, direct, count) => {
          const adapter = await connectTarget(mongodb, url, { leaseMs: LEASE_MS });
          const engine = new MigrationEngine(adapter);
          await adapter.connection.withLock(() => adapter.connection.ensureTables([anyDefinition(notes)]));
          const store = adapter.connection.records(notes);
          assert.equal(await store.insert({ id: 'a', n: 1 }), 'inserted');
          late = 'update _svc_notes';
          const unconfirmed = await rejectionOf(store.replace('a', 1, { id: 'a', n: 2 }));
          assert.equal(unconfirmed.code, 'connection_lost');
          assert.match(unconfirmed.why ?? '', /^64: waiting for replication timed out/);
          assert.deepEqual(await store.get('a'), { record: { id: 'a', n: 2 }, version: 2 });
          late = 'delete _svc_notes';
          assert.equal((await rejectionOf(store.remove('a', 2))).code, 'connection_lost');
          assert.equal(await store.get('a'), undefined);
          late = 'update _svc_registry';
          assert.equal((await rejectionOf(engine.up(filled))).code, 'connection_lost');
          await adapter.connection.close();
          late = undefined;
          const next = await connectTarget(mongodb, direct, { leaseMs: LEASE_MS });
          await migrate(next, [tables, filled].map(definedInCode));
          assert.equal(await count({ kind: 'person' }), 500);
          await next.connection.close();
        },
      );
      assert.deepEqual([...new Set(unlimited)], []);
    },
    SLOW,
  );

  test(
    'a change of the shard key is rejected before anything is changed',
    () => {
      let key: Document | undefined = { 'n.deep': 1, other: 'hashed' };
      return withProxy(
        ({ name, command }) => {
          if (name === 'collStats') return { answer: { sharded: true } };
          if (name !== 'find' || command.find !== 'collections') return 'pass';
          if (!key) return { code: 13 };
          const firstBatch = [{ _id: command.filter._id, key }];
          return { answer: { cursor: { id: Long.ZERO, ns: 'config.collections', firstBatch } } };
        },
        async (url, _direct, count) => {
          const adapter = await connectTarget(mongodb, url, { leaseMs: LEASE_MS });
          const engine = new MigrationEngine(adapter);
          const was = { type: 'integer' } as const;
          const changes = [
            migration('20260103_000000_a').dropField('users', 'n', { was }).build(),
            migration('20260103_000000_b').renameField('users', 'n', 'm').build(),
            migration('20260103_000000_c').modifyField('users', 'n', { type: 'text' }, { was }).build(),
          ];
          const before = await adapter.connection.introspect();
          for (const change of changes) {
            const error = await rejectionOf(engine.up(change));
            assert.equal(error.code, 'not_supported', change.tag);
            assert.match(error.why ?? '', /The collection is sharded by "n.deep", "other"\.$/);
          }
          key = undefined;
          assert.equal((await rejectionOf(engine.up(changes[0]!))).code, 'permission_denied');
          assert.deepEqual(await adapter.connection.introspect(), before);
          assert.equal(await count({ n: { $type: 'int' } }), 500);
          key = { n: 1 };
          // No value has to change.
          const same = migration('20260103_000000_d').modifyField('users', 'n', { type: 'bigint' }, { was }).build();
          assert.equal((await engine.up(same)).status, 'completed');
          key = { other: 1 };
          assert.equal((await engine.up(changes[1]!)).status, 'completed');
          await adapter.connection.close();
        },
      );
    },
    SLOW,
  );

  test(
    'documents inserted during a change are changed too, or reported',
    async () => {
      await withProxy(
        () => 'pass',
        async (_url, direct, count) => {
          const adapter = await connectTarget(mongodb, direct, { leaseMs: LEASE_MS });
          const retry = ({ tag }: typeof filled) => resolveMigration(adapter, tag, 'retry');
          const write = (command: object) => adapter.connection.query(JSON.stringify(command));
          const remove = (n: string) => write({ delete: 'users', deletes: [{ q: { n }, limit: 1 }] });
          /** Up to the final validator, which the server rejects at first. */
          const withLate = async (change: typeof filled, documents: readonly object[]) => {
            let validators = 0;
            const proxy = await startMongoProxy(direct, ({ name }) =>
              name === 'collMod' && ++validators === 2 ? { code: 13 } : 'pass',
            );
            const first = await connectTarget(mongodb, proxy.url, { leaseMs: LEASE_MS });
            const error = await rejectionOf(new MigrationEngine(first).up(change));
            assert.match(error.why ?? '', /^step 3 of 3: .*an injected fault/);
            await first.connection.close();
            await proxy.close();
            await write({ insert: 'users', documents });
            return retry(change);
          };
          assert.equal((await withLate(filled, [{ n: 500 }])).status, 'completed');
          assert.equal(await count({ kind: 'person' }), 501);
          const text = migration('20260103_000000_text')
            .modifyField('users', 'n', { type: 'string', length: 3 }, { was: { type: 'integer' } })
            .build();
          const late = [
            { n: 600, kind: 'late' },
            { n: 12_345, kind: 'late' },
          ];
          const error = await rejectionOf(withLate(text, late));
          assert.equal(error.code, 'migration_half_done');
          assert.match(error.why ?? '', / 1 have a value in "n" that is not a valid string\(3\): _id /);
          assert.equal(await count({ n: '600' }), 1);
          await remove('12345');
          assert.equal((await retry(text)).status, 'completed');
          assert.equal(await count({ n: { $type: 'string' } }), 502);
          const moved = migration('20260104_000000_moved').renameField('users', 'kind', 'sort').build();
          // Another program used the old name for the second document after it was moved.
          const both = [
            { n: '700', kind: 'late' },
            { n: '701', kind: 'newer', sort: 'older' },
          ];
          const left = await rejectionOf(withLate(moved, both));
          assert.equal(left.code, 'migration_half_done');
          assert.match(left.why ?? '', / 1 still have a value in "kind", which is now "sort": _id /);
          assert.equal(await count({ sort: 'late' }), 2);
          await remove('701');
          assert.equal((await retry(moved)).status, 'completed');
          assert.equal(await count({ kind: { $exists: true } }), 0);
          await adapter.connection.close();
        },
      );
    },
    SLOW,
  );

  test(
    'a lease is renewed as long as its owner works, and ends when its owner is dead',
    async () => {
      const database = await freshMongo();
      try {
        const [one, other] = await Promise.all(
          [1, 2].map(() => connectTarget(mongodb, database.url, { leaseMs: LEASE_MS })),
        );
        await one!.connection.withLock(async (epoch) => {
          const clock = performance.now();
          const waiting = await rejectionOf(other!.connection.withLock(async () => {}, { timeoutMs: LEASE_MS * 2 }));
          assert.equal(waiting.code, 'lock_timeout');
          assert.ok(performance.now() - clock > LEASE_MS * 1.5);
          const outcome = await one!.connection.run([{ transactional: true, statements: [], writes: [] }], epoch);
          assert.equal(outcome.committed, 1);
        });
        // The state after a process was killed.
        await database.on((client, name) =>
          client
            .db(name)
            .collection('_svc_lock')
            .updateOne(
              {},
              { $set: { owner: 'the dead', ttlMs: LEASE_MS }, $currentDate: { at: true }, $inc: { token: 1 } },
            ),
        );
        const clock = performance.now();
        let waited = 0;
        const epoch = await other!.connection.withLock(async (next) => next, { onWait: () => (waited += 1) });
        assert.ok(performance.now() - clock > LEASE_MS * 0.5);
        assert.equal(waited, 1);
        assert.equal(epoch, 3);
        for (const { connection } of [one!, other!]) await connection.close();
      } finally {
        await database.drop();
      }
    },
    SLOW,
  );

  test(
    'a lease is not renewed if its former owner could not be fenced',
    async () => {
      const database = await freshMongo();
      let refusing = true;
      const proxy = await startMongoProxy(database.url, ({ name, command }) =>
        refusing && name === 'update' && command.updates[0].multi ? { code: 13 } : 'pass',
      );
      try {
        const adapter = await connectTarget(mongodb, proxy.url, { leaseMs: LEASE_MS });
        await adapter.connection.withLock(() => adapter.connection.ensureTables([anyDefinition(notes)]));
        await database.on((client, name) =>
          client
            .db(name)
            .collection('_svc_lock')
            .updateOne({}, { $set: { owner: 'the dead', ttlMs: 0 } }),
        );
        const error = await rejectionOf(adapter.connection.withLock(async () => {}));
        assert.equal(error.code, 'permission_denied');
        refusing = false;
        assert.equal(await adapter.connection.withLock(async (epoch) => epoch, { timeoutMs: LEASE_MS * 5 }), 3);
        await adapter.connection.close();
      } finally {
        await proxy.close();
        await database.drop();
      }
    },
    SLOW,
  );

  test(
    'an owner whose renewals are lost writes nothing once another one has the lock',
    async () => {
      const database = await freshMongo();
      let renewalsLost = false;
      const proxy = await startMongoProxy(database.url, ({ name, command }) =>
        renewalsLost && name === 'update' && command.update === '_svc_lock' ? { code: 50 } : 'pass',
      );
      try {
        const old = await connectTarget(mongodb, proxy.url, { leaseMs: LEASE_MS });
        const next = await connectTarget(mongodb, database.url, { leaseMs: LEASE_MS });
        const write = (id: string, n: number, version?: number) => [
          { transactional: true, statements: [], writes: [recordWrite(notes, { id, n }, version)] },
        ];
        await old.connection.withLock(async (epoch) => {
          await old.connection.ensureTables([anyDefinition(notes)]);
          assert.equal((await old.connection.run(write('a', 1), epoch)).committed, 1);
          renewalsLost = true;
          await next.connection.withLock(async (later) => {
            renewalsLost = false;
            assert.equal(later, epoch + 1);
            for (const late of [write('a', 2, 1), write('b', 2)]) {
              const { failure, committed } = await old.connection.run(late, epoch);
              assert.equal(committed, 0);
              assert.equal(isSvcError(failure?.error) && failure.error.code, 'lock_lost');
            }
            const create = mongodb.compile({ type: 'createCollection', name: 't', fields: [] }, new Map());
            const created = await old.connection.run([{ transactional: false, statements: create, writes: [] }], epoch);
            assert.equal(isSvcError(created.failure?.error) && created.failure.error.code, 'lock_lost');
            const store = old.connection.records(notes);
            assert.equal(await store.replace('a', 1, { id: 'a', n: 3 }, { epoch }), 'stale');
            assert.deepEqual((await store.get('a'))?.record, { id: 'a', n: 1 });
            assert.equal(await store.get('b'), undefined);
            assert.deepEqual([...(await next.connection.introspect()).keys()], []);
          });
        });
        for (const { connection } of [old, next]) await connection.close();
      } finally {
        await proxy.close();
        await database.drop();
      }
    },
    SLOW,
  );

  test(
    'an owner whose machine slept moves no data once another one has the lock',
    () =>
      withProxy(
        () => 'pass',
        async (_url, direct, count) => {
          const old = await connectTarget(mongodb, direct, { leaseMs: 60_000 });
          const next = await connectTarget(mongodb, direct, { leaseMs: LEASE_MS });
          await old.connection.withLock(async (epoch) => {
            const drop = mongodb.compile(
              { type: 'dropField', collection: 'users', field: 'n' },
              await next.connection.introspect(),
            );
            // The lease is over by the server's clock; one clock of the owner stopped.
            const over = { update: '_svc_lock', updates: [{ q: {}, u: { $set: { ttlMs: 0 } } }] };
            await next.connection.query(JSON.stringify(over));
            await next.connection.withLock(async () => {});
            const { failure, committed } = await withClockAhead(60_000, () =>
              old.connection.run([{ transactional: false, statements: drop, writes: [] }], epoch),
            );
            assert.equal(isSvcError(failure?.error) && failure.error.code, 'lock_lost');
            assert.equal(committed, 0);
            assert.equal(await count({ n: { $exists: true } }), 500);
          });
          for (const { connection } of [old, next]) await connection.close();
        },
      ),
    SLOW,
  );

  test(
    'a write in flight during a change of the lock owner fails',
    async () => {
      const database = await freshMongo();
      try {
        const old = await connectTarget(mongodb, database.url, { leaseMs: 60_000 });
        const next = await connectTarget(mongodb, database.url, { leaseMs: LEASE_MS });
        await old.connection.withLock(async (epoch) => {
          await old.connection.ensureTables([anyDefinition(notes)]);
          const first = [{ transactional: true, statements: [], writes: [recordWrite(notes, { id: 'a', n: 1 })] }];
          assert.equal((await old.connection.run(first, epoch)).committed, 1);
          // The lease is over by the server's clock, but not by the owner's.
          await database.on((client, name) =>
            client
              .db(name)
              .collection('_svc_lock')
              .updateOne({}, { $set: { ttlMs: 0 } }),
          );
          await next.connection.withLock(async () => {});
          const late = [{ transactional: true, statements: [], writes: [recordWrite(notes, { id: 'a', n: 2 }, 1)] }];
          const { failure } = await old.connection.run(late, epoch);
          assert.equal(isSvcError(failure?.error) && failure.error.code, 'lock_lost');
          assert.equal((await next.connection.records(notes).get('a'))?.record.n, 1);
        });
        for (const { connection } of [old, next]) await connection.close();
      } finally {
        await database.drop();
      }
    },
    SLOW,
  );

  test(
    'an owner that sleeps longer than its lease loses it, and its writes fail',
    async () => {
      const later = migration('20260103_000000_later')
        .addField('users', { name: 'late', type: 'text', default: 'x' })
        .build();
      const start = await prepareMigrators('mongodb', [tables, filled, later]);
      let sleeper: ChildProcess | undefined;
      let asleep = false;
      try {
        await withProxy(
          ({ name, command }) => {
            if (!asleep && name === 'update' && command.update === 'users') {
              asleep = true;
              sleeper?.kill('SIGSTOP');
            }
            return 'pass';
          },
          async (url, direct, count) => {
            const sleeping = start(url, 0, { connect: { leaseMs: LEASE_MS, batchSize: 100 } });
            sleeper = sleeping.child;
            await waitUntil(() => asleep, 'the migrator never began to fill the field');
            const adapter = await connectTarget(mongodb, direct, { leaseMs: LEASE_MS });
            const report = await migrate(adapter, [tables, filled].map(definedInCode));
            assert.deepEqual(
              report.migrations.map(({ tag }) => tag),
              [filled.tag],
            );
            assert.equal(await count({ kind: 'person' }), 500);
            const before = await new MigrationEngine(adapter).getHistory({ all: true });
            sleeping.child.kill('SIGCONT');
            const { code, err } = await sleeping.ended;
            assert.equal(code, 1);
            assert.match(err, /^lock_lost/);
            assert.deepEqual(await new MigrationEngine(adapter).getHistory({ all: true }), before);
            assert.equal(await count({ late: { $exists: true } }), 0);
            await adapter.connection.close();
          },
        );
      } finally {
        sleeper?.kill('SIGKILL');
      }
    },
    SLOW,
  );
}
