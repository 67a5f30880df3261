import * as assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startCli } from './kit/cli.ts';
import { errorJson, errorText } from './kit/command-error.ts';
import { type OwnServer, ownServer, unavailable } from './kit/own-postgresql.ts';
import { freshFolder } from './kit/pglite.ts';
import { assertExit, type Project, project } from './kit/project.ts';
import { test as declare } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

// A separate server that requires passwords, denies access, dies during a migration and fills its disk.

const MIGRATIONS = 'svc/database/migrations/main';
const SLOW = { timeoutMs: 240_000 };
const raw = (statement: string, more: object = {}) => ({ type: 'raw', dialect: 'postgresql', statement, ...more });
const [FIRST, SECOND] = ['20260101_000000_first', '20260102_000000_second'];
const SLEEPS = 'SELECT pg_sleep(600)';

function write(shop: Project, tag: string, up: readonly object[]): void {
  shop.write(`${MIGRATIONS}/${tag}.json`, { tag, name: tag.slice(16), up, down: [] });
}

const missing = unavailable();
function test(name: string, body: (server: OwnServer) => Promise<void>): void {
  if (missing !== undefined) declare.skip(name, missing);
  else declare(name, () => body(running()), SLOW);
}

let server: OwnServer | undefined;
function running(): OwnServer {
  assert.ok(server);
  return server;
}
if (missing === undefined) {
  declare.before(async () => {
    server = await ownServer();
  }, SLOW);
  declare.after(async () => server?.remove(), SLOW);
}

/** A project with its own database on that server. */
async function createShop(server: OwnServer, name: string): Promise<Project> {
  await server.query(`CREATE DATABASE ${name}`);
  const shop = project({ main: server.url(undefined, undefined, name) });
  write(shop, FIRST, [raw('CREATE TABLE a (i int)')]);
  return shop;
}

test('connection errors name the cause (password, user, database, host) and never the password', async (server) => {
  const secret = 'wr:ong@pass/word';
  const cases: readonly [url: string, code: string, says: RegExp][] = [
    [server.url('postgres', secret), 'authentication_failed', /28P01/],
    [`postgresql://postgres@127.0.0.1:${server.port}/postgres`, 'authentication_failed', /password/],
    [server.url('nobody', secret), 'authentication_failed', /"nobody"/],
    [server.url(undefined, undefined, 'nowhere'), 'database_missing', /3D000.*"nowhere"/],
    [`postgresql://postgres:${encodeURIComponent(secret)}@127.0.0.1:1/x`, 'connection_failed', /ECONNREFUSED/],
    [`postgresql://postgres:${encodeURIComponent(secret)}@no-such-host.invalid/x`, 'connection_failed', /no-such-host/],
  ];
  for (const [url, code, says] of cases) {
    const shop = project({ main: url });
    const text = errorText(await shop.svc('db', 'migrate'), 1, code);
    assert.match(text, says);
    const status = await shop.svc('db', 'migrate', 'status', '--json');
    errorJson(status, 1, code);
    for (const output of [text, status.stdout, status.stderr])
      for (const form of [secret, encodeURIComponent(secret)]) assert.ok(!output.includes(form), output);
  }
});

test('a read-only user sees the status and changes nothing', async (server) => {
  const shop = await createShop(server, 'readers');
  const as = async (options: string): Promise<Project> => {
    await server.query(
      `CREATE ROLE ${options.split(' ')[0]} LOGIN PASSWORD 'r' ${options.split(' ').slice(1).join(' ')}`,
    );
    const reader = project({ main: server.url(options.split(' ')[0], 'r', 'readers') });
    write(reader, FIRST, [raw('CREATE TABLE a (i int)')]);
    return reader;
  };
  const reader = await as('reader');
  assert.match(assertExit(await reader.svc('db', 'migrate', 'status')).stdout, /^PENDING 1/);
  errorText(await reader.svc('db', 'migrate'), 1, 'permission_denied');
  const objects = () =>
    server.query("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace", 'readers');
  assert.deepEqual(await objects(), []);
  assertExit(await shop.svc('db', 'migrate'));
  errorText(await reader.svc('db', 'migrate', 'status'), 1, 'permission_denied');
  await server.query('GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader', 'readers');
  assert.match(assertExit(await reader.svc('db', 'migrate', 'status')).stdout, /^OK/);
  assert.equal(assertExit(await reader.svc('db', 'migrate')).stdout, 'Nothing to do in main (dev).\n');
  write(reader, SECOND, [raw('CREATE TABLE b (i int)')]);
  const initial = await objects();
  assert.match(errorText(await reader.svc('db', 'migrate'), 1, 'permission_denied'), /42501/);
  assert.deepEqual(await objects(), initial);

  await server.query('ALTER DATABASE readers SET default_transaction_read_only = on');
  write(shop, SECOND, [raw('CREATE TABLE b (i int)')]);
  assert.match(errorText(await shop.svc('db', 'migrate'), 1, 'permission_denied'), /25006.*read-only/s);
  assert.deepEqual(await objects(), initial);

  await server.query('ALTER ROLE reader CONNECTION LIMIT 0');
  assert.match(errorText(await reader.svc('db', 'migrate', 'status'), 1, 'connection_failed'), /53300/);
});

