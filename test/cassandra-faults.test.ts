import * as assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { exitStatus } from '../cli/exit-status.ts';
import type { ConnectOptions } from '../core/dialect.ts';
import { isSvcError } from '../core/errors.ts';
import { migration } from '../core/migration/builder.ts';
import { migrate } from '../core/migration/migrate.ts';
import { status } from '../core/migration/status.ts';
import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { type FreshKeyspace, freshKeyspace, unavailable } from './kit/cassandra.ts';
import { nodesMissing, withNodes } from './kit/cassandra-nodes.ts';
import { withClockAhead } from './kit/clock-ahead.ts';
import { startFaultProxy } from './kit/fault-proxy.ts';
import { definedInCode } from './kit/migrations.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { waitUntil } from './suites/wait-until.ts';

const key = { name: 'id', type: 'integer', primaryKey: true } as const;
const two = [
  migration('20260101_000000_first').createCollection('first_table', [key]).build(),
  migration('20260102_000000_second')
    .createCollection('second_table', [key])
    .addField('second_table', { name: 'n', type: 'integer', default: 1 })
    .build(),
].map(definedInCode);

async function withServer(answer: (request: Buffer) => Buffer | undefined, body: (point: string) => Promise<void>) {
  const sockets: Socket[] = [];
  const server: Server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.on('data', (request) => {
      const received = answer(request);
      if (received) socket.write(received);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    await body(`127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.close();
    for (const socket of sockets) socket.destroy();
  }
}

/** A response frame of the native protocol. */
function frame(request: Buffer, opcode: number, body: Buffer): Buffer {
  const header = Buffer.alloc(9);
  header[0] = (request[0] ?? 0) | 0x80;
  request.copy(header, 2, 2, 4);
  header[4] = opcode;
  header.writeInt32BE(body.length, 5);
  return Buffer.concat([header, body]);
}

function string(text: string): Buffer {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

test('an invalid URL is rejected before connecting', async () => {
  const wrong = {
    'cassandra://127.0.0.1/shop': /dc=/,
    'cassandra://127.0.0.1?dc=a': /names no keyspace/,
    'cassandra://127.0.0.1/a-b?dc=a': /cannot be the name of a keyspace/,
    'cassandra://127.0.0.1:99999/shop?dc=a': /not a host with a port/,
    'cassandra://127.0.0.1/shop?dc=a&x=1': /parameter "x"/,
    'mysql://127.0.0.1/shop?dc=a': /does not begin/,
    'cassandra://u:s3cret%@127.0.0.1/shop?dc=a': /literal % as %25/,
  };
  for (const [url, why] of Object.entries(wrong)) {
    const error = await expectError(cassandra.connect(url, {}), 'url_invalid');
    assert.match(error.why ?? '', why, url);
    assert.ok(!JSON.stringify([error.message, error.why, error.next]).includes('s3cret'), url);
  }
  assert.equal(
    cassandra.identify('cassandra://u:p@B:9043,a/shop?dc=x'),
    cassandra.identify('cassandra://a:9042,b:9043/shop?dc=y&tls=1'),
  );
});

test('connecting to a port that is closed, and to one that does not respond', async () => {
  await expectError(cassandra.connect('cassandra://127.0.0.1:1/shop?dc=a', {}), 'connection_failed');
  await withServer(
    () => undefined,
    async (point) => {
      const error = await expectError(
        cassandra.connect(`cassandra://${point}/shop?dc=a`, { connectTimeoutMs: 200 }),
        'connection_failed',
      );
      assert.match(error.why ?? '', /200 ms/);
    },
  );
});

test('missing and wrong credentials', async () => {
  const asks = (request: Buffer) => frame(request, 0x03, string('org.apache.cassandra.auth.PasswordAuthenticator'));
  await withServer(asks, async (point) => {
    await expectError(cassandra.connect(`cassandra://${point}/shop?dc=a`, {}), 'authentication_failed');
  });
  const code = Buffer.alloc(4);
  code.writeInt32BE(0x0100);
  const rejects = (request: Buffer) =>
    request[4] === 0x01
      ? asks(request)
      : frame(request, 0x00, Buffer.concat([code, string('Provided username u and/or password are incorrect')]));
  await withServer(rejects, async (point) => {
    const error = await expectError(
      cassandra.connect(`cassandra://u:s3cret@${point}/shop?dc=a`, {}),
      'authentication_failed',
    );
    assert.ok(!JSON.stringify([error.message, error.why, error.next]).includes('s3cret'));
  });
});

