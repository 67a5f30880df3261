import * as assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { background } from './kit/background.ts';
import { type OwnServer, ownServer, unavailable } from './kit/own-postgresql.ts';
import { freshFolder } from './kit/pglite.ts';
import { type Project, project } from './kit/project.ts';
import { refusedJson, refusedText } from './kit/refused-command.ts';
import { ok } from './kit/shop.ts';
import { test as declare } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

// A server of our own, which asks for passwords, says no, dies in the middle and fills its disk.

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

/** A project on a database of its own of that server. */
async function shopOn(own: OwnServer, name: string): Promise<Project> {
  await own.query(`CREATE DATABASE ${name}`);
  const shop = project({ main: own.url(undefined, undefined, name) });
  write(shop, FIRST, [raw('CREATE TABLE a (i int)')]);
  return shop;
}

test('a wrong password, none, an unknown user, a missing database, a host that is down: each told, never with a password', async (own) => {
  const secret = 'wr:ong@pass/word';
  const bad: readonly [url: string, code: string, says: RegExp][] = [
    [own.url('postgres', secret), 'authentication_failed', /28P01/],
    [`postgresql://postgres@127.0.0.1:${own.port}/postgres`, 'authentication_failed', /password/],
    [own.url('nobody', secret), 'authentication_failed', /"nobody"/],
    [own.url(undefined, undefined, 'nowhere'), 'database_missing', /3D000.*"nowhere"/],
    [`postgresql://postgres:${encodeURIComponent(secret)}@127.0.0.1:1/x`, 'connection_failed', /ECONNREFUSED/],
    [`postgresql://postgres:${encodeURIComponent(secret)}@no-such-host.invalid/x`, 'connection_failed', /no-such-host/],
  ];
  for (const [url, code, says] of bad) {
    const shop = project({ main: url });
    const text = refusedText(await shop.svc('db', 'migrate'), 1, code);
    assert.match(text, says);
    const status = await shop.svc('db', 'migrate', 'status', '--json');
    refusedJson(status, 1, code);
    for (const said of [text, status.stdout, status.stderr])
      for (const form of [secret, encodeURIComponent(secret)]) assert.ok(!said.includes(form), said);
  }
});

test('a user that may only read sees the status and changes nothing', async (own) => {
  const shop = await shopOn(own, 'readers');
  const as = async (options: string): Promise<Project> => {
    await own.query(`CREATE ROLE ${options.split(' ')[0]} LOGIN PASSWORD 'r' ${options.split(' ').slice(1).join(' ')}`);
    const reader = project({ main: own.url(options.split(' ')[0], 'r', 'readers') });
    write(reader, FIRST, [raw('CREATE TABLE a (i int)')]);
    return reader;
  };
  const reader = await as('reader');
  assert.match(ok(await reader.svc('db', 'migrate', 'status')).stdout, /^PENDING 1/);
  refusedText(await reader.svc('db', 'migrate'), 1, 'permission_denied');
  const objects = () =>
    own.query("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace", 'readers');
  assert.deepEqual(await objects(), []);
  ok(await shop.svc('db', 'migrate'));
  refusedText(await reader.svc('db', 'migrate', 'status'), 1, 'permission_denied');
  await own.query('GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader', 'readers');
  assert.match(ok(await reader.svc('db', 'migrate', 'status')).stdout, /^OK/);
  assert.equal(ok(await reader.svc('db', 'migrate')).stdout, 'Nothing to do in main (dev).\n');
  write(reader, SECOND, [raw('CREATE TABLE b (i int)')]);
  const was = await objects();
  assert.match(refusedText(await reader.svc('db', 'migrate'), 1, 'permission_denied'), /42501/);
  assert.deepEqual(await objects(), was);

  await own.query('ALTER DATABASE readers SET default_transaction_read_only = on');
  write(shop, SECOND, [raw('CREATE TABLE b (i int)')]);
  assert.match(refusedText(await shop.svc('db', 'migrate'), 1, 'permission_denied'), /25006.*read-only/s);
  assert.deepEqual(await objects(), was);

  await own.query('ALTER ROLE reader CONNECTION LIMIT 0');
  assert.match(refusedText(await reader.svc('db', 'migrate', 'status'), 1, 'connection_failed'), /53300/);
});

const sleeping = (own: OwnServer) =>
  waitUntil(
    async () => (await own.query("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'")).length > 0,
    'the migration never slept',
  );

test('a server that dies in the middle of a migration leaves nothing of it; the next run applies it', async (own) => {
  const shop = await shopOn(own, 'dying');
  ok(await shop.svc('db', 'migrate'));
  write(shop, SECOND, [raw('CREATE TABLE b (i int)'), raw(SLEEPS)]);
  const migrating = background(['db', 'migrate'], shop.root);
  await sleeping(own);
  await own.kill();
  const text = refusedText(await migrating.ended, 1, 'connection_lost');
  assert.match(text, /Each is applied completely or not at all; the next run finds out/);
  refusedText(await shop.svc('db', 'migrate'), 1, 'connection_failed');
  await own.start();
  assert.deepEqual(await own.query("SELECT tablename FROM pg_tables WHERE tablename IN ('a', 'b')", 'dying'), [
    { tablename: 'a' },
  ]);
  write(shop, SECOND, [raw('CREATE TABLE b (i int)')]);
  assert.match(ok(await shop.svc('db', 'migrate', '--lock-timeout', '5')).stdout, /^1 migration,/);
  assert.match(ok(await shop.svc('db', 'migrate', 'status', '--check')).stdout, /^OK/);
});

