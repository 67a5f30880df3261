import * as assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import pg from 'pg';
import type { Connection } from '../core/dialect.ts';
import { isSvcError } from '../core/errors.ts';
import { metaTable } from '../core/migration/history-table.ts';
import { anyDefinition, type RecordDefinition } from '../core/records.ts';
import type { SchemaModel } from '../core/schema/model.ts';
import type { Operation } from '../core/schema/operation.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { freshDatabase, type PostgresqlTestDatabase, unavailable } from './kit/postgresql.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { waitUntil } from './suites/wait-until.ts';

const missing = await unavailable();
const on = (name: string, body: (database: PostgresqlTestDatabase) => Promise<void>) => {
  if (missing) return void test.skip(name, missing);
  test(name, async () => {
    const database = await freshDatabase();
    try {
      await body(database);
    } finally {
      await database.drop();
    }
  });
};
const hasCode =
  (code: string, args = /./) =>
  (error: unknown) =>
    isSvcError(error) && error.code === code && args.test(`${error.message} ${error.why}`);

async function run(connection: Connection, operation: Operation, model: SchemaModel = new Map()) {
  const statements = postgresql.compile(operation, model);
  const transactional = statements.every((statement) => statement.transactional);
  return connection.run([{ transactional, statements, writes: [] }], 0);
}

on('a wrong address, database or user is reported with its code', async ({ url }) => {
  const other = (change: (url: URL) => void) => {
    const changed = new URL(url);
    change(changed);
    return postgresql.connect(changed.href, { connectTimeoutMs: 2000 });
  };
  await assert.rejects(
    other((to) => (to.port = '1')),
    hasCode('connection_failed', /ECONNREFUSED/),
  );
  await assert.rejects(
    other((to) => (to.hostname = 'no-such-host.invalid')),
    hasCode('connection_failed'),
  );
  await assert.rejects(
    other((to) => (to.pathname = '/no_such_db')),
    hasCode('database_missing', /3D000/),
  );
  await assert.rejects(
    other((to) => (to.username = 'nobody_here')),
    hasCode('authentication_failed', /28000/),
  );
  await assert.rejects(postgresql.connect('mysql://x', {}), hasCode('url_invalid'));
});

on('a server without TLS, or with an untrusted certificate, is reported before anything is sent', async ({ url }) => {
  const plain = new URL(url);
  plain.searchParams.set('sslmode', 'require');
  const error = await expectError(postgresql.connect(plain.href, {}), 'connection_failed');
  assert.match(`${error.why} ${error.next.join(' ')} ${error.state}`, /SSL.*sslmode=disable.*Nothing was changed/);
  const server = await selfSigned();
  if (server === undefined) return;
  try {
    const signed = `postgresql://somebody@localhost:${server.port}/shop?sslmode=verify-full`;
    const unknown = await expectError(postgresql.connect(signed, {}), 'connection_failed');
    assert.match(`${unknown.why} ${unknown.next.join(' ')}`, /self-signed certificate.*sslrootcert=<file>/);
  } finally {
    server.close();
  }
});

test('a URL with an unknown parameter, an unknown value or an invalid escape is rejected', () => {
  const rejected: Readonly<Record<string, RegExp>> = {
    'postgresql://host/100%': /%25/,
    'pglite://./a%zz': /%25/,
    'pglite://./data?schema=app': /next to the URL/,
    'pglite://memory#x': /next to the URL/,
    'postgresql://host/shop?schema=app': /next to the URL: schema/,
    'postgresql://host/shop?search_path=app': /next to the URL: schema/,
    'postgresql://host/shop?sslmod=require': /Did you mean sslmode\?/,
    'postgresql://host/shop?SSLMODE=require': /Did you mean sslmode\?/,
    'postgresql://host/shop?sslmode=required': /sslmode.*Use one of disable, .*verify-full/,
    'postgresql://host/shop?sslmode=verify-full&sslmode=disable': /sslmode more than once/,
    'postgresql://host/shop?ssl=false': /ssl has an unknown value/,
    'postgresql://host/shop?connect_timeout=3': /connectTimeoutMs/,
    'postgresql://host/shop?channel_binding=require': /sslmode=verify-full/,
    'postgresql://host/shop?work_mem=5MB': /options=-c/,
    'postgresql://host/shop?constructor=1': /does not support/,
  };
  for (const [url, pattern] of Object.entries(rejected)) {
    assert.throws(
      () => postgresql.identify(url),
      (error) =>
        isSvcError(error) && error.code === 'url_invalid' && pattern.test(`${error.why} ${error.next.join(' ')}`),
      url,
    );
  }
  const same = 'postgresql:db:6543/shop';
  assert.equal(postgresql.identify('postgresql://DB:6543/shop?sslmode=require&application_name=ci'), same);
  assert.equal(postgresql.identify('postgresql:///shop?host=db&port=6543&user=u'), same);
});