if (unavailable) test.skip('faults on Cassandra', unavailable);
else {
  const withKeyspace = async (body: (keyspace: FreshKeyspace, point: string) => Promise<void>) => {
    const keyspace = await freshKeyspace();
    try {
      await body(keyspace, /\/\/([^/]+)\//.exec(keyspace.url)?.[1] ?? '');
    } finally {
      await keyspace.drop();
    }
  };

  test('the error for a missing keyspace names it and the statement to create it', () =>
    withKeyspace(async ({ url, keyspace }) => {
      const error = await expectError(cassandra.connect(url.replace(keyspace, 'not_there'), {}), 'database_missing');
      assert.match(error.message, /not_there/);
      assert.match(error.next[0] ?? '', /^CREATE KEYSPACE "not_there" WITH replication = .*'datacenter1': 1/);
    }));

  test('the error for an unknown data center names it', () =>
    withKeyspace(async ({ url }) => {
      const error = await expectError(
        cassandra.connect(url.replace('datacenter1', 'nowhere'), {}),
        'connection_failed',
      );
      assert.match(error.why ?? '', /datacenter1/);
    }));

  test(
    'after a lost response the catalog shows that the statement took effect, and the run continues',
    () =>
      withKeyspace(async ({ url }, point) => {
        const port = point.split(':')[1];
        for (const text of ['CREATE TABLE "second_table"', 'ALTER TABLE "second_table" ADD "n"', '"n" = ? WHERE']) {
          const network = await startFaultProxy(Number(port));
          const adapter = await connectTarget(cassandra, url.replace(point, `127.0.0.1:${network.port}`));
          try {
            await adapter.connection.query('TRUNCATE "_svc_migrations"').catch(() => undefined);
            await adapter.connection.query('DROP TABLE IF EXISTS first_table');
            await adapter.connection.query('DROP TABLE IF EXISTS second_table');
            network.disconnectOn(text, 'after');
            await migrate(adapter, two, { allowDestructive: true });
            assert.equal((await status(adapter, two)).state, 'OK', text);
          } finally {
            await adapter.connection.close();
            network.close();
          }
        }
      }),
    { timeoutMs: 120_000 },
  );

  test(
    'after the lost response of a conditional write its outcome is resolved, and it is applied once',
    () =>
      withKeyspace(async ({ url }, point) => {
        const port = point.split(':')[1];
        const network = await startFaultProxy(Number(port));
        const adapter = await connectTarget(cassandra, url.replace(point, `127.0.0.1:${network.port}`));
        try {
          await migrate(adapter, two, { allowDestructive: true });
          network.disconnectOn('svc-marked', 'after');
          const store = adapter.connection.records({
            collection: '_svc_meta',
            key: 'id',
            columns: { id: { type: 'string' }, product: { type: 'text' } },
            indexes: [],
            colocateWithLock: true,
          });
          assert.equal(await store.insert({ id: 'svc-marked', product: 'svc-marked' }), 'inserted');
          assert.equal((await store.get('svc-marked'))?.version, 1);
          assert.equal(await store.insert({ id: 'svc-marked', product: 'other' }), 'exists');
        } finally {
          await adapter.connection.close();
          network.close();
        }
      }),
    { timeoutMs: 60_000 },
  );

  // Simulates a peer with another schema version in tables of the test.
  test('without schema agreement no statement is sent, and none counts as done', () =>
    withKeyspace(async ({ url, keyspace, query }, point) => {
      const [ownVersion, otherVersion] = [
        '5f0c1c1e-0000-4000-8000-000000000001',
        '5f0c1c1e-0000-4000-8000-000000000002',
      ];
      await query('CREATE TABLE one_as_local (schema_version uuid PRIMARY KEY)');
      await query('CREATE TABLE all_as_peers (peer inet PRIMARY KEY, rpc_address inet, schema_version uuid)');
      await query(`INSERT INTO one_as_local (schema_version) VALUES (${ownVersion})`);
      const setPeerVersion = (version: string) =>
        query(
          `INSERT INTO all_as_peers (peer, rpc_address, schema_version) VALUES ('10.9.8.7', '10.9.8.7', ${version})`,
        );
      const created = async () =>
        (await query(`SELECT table_name FROM system_schema.tables WHERE keyspace_name = '${keyspace}'`))
          .map(({ table_name: name }) => String(name))
          .filter((name) => name.startsWith('created_'));
      const network = await startFaultProxy(Number(point.split(':')[1]));
      network.replace('SELECT schema_version FROM system.local', 'SELECT schema_version FROM one_as_local');
      network.replace('rpc_address, schema_version FROM system.peers', 'rpc_address, schema_version FROM all_as_peers');
      const through = url.replace(point, `127.0.0.1:${network.port}`);
      const connection = await cassandra.connect(through, { agreementTimeoutMs: 500 });
      const create = async (name: string, part: 'run' | 'awaitEffect' = 'run') => {
        const statement = `CREATE TABLE ${name} (id int PRIMARY KEY)`;
        const segments = cassandra
          .compile({ type: 'raw', dialect: 'cassandra', statement }, new Map())
          .map((one) => ({ transactional: false, statements: [{ ...one, run: one[part]! }], writes: [] }));
        const error = (await connection.run(segments, 0)).failure?.error;
        if (error !== undefined && !isSvcError(error)) throw error;
        return error;
      };
      try {
        await setPeerVersion(otherVersion);
        const before = await create('created_never');
        assert.equal(before?.code, 'schema_disagreement');
        assert.match(before.why ?? '', /10\.9\.8\.7/);
        assert.deepEqual(await created(), []);

        await setPeerVersion(ownVersion);
        network.runBefore('CREATE TABLE created_alone', () => setPeerVersion(otherVersion));
        const disagreement = await create('created_alone');
        assert.equal(disagreement?.code, 'connection_lost');
        assert.match(disagreement.why ?? '', /10\.9\.8\.7/);
        assert.deepEqual(await created(), ['created_alone']);
        assert.equal((await create('created_alone', 'awaitEffect'))?.code, 'schema_disagreement');
      } finally {
        await connection.close();
        network.close();
      }
    }));

  test('the next run waits for an index that was not built when the previous run ended', () =>
    withKeyspace(async ({ url, keyspace, query }, point) => {
      const network = await startFaultProxy(Number(point.split(':')[1]));
      const through = url.replace(point, `127.0.0.1:${network.port}`);
      const indexed = [
        ...two,
        definedInCode(
          migration('20260103_000000_index')
            .createIndex('second_table', 'second_table_n', [{ name: 'n' }])
            .build(),
        ),
      ];
      const run = async (options: ConnectOptions) => {
        const adapter = await connectTarget(cassandra, through, options);
        try {
          await migrate(adapter, indexed, { lockTimeoutMs: 60_000 });
          return await status(adapter, indexed);
        } finally {
          await adapter.connection.close();
        }
      };
      const built = `table_name = '${keyspace}' AND index_name = 'second_table_n'`;
      try {
        network.disconnectOn('IndexInfo', 'before');
        await expectError(run({ indexTimeoutMs: 0 }), 'connection_lost');
        // The state of a node that is still building the index.
        const isBuilt = async () => (await query(`SELECT * FROM system."IndexInfo" WHERE ${built}`)).length === 1;
        await waitUntil(isBuilt, 'the index was never built');
        await query(`DELETE FROM system."IndexInfo" WHERE ${built}`);
        for (const _ of [2, 3]) {
          const error = await expectError(run({ indexTimeoutMs: 0 }), 'connection_lost');
          assert.match(error.message, /"second_table_n" is not built yet/);
          assert.match(error.where ?? '', /step 1 of 1: CREATE INDEX/);
          assert.match(error.state ?? '', /the next run continues from there/);
        }
        await query(`INSERT INTO system."IndexInfo" (table_name, index_name) VALUES (?, 'second_table_n')`, [keyspace]);
        assert.equal((await run({ indexTimeoutMs: 0 })).state, 'OK');
      } finally {
        network.close();
      }
    }));

  test('an interrupted copy stops, and the next run resumes it', () =>
    withKeyspace(async ({ url, query }) => {
      const stop = new AbortController();
      const began = migration('20260101_000000_many')
        .createCollection('many', [key, { name: 'a', type: 'integer' }])
        .build();
      const copy = migration('20260102_000000_copy').renameField('many', 'a', 'b', { strategy: 'copy' }).build();
      const adapter = await connectTarget(cassandra, url, { signal: stop.signal, concurrency: 1 });
      const resumed = await connectTarget(cassandra, url);
      const copied = [began, copy].map(definedInCode);
      const rows = 1_500;
      try {
        await migrate(resumed, [definedInCode(began)]);
        for (let from = 0; from < rows; from += 500) {
          const some = Array.from({ length: 500 }, (_, at) => from + at);
          await Promise.all(some.map((id) => query('INSERT INTO many (id, a) VALUES (?, ?)', [id, id])));
        }
        const copying = expectError(migrate(adapter, copied, { allowDestructive: true }), 'interrupted');
        const hasBegun = async () =>
          (await query('SELECT * FROM many LIMIT 20')).some(({ b }) => b !== null && b !== undefined);
        await waitUntil(hasBegun, 'nothing was copied').finally(() => stop.abort());
        const error = await copying;
        assert.equal(exitStatus(error), 130);
        assert.match(error.where ?? '', /step 2 of 3/);
        assert.match(error.state ?? '', /the next run continues from there/);
        const some = (await query('SELECT b FROM many')).filter(({ b }) => b !== null).length;
        assert.ok(some > 0 && some < rows, String(some));
        assert.equal((await status(resumed, copied)).entries.at(-1)?.state, 'interrupted');
        await migrate(resumed, copied, { allowDestructive: true });
        const left = (await query('SELECT id, b FROM many')).filter(({ id, b }) => id !== b);
        assert.deepEqual(left, []);
      } finally {
        await adapter.connection.close();
        await resumed.connection.close();
      }
    }));

  test('a node that fails during an index build is queried again', () =>
    withKeyspace(async ({ url }, point) => {
      const network = await startFaultProxy(Number(point.split(':')[1]));
      const adapter = await connectTarget(cassandra, url.replace(point, `127.0.0.1:${network.port}`));
      const indexed = [
        migration('20260101_000000_indexed')
          .createCollection('indexed', [key, { name: 'n', type: 'integer' }])
          .createIndex('indexed', 'indexed_n', [{ name: 'n' }])
          .build(),
      ].map(definedInCode);
      try {
        network.disconnectOn('IndexInfo', 'before');
        await migrate(adapter, indexed, {});
        assert.equal((await status(adapter, indexed)).state, 'OK');
      } finally {
        await adapter.connection.close();
        network.close();
      }
    }));

  test('a holder whose machine slept changes nothing once another process has the lock', () =>
    withKeyspace(async ({ url, query }) => {
      const old = await cassandra.connect(url, { leaseSeconds: 60 });
      const next = await cassandra.connect(url, { leaseSeconds: 60 });
      try {
        await old.withLock(async (epoch) => {
          await query('DELETE lock_owner FROM "_svc_migrations" WHERE scope = \'migrations\' IF lock_epoch = 1');
          assert.equal(await next.withLock(async (later) => later), epoch + 1);
          const raw = cassandra.compile(
            { type: 'raw', dialect: 'cassandra', statement: 'CREATE TABLE late (id int PRIMARY KEY)' },
            new Map(),
          );
          const { failure } = await withClockAhead(60_000, () =>
            old.run([{ transactional: false, statements: raw, writes: [] }], epoch),
          );
          assert.equal(isSvcError(failure?.error) && failure.error.code, 'lock_lost');
          assert.equal((await next.introspect()).size, 0);
        });
      } finally {
        await old.close();
        await next.close();
      }
    }));

  const missing = nodesMissing(1);
  if (missing) test.skip('a server that dies during a run', missing);
  else
    test(
      'after a server that died during a run is back, the next run continues',
      () =>
        withNodes(1, async ([node]) => {
          if (!node) throw new Error('no node');
          const { url, close } = await freshKeyspace([node.point]);
          await close();
          const adapter = await connectTarget(cassandra, url);
          adapter.hooks['migration:up'].tapPromise('killer', async ({ migration: { tag } }) => {
            if (tag.endsWith('second')) await node.kill();
          });
          const error = await migrate(adapter, two, {}).then(
            () => undefined,
            (thrown) => thrown,
          );
          assert.ok(['connection_lost', 'connection_failed'].includes(error?.code), String(error));
          await adapter.connection.close();
          await node.start();
          const resumed = await connectTarget(cassandra, url);
          try {
            await migrate(resumed, two, { lockTimeoutMs: 60_000 });
            assert.equal((await status(resumed, two)).state, 'OK');
          } finally {
            await resumed.connection.close();
          }
        }),
      { timeoutMs: 300_000 },
    );
}
