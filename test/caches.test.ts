import * as assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatMigration, migrationPath } from '../config/project/migration-files.ts';
import { isSvcError } from '../core/errors.ts';
import type { Migration } from '../core/migration/migration.ts';
import { checksum } from '../core/migration/migration.ts';
import { command, svc } from './kit/cli.ts';
import { folder } from './kit/folder.ts';
import { readMigrations } from './kit/load.ts';
import { freshDatabase } from './kit/mysql.ts';
import { project as databaseProject } from './kit/project.ts';
import { test } from './kit/test.ts';
import { find } from './servers/find.ts';

const migrations = ['a', 'b'].map(
  (table): Migration => ({
    tag: `20260101_000000_${table}`,
    name: table,
    up: [{ type: 'createCollection', name: table, fields: [{ name: 'id', type: 'integer', primaryKey: true }] }],
    down: [{ type: 'dropCollection', collection: table }],
  }),
);
const [first] = migrations as [Migration, Migration];
const FIRST = migrationPath('main', first.tag);

function project(): string {
  return folder({
    'node_modules/.package-lock.json': '{}',
    ...Object.fromEntries(migrations.map((one) => [migrationPath('main', one.tag), formatMigration('/', one)])),
  });
}

/** The only file in the cache of the project. */
function cacheIn(root: string): string {
  const caches = join(root, 'node_modules/.cache/svc');
  const [name = '', ...more] = readdirSync(caches);
  assert.deepEqual(more, []);
  return join(caches, name);
}

async function read(root: string): Promise<unknown> {
  const found = await readMigrations(root, 'main');
  for (const { tag, checksum: output, migration, file } of found) {
    assert.equal(tag, migration.tag);
    assert.equal(output, checksum(migration));
    assert.equal(file, migrationPath('main', tag));
  }
  return found.map(({ migration }) => migration);
}

test('migrations from the cache equal those of the files', async () => {
  const root = project();
  const cold = await read(root);
  assert.equal(cacheIn(root).endsWith('.json'), true);
  assert.deepEqual(await read(root), cold);
});

test('an edited file is detected, and its error has a position', async () => {
  const root = project();
  const before = await readMigrations(root, 'main');
  writeFileSync(join(root, FIRST), formatMigration(root, { ...first, down: [] }));
  const after = await readMigrations(root, 'main');
  assert.notEqual(after[0]?.checksum, before[0]?.checksum);
  assert.equal(after[1]?.checksum, before[1]?.checksum);
  writeFileSync(join(root, FIRST), '{\n  "tag": oops\n}\n');
  await assert.rejects(readMigrations(root, 'main'), (error) => {
    return isSvcError(error) && error.code === 'migration_invalid' && error.where === `${FIRST}:2:10`;
  });
});

test('the content of one migration under the tag of another is not read from the cache', async () => {
  const root = project();
  await read(root);
  const [, second] = migrations as [Migration, Migration];
  writeFileSync(join(root, FIRST), readFileSync(join(root, migrationPath('main', second.tag))));
  await assert.rejects(
    readMigrations(root, 'main'),
    (error) => isSvcError(error) && /Its tag is/.test(error.why ?? ''),
  );
});

test('a cache that is corrupt, of another version or not writable does not change the result', async () => {
  const root = project();
  const cold = await read(root);
  const cache = cacheIn(root);
  const whole = readFileSync(cache, 'utf8');
  for (const content of [
    '',
    whole.slice(0, -9),
    '[]',
    '{"version":"0"}',
    whole.replace('"texts":[', '"texts":[7,["x"],["y",[1,2]],'),
    whole.replace(/"version":"[^"]*"/, '"version":"0.0.0"'),
  ]) {
    writeFileSync(cache, content);
    assert.deepEqual(await read(root), cold);
    assert.equal(readFileSync(cache, 'utf8'), whole);
  }
  const closed = folder({
    'node_modules/.cache': 'a file in place of a folder',
    [FIRST]: formatMigration(root, first),
  });
  assert.deepEqual(await read(closed), await read(closed));
});

const compiled = command.find((word) => word.endsWith('main.cjs'));
const drivers = [
  { cache: 'mariadb.v8', server: await find('mariadb'), create: freshDatabase },
  { cache: 'mysql2.v8', server: await find('mysql'), create: freshDatabase },
  {
    cache: 'pglite.v8',
    server: { url: 'pglite://./main' },
    create: async (url: string) => ({ url, drop: async () => {} }),
  },
];
if (compiled === undefined) test.skip('the compiled code of the command line', 'dist is older than the sources');
else {
  const cached = (name: string): string => join(compiled, '../../../node_modules/.cache/svc', name);

  test('compiled code that is corrupt, truncated or of another build is not used', async () => {
    const cwd = folder({});
    const cold = await svc(['plugins', '--help'], { cwd });
    assert.equal(cold.status, 0);
    const cache = cached('svc-plugins.v8');
    mkdirSync(join(cache, '..'), { recursive: true });
    const whole = readFileSync(cache);
    const flipped = Buffer.from(whole);
    flipped[whole.length >> 1] = (flipped[whole.length >> 1] as number) ^ 0xff;
    const foreign = Buffer.concat([Buffer.alloc(64, '0'), whole.subarray(64)]);
    for (const content of [flipped, foreign, Buffer.alloc(0), whole.subarray(0, 5000), Buffer.alloc(5000)]) {
      writeFileSync(cache, content);
      assert.deepEqual(await svc(['plugins', '--help'], { cwd }), cold);
      const recompiled = readFileSync(cache);
      assert.ok(recompiled.length > 5000 && !recompiled.equals(content));
    }
  });

  for (const { cache: name, server, create } of drivers) {
    if ('missing' in server) {
      test.skip(`the compiled code of a driver, ${name}`, server.missing);
      continue;
    }
    test(`the compiled code of a driver, ${name}, is used for the same driver, and compiled again if it is corrupt`, async () => {
      const database = await create(server.url);
      try {
        const { svc: run } = databaseProject({ main: database.url });
        const cache = cached(name);
        rmSync(cache, { force: true });
        const cold = await run('db', 'migrate');
        assert.equal(cold.status, 0, cold.stderr);
        const whole = readFileSync(cache);
        assert.deepEqual(await run('db', 'migrate'), cold);
        assert.ok(readFileSync(cache).equals(whole), 'it was not used');
        const flipped = Buffer.from(whole);
        flipped[whole.length >> 1] = (flipped[whole.length >> 1] as number) ^ 0xff;
        writeFileSync(cache, flipped);
        assert.deepEqual(await run('db', 'migrate'), cold);
        assert.ok(!readFileSync(cache).equals(flipped));
      } finally {
        await database.drop();
      }
    });
  }
}