on('a schema that does not exist is only created when asked', async ({ url, query }) => {
  const schemas = () => query("SELECT nspname FROM pg_namespace WHERE nspname = 'shpo'");
  const error = await expectError(postgresql.connect(url, { schema: 'shpo' }), 'config_invalid');
  assert.match(`${error.message} ${error.next.join(' ')}`, /"shpo" does not exist.*CREATE SCHEMA.*createSchema: true/);
  const connection = await postgresql.connect(url, { schema: 'shpo', createSchema: true });
  assert.deepEqual(await schemas(), [], 'connecting changes nothing');
  await connection.withLock(async () => undefined);
  assert.equal((await schemas()).length, 1);
  await connection.close();
  await (await postgresql.connect(url, { schema: 'shpo' })).close();
});

on('a session that the server ends frees the lock and reports it', async ({ url, query }) => {
  const first = await postgresql.connect(url, {});
  const second = await postgresql.connect(url, {});
  const outcome = first.withLock(async () => {
    await query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'svc' AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')",
    );
    await second.withLock(async () => {}, { timeoutMs: 5000 });
    await first.now();
  });
  await assert.rejects(outcome, hasCode('connection_lost', /57P01/));
  await expectError(first.now(), 'connection_lost');
  await first.close().catch(() => undefined);
  await second.close();
});

on('everything is created in the configured schema', async ({ url, query }) => {
  const connection = await postgresql.connect(url, { schema: 'My "App"', createSchema: true });
  await connection.withLock(async (epoch) => {
    const statements = postgresql.compile(
      { type: 'createCollection', name: 't', fields: [{ name: 'id', type: 'integer' }] },
      new Map(),
    );
    const raw = postgresql.compile(
      { type: 'raw', dialect: 'postgresql', statement: 'INSERT INTO t VALUES (1)' },
      new Map(),
    );
    const outcome = await connection.run(
      [{ transactional: true, statements: [...statements, ...raw], writes: [] }],
      epoch,
    );
    assert.equal(outcome.failure, undefined);
  });
  assert.deepEqual([...(await connection.introspect()).keys()], ['t']);
  const found = await query("SELECT schemaname FROM pg_tables WHERE tablename IN ('t', '_svc_lock')");
  assert.deepEqual(found, [{ schemaname: 'My "App"' }, { schemaname: 'My "App"' }]);
  await connection.close();
});

on('settings of a database neither end a session of svc nor change what it reads', async ({ url, query }) => {
  const version = Number((await query('SHOW server_version_num'))[0]?.server_version_num);
  const wanted = {
    quote_all_identifiers: ['on', 'off'],
    ...(version >= 140000 && { idle_session_timeout: ['1h', '0'] }),
    ...(version >= 170000 && { transaction_timeout: ['1h', '0'] }),
  };
  const [{ name } = assert.fail()] = await query('SELECT quote_ident(current_database()) AS name');
  for (const [setting, [defaults]] of Object.entries(wanted)) {
    await query(`ALTER DATABASE ${name} SET ${setting} = '${defaults}'`);
  }
  await query('CREATE TABLE t (u uuid)');
  const connection = await postgresql.connect(url, {});
  const readSettings = async () => {
    const columns = Object.keys(wanted).map((setting) => `current_setting('${setting}') AS ${setting}`);
    const [row] = await connection.query(`SELECT ${columns}`);
    assert.deepEqual(
      { ...row },
      Object.fromEntries(Object.entries(wanted).map(([key, [, effective]]) => [key, effective])),
    );
    assert.equal((await connection.introspect()).get('t')?.fields.get('u')?.type, 'uuid');
  };
  try {
    await readSettings();
    await connection.withLock((epoch) =>
      connection.run(
        [
          {
            transactional: true,
            statements: postgresql.compile({ type: 'raw', dialect: 'postgresql', statement: 'RESET ALL' }, new Map()),
            writes: [],
          },
        ],
        epoch,
      ),
    );
    await readSettings();
  } finally {
    await connection.close();
  }
});

