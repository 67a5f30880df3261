import * as assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { serialize } from 'node:v8';
import { isSvcError } from '../core/errors.ts';
import type { Operation } from '../core/schema/operation.ts';
import {
  embeddedKeyValueDialect,
  errorConverter,
  integerOption,
  type KeyValueFile,
  stringOption,
  UNSUPPORTED_BY_KEY_VALUE,
} from '../plugins/dialects/toolkit.ts';
import { fileStore, openDatabase as openFileStore } from './kit/file-store.ts';
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

test('a folder of something else is neither opened nor written to, and that of a database is', async () => {
  const opened: string[] = [];
  const dialect = embeddedKeyValueDialect({
    name: 'file-store',
    unsupported: UNSUPPORTED_BY_KEY_VALUE,
    toSvcError: (error) => error,
    folderFiles: /^(CURRENT|LOCK)$/,
    async open(path) {
      opened.push(path);
      mkdirSync(path, { recursive: true });
      return openFileStore(join(path, 'CURRENT'));
    },
  });
  const path = folder({ 'of-another/notes.txt': '' });
  const [another, empty] = [join(path, 'of-another'), join(path, 'empty')];
  mkdirSync(empty, { recursive: true });
  for (const readOnly of [true, false]) {
    await assert.rejects(dialect.connect(`file-store://${another}`, { readOnly }), (error) => {
      assert.ok(isSvcError(error) && error.code === 'connection_failed', String(error));
      assert.match(error.why ?? '', /files of something else/);
      return true;
    });
    const files = embeddedKeyValueDialect({
      ...{ name: 'file-store', unsupported: UNSUPPORTED_BY_KEY_VALUE },
      ...{ toSvcError: (error: unknown) => error, open: openFileStore },
    });
    await assert.rejects(files.connect(`file-store://${empty}`, { readOnly }), { code: 'connection_failed' });
  }
  assert.deepEqual(opened, []);
  await (await dialect.connect(`file-store://${empty}`, { readOnly: true })).close();
  assert.deepEqual([readdirSync(another), readdirSync(empty)], [['notes.txt'], []]);
  for (const options of [{}, { readOnly: true }])
    await (await dialect.connect(`file-store://${empty}`, options)).close();
  assert.deepEqual(opened.slice(1), [empty, empty]);
  // Another process has begun to create it.
  const begun = folder({ LOCK: '' });
  await (await dialect.connect(`file-store://${begun}`, {})).close();
  assert.deepEqual(readdirSync(begun).sort(), ['CURRENT', 'LOCK']);
});

test('a promise instead of a value is an error of the dialect, in a transaction too', async () => {
  const late = async () => undefined;
  for (const [call, command] of [
    ['get', '["get", "t:1"]'],
    ['put', '["put", "t:1", { "id": 1 }]'],
    ['remove', '["remove", "t:1"]'],
  ] as const) {
    const dialect = embeddedKeyValueDialect({
      name: 'late-store',
      unsupported: UNSUPPORTED_BY_KEY_VALUE,
      toSvcError: (error) => error,
      async open(path) {
        const file = await openFileStore(path);
        const transaction: KeyValueFile['transaction'] = (work) =>
          file.transaction((store) => work({ ...store, [call]: late }));
        return { ...file, ...(call === 'get' && { get: late }), transaction };
      },
    });
    const connection = await dialect.connect(`late-store://${join(folder(), 'test.db')}`, {});
    const isNamed = (error: unknown) => {
      assert.ok(isSvcError(error) && error.code === 'plugin_invalid', String(error));
      assert.match(error.message, new RegExp(`^"${call}" of the key-value file returned a promise`));
      return true;
    };
    await assert.rejects(connection.query(command), isNamed);
    if (call !== 'remove')
      await assert.rejects(
        connection.withLock(async () => undefined),
        isNamed,
      );
    await connection.close();
  }
});

test('a file that cannot be opened is a failed connection, also if the dialect recognizes no message', async () => {
  const dialect = embeddedKeyValueDialect({
    name: 'file-store',
    unsupported: UNSUPPORTED_BY_KEY_VALUE,
    toSvcError: errorConverter({ engine: 'File Store', messages: {} }),
    open: openFileStore,
  });
  const path = join(folder({ file: '', 'broken.db': 'not of this engine' }), 'file/shop.db');
  const broken = join(path, '../../broken.db');
  for (const [file, options, why] of [
    [path, {}, /^A part of the path is a file/],
    [path, { readOnly: true }, /^A part of the path is a file/],
    [join(path, '../..'), {}, /^It is a folder/],
    [broken, {}, /deserialize/],
  ] as const) {
    await assert.rejects(dialect.connect(`file-store://${file}`, options), (error) => {
      assert.ok(isSvcError(error) && error.code === 'connection_failed', String(error));
      assert.match(error.why ?? '', why);
      assert.ok(error.message.includes(file) && error.next.length > 0);
      return true;
    });
  }
});

test('an error is recognized by its message or code, or by those of its cause', () => {
  const convert = errorConverter({ engine: 'File Store', messages: { database_in_use: /^is locked$/ } });
  const converted = convert(new Error('failed to open', { cause: new Error('is locked') }));
  assert.ok(isSvcError(converted));
  assert.deepEqual([converted.code, converted.why], ['database_in_use', 'failed to open: is locked']);
  const denied = Object.assign(new Error('no'), { code: 'Security.Unauthorized' });
  const byCode = errorConverter({ engine: 'File Store', messages: { authentication_failed: /^Security\./ } })(denied);
  assert.ok(isSvcError(byCode));
  assert.deepEqual([byCode.code, byCode.why], ['authentication_failed', 'no']);
  const circle = new Error('a circle');
  circle.cause = circle;
  const unknown = convert(circle);
  assert.ok(isSvcError(unknown));
  assert.deepEqual([unknown.code, unknown.why], ['migration_failed', 'a circle']);
});

test('the options of a dialect are checked, have defaults, and are the same for every connection to a file', async () => {
  const opened: { readonly pages: number; readonly key: string | undefined }[] = [];
  const dialect = embeddedKeyValueDialect({
    name: 'file-store',
    unsupported: UNSUPPORTED_BY_KEY_VALUE,
    toSvcError: (error) => error,
    options: { pages: integerOption('the size of the cache', 8, 1, 64), key: stringOption('encrypts the file') },
    open(file, { pages, key }) {
      opened.push({ pages, key });
      return openFileStore(file);
    },
  });
  const url = newUrl();
  const reader = await dialect.connect(url, { readOnly: true, pages: 2 });
  const first = await dialect.connect(url, { busyTimeoutMs: 5, key: 'the secret' });
  const again = await dialect.connect(url, { key: 'the secret', pages: 8 });
  assert.deepEqual(opened, [
    { pages: 2, key: undefined },
    { pages: 8, key: 'the secret' },
  ]);
  await assert.rejects(dialect.connect(url, { pages: 9, key: 'another secret' }), (error) => {
    assert.ok(isSvcError(error) && error.code === 'config_invalid', String(error));
    assert.match(error.why ?? '', /differ in: pages, key\.$/);
    assert.doesNotMatch(JSON.stringify(error), /secret/);
    return true;
  });
  for (const wrong of [{ pages: 65 }, { page: 8 }])
    await assert.rejects(dialect.connect(url, wrong), { code: 'config_invalid' });
  for (const connection of [reader, first, again]) await connection.close();
  const other = await dialect.connect(url, { pages: 9, key: 'the secret' });
  assert.deepEqual(opened.at(-1), { pages: 9, key: 'the secret' });
  await other.close();
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
