import * as assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { migration } from '../core/migration/builder.ts';
import { rollback } from '../core/migration/migrate.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import { openServer } from '../plugins/dialects/postgresql/connection/server.ts';
import { settingsOf } from '../plugins/dialects/postgresql/connection/settings.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { startFaultProxy } from './kit/fault-proxy.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { freePort } from './suites/free-port.ts';
import { waitUntil } from './suites/wait-until.ts';

const missing = await unavailable();
const users = migration('20260101_000000_create_users')
  .createCollection('users', [{ name: 'id', type: 'integer', primaryKey: true }])
  .build();

const through = (url: string, port: number): string => {
  const changed = new URL(url);
  changed.port = String(port);
  return changed.href;
};

const removed = 'a network that fails under an open session is a lost connection';
if (missing !== undefined) test.skip(removed, missing);
else {
  test(removed, async () => {
    const { url, query, drop } = await freshDatabase();
    try {
      for (const code of ['ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH']) {
        const session = await openServer(url, settingsOf({}));
        const pending = expectError(session.exec(`SELECT pg_sleep(60) AS ${code}`), 'connection_lost');
        const isRequested = `SELECT 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60) AS ${code}'`;
        await waitUntil(async () => (await query(isRequested)).length > 0, 'the server never received the request');
        const { stream } = (session.client as unknown as { readonly connection: { readonly stream: Socket } })
          .connection;
        stream.destroy(Object.assign(new Error(`read ${code}`), { code, errno: -110, syscall: 'read' }));
        assert.match((await pending).why ?? '', new RegExp(code));
        await expectError(session.exec('SELECT 1'), 'connection_lost');
        await session.close();
      }
    } finally {
      await drop();
    }
  });
}

/** Loses the connection before the response to COMMIT: the outcome is unknown until the next run. */
for (const [when, applied] of [
  ['before', false],
  ['after', true],
] as const) {
  const name = `a connection cut ${when} the server receives COMMIT: the next run ${applied ? 'finds it applied' : 'applies it'}`;
  if (missing !== undefined) {
    test.skip(name, missing);
    continue;
  }
  test(name, async () => {
    const { url, query, drop } = await freshDatabase();
    const proxy = await startFaultProxy(Number(new URL(url).port || 5432));
    try {
      const adapter = await connectTarget(postgresql, through(url, proxy.port));
      const engine = new MigrationEngine(adapter);
      await engine.getHistory();
      proxy.disconnectOn('CREATE TABLE "public"."users"', when);
      await expectError(engine.up(users), 'connection_lost');
      await adapter.connection.close().catch(() => undefined);

      const again = await connectTarget(postgresql, url);
      try {
        assert.equal((await new MigrationEngine(again).up(users)).status, applied ? 'skipped' : 'completed');
        assert.deepEqual(await query('SELECT tag, status, seq::int FROM _svc_migrations'), [
          { tag: users.tag, status: 'completed', seq: 1 },
        ]);
      } finally {
        await again.connection.close();
      }
    } finally {
      proxy.close();
      await drop();
    }
  });
}

const lostAnswer = 'a rollback whose response was lost rolls back nothing more when resumed';
if (missing !== undefined) test.skip(lostAnswer, missing);
else {
  test(lostAnswer, async () => {
    const { url, query, drop } = await freshDatabase();
    const proxy = await startFaultProxy(Number(new URL(url).port || 5432));
    try {
      const adapter = await connectTarget(postgresql, through(url, proxy.port));
      const engine = new MigrationEngine(adapter);
      await engine.up(users);
      await engine.up(
        migration('20260102_000000_create_orders')
          .createCollection('orders', [{ name: 'id', type: 'integer', primaryKey: true }])
          .build(),
      );
      proxy.disconnectOn('DROP TABLE "public"."orders"', 'after');
      const { next } = await expectError(rollback(adapter), 'connection_lost');
      assert.deepEqual(next, [`svc db migrate rollback --to ${users.tag}    it checks what took effect.`]);
      await adapter.connection.close().catch(() => undefined);

      const again = await connectTarget(postgresql, url);
      try {
        assert.deepEqual((await rollback(again, { to: users.tag })).migrations, []);
        assert.deepEqual(await query("SELECT tag, status FROM _svc_migrations WHERE status = 'completed'"), [
          { tag: users.tag, status: 'completed' },
        ]);
      } finally {
        await again.connection.close();
      }
    } finally {
      proxy.close();
      await drop();
    }
  });
}

const bouncer = spawnSync('pgbouncer', ['--version']).status === 0;
for (const [mode, ignored] of [
  ['session', ''],
  ['transaction', ''],
  ['transaction', 'options'],
] as const) {
  const name = `PgBouncer in ${mode} mode${ignored && ', which drops the settings of a connection,'} is rejected before anything runs`;
  const why = missing ?? (bouncer ? undefined : 'pgbouncer is not installed');
  if (why !== undefined) {
    test.skip(name, why);
    continue;
  }
  test(name, async () => {
    const { url, query, drop } = await freshDatabase();
    const pooler = await startPooler(url, mode, ignored);
    try {
      const connecting = connectTarget(postgresql, through(url, pooler.port));
      await expectError(
        connecting.then((adapter) => new MigrationEngine(adapter).up(users)),
        'pooler_unsupported',
      );
      assert.deepEqual(await query("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"), []);
    } finally {
      pooler.stop();
      await drop();
    }
  });
}

async function startPooler(url: string, mode: string, ignored: string) {
  const { hostname, port: serverPort, username } = new URL(url);
  const folder = mkdtempSync(join(tmpdir(), 'svc-pgbouncer-'));
  chmodSync(folder, 0o755);
  const port = await freePort();
  writeFileSync(
    join(folder, 'pgbouncer.ini'),
    `[databases]
* = host=${hostname} port=${serverPort || 5432} user=${username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
ignore_startup_parameters = ${ignored}
`,
  );
  // PgBouncer does not run as root.
  const user = userInfo().uid === 0 ? ['-u', 'postgres'] : [];
  const child: ChildProcess = spawn('pgbouncer', ['-q', ...user, join(folder, 'pgbouncer.ini')], { stdio: 'ignore' });
  const stop = () => {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true });
  };
  await waitUntil(async () => {
    const client = new pg.Client({ connectionString: through(url, port), connectionTimeoutMillis: 1000 });
    return client.connect().then(
      () => client.end().then(() => true),
      () => false,
    );
  }, 'PgBouncer does not answer').catch((error) => {
    stop();
    throw error;
  });
  return { port, stop };
}