test('a server that dies in a migration of steps is gone on with where it stopped', async (own) => {
  const shop = await shopOn(own, 'steps');
  write(shop, SECOND, [
    raw('INSERT INTO a VALUES (1)'),
    raw(SLEEPS, { transaction: false, check: 'SELECT 1' }),
    raw('INSERT INTO a VALUES (3)', { transaction: false }),
  ]);
  const migrating = background(['db', 'migrate'], shop.root);
  await sleeping(own);
  await own.kill();
  assert.match(refusedText(await migrating.ended, 1, 'connection_lost'), /the next run continues from there/);
  await own.start();
  assert.match(ok(await shop.svc('db', 'migrate', 'status', '--check'), 4).stdout, /interrupted at step 2 of 3/);
  // Its check says that the step took effect.
  assert.match(ok(await shop.svc('db', 'migrate')).stdout, /^1 migration,/);
  assert.deepEqual(await own.query('SELECT i FROM a ORDER BY i', 'steps'), [{ i: 1 }, { i: 3 }]);
  assert.match(ok(await shop.svc('db', 'migrate', 'status', '--check')).stdout, /^OK/);
});

test('an interrupted step of which nobody can say whether it took effect waits for a person', async (own) => {
  const shop = await shopOn(own, 'unknown');
  write(shop, SECOND, [raw('INSERT INTO a VALUES (1)'), raw(SLEEPS, { transaction: false })]);
  const migrating = background(['db', 'migrate'], shop.root);
  await sleeping(own);
  await own.kill();
  refusedText(await migrating.ended, 1, 'connection_lost');
  await own.start();
  for (const _again of [1, 2]) {
    const text = refusedText(await shop.svc('db', 'migrate'), 6, 'migration_half_done');
    assert.match(text, /1 of 2 steps are committed[\s\S]*--retry[\s\S]*--applied[\s\S]*--rolled-back/);
  }
  ok(await shop.svc('db', 'migrate', 'resolve', SECOND, '--applied'));
  assert.match(ok(await shop.svc('db', 'migrate', 'status', '--check')).stdout, /^OK/);
  assert.deepEqual(await own.query('SELECT i FROM a', 'unknown'), [{ i: 1 }]);
});

// ---- a disk that is full

/** A file system of that size, or why there cannot be one here. */
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

/** Takes all but so much of a file system; gives it back when called. */
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
  'a full disk under the server: nothing of the migration stays, and with room it is applied',
  160,
  async (folder) => {
    const own = await ownServer(join(folder, 'data'));
    try {
      const shop = await shopOn(own, 'filled');
      ok(await shop.svc('db', 'migrate'));
      write(shop, SECOND, [raw('CREATE TABLE big (t text)'), raw(BIG)]);
      const giveBack = fill(folder, 20);
      const ran = await shop.svc('db', 'migrate');
      const code = /\((\w+)\)/.exec(ran.stderr.slice(ran.stderr.indexOf('error ')))?.[1] ?? '';
      // The log of changes that finds no room ends the server; a table that finds none fails the statement.
      assert.ok(['migration_failed', 'connection_lost'].includes(code), ran.stderr);
      refusedText(ran, 1, code);
      giveBack();
      await own.kill();
      await own.start();
      assert.deepEqual(await own.query("SELECT tablename FROM pg_tables WHERE tablename IN ('a', 'big')", 'filled'), [
        { tablename: 'a' },
      ]);
      ok(await shop.svc('db', 'migrate'));
      assert.deepEqual(await own.query('SELECT count(*)::int AS n FROM big', 'filled'), [{ n: 60000 }]);
    } finally {
      await own.remove();
    }
  },
  missing,
);

onDisk('a full disk under PGlite: nothing of the migration stays, and with room it is applied', 120, async (folder) => {
  const empty = await freshFolder();
  execFileSync('cp', ['-r', empty.url.slice('pglite://'.length), join(folder, 'data')]);
  await empty.drop();
  const shop = project({ main: `pglite://${folder}/data` });
  write(shop, FIRST, [raw('CREATE TABLE a (i int)')]);
  ok(await shop.svc('db', 'migrate'));
  write(shop, SECOND, [raw('CREATE TABLE big (t text)'), raw(BIG)]);
  const giveBack = fill(folder, 8);
  assert.match(refusedText(await shop.svc('db', 'migrate'), 1, 'migration_failed'), /None of it took effect/);
  // Without any room it cannot even be opened, and says so instead of hanging.
  assert.match(refusedText(await shop.svc('db', 'migrate', 'status'), 1, 'connection_failed'), /disk is full/);
  giveBack();
  assert.match(ok(await shop.svc('db', 'migrate', 'status', '--check'), 4).stdout, /^PENDING 1/);
  assert.match(ok(await shop.svc('db', 'migrate')).stdout, /^1 migration, 2 steps/);
  assert.match(ok(await shop.svc('db', 'migrate', 'status', '--check')).stdout, /^OK/);
});

onDisk('a full disk under the project: no migration file is half written', 1, async (folder) => {
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
  const giveBack = fill(folder, 0);
  const full = background(['db', 'schema', 'generate'], there.root);
  const text = refusedText(await full.ended, 1, 'file_failed');
  assert.match(text, /ENOSPC/);
  giveBack();
  const again = await background(['db', 'schema', 'generate'], there.root).ended;
  assert.match(ok(again).stdout, /_create_t\.json\n$/);
});