const sleeping = (server: OwnServer) =>
  waitUntil(
    async () => (await server.query("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'")).length > 0,
    'the migration never slept',
  );

test('a migration on a server that dies is rolled back, and the next run applies it', async (server) => {
  const shop = await createShop(server, 'dying');
  assertExit(await shop.svc('db', 'migrate'));
  write(shop, SECOND, [raw('CREATE TABLE b (i int)'), raw(SLEEPS)]);
  const migrating = startCli(['db', 'migrate'], shop.root);
  await sleeping(server);
  await server.kill();
  const text = errorText(await migrating.ended, 1, 'connection_lost');
  assert.match(text, /Each is applied completely or not at all; the next run determines which/);
  errorText(await shop.svc('db', 'migrate'), 1, 'connection_failed');
  await server.start();
  assert.deepEqual(await server.query("SELECT tablename FROM pg_tables WHERE tablename IN ('a', 'b')", 'dying'), [
    { tablename: 'a' },
  ]);
  write(shop, SECOND, [raw('CREATE TABLE b (i int)')]);
  assert.match(assertExit(await shop.svc('db', 'migrate', '--lock-timeout', '5')).stdout, /^1 migration,/);
  assert.match(assertExit(await shop.svc('db', 'migrate', 'status', '--check')).stdout, /^OK/);
});

test('a non-transactional migration on a server that dies is resumed at the step where it stopped', async (server) => {
  const shop = await createShop(server, 'steps');
  write(shop, SECOND, [
    raw('INSERT INTO a VALUES (1)'),
    raw(SLEEPS, { transaction: false, check: 'SELECT 1' }),
    raw('INSERT INTO a VALUES (3)', { transaction: false }),
  ]);
  const migrating = startCli(['db', 'migrate'], shop.root);
  await sleeping(server);
  await server.kill();
  assert.match(errorText(await migrating.ended, 1, 'connection_lost'), /the next run continues from there/);
  await server.start();
  assert.match(
    assertExit(await shop.svc('db', 'migrate', 'status', '--check'), 4).stdout,
    /interrupted at step 2 of 3/,
  );
  // The check of the step finds its effect.
  assert.match(assertExit(await shop.svc('db', 'migrate')).stdout, /^1 migration,/);
  assert.deepEqual(await server.query('SELECT i FROM a ORDER BY i', 'steps'), [{ i: 1 }, { i: 3 }]);
  assert.match(assertExit(await shop.svc('db', 'migrate', 'status', '--check')).stdout, /^OK/);
});

test('an interrupted step with an unknown outcome needs a decision', async (server) => {
  const shop = await createShop(server, 'unknown');
  write(shop, SECOND, [raw('INSERT INTO a VALUES (1)'), raw(SLEEPS, { transaction: false })]);
  const migrating = startCli(['db', 'migrate'], shop.root);
  await sleeping(server);
  await server.kill();
  errorText(await migrating.ended, 1, 'connection_lost');
  await server.start();
  for (const _again of [1, 2]) {
    const text = errorText(await shop.svc('db', 'migrate'), 6, 'migration_half_done');
    assert.match(text, /1 of 2 steps are committed[\s\S]*--retry[\s\S]*--applied[\s\S]*--rolled-back/);
  }
  assertExit(await shop.svc('db', 'migrate', 'resolve', SECOND, '--applied'));
  assert.match(assertExit(await shop.svc('db', 'migrate', 'status', '--check')).stdout, /^OK/);
  assert.deepEqual(await server.query('SELECT i FROM a', 'unknown'), [{ i: 1 }]);
});

// ---- a full disk

/** A file system of that size, or why it cannot be created. */
function smallDisk(megabytes: number): { folder: string; remove: () => void } | string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder], { stdio: 'pipe' });
  } catch (error) {
    rmSync(folder, { recursive: true });
    return `no file system can be mounted here (${error instanceof Error ? error.message.split('\n')[0] : error})`;
  }
  chmodSync(folder, 0o777);
  return {
    folder,
    remove: () => {
      execFileSync('umount', ['-l', folder]);
      rmSync(folder, { recursive: true });
    },
  };
}

