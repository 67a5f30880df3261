import * as assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Connection, Dialect } from '../core/dialect.ts';
import { isSvcError } from '../core/errors.ts';
import { migration } from '../core/migration/builder.ts';
import { migrate } from '../core/migration/migrate.ts';
import { resolveMigration } from '../core/migration/resolve.ts';
import { anyDefinition, type RecordDefinition, recordUpdate, recordWrite } from '../core/records.ts';
import type { SchemaModel } from '../core/schema/model.ts';
import type { Operation } from '../core/schema/operation.ts';
import { mariadb, mariadbVariant } from '../plugins/dialects/mariadb/dialect.ts';
import type { MysqlSegment } from '../plugins/dialects/mysql/compile/step.ts';
import { createDialect, mysql, mysqlVariant } from '../plugins/dialects/mysql/dialect.ts';
import type { DriverConnection } from '../plugins/dialects/mysql/variant.ts';
import { definedInCode } from './kit/migrations.ts';
import { type FreshDatabase, freshDatabase } from './kit/mysql.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { find } from './servers/find.ts';
import { startedServers } from './servers/state.ts';
import { expectError } from './suites/expect-error.ts';
import { waitUntil } from './suites/wait-until.ts';

// MySQL and MariaDB: errors of the server, waiting for a lock, and a lost session.

const hasCode =
  (code: string, words = /./) =>
  (error: unknown) =>
    isSvcError(error) && error.code === code && words.test(`${error.message} ${error.why}`);

interface Row {
  readonly id: string;
  readonly n: number;
}
const rows: RecordDefinition<Row> = {
  collection: '_svc_rows',
  key: 'id',
  columns: { id: { type: 'string' }, n: { type: 'bigint' } },
  indexes: [],
};
const insert = (id: string): MysqlSegment => ({
  transactional: true,
  statements: [],
  writes: [recordWrite(rows, { id, n: 0 })],
});
const change = (id: string, n: number, version: number): MysqlSegment => ({
  transactional: true,
  statements: [],
  writes: [recordUpdate(rows, { id, n }, version)],
});