on('a schema whose name would end a PL/pgSQL block is rejected', async ({ url, query }) => {
  await query('CREATE SCHEMA "a$svc1$b"');
  const error = await expectError(postgresql.connect(url, { schema: 'a$svc$; SELECT 1; --' }), 'config_invalid');
  assert.match(error.message, /a\$svc\$/);
  const isolated = new URL(url);
  isolated.searchParams.set('options', '-c search_path="a$svc1$b"');
  await expectError(postgresql.connect(isolated.href, {}), 'config_invalid');
});

on('an array that became json becomes an array again', async ({ url, query }) => {
  await query(`CREATE TABLE t (id integer PRIMARY KEY, n integer[], s text[]);
    INSERT INTO t VALUES (1, '{1,2,NULL}', ARRAY['a', 'b\n"{},[]\\', NULL, '']), (2, '{}', '{}'), (3, NULL, NULL)`);
  const rows = () => query('SELECT * FROM t ORDER BY id');
  const before = await rows();
  const connection = await postgresql.connect(url, {});
  try {
    for (const [field, items] of [
      ['n', 'integer'],
      ['s', 'text'],
    ] as const) {
      const there: Operation = { type: 'modifyField', collection: 't', field, changes: { type: 'json' } };
      const back: Operation = { ...there, changes: { type: 'array', items } };
      for (const operation of [there, back]) {
        const outcome = await run(connection, operation, await connection.introspect());
        assert.equal(outcome.failure, undefined);
      }
    }
    assert.deepEqual(await rows(), before);
    await query(`ALTER TABLE t ADD j jsonb; UPDATE t SET j = '{"no": "list"}'`);
    const change: Operation = { type: 'modifyField', collection: 't', field: 'j', changes: { type: 'array' } };
    const outcome = await run(connection, change, await connection.introspect());
    assert.ok(isSvcError(outcome.failure?.error) && outcome.failure.error.code === 'data_violates');
  } finally {
    await connection.close();
  }
});

on('the options of a URL are combined with the settings that svc needs', async ({ url, query }) => {
  await query(
    'CREATE SCHEMA app; CREATE TABLE app.t (id integer); CREATE SCHEMA other; CREATE TABLE other.o (id integer)',
  );
  const isolated = new URL(url);
  isolated.searchParams.set('options', '-c search_path=app -c work_mem=5MB -c lock_timeout=1h');
  const names = ['search_path', 'work_mem', 'lock_timeout', 'client_min_messages'];
  for (const [schema, path] of [
    [undefined, 'app'],
    ['other', '"other"'],
  ] as const) {
    const connection = await postgresql.connect(isolated.href, schema === undefined ? {} : { schema });
    try {
      const [row] = await connection.query(`SELECT ${names.map((name) => `current_setting('${name}') AS ${name}`)}`);
      assert.deepEqual(
        { ...row },
        { search_path: path, work_mem: '5MB', lock_timeout: '500ms', client_min_messages: 'warning' },
      );
      assert.deepEqual([...(await connection.introspect()).keys()], [schema === undefined ? 't' : 'o']);
    } finally {
      await connection.close();
    }
  }
});

on(
  'a schema before that of the history in the search_path is not treated as an empty database',
  async ({ url, query }) => {
    const connected = async (settings: { readonly schema?: string } = {}) => {
      const connection = await postgresql.connect(url, settings);
      await connection.close();
    };
    const first = await postgresql.connect(url, {});
    await first.ensureTables([anyDefinition(metaTable)]);
    await first.close();
    await query(`ALTER DATABASE ${new URL(url).pathname.slice(1)} SET search_path = "Early", public`);
    await connected();
    await query('CREATE SCHEMA "Early"');
    await assert.rejects(connected(), hasCode('config_invalid', /"public".*"Early"/));
    await connected({ schema: 'public' });
    const early = await postgresql.connect(url, { schema: 'Early' });
    await early.ensureTables([anyDefinition(metaTable)]);
    await early.close();
    await connected();
  },
);

on('a locked table is waited for in short intervals', async ({ url, query }) => {
  const connection = await postgresql.connect(url, { lockTimeoutMs: 50, lockRetries: 2 });
  const busy = await postgresql.connect(url, {});
  await query('CREATE TABLE t (id integer)');
  await busy.query('BEGIN');
  await busy.query('SELECT * FROM t');
  const model = await connection.introspect();
  const add: Operation = { type: 'addField', collection: 't', field: { name: 'a', type: 'integer' } };
  const outcome = await run(connection, add, model);
  assert.ok(hasCode('table_locked', /55P03/)(outcome.failure?.error));
  assert.equal(outcome.failure?.statement, 0);
  const waitingUpdate = await postgresql.connect(url, { lockTimeoutMs: 20, lockRetries: 50 });
  const waiting = run(waitingUpdate, add, model);
  await busy.query('COMMIT');
  assert.equal((await waiting).failure, undefined);
  await Promise.all([connection.close(), busy.close(), waitingUpdate.close()]);
});

