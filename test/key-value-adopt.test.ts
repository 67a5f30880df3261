import * as assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { serialize } from 'node:v8';
import { fileStore } from './kit/file-store.ts';
import { folder } from './kit/folder.ts';
import { assertExit, json, LONG, project } from './kit/project.ts';
import { test } from './kit/test.ts';

/** A project on a key-value file with these rows, by their keys. */
function fileStoreProject(rows: readonly (readonly [string, object])[]) {
  const file = join(folder(), 'test.db');
  const url = `file-store://${file}`;
  writeFileSync(file, serialize(rows));
  const plugin = fileURLToPath(new URL('./kit/file-store.ts', import.meta.url));
  return { url, shop: project({}, { plugins: [plugin], databases: { main: { dialect: 'file-store', url } } }) };
}

test(
  'rows of another program are adopted by baseline as they are, and refused without it',
  async () => {
    const { shop, url } = fileStoreProject([['users:1', { id: 1, email: 'ann@acme.example' }]]);
    shop.schema({ users: { id: { type: 'integer', primaryKey: true }, email: { type: 'string' } } });
    assertExit(await shop.svc('db', 'schema', 'generate'));
    const refused = await shop.svc('db', 'migrate');
    assert.match(refused.stderr, /\(collection_exists\)[\s\S]*It has the row users:1, which svc did not write/);
    assert.match(
      refused.stderr,
      /Adopt its rows, which stay as they are: svc db migrate baseline\n +Or use another name/,
    );
    assertExit(await shop.svc('db', 'migrate', 'baseline'));
    assertExit(await shop.svc('db', 'schema', 'check'));
    shop.schema({
      users: { id: { type: 'integer', primaryKey: true }, mail: { type: 'string', renamedFrom: 'email' } },
    });
    assertExit(await shop.svc('db', 'schema', 'generate'));
    assertExit(await shop.svc('db', 'migrate'));
    const connection = await fileStore.connect(url, {});
    assert.deepEqual(await connection.query('["get", "users:1"]'), [
      { key: 'users:1', value: { id: 1, mail: 'ann@acme.example' } },
    ]);
    await connection.close();
  },
  LONG,
);

test('baseline does not record a table without rows', async () => {
  const { shop } = fileStoreProject([]);
  shop.schema({ users: { id: { type: 'integer', primaryKey: true } } });
  assertExit(await shop.svc('db', 'schema', 'generate'));
  const refused = await shop.svc('db', 'migrate', 'baseline', '--json');
  assert.equal(json(refused).code, 'drift');
});
