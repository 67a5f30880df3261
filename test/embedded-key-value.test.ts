import * as assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { serialize } from 'node:v8';
import type { Operation } from '../core/schema/operation.ts';
import { embeddedKeyValueDialect, UNSUPPORTED_BY_KEY_VALUE } from '../plugins/dialects/toolkit.ts';
import { fileStore } from './kit/file-store.ts';
import { folder } from './kit/folder.ts';
import { test } from './kit/test.ts';
import { dialectSuite } from './suites/dialect-suite.ts';
import { keyValueSyntax } from './suites/key-value-syntax.ts';
import { recordStoreSuite } from './suites/record-store-suite.ts';
import { runOperations } from './suites/run-operations.ts';

const newUrl = () => `file-store://${join(folder(), 'test.db')}`;
const createDatabase = async () => ({ url: newUrl(), drop: async () => undefined });

dialectSuite(test, {
  ...keyValueSyntax,
  name: 'a key-value file',
  dialect: fileStore,
  module: new URL('./kit/file-store.ts', import.meta.url),
  createDatabase,
  skip: {
    'a watcher is notified of the records that notifyOn selects': 'it does not notify other processes',
    'a deadline does not depend on the clock of the process': 'it runs in the process and has its clock',
  },
});
recordStoreSuite(test, {
  name: 'a key-value file',
  async createStore() {
    const url = newUrl();
    return { connect: () => fileStore.connect(url, {}), drop: async () => undefined };
  },
});

test('values keep their types when a field is renamed or filled, and a number that would be rounded stays a text', async () => {
  const connection = await fileStore.connect(newUrl(), {});
  const fields = ['integer', 'bigint', 'double', 'boolean', 'json', 'binary', 'string'] as const;
  const create: Operation = {
    type: 'createCollection',
    name: 't',
    fields: [{ name: 'id', type: 'integer', primaryKey: true }, ...fields.map((type) => ({ name: type, type }))],
  };
  const model = await runOperations(fileStore, connection, [create]);
  const values = { integer: 7, double: 0.5, boolean: false, json: { a: [1, 'x'] }, string: '7' };
  const put = ['put', 't:1', { id: 1, ...values, bigint: '9007199254740993', binary: { $bytes: 'AP8=' } }];
  await connection.query(JSON.stringify(put));
  const operations: Operation[] = [
    ...fields.map((type) => ({ type: 'renameField', collection: 't', from: type, to: `new_${type}` }) as const),
    { type: 'addField', collection: 't', field: { name: 'active', type: 'boolean', default: false } },
    { type: 'addField', collection: 't', field: { name: 'n', type: 'smallint', default: 3 } },
  ];
  await runOperations(fileStore, connection, operations, model);
  const expected = {
    ...Object.fromEntries(Object.entries(values).map(([name, value]) => [`new_${name}`, value])),
    id: 1,
    new_bigint: '9007199254740993',
    new_binary: new Uint8Array([0, 255]),
    active: false,
    n: 3,
  };
  assert.deepEqual(await connection.query('["get", "t:1"]'), [{ key: 't:1', value: expected }]);
  await connection.close();
});

test('a connection that only reads creates no file, and another option or command is rejected', async () => {
  const url = newUrl();
  const reader = await fileStore.connect(url, { readOnly: true });
  assert.equal((await reader.introspect()).size, 0);
  for (const text of ['get t:1', '["drop", "t"]', '["get", 7]'])
    await assert.rejects(reader.query(text), { code: 'value_invalid' });
  await reader.close();
  assert.equal(existsSync(url.slice('file-store://'.length)), false);
  await assert.rejects(fileStore.connect(url, { beads: 7 }), { code: 'config_invalid' });
  await assert.rejects(fileStore.connect('file-store:nowhere', {}), { code: 'url_invalid' });
});

test('a promise instead of a value is an error of the dialect', async () => {
  const values = new Map<string, unknown>();
  const dialect = embeddedKeyValueDialect({
    name: 'late-store',
    unsupported: UNSUPPORTED_BY_KEY_VALUE,
    toSvcError: (error) => error,
    open: async () => ({
      server: 'late',
      get: async (key) => values.get(key),
      keys: () => [],
      transaction: (work) =>
        work({
          get: async (key) => values.get(key),
          put: (key, value) => void values.set(key, value),
          remove: (key) => void values.delete(key),
        }),
      close: () => undefined,
    }),
  });
  const connection = await dialect.connect(`late-store://${join(folder(), 'test.db')}`, {});
  await assert.rejects(connection.query('["get", "t:1"]'), { code: 'plugin_invalid' });
  await assert.rejects(
    connection.withLock(async () => undefined),
    { code: 'plugin_invalid' },
  );
  await connection.close();
});

test('a table of more rows than a batch is read and renamed, all of it', async () => {
  const url = newUrl();
  const rows = Array.from({ length: 1001 }, (_, id) => [`many:${id}`, { id }]);
  writeFileSync(url.slice('file-store://'.length), serialize(rows));
  const connection = await fileStore.connect(url, {});
  const create: Operation = {
    type: 'createCollection',
    name: 'many',
    fields: [{ name: 'id', type: 'integer', primaryKey: true }],
    options: { sqlOptions: { ifNotExists: true } },
  };
  const model = await runOperations(fileStore, connection, [create]);
  await runOperations(fileStore, connection, [{ type: 'renameCollection', collection: 'many', to: 'all' }], model);
  assert.deepEqual([await connection.count('many', 5000), await connection.count('all', 5000)], [0, 1001]);
  await connection.close();
});