on('an update waits longer for locked rows than a schema change does', async ({ url, query }) => {
  const connection = await postgresql.connect(url, { lockTimeoutMs: 20, lockRetries: 0 });
  const busy = new pg.Client({ connectionString: url });
  await busy.connect();
  try {
    await query('CREATE TABLE t (id integer, name text); INSERT INTO t VALUES (1), (2)');
    const collection = (await connection.introspect(['t'])).get('t');
    assert.ok(collection);
    await busy.query('BEGIN; UPDATE t SET id = 3 WHERE id = 2');
    let settled = false;
    const updating = connection
      .update({ table: 't', set: [{ field: 'name', value: 'a' }], where: [], key: 'k', collection })
      .finally(() => {
        settled = true;
      });
    updating.catch(() => undefined);
    const waits = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND clock_timestamp() - query_start > interval '200 ms'`;
    await waitUntil(async () => settled || (await query(waits)).length > 0, 'It did not wait.');
    await busy.query('COMMIT');
    assert.deepEqual(await updating, { matched: 2, modified: 2 });
    assert.deepEqual(await query('SELECT id, name FROM t ORDER BY id'), [
      { id: 1, name: 'a' },
      { id: 3, name: 'a' },
    ]);
    assert.deepEqual(await connection.query("SELECT current_setting('lock_timeout') AS set"), [{ set: '20ms' }]);
  } finally {
    await Promise.all([busy.end(), connection.close()]);
  }
});

on('an index is built concurrently, and an invalid one is dropped', async ({ url, query }) => {
  const connection = await postgresql.connect(url, {});
  await query('CREATE TABLE t (id integer); INSERT INTO t VALUES (1), (1)');
  const model = await connection.introspect();
  const create = (unique: boolean): Operation => ({
    type: 'createIndex',
    collection: 't',
    index: 'i',
    columns: [{ name: 'id' }],
    unique,
    sqlOptions: { concurrently: true },
  });
  const [statement] = postgresql.compile(create(true), model);
  assert.equal(statement?.transactional, false);
  assert.ok(hasCode('data_violates')((await run(connection, create(true), model)).failure?.error));
  assert.deepEqual(await query("SELECT 1 FROM pg_class WHERE relname = 'i'"), []);
  assert.equal((await run(connection, create(false), model)).failure, undefined);
  assert.ok((await connection.introspect()).get('t')?.indexes.has('i'));
  await connection.close();
});

for (const isRepair of [false, true]) {
  const what = isRepair ? 'by a resumed run' : 'by a run that needs its name';
  on(`an index that another session is building is left alone ${what}`, async ({ url, query }) => {
    await query('CREATE TABLE t (id integer); CREATE TABLE other (id integer)');
    const connection = await postgresql.connect(url, {});
    const writer = new pg.Client({ connectionString: url });
    const owner = new pg.Client({ connectionString: url });
    await Promise.all([writer.connect(), owner.connect()]);
    try {
      await writer.query('BEGIN; INSERT INTO t VALUES (1)');
      const building = owner.query('CREATE INDEX CONCURRENTLY i ON t (id)');
      building.catch(() => undefined);
      const found = () => query("SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass('i')");
      await waitUntil(async () => (await found()).length === 1, 'The index build was not started.');
      const create = (collection: string) => {
        const operation: Operation = {
          type: 'createIndex',
          collection,
          index: 'i',
          columns: [{ name: 'id' }],
          sqlOptions: { concurrently: true },
        };
        const [statement] = postgresql.compile(operation, new Map());
        assert.ok(statement?.repair !== undefined);
        const statements = [isRepair ? { ...statement, run: statement.repair } : statement];
        return connection.run([{ transactional: false, statements, writes: [] }], 0);
      };

      const error = (await create('other')).failure?.error;
      assert.equal(isSvcError(error) ? error.code : error, isRepair ? undefined : 'index_exists');
      assert.deepEqual(await found(), [{ valid: false }]);

      const run = create('t');
      const attempts = new Set<string>();
      await waitUntil(async () => {
        const given = `SELECT query_start::text AS at FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'svc' AND query = 'ROLLBACK'`;
        for (const { at } of await query(given)) attempts.add(String(at));
        return attempts.size > 1;
      }, 'It did not wait for the build.');
      await writer.query('COMMIT');
      await building;
      const late = (await run).failure?.error;
      assert.equal(isSvcError(late) ? late.code : late, isRepair ? undefined : 'index_exists');
      assert.deepEqual(await found(), [{ valid: true }]);
    } finally {
      await Promise.all([writer.end(), owner.end(), connection.close()]);
    }
  });
}

on('a read-only user gets an error with the missing privileges', async ({ url, query }) => {
  const role = `reader_${process.pid}_${Math.random().toString(36).slice(2)}`;
  await query(`CREATE ROLE ${role} LOGIN`);
  await query('REVOKE CREATE ON SCHEMA public FROM PUBLIC');
  const reading = new URL(url);
  reading.username = role;
  const connection = await postgresql.connect(reading.href, {});
  await assert.rejects(
    connection.withLock(async () => {}),
    hasCode('permission_denied', /42501/),
  );
  await connection.close();
  await query(`DROP ROLE ${role}`);
});

on('everything that the model cannot describe of a table is reported', async ({ url, query }) => {
  await query(
    "CREATE SCHEMA odd; CREATE TYPE odd.mood AS ENUM ('sad'); CREATE TABLE t (id serial PRIMARY KEY, label odd.mood, price money, at timestamptz, low integer GENERATED ALWAYS AS (1) STORED); CREATE INDEX e ON t ((id + 1)); CREATE VIEW v AS SELECT 1; CREATE TABLE p (id int) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (1) TO (2)",
  );
  const connection = await postgresql.connect(url, {});
  const model = await connection.introspect();
  assert.deepEqual([...model.keys()].sort(), ['p', 't']);
  assert.deepEqual(model.get('t')?.fields.get('id'), {
    name: 'id',
    type: 'integer',
    primaryKey: true,
    autoGenerate: true,
    required: true,
    native: 'serial',
  });
  const unsupported = (await connection.unsupportedObjects())
    .map(({ collection, field }) => `${collection}.${field ?? ''}`)
    .sort();
  // The schema that is not listed is not of a table.
  assert.deepEqual(unsupported, ['t.label', 'undefined.']);
  await connection.close();
});

on('a record write is retried until the lock of another session is released', async ({ url, query }) => {
  const notes: RecordDefinition<{ readonly id: string }> = {
    collection: '_svc_notes',
    key: 'id',
    columns: { id: { type: 'string' } },
    indexes: [],
  };
  const connection = await postgresql.connect(url, { lockTimeoutMs: 20, lockRetries: 1_000_000 });
  const other = new pg.Client({ connectionString: url });
  await other.connect();
  try {
    await connection.ensureTables([anyDefinition(notes)]);
    const store = connection.records(notes);
    await store.insert({ id: 'a' });
    await other.query('BEGIN; SELECT 1 FROM "_svc_notes" FOR UPDATE');
    const writing = store.replace('a', 1, { id: 'a' });
    const attempts = new Set<string>();
    await waitUntil(async () => {
      const text = `SELECT query_start::text AS at FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      for (const { at } of await query(text)) attempts.add(String(at));
      return attempts.size > 1;
    }, 'It was not tried again.');
    await other.query('ROLLBACK');
    assert.equal(await writing, 'replaced');
  } finally {
    await other.end();
    await connection.close();
  }
});

/** The SSLRequest message of the PostgreSQL protocol. */
const SSL_REQUEST = 8;

/** A server that offers TLS to PostgreSQL clients with a self-signed certificate; undefined without openssl. */
async function selfSigned(): Promise<{ readonly port: number; close(): void } | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-tls-'));
  const [key, cert] = [join(folder, 'key'), join(folder, 'cert')];
  const args = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=localhost', '-days', '1'];
  const isCreated = spawnSync('openssl', [...args, '-keyout', key, '-out', cert]).status === 0;
  const pair = isCreated && { key: readFileSync(key), cert: readFileSync(cert) };
  rmSync(folder, { recursive: true });
  if (!pair) return undefined;
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (message) => {
      if (message.length !== SSL_REQUEST) return void socket.destroy();
      socket.write('S');
      new TLSSocket(socket, { isServer: true, ...pair }).on('error', () => socket.destroy());
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, close: () => void server.close() };
}