for (const dialect of [mysql, mariadb]) {
  const name = dialect.name as 'mysql' | 'mariadb';
  const variant = name === 'mysql' ? mysqlVariant : mariadbVariant;
  const found = await find(name);
  const on = (what: string, body: (database: FreshDatabase) => Promise<void>) => {
    if ('missing' in found) return void test.skip(`${name}: ${what}`, found.missing);
    test(`${name}: ${what}`, async () => {
      const database = await freshDatabase(found.url);
      try {
        await body(database);
      } finally {
        await database.drop();
      }
    });
  };
  const compiled = (operation: Operation, model: SchemaModel = new Map()): MysqlSegment[] =>
    dialect
      .compile(operation, model)
      .map((statement) => ({ transactional: statement.transactional, statements: [statement], writes: [] }));
  const table = (table: string): MysqlSegment[] =>
    compiled({ type: 'createCollection', name: table, fields: [{ name: 'id', type: 'integer', primaryKey: true }] });
  const raw = (statement: string): MysqlSegment[] => compiled({ type: 'raw', dialect: dialect.name, statement });
  const tables = async (connection: Connection) => [...(await connection.introspect()).keys()].sort();

  on('a wrong address, database, user or dialect is reported with its code', async ({ url }) => {
    const other = (change: (url: URL) => void) => {
      const changed = new URL(url);
      change(changed);
      return dialect.connect(changed.href, { connectTimeoutMs: 2000 });
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
      hasCode('database_missing', /1049/),
    );
    await assert.rejects(
      other((to) => {
        to.username = 'nobody_here';
        to.password = 's3cret';
      }),
      (error) => hasCode('authentication_failed')(error) && !JSON.stringify(error).includes('s3cret'),
    );
    await assert.rejects(
      other((to) => (to.pathname = '/')),
      hasCode('url_invalid', /no database/),
    );
    await assert.rejects(dialect.connect('postgresql://x/y', {}), hasCode('url_invalid'));
    await assert.rejects(
      dialect.connect(url, { schema: 'public' }),
      hasCode('config_invalid', /its URL specifies where tables live/),
    );
    const [wrong, why] = name === 'mysql' ? [mariadb, /not MariaDB but/] : [mysql, /not MySQL but/];
    await assert.rejects(wrong.connect(url.replace(/^mariadb:/, 'mysql:'), {}), hasCode('config_invalid', why));
  });

  on('an untrusted certificate is reported before anything is sent', async ({ url }) => {
    const named = new URL(url);
    named.hostname = 'localhost';
    named.searchParams.set('tls', 'verify');
    const error = await expectError(dialect.connect(named.href, {}), 'connection_failed');
    assert.match(`${error.next.join(' ')} ${error.state}`, /tls=encrypt.*Nothing was changed/);
  });

  if (name === 'mysql') {
    on('a trusted certificate of another server is rejected', async ({ url }) => {
      await expectError(dialect.connect(`${url}?tls=verify`, {}), 'url_invalid');
      const own = startedServers().find((server) => server.engine === 'mysql' && url.startsWith(server.url));
      if (!own) return;
      const script = fileURLToPath(new URL('./kit/connect.ts', import.meta.url));
      const connecting = spawnSync(
        process.execPath,
        ['--import', 'tsx', script, name, `${url.replace('127.0.0.1', 'localhost')}?tls=verify`],
        { env: { ...process.env, NODE_EXTRA_CA_CERTS: join(own.folder, 'data', 'ca.pem') }, encoding: 'utf8' },
      );
      assert.match(connecting.stdout, /^connection_failed .*altnames/);
    });
  }

  on('a read-only user gets the missing privileges, and can read', async ({ url, query }) => {
    const user = `r${process.pid}${Math.random().toString(36).slice(2, 8)}`;
    await query('CREATE TABLE t (id int PRIMARY KEY)');
    await query(
      `CREATE USER ${user} IDENTIFIED BY 'pw'; GRANT SELECT ON ${new URL(url).pathname.slice(1)}.* TO ${user}`,
    );
    try {
      const reading = new URL(url);
      reading.username = user;
      reading.password = 'pw';
      const connection = await dialect.connect(reading.href, {});
      assert.deepEqual(await tables(connection), ['t']);
      await assert.rejects(
        connection.withLock(async () => {}),
        hasCode('permission_denied', /1142/),
      );
      await connection.withLock(async () => {}).catch(() => undefined);
      await query('CREATE TABLE c (id int PRIMARY KEY, t int, CONSTRAINT f FOREIGN KEY (t) REFERENCES t (id))');
      // Not that the catalog is empty.
      if (name === 'mariadb')
        await assert.rejects(connection.introspect(), hasCode('permission_denied', /more privileges than SELECT/));
      await query(`GRANT REFERENCES ON ${new URL(url).pathname.slice(1)}.* TO ${user}`);
      const seeing = await dialect.connect(reading.href, {});
      assert.ok((await seeing.introspect()).get('c')?.constraints.has('f'));
      await query('CREATE TRIGGER watcher BEFORE INSERT ON t FOR EACH ROW SET NEW.id = 1');
      const unsupported = async (one: Connection) => (await one.unsupportedObjects()).map(({ what }) => what).join();
      assert.match(await unsupported(seeing), /^may have triggers, which its user cannot see/);
      const escaped = `\`${new URL(url).pathname.slice(1).replaceAll('_', '\\_')}\`.*`;
      await query(`GRANT TRIGGER ON ${escaped} TO ${user}`);
      await seeing.close();
      const all = await dialect.connect(reading.href, {});
      assert.match(await unsupported(all), /^has the trigger watcher/);
      await all.close();
      const other = await dialect.connect(url, {});
      await other.withLock(async () => {}, { timeoutMs: 0 });
      await Promise.all([connection.close(), other.close()]);
    } finally {
      await query(`DROP USER ${user}`);
    }
  });

  on(
    'a killed step of a user who cannot read the catalog reports the missing privileges, and can be retried',
    async (database) => {
      const { url, query } = database;
      const user = `r${process.pid}${Math.random().toString(36).slice(2, 8)}`;
      const schema = new URL(url).pathname.slice(1);
      await query(
        `CREATE USER ${user} IDENTIFIED BY 'pw'; GRANT ALTER, CREATE, DROP, INDEX, REFERENCES, SELECT, INSERT, UPDATE, DELETE ON ${schema}.* TO ${user}`,
      );
      const granted = new URL(url);
      granted.username = user;
      granted.password = 'pw';
      const adapter = await connectTarget(dialect, granted.href);
      try {
        const first = migration('20260101_000000_first')
          .createCollection('t', [
            { name: 'id', type: 'integer', primaryKey: true },
            { name: 'n', type: 'integer' },
          ])
          .addConstraint('t', { name: 't_n', type: 'check', columns: ['n'], expression: 'n > 0' })
          .build();
        const second = migration('20260102_000000_second')
          .addField('t', { name: 'more', type: 'integer' })
          .raw(name, 'INSERT INTO t (id, n) VALUES (1, 1), (2, 1)')
          .createIndex('t', 'once', [{ name: 'n' }], { unique: true })
          .build();
        await migrate(adapter, [definedInCode(first)]);
        const both = [first, second].map(definedInCode);
        await assert.rejects(migrate(adapter, both), hasCode('migration_half_done'));
        await query(
          `DELETE FROM t WHERE id = 2; UPDATE _svc_migrations SET status = 'applying', error = NULL WHERE tag = '${second.tag}'`,
        );
        const refusal = await expectError(migrate(adapter, both), 'permission_denied');
        assert.match(refusal.next.join(), /CREATE TEMPORARY TABLES/);
        assert.equal((await resolveMigration(adapter, second.tag, 'retry')).status, 'completed');
      } finally {
        await adapter.connection.close();
        await query(`DROP USER ${user}`);
      }
    },
  );

  on('a session that the server ends releases the lock and reports it', async ({ url, query }) => {
    const first = await dialect.connect(url, {});
    const second = await dialect.connect(url, {});
    const outcome = first.withLock(async () => {
      const [row] = await first.query('SELECT connection_id() AS id');
      await query(`KILL ${row?.id}`);
      await second.withLock(async () => {}, { timeoutMs: 5000 });
      await first.now();
    });
    await assert.rejects(outcome, hasCode('connection_lost'));
    await assert.rejects(first.now(), hasCode('connection_lost'));
    await first.close();
    await second.close();
  });

  on('the lock has one holder: the next one waits, reports it, gives up or is interrupted', async ({ url }) => {
    const [first, second] = await Promise.all([dialect.connect(url, {}), dialect.connect(url, {})]);
    let waited = 0;
    let epoch = 0;
    await first.withLock(async (held) => {
      epoch = held;
      const onWait = () => {
        waited += 1;
      };
      await assert.rejects(
        second.withLock(async () => {}, { timeoutMs: 10, onWait }),
        hasCode('lock_timeout'),
      );
      const stop = new AbortController();
      const interrupted = second.withLock(async () => {}, {
        onWait: () => stop.abort(),
        signal: stop.signal,
      });
      await assert.rejects(interrupted, hasCode('interrupted'));
    });
    assert.equal(waited, 1);
    assert.equal(await second.withLock(async (next) => next), epoch + 1);
    await Promise.all([first.close(), second.close()]);
  });

  on('one packet journals between statements that commit by themselves', async ({ url }) => {
    const connection = await dialect.connect(url, {});
    await connection.withLock(async (epoch) => {
      await connection.ensureTables([rows as never]);
      const store = connection.records(rows);
      const whole = await connection.run(
        [insert('a'), ...table('t1'), change('a', 1, 1), insert('b'), ...table('t2')],
        epoch,
      );
      assert.deepEqual([whole.committed, whole.failure], [5, undefined]);
      assert.deepEqual(await store.get('a'), { record: { id: 'a', n: 1 }, version: 2 });

      const failing = await connection.run(
        [change('a', 2, 2), ...table('t1'), change('a', 3, 3), ...table('t3')],
        epoch,
      );
      assert.equal(failing.committed, 1);
      assert.ok(hasCode('collection_exists', /already exists/)(failing.failure?.error));
      assert.deepEqual([failing.failure?.statement, failing.failure?.rolledBack], [0, true]);
      assert.equal((await store.get('a'))?.record.n, 2, 'the writes before the statement are committed');

      const stale = await connection.run([insert('c'), ...table('t4'), change('a', 9, 2), ...table('t5')], epoch);
      assert.equal(stale.committed, 2);
      assert.ok(hasCode('lock_lost')(stale.failure?.error));
      const over = await connection.run([insert('d'), ...table('t6')], epoch - 1);
      assert.equal(over.committed, 0);
      assert.ok(hasCode('lock_lost')(over.failure?.error));
      assert.equal(await store.get('d'), undefined);
      const outdated = await connection.run([change('a', 4, 3), insert('e'), ...table('t7')], epoch - 1);
      assert.equal(outdated.committed, 0);
      assert.ok(hasCode('lock_lost')(outdated.failure?.error));
      assert.deepEqual([(await store.get('a'))?.record.n, await store.get('e')], [2, undefined]);
      assert.deepEqual(await tables(connection), ['t1', 't2', 't4']);
    });
    await connection.close();
  });

  on('a syntax error stops a packet at its statement, and nothing before it', async ({ url }) => {
    const connection = await dialect.connect(url, {});
    await connection.withLock(async (epoch) => {
      await connection.ensureTables([rows as never]);
      const odd = compiled({
        type: 'createCollection',
        name: 'odd',
        fields: [{ name: 'n', type: 'integer', default: { $expression: '1 +* 2' } }],
      });
      const outcome = await connection.run(
        [insert('a'), ...table('t1'), change('a', 1, 1), insert('b'), ...odd, change('b', 1, 1), ...table('t2')],
        epoch,
      );
      assert.equal(outcome.committed, 4);
      assert.ok(hasCode('migration_failed', /1064/)(outcome.failure?.error), String(outcome.failure?.error));
      assert.deepEqual([outcome.failure?.statement, outcome.failure?.rolledBack], [0, true]);
      assert.equal((await connection.records(rows).get('a'))?.record.n, 1);
      assert.equal((await connection.records(rows).get('b'))?.record.n, 0);
      assert.deepEqual(await tables(connection), ['t1']);
      const next = await connection.run([...table('t2'), change('b', 1, 1)], epoch);
      assert.deepEqual([next.committed, next.failure], [2, undefined]);
    });
    await connection.close();
  });

  on('a session that ends within a packet has journaled its work', async ({ url, query }) => {
    await query('CREATE TABLE t (id int PRIMARY KEY)');
    const connection = await dialect.connect(url, { lockTimeoutMs: 60_000 });
    const busy = await dialect.connect(url, {});
    await busy.query('BEGIN');
    await busy.query('SELECT * FROM t');
    const drop = compiled({ type: 'dropCollection', collection: 't' }, await busy.introspect());
    await connection.ensureTables([rows as never]);
    const [session] = await connection.query('SELECT connection_id() AS id');
    const left = connection.withLock((epoch) =>
      connection.run([insert('a'), ...table('t1'), change('a', 1, 1), ...drop, change('a', 2, 2)], epoch),
    );
    const there = `SELECT 1 FROM information_schema.processlist WHERE id = ${session?.id}`;
    await waitUntil(async () => (await query(`${there} AND state LIKE '%metadata lock%'`)).length > 0, 'nobody waits');
    await query(`KILL ${session?.id}`);
    const { committed, failure } = await left;
    // The client is notified before the statement ends, and the lock may still be granted to it.
    await waitUntil(async () => (await query(there)).length === 0, 'the session does not end');
    assert.equal(committed, 0, 'it cannot know');
    assert.ok(hasCode('connection_lost')(failure?.error), String(failure?.error));
    await busy.query('COMMIT');
    const next = await dialect.connect(url, {});
    await next.withLock(async (epoch) => {
      assert.deepEqual(await next.records(rows).get('a'), { record: { id: 'a', n: 1 }, version: 2 });
      assert.deepEqual(await tables(next), ['t', 't1']);
      const rest = await next.run([...drop, change('a', 2, 2)], epoch);
      assert.deepEqual([rest.committed, rest.failure], [2, undefined]);
    });
    await Promise.all([connection.close(), busy.close(), next.close()]);
  });

  on('raw data changes commit together with their write, or not at all', async ({ url, query }) => {
    await query('CREATE TABLE t (id int PRIMARY KEY)');
    const connection = await dialect.connect(url, {});
    await connection.withLock(async (epoch) => {
      await connection.ensureTables([rows as never]);
      const own = dialect.name === 'mariadb' ? ', max_statement_time = 9, idle_transaction_timeout = 9' : '';
      const [both] = raw(
        `INSERT INTO t VALUES (1); SET sql_mode = ''; SET time_zone = '+05:00'; SET sql_quote_show_create = 0${own}; INSERT INTO t VALUES (2) -- end`,
      );
      assert.ok(both?.transactional);
      const with1 = { ...both, writes: [recordWrite(rows, { id: 'a', n: 1 })] };
      assert.equal((await connection.run([with1], epoch)).failure, undefined);
      const [settings] = await connection.query('SELECT @@sql_mode AS mode, @@time_zone AS zone, @@autocommit AS auto');
      assert.match(String(settings?.mode), /STRICT_ALL_TABLES/);
      assert.deepEqual([settings?.zone, Number(settings?.auto)], ['+00:00', 1]);
      const [shown] = await connection.query(
        'SELECT @@sql_quote_show_create AS quoted, 0 /*M!+ @@max_statement_time + @@idle_transaction_timeout */ AS ended',
      );
      assert.deepEqual([shown?.quoted, shown?.ended].map(Number), [1, 0]);
      const [again] = raw('INSERT INTO t VALUES (3); INSERT INTO t VALUES (1)');
      const with2 = { ...again, writes: [recordWrite(rows, { id: 'b', n: 1 })] } as MysqlSegment;
      const failing = await connection.run([insert('c'), with2], epoch);
      assert.equal(failing.committed, 1);
      assert.ok(hasCode('data_violates', /^(?!.*'1').*1062/)(failing.failure?.error));
      assert.deepEqual(
        (await query('SELECT id FROM t ORDER BY id')).map(({ id }) => Number(id)),
        [1, 2],
      );
      assert.equal(await connection.records(rows).get('b'), undefined);
    });
    await connection.close();
  });

  on('raw data changes outside a transaction are rolled back when they fail', async ({ url, query }) => {
    await query('CREATE TABLE a (n int NOT NULL); CREATE TABLE b (n int)');
    await query('INSERT INTO a VALUES (0); INSERT INTO b VALUES (0)');
    const [connection, busy] = [await dialect.connect(url, { lockRetries: 1 }), await dialect.connect(url, {})];
    const outsideTransaction = (statement: string): MysqlSegment[] =>
      compiled({ type: 'raw', dialect: dialect.name, statement, transaction: false });
    const both = outsideTransaction('UPDATE a SET n = n + 1; UPDATE b SET n = n + 1');
    const counts = async () =>
      (await query('SELECT a.n AS a, b.n AS b FROM a, b')).map(({ a, b }) => [a, b].map(Number));
    try {
      await connection.withLock(async (epoch) => {
        await connection.ensureTables([rows as never]);
        const store = connection.records(rows);
        await busy.query('BEGIN');
        await busy.query('SELECT n FROM b FOR UPDATE');
        const waited = await connection.run([insert('a'), ...both, change('a', 1, 1)], epoch);
        assert.equal(waited.committed, 1);
        assert.ok(hasCode('table_locked', /1205/)(waited.failure?.error));
        assert.equal(waited.failure?.transient, true);
        assert.deepEqual(await counts(), [[0, 0]], 'tried twice');
        await busy.query('ROLLBACK');
        const failing = await connection.run(
          [
            change('a', 2, 1),
            ...outsideTransaction('UPDATE a SET n = n + 1; INSERT INTO a VALUES (NULL)'),
            change('a', 3, 2),
          ],
          epoch,
        );
        assert.equal(failing.committed, 1);
        assert.ok(hasCode('data_violates', /1048/)(failing.failure?.error));
        assert.deepEqual(await counts(), [[0, 0]]);
        assert.equal((await store.get('a'))?.record.n, 2, 'the write before it is committed');
        const through = await connection.run([...both, change('a', 3, 2)], epoch);
        assert.deepEqual([through.committed, through.failure], [2, undefined]);
        assert.deepEqual(await counts(), [[1, 1]]);
      });
    } finally {
      await Promise.all([connection.close(), busy.close()]);
    }
  });

  on('a statement that cannot be rolled back is not retried', async ({ url, query }) => {
    await query('CREATE TABLE a (n int) ENGINE = MyISAM; CREATE TABLE b (n int)');
    await query('INSERT INTO a VALUES (0); INSERT INTO b VALUES (0)');
    const [connection, busy] = [await dialect.connect(url, { lockRetries: 1 }), await dialect.connect(url, {})];
    try {
      await busy.query('BEGIN');
      await busy.query('SELECT n FROM b FOR UPDATE');
      for (const [index, transaction] of [true, false].entries()) {
        const statement = 'UPDATE a SET n = n + 1; UPDATE b SET n = n + 1';
        const both = compiled({ type: 'raw', dialect: dialect.name, statement, transaction });
        const { failure } = await connection.run(both, 0);
        assert.ok(hasCode('table_locked', /1205/)(failure?.error));
        assert.deepEqual([failure?.transient, failure?.rolledBack], [false, false]);
        assert.deepEqual(
          (await query('SELECT n FROM a')).map(({ n }) => Number(n)),
          [index + 1],
        );
      }
    } finally {
      await Promise.all([connection.close(), busy.close()]);
    }
  });

  on(
    'a required timestamp has only its own definition, whatever the server adds by default',
    async ({ url, query }) => {
      /** The default of MariaDB before 10.10. */
      const implicit = (query?: DriverConnection['query']): Dialect =>
        createDialect({
          ...variant,
          async open(address, settings) {
            const driver = await variant.open(address, settings);
            await driver.query('SET SESSION explicit_defaults_for_timestamp = 0');
            return {
              ...driver,
              query: (text) => (query && /explicit.* = 1/.test(text) ? query(text) : driver.query(text)),
            };
          },
        });
      const connection = await implicit().connect(url, {});
      const fields = [{ name: 'at', type: 'timestamp', required: true }] as const;
      await connection.run(compiled({ type: 'createCollection', name: 't', fields }), 0);
      const found = await query(
        "SELECT column_default AS d, extra AS x FROM information_schema.columns WHERE table_schema = DATABASE() AND column_name = 'at'",
      );
      assert.deepEqual(
        found.map(({ d, x }) => [d, x]),
        [[null, '']],
      );
      await connection.close();
      const refusing = implicit(() =>
        Promise.reject(Object.assign(new Error('It is read-only.'), { errno: 1238, sqlState: 'HY000' })),
      );
      await assert.rejects(
        refusing.connect(url, {}),
        hasCode('not_supported', /explicit_defaults_for_timestamp is OFF.*1238/),
      );
    },
  );

  on('a statement that releases the lock is detected before anything is recorded', async ({ url }) => {
    const connection = await dialect.connect(url, {});
    await connection.withLock(async (epoch) => {
      await connection.ensureTables([rows as never]);
      const outcome = await connection.run([insert('a'), ...raw('DO RELEASE_ALL_LOCKS()'), change('a', 1, 1)], epoch);
      assert.ok(hasCode('lock_lost')(outcome.failure?.error));
      assert.equal((await connection.records(rows).get('a'))?.record.n, 0);
    });
    await connection.close();
  });

  on(
    'a record write is retried while another session holds a lock for longer than the lock wait time-out',
    async ({ url, query }) => {
      const [writer, other] = [await dialect.connect(url, {}), await dialect.connect(url, {})];
      try {
        await writer.ensureTables([anyDefinition(rows)]);
        const store = writer.records(rows);
        await store.insert({ id: 'a', n: 1 });
        await other.query('START TRANSACTION');
        await other.query('SELECT 1 FROM _svc_rows FOR UPDATE');
        const writing = store.replace('a', 1, { id: 'a', n: 2 });
        const attempts = new Set<unknown>();
        writing.catch(() => undefined);
        await waitUntil(async () => {
          // The server caches this view for 100 ms.
          await wait(150);
          const waiting =
            "SELECT trx_id AS id FROM information_schema.innodb_trx WHERE trx_query LIKE 'UPDATE%_svc_rows%'";
          for (const { id } of await query(waiting)) attempts.add(String(id));
          return attempts.size > 1;
        }, 'It was not retried.');
        await other.query('ROLLBACK');
        assert.equal(await writing, 'replaced');
      } finally {
        await writer.close();
        await other.close();
      }
    },
  );

  on('a statement waits in short intervals for a table that others use', async ({ url, query }) => {
    await query('CREATE TABLE t (id int PRIMARY KEY)');
    const busy = await dialect.connect(url, {});
    const connection = await dialect.connect(url, { lockRetries: 0 });
    await busy.query('BEGIN');
    await busy.query('SELECT * FROM t');
    const [drop] = compiled({ type: 'dropCollection', collection: 't' }, await busy.introspect());
    const refused = await connection.run([drop as MysqlSegment], 0);
    assert.ok(hasCode('table_locked', /1205/)(refused.failure?.error));
    const retried = await dialect.connect(url, {});
    const waiting = retried.run([drop as MysqlSegment], 0);
    await waitUntil(
      async () =>
        (await query("SELECT 1 FROM information_schema.processlist WHERE state LIKE '%metadata lock%'")).length > 0,
      'nobody waits for the table',
    );
    await busy.query('COMMIT');
    assert.equal((await waiting).failure, undefined);
    await Promise.all([connection.close(), busy.close(), retried.close()]);
  });

  if (name === 'mariadb') {
    // The default since 11.8.
    on('a statement is retried if another session changed a row after it was read', async ({ url, query }) => {
      await query('CREATE TABLE t (n int); INSERT INTO t VALUES (0)');
      const [connection, busy] = [await dialect.connect(url, {}), await dialect.connect(url, {})];
      const [gate] = (await query('SELECT UUID() AS gate')).map(({ gate }) => `'${gate}'`);
      try {
        await connection.query('SET SESSION innodb_snapshot_isolation = 1');
        await busy.query(`SELECT GET_LOCK(${gate}, 0)`);
        const text = `SELECT n FROM t; SELECT GET_LOCK(${gate}, 60); UPDATE t SET n = n + 1`;
        const running = connection.withLock((epoch) => connection.run(raw(text), epoch));
        await waitUntil(
          async () =>
            (await query("SELECT 1 FROM information_schema.processlist WHERE state = 'User lock' AND db = DATABASE()"))
              .length > 0,
          'nobody waits after the read',
        );
        await busy.query('UPDATE t SET n = 10');
        await busy.query(`SELECT RELEASE_LOCK(${gate})`);
        assert.equal((await running).failure, undefined);
        assert.deepEqual(
          (await query('SELECT n FROM t')).map(({ n }) => Number(n)),
          [11],
        );
      } finally {
        await Promise.all([connection.close(), busy.close()]);
      }
    });
  }

  on('the lock of a lost client is free only after the server ended its statement', async ({ url, query }) => {
    await query('CREATE TABLE t (id int PRIMARY KEY)');
    const first = await dialect.connect(url, {});
    const second = await dialect.connect(url, {});
    const blocker = await dialect.connect(url, {});
    await blocker.query('BEGIN');
    await blocker.query('SELECT * FROM t');
    const [row] = await first.query('SELECT connection_id() AS id');
    const left = first
      .withLock((epoch) => first.run(raw('ALTER TABLE t ADD COLUMN a int'), epoch))
      .catch((error) => error);
    await waitUntil(
      async () =>
        (
          await query(
            `SELECT 1 FROM information_schema.processlist WHERE id = ${row?.id} AND state LIKE '%metadata lock%'`,
          )
        ).length > 0,
      'the statement does not wait',
    );
    await query(`KILL ${row?.id}`);
    await second.withLock(async () => {}, { timeoutMs: 5000 });
    await left;
    await blocker.query('COMMIT');
    assert.deepEqual([...((await second.introspect()).get('t')?.fields.keys() ?? [])], ['id']);
    await Promise.all([first.close(), second.close(), blocker.close()]);
  });

  on('an update returns how many rows matched and how many it changed', async ({ url, query }) => {
    await query(
      "CREATE TABLE t (id int PRIMARY KEY, a varchar(20), b varchar(20), n int, at datetime(3) NULL) COLLATE utf8mb4_general_ci; INSERT INTO t VALUES (1, 'x', NULL, 1, NULL), (2, 'X', 'y', 2, NULL), (3, NULL, NULL, NULL, NULL)",
    );
    const connection = await dialect.connect(url, {});
    const collection = (await connection.introspect(['t'])).get('t');
    assert.ok(collection);
    const job = { table: 't', collection, key: 'k' };
    const upper = {
      ...job,
      set: [{ field: 'a', value: 'X' }],
      where: [{ field: 'id', operator: 'lte' as const, value: 2 }],
    };
    assert.deepEqual(await connection.update(upper), { matched: 2, modified: 1 });
    const concat = [{ field: 'a' }, { literal: `'-\\` }, { field: 'b' }];
    assert.deepEqual(await connection.update({ ...job, set: [{ field: 'b', concat }], where: [] }), {
      matched: 3,
      modified: 3,
    });
    const texts = await query('SELECT b FROM t ORDER BY id');
    assert.deepEqual(
      texts.map(({ b }) => b),
      [`X'-\\`, `X'-\\y`, `'-\\`],
    );
    const swapped = {
      ...job,
      set: [
        { field: 'b', value: 'new' },
        { field: 'a', concat: [{ field: 'b' }] },
      ],
      where: [],
    };
    await connection.update(swapped);
    assert.equal(
      (await query('SELECT a FROM t WHERE id = 2'))[0]?.a,
      `X'-\\y`,
      'an assignment that reads a field goes first',
    );
    const circle = {
      ...job,
      set: [
        { field: 'b', concat: [{ field: 'a' }] },
        { field: 'a', concat: [{ field: 'b' }] },
      ],
      where: [],
    };
    await assert.rejects(connection.update(circle), hasCode('update_invalid'));
    const missing = {
      ...job,
      set: [{ field: 'n', value: 2 }],
      where: [{ field: 'n', operator: 'in' as const, value: [null, 2] }],
    };
    assert.deepEqual(await connection.update(missing), { matched: 2, modified: 1 });
    await connection.close();
  });
}