/** Fills a file system up to that much free space; returns a function that frees it. */
function fill(folder: string, leaveMegabytes: number): () => void {
  const { bavail, bsize } = statfsSync(folder);
  const file = join(folder, 'filler');
  writeFileSync(file, Buffer.alloc(Math.max(0, bavail * bsize - leaveMegabytes * 2 ** 20)));
  return () => rmSync(file);
}

const BIG = `INSERT INTO big SELECT repeat(md5(i::text), 20) FROM generate_series(1, 60000) AS i`;

const onDisk = (name: string, megabytes: number, body: (folder: string) => Promise<void>, without?: string): void => {
  const disk = without ?? smallDisk(megabytes);
  if (typeof disk === 'string') {
    declare.skip(name, disk);
    return;
  }
  declare.after(disk.remove);
  declare(name, () => body(disk.folder), SLOW);
};

onDisk(
  'a migration on a server with a full disk is rolled back, and applied once there is space',
  160,
  async (folder) => {
    const server = await ownServer(join(folder, 'data'));
    try {
      const shop = await createShop(server, 'filled');
      assertExit(await shop.svc('db', 'migrate'));
      write(shop, SECOND, [raw('CREATE TABLE big (t text)'), raw(BIG)]);
      const freeSpace = fill(folder, 20);
      const ran = await shop.svc('db', 'migrate');
      const code = /\((\w+)\)/.exec(ran.stderr.slice(ran.stderr.indexOf('error ')))?.[1] ?? '';
      // The server exits if its write-ahead log has no space; a table without space only fails the statement.
      assert.ok(['migration_failed', 'connection_lost'].includes(code), ran.stderr);
      errorText(ran, 1, code);
      freeSpace();
      await server.kill();
      await server.start();
      assert.deepEqual(
        await server.query("SELECT tablename FROM pg_tables WHERE tablename IN ('a', 'big')", 'filled'),
        [{ tablename: 'a' }],
      );
      assertExit(await shop.svc('db', 'migrate'));
      assert.deepEqual(await server.query('SELECT count(*)::int AS n FROM big', 'filled'), [{ n: 60000 }]);
    } finally {
      await server.remove();
    }
  },
  missing,
);

onDisk(
  'a migration on PGlite with a full disk is rolled back, and applied once there is space',
  120,
  async (folder) => {
    const empty = await freshFolder();
    execFileSync('cp', ['-r', empty.url.slice('pglite://'.length), join(folder, 'data')]);
    await empty.drop();
    const shop = project({ main: `pglite://${folder}/data` });
    write(shop, FIRST, [raw('CREATE TABLE a (i int)')]);
    assertExit(await shop.svc('db', 'migrate'));
    write(shop, SECOND, [raw('CREATE TABLE big (t text)'), raw(BIG)]);
    const freeSpace = fill(folder, 8);
    assert.match(errorText(await shop.svc('db', 'migrate'), 1, 'migration_failed'), /None of it took effect/);
    // With no space at all it cannot be opened, and fails instead of hanging.
    assert.match(errorText(await shop.svc('db', 'migrate', 'status'), 1, 'connection_failed'), /disk is not full/);
    freeSpace();
    assert.match(assertExit(await shop.svc('db', 'migrate', 'status', '--check'), 4).stdout, /^PENDING 1/);
    assert.match(assertExit(await shop.svc('db', 'migrate')).stdout, /^1 migration, 2 steps/);
    assert.match(assertExit(await shop.svc('db', 'migrate', 'status', '--check')).stdout, /^OK/);
  },
);

onDisk('a project on a full disk gets no incomplete migration file', 1, async (folder) => {
  const shop = project({ main: 'pglite://memory' });
  const cwd = join(folder, 'shop');
  execFileSync('cp', ['-r', shop.root, cwd]);
  const there = { ...shop, root: cwd };
  execFileSync('mkdir', ['-p', join(cwd, 'svc/database')]);
  const fields = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`f${index}`, 'text']));
  writeFileSync(
    join(cwd, 'svc/database/schema.json'),
    JSON.stringify([{ db: 'main', tables: { t: { id: { type: 'integer', primaryKey: true }, ...fields } } }]),
  );
  const freeSpace = fill(folder, 0);
  const full = startCli(['db', 'schema', 'generate'], there.root);
  const text = errorText(await full.ended, 1, 'file_failed');
  assert.match(text, /ENOSPC/);
  freeSpace();
  const again = await startCli(['db', 'schema', 'generate'], there.root).ended;
  assert.match(assertExit(again).stdout, /_create_t\.json\n$/);
});
