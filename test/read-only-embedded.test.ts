import * as assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isSvcError } from '../core/errors.ts';
import { sqlite } from '../examples/dialect-sqlite/src/index.ts';
import { svc } from './kit/cli.ts';
import { folder } from './kit/folder.ts';
import { test } from './kit/test.ts';

/** Commands that only read create no embedded database. */

const SCHEMA = [{ db: 'main', tables: { users: { id: { type: 'integer', primaryKey: true } } } }];
// Those of embedded dialects through the command line are in packaging-examples.ts.
test('status and a dry run create no PGlite folder, and see one that exists', async () => {
  const cwd = folder();
  const run = async (...args: string[]) => {
    const { status, stdout } = await svc([...args, '--json'], { cwd });
    assert.equal(status, 0, stdout);
    return JSON.parse(stdout);
  };
  const databases = { main: { dialect: 'postgresql', url: 'pglite://./data/main' } };
  writeFileSync(join(cwd, 'svc.config.json'), JSON.stringify({ product: 'shop', env: 'dev', databases }));
  mkdirSync(join(cwd, 'svc/database'), { recursive: true });
  writeFileSync(join(cwd, 'svc/database/schema.json'), JSON.stringify(SCHEMA));
  await run('db', 'schema', 'generate');
  assert.equal((await run('db', 'migrate', 'status')).databases[0].state, 'PENDING');
  assert.match(JSON.stringify(await run('db', 'migrate', '--dry-run')), /CREATE TABLE/);
  assert.equal(existsSync(join(cwd, 'data')), false);
  await run('db', 'migrate');
  assert.equal((await run('db', 'migrate', 'status')).databases[0].state, 'OK');
});

test('a path that the operating system refuses is an error, also for a command that only reads', async () => {
  const cwd = folder();
  writeFileSync(join(cwd, 'file'), '');
  mkdirSync(join(cwd, 'svc/database'), { recursive: true });
  writeFileSync(join(cwd, 'svc/database/schema.json'), JSON.stringify(SCHEMA));
  const databases = { main: { dialect: 'postgresql', url: 'pglite://./file/data' } };
  writeFileSync(join(cwd, 'svc.config.json'), JSON.stringify({ product: 'shop', env: 'dev', databases }));
  for (const args of [['status'], ['--dry-run']]) {
    const { status, stdout } = await svc(['db', 'migrate', ...args, '--json'], { cwd });
    assert.equal(JSON.parse(stdout).code, 'connection_failed', stdout);
    assert.notEqual(status, 0);
  }
  for (const [path, options, why] of [
    ['file/shop.db', {}, /A part of the path is a file/],
    ['file/shop.db', { readOnly: true }, /A part of the path is a file/],
    [`${'long'.repeat(100)}.db`, { readOnly: true }, /^ENAMETOOLONG/],
  ] as const) {
    await assert.rejects(sqlite.connect(`sqlite://${join(cwd, path)}`, options), (error) => {
      assert.ok(isSvcError(error) && error.code === 'connection_failed', String(error));
      assert.match(error.why ?? '', why);
      return true;
    });
  }
  const writer = await sqlite.connect(`sqlite://${join(cwd, 'a/b/shop.db')}`, {});
  await writer.close();
  assert.ok(existsSync(join(cwd, 'a/b/shop.db')), 'the folder of a database is created');
});

test('a connection that only reads shows an existing database, and an empty one is separate from it', async () => {
  const url = `sqlite://${join(folder(), 'shop.db')}`;
  const reader = await sqlite.connect(url, { readOnly: true });
  const writer = await sqlite.connect(url, {});
  await writer.query('CREATE TABLE users (id INTEGER)');
  assert.deepEqual([...(await reader.introspect()).keys()], []);
  await reader.close();
  const second = await sqlite.connect(url, { readOnly: true });
  assert.deepEqual([...(await second.introspect()).keys()], ['users']);
  await Promise.all([second.close(), writer.close()]);
});
