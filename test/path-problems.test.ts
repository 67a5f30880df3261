import * as assert from 'node:assert/strict';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readMigrations } from '../config/project/migration-files.ts';
import { assertExit, json, LONG, project } from './kit/project.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// What may be in the place of a file or a folder of svc.

const MIGRATIONS = 'svc/database/migrations/main';
const loadSdk = () => import('../config/sdk/index.ts');

test(
  'a link that leads nowhere is named, in place of a folder or a file, and is not an empty folder',
  async () => {
    for (const [place, commands] of [
      [
        'svc/database',
        [
          ['db', 'migrate'],
          ['db', 'migrate', 'status'],
          ['db', 'schema', 'generate'],
          ['db', 'migrate', 'create', 'a'],
        ],
      ],
      [
        MIGRATIONS,
        [
          ['db', 'migrate'],
          ['db', 'migrate', 'create', 'a'],
        ],
      ],
      ['svc/database/objects/main', [['db', 'schema', 'generate']]],
      ['svc/database/schema.json', [['db', 'schema', 'generate']]],
      [`${MIGRATIONS}/20260101_000000_a.json`, [['db', 'migrate']]],
    ] as const) {
      const { root, svc, schema } = project({ main: 'pglite://./data' });
      if (place.includes('objects')) schema({});
      const path = join(root, place);
      mkdirSync(join(path, '..'), { recursive: true });
      rmSync(path, { recursive: true, force: true });
      symlinkSync('nowhere', path);
      for (const words of commands) {
        const error = json(assertExit(await svc(...words, '--json'), 1));
        assert.equal(error.code, 'file_failed', JSON.stringify(error));
        assert.equal(error.why, `${path} is a link to nowhere, which does not exist.`);
        assert.match(String(error.nextActions), /^Create what the link leads to, or remove the link/);
      }
    }
  },
  LONG,
);

test(
  'a file in place of a folder is named, and so is the other way round',
  async () => {
    for (const place of ['svc/database', MIGRATIONS]) {
      const { root, svc } = project({ main: 'pglite://./data' });
      const path = join(root, place);
      mkdirSync(join(path, '..'), { recursive: true });
      rmSync(path, { recursive: true, force: true });
      writeFileSync(path, '');
      for (const words of [
        ['db', 'migrate'],
        ['db', 'migrate', 'create', 'a'],
      ]) {
        const error = json(assertExit(await svc(...words, '--json'), 1));
        assert.equal(error.code, 'file_failed', JSON.stringify(error));
        assert.equal(error.why, `${path} is a file, and svc needs a folder there.`);
        assert.deepEqual(error.nextActions, ['Move the file away, then run the command again.']);
      }
    }
    for (const place of ['svc/database/schema.json', 'svc/database/objects/main/view/totals.sql']) {
      const { root, svc, schema } = project({ main: 'pglite://./data' });
      if (place.includes('objects')) schema({});
      mkdirSync(join(root, place), { recursive: true });
      const error = json(assertExit(await svc('db', 'schema', 'generate', '--json'), 1));
      assert.equal(error.why, `${join(root, place)} is a folder, and svc needs a file there.`, JSON.stringify(error));
      assert.deepEqual(error.nextActions, ['Move the folder away, then run the command again.']);
    }
  },
  LONG,
);

test('a link of the environment that leads nowhere is not a project without one', async () => {
  const { root, svc } = project({ main: 'pglite://./data' });
  mkdirSync(join(root, 'svc'));
  symlinkSync('nowhere', join(root, 'svc/config.json'));
  const error = json(assertExit(await svc('db', 'migrate', 'status', '--json'), 2));
  assert.equal(error.code, 'file_invalid');
  assert.match(String(error.why), /is a link to nowhere/);
});

test('a module whose top level never ends is named after a bounded time', async () => {
  for (const [extension, text] of [
    ['ts', 'await new Promise<never>(() => {});\nexport default {};'],
    ['mjs', 'setInterval(() => {}, 1e6).unref();\nawait new Promise(() => {});\nexport default {};'],
    ['js', 'export default new Promise(() => {});'],
  ] as const) {
    const { root, write } = project({});
    const file = `${MIGRATIONS}/20260101_000000_a.${extension}`;
    write(file, text);
    const error = await expectError(readMigrations(root, 'main', loadSdk, 300), 'file_invalid');
    assert.match(error.message, new RegExp(`20260101_000000_a\\.${extension} did not finish loading\\.$`));
    assert.match(String(error.why), /still running after 0\.3 s/);
    assert.equal(error.next.length, 1);
  }
});

// At least the limit of the command line, which a person would wait for.
test(
  'the command line ends where a migration never finishes loading',
  async () => {
    const { svc, write } = project({ main: 'pglite://./data' });
    write(`${MIGRATIONS}/20260101_000000_a.ts`, 'setInterval(() => {}, 1000);\nawait new Promise(() => {});');
    const error = json(assertExit(await svc('db', 'migrate', 'status', '--json'), 2));
    assert.equal(error.code, 'file_invalid');
    assert.match(String(error.where), /20260101_000000_a\.ts$/);
  },
  LONG,
);
