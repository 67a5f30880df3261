import * as assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { BatchWriteItemCommand } from '@aws-sdk/client-dynamodb';
import type { Connection, ConnectOptions, Progress } from '../core/dialect.ts';
import { canonicalJson } from '../core/json.ts';
import { migration } from '../core/migration/builder.ts';
import { migrate } from '../core/migration/migrate.ts';
import type { SchemaModel } from '../core/schema/model.ts';
import type { NamedFieldDefinition, Operation } from '../core/schema/operation.ts';
import { dynamodb } from '../plugins/dialects/dynamodb/dialect.ts';
import { bareClient, freshPrefix, scan } from './kit/dynamodb.ts';
import { type ProxyAction, startProxy } from './kit/dynamodb-proxy.ts';
import { definedInCode } from './kit/migrations.ts';
import { prepareMigrators } from './kit/migrators.ts';
import { ownDynamodb, unavailable } from './kit/own-dynamodb.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { runOperations } from './suites/run-operations.ts';

const missing = unavailable();
if (missing) test.skip('data moves on DynamoDB', missing);
else {
  const server = await ownDynamodb();
  test.after(() => server.kill());

  type Run = (operation: Operation) => Promise<void>;
  const on = async (
    body: (run: Run, connection: Connection, model: () => SchemaModel, url: string) => Promise<void>,
    options: ConnectOptions = {},
  ): Promise<void> => {
    const fresh = freshPrefix(server.port);
    const connection = await dynamodb.connect(fresh.url, options);
    let model: SchemaModel = new Map();
    const run = async (operation: Operation) => {
      model = await runOperations(dynamodb, connection, [operation], model);
    };
    try {
      await body(run, connection, () => model, fresh.url);
    } finally {
      await connection.close();
      await fresh.drop();
    }
  };
  const items = (connection: Connection, table: string, list: readonly object[]) =>
    Promise.all(list.map((Item) => connection.query(JSON.stringify({ PutItem: { TableName: table, Item } }))));
  const sorted = async (connection: Connection, table: string) =>
    [...(await scan(connection, table))].sort((a, b) => Number(a.id) - Number(b.id));

  const create: Operation = {
    type: 'createCollection',
    name: 'users',
    fields: [
      { name: 'id', type: 'integer', primaryKey: true },
      { name: 'a.b', type: 'string' },
      { name: 'n', type: 'string' },
      { name: 'when', type: 'datetime' },
    ],
  };
  const S = (text: string) => ({ S: text });
  const N = (number: number | string) => ({ N: String(number) });

  test('an added field with a default is set in every item without a value', () =>
    on(async (run, connection) => {
      await run(create);
      await items(connection, 'users', [
        { id: N(1) },
        { id: N(2), kind: S('mine') },
        { id: N(3), kind: { NULL: true } },
      ]);
      await run({ type: 'addField', collection: 'users', field: { name: 'kind', type: 'string', default: 'x"y' } });
      await run({ type: 'addField', collection: 'users', field: { name: 'at', type: 'timestamp', default: 'now' } });
      await run({ type: 'addField', collection: 'users', field: { name: 'key', type: 'uuid', autoGenerate: true } });
      await run({ type: 'addField', collection: 'users', field: { name: 'tags', type: 'array', default: ['a'] } });
      await run({
        type: 'addField',
        collection: 'users',
        field: { name: 'doc', type: 'json', default: { a: [1, null] } },
      });
      await run({ type: 'addField', collection: 'users', field: { name: 'empty', type: 'integer' } });
      const found = await sorted(connection, 'users');
      assert.deepEqual(
        found.map(({ kind }) => kind),
        ['x"y', 'mine', null],
      );
      assert.equal(new Set(found.map(({ key }) => key)).size, 3);
      for (const item of found) {
        assert.ok(Math.abs(Number(item.at) - Date.now()) < 60_000);
        assert.deepEqual([item.tags, item.doc, 'empty' in item], [['a'], { a: [1, null] }, false]);
      }
    }));

  test('adding a field fails if items have invalid values under its name', () =>
    on(async (run, connection) => {
      await run(create);
      await items(connection, 'users', [
        { id: N(1), age: S('x') },
        { id: N(2), age: N(7), kind: { NULL: true } },
        { id: N(3), age: S('7') },
        { id: N(4), age: { NULL: true } },
      ]);
      const add = (field: NamedFieldDefinition): Operation => ({ type: 'addField', collection: 'users', field });
      for (const more of [{}, { default: 1 }, { default: 1, required: true }]) {
        const error = await expectError(run(add({ name: 'age', type: 'integer', ...more })), 'data_violates');
        assert.equal(error.details.count, 2);
        assert.match(error.why ?? '', /"id":1/);
      }
      assert.deepEqual(
        (await sorted(connection, 'users')).map(({ age }) => age),
        ['x', 7, '7', null],
      );
      await connection.query(JSON.stringify({ DeleteItem: { TableName: 'users', Key: { id: N(1) } } }));
      await connection.query(JSON.stringify({ DeleteItem: { TableName: 'users', Key: { id: N(3) } } }));
      await run(add({ name: 'age', type: 'integer' }));
      await run(add({ name: 'kind', type: 'string', default: 'x', required: true }));
      assert.deepEqual(await sorted(connection, 'users'), [
        { id: 2, age: 7, kind: 'x' },
        { id: 4, age: null, kind: 'x' },
      ]);
    }));

  test('adding a required field without a default fails if there are items', () =>
    on(async (run, connection) => {
      await run(create);
      const add: Operation = {
        type: 'addField',
        collection: 'users',
        field: { name: 'must', type: 'string', required: true },
      };
      await items(connection, 'users', [{ id: N(1) }]);
      const error = await expectError(run(add), 'data_violates');
      assert.match(error.next.join(), /default/);
      await connection.query(JSON.stringify({ DeleteItem: { TableName: 'users', Key: { id: N(1) } } }));
      await run(add);
    }));

  test('a rename works with any name, and fails before it starts if an item has both fields', () =>
    on(async (run, connection) => {
      await run(create);
      await items(connection, 'users', [
        { id: N(1), 'a.b': S('one') },
        { id: N(2), 'a.b': { NULL: true } },
        { id: N(3) },
        { id: N(4), 'a.b': S(''), 'x "y"': S('both') },
      ]);
      const rename: Operation = { type: 'renameField', collection: 'users', from: 'a.b', to: 'x "y"' };
      const error = await expectError(run(rename), 'data_violates');
      assert.match(error.why ?? '', /1 item.*"id":4/);
      assert.equal((await sorted(connection, 'users'))[0]?.['a.b'], 'one');
      await connection.query(JSON.stringify({ DeleteItem: { TableName: 'users', Key: { id: N(4) } } }));
      await run(rename);
      assert.deepEqual(await sorted(connection, 'users'), [
        { id: 1, 'x "y"': 'one' },
        { id: 2, 'x "y"': null },
        { id: 3 },
      ]);
    }));

  test('a change of type converts every value or none', () =>
    on(async (run, connection) => {
      await run(create);
      await items(connection, 'users', [
        { id: N(1), n: S('12'), when: S('2026-01-31T10:00:00.000') },
        { id: N(2), n: S('-7.50') },
        { id: N(3) },
        { id: N(4), n: S('a lot') },
      ]);
      const change: Operation = { type: 'modifyField', collection: 'users', field: 'n', changes: { type: 'double' } };
      const error = await expectError(run(change), 'data_violates');
      assert.equal(error.details.count, 1);
      assert.match(error.why ?? '', /it is not a number.*"id":4/);
      assert.equal((await sorted(connection, 'users'))[0]?.n, '12');
      await connection.query(JSON.stringify({ DeleteItem: { TableName: 'users', Key: { id: N(4) } } }));
      await run(change);
      await run({ type: 'modifyField', collection: 'users', field: 'when', changes: { type: 'timestamp' } });
      assert.deepEqual(await sorted(connection, 'users'), [
        { id: 1, n: 12, when: Date.parse('2026-01-31T10:00:00Z') },
        { id: 2, n: -7.5 },
        { id: 3 },
      ]);
      const whole = expectError(
        run({ type: 'modifyField', collection: 'users', field: 'n', changes: { type: 'integer' } }),
        'data_violates',
      );
      assert.match((await whole).why ?? '', /not a whole number/);
      await expectError(
        run({ type: 'modifyField', collection: 'users', field: 'n', changes: { required: true } }),
        'data_violates',
      );
      await run({ type: 'dropField', collection: 'users', field: 'n' });
      assert.ok((await scan(connection, 'users')).every((item) => !('n' in item)));
    }));

  test('text that is not a valid date is rejected before any value is changed', () =>
    on(async (run, connection) => {
      await run(create);
      const texts = ['2024-02-29 10:00:00Z', '2024-02-31 10:00:00Z', '2024-13-01 10:00:00Z'];
      await items(
        connection,
        'users',
        texts.map((text, at) => ({ id: N(at), n: S(text) })),
      );
      const change: Operation = {
        type: 'modifyField',
        collection: 'users',
        field: 'n',
        changes: { type: 'timestamp' },
      };
      const error = await expectError(run(change), 'data_violates');
      assert.equal(error.details.count, 2);
      assert.match(error.why ?? '', /date or time does not exist.*"id":[12].*"id":[12]/);
      assert.deepEqual(
        (await sorted(connection, 'users')).map(({ n }) => n),
        texts,
      );
    }));

  test('a field with values of any type can be dropped', () =>
    on(async (run, connection) => {
      await run(create);
      const values = [
        S('a'),
        S(''),
        N('1.50'),
        { BOOL: false },
        { NULL: true },
        { B: 'AAE=' },
        { L: [S('a'), { L: [] }] },
        { M: { a: N(1), b: { M: {} } } },
        { SS: ['a', 'b'] },
        { NS: ['1', '2'] },
        { BS: ['AAE='] },
      ];
      await items(
        connection,
        'users',
        values.map((n, id) => ({ id: N(id), n })),
      );
      await run({ type: 'dropField', collection: 'users', field: 'n' });
      assert.deepEqual(
        await sorted(connection, 'users'),
        values.map((_, id) => ({ id })),
      );
    }));

  test('an index on values of another type is rejected before it is built; missing values are allowed', () =>
    on(async (run, connection) => {
      await run(create);
      await items(connection, 'users', [
        { id: N(1), n: S('a') },
        { id: N(2), n: N(5) },
        { id: N(3), n: S('') },
        { id: N(4) },
      ]);
      const index: Operation = { type: 'createIndex', collection: 'users', index: 'users_n', columns: [{ name: 'n' }] };
      const error = await expectError(run(index), 'data_violates');
      assert.equal(error.details.count, 2);
      for (const id of [2, 3]) {
        await connection.query(JSON.stringify({ DeleteItem: { TableName: 'users', Key: { id: N(id) } } }));
      }
      await run(index);
      const query = { TableName: 'users', IndexName: 'users_n', KeyConditionExpression: 'n = :a' };
      const found = await connection.query(
        JSON.stringify({ Query: { ...query, ExpressionAttributeValues: { ':a': S('a') } } }),
      );
      assert.deepEqual(found, [{ id: 1, n: 'a' }]);
    }));

  test('an index on values with too many bytes for its key is rejected before it is built', () =>
    on(async (run, connection) => {
      await run(create);
      const long = (bytes: number) => `${'é'.repeat(Math.floor(bytes / 2))}${bytes % 2 === 1 ? 'e' : ''}`;
      await items(connection, 'users', [
        { id: N(1), n: S(long(1024)) },
        { id: N(2), n: S(long(1025)) },
        { id: N(3), n: S(long(2048)) },
        { id: N(4), n: S(long(2049)) },
      ]);
      const index = (name: string, ...columns: string[]): Operation => ({
        ...{ type: 'createIndex', collection: 'users', index: name },
        columns: columns.map((column) => ({ name: column })),
      });
      const lose = (id: number) =>
        connection.query(JSON.stringify({ DeleteItem: { TableName: 'users', Key: { id: N(id) } } }));
      const partition = await expectError(run(index('users_n', 'n')), 'data_violates');
      assert.equal(partition.details.count, 1);
      assert.match(partition.why ?? '', /the 2048 bytes that a partition key may have.*"id":4/);
      await lose(4);
      await run(index('users_n', 'n'));
      // The limit of a sort key is lower.
      const sort = await expectError(run(index('users_id_n', 'id', 'n')), 'data_violates');
      assert.equal(sort.details.count, 2);
      for (const id of [2, 3]) await lose(id);
      await run(index('users_id_n', 'id', 'n'));
    }));

  test('an update writes null by removing the attribute', () =>
    on(async (run, connection, model) => {
      await run(create);
      await items(
        connection,
        'users',
        Array.from({ length: 60 }, (_, id) => ({ id: N(id), n: S(String(id % 3)) })),
      );
      const collection = model().get('users');
      assert.ok(collection);
      const job = { table: 'users', collection, key: 'k1' };
      const where = [{ field: 'n', operator: 'ne', value: '0' }] as const;
      const result = await connection.update({ ...job, where, set: [{ field: 'n', value: null }] });
      assert.deepEqual(result, { matched: 40, modified: 40 });
      assert.equal((await scan(connection, 'users')).filter((item) => 'n' in item).length, 20);
      const key = await expectError(
        connection.update({ ...job, where: [], set: [{ field: 'id', value: 1 }] }),
        'update_invalid',
      );
      assert.match(key.message, /key/);
      const own = { field: 'n', concat: [{ field: 'n' }, { literal: 'x' }] };
      const other = { field: 'a.b', concat: [{ field: 'n' }] };
      for (const set of [[own], [{ field: 'n', value: 'x' }, other]]) {
        await expectError(connection.update({ ...job, where: [], set }), 'update_invalid');
      }
      const fields = new Map(collection.fields)
        .set('b', { name: 'b', type: 'boolean' })
        .set('l', { name: 'l', type: 'array' });
      const wide = { ...job, collection: { ...collection, fields }, set: [{ field: 'n', value: 'x' }] };
      for (const [field, value] of [
        ['b', false],
        ['l', ['a']],
      ] as const) {
        const unordered = [{ field, operator: 'gt', value }] as const;
        const refusal = await expectError(connection.update({ ...wide, where: unordered }), 'update_invalid');
        assert.match(refusal.message, /has no \$gt/);
      }
    }));

  test('a number that DynamoDB cannot store is rejected anywhere before an item is read', () =>
    on(async (run, connection, model) => {
      await run({
        type: 'createCollection',
        name: 'users',
        fields: [
          { name: 'id', type: 'integer', primaryKey: true },
          { name: 'n', type: 'double' },
          { name: 'doc', type: 'json' },
        ],
      });
      const collection = model().get('users');
      assert.ok(collection);
      const job = { table: 'users', collection, key: 'k1' };
      const set = [{ field: 'n', value: 1 }];
      for (const value of [1e300, -1e300, 5e-324]) {
        for (const update of [
          { where: [], set: [{ field: 'n', value }] },
          { where: [], set: [{ field: 'doc', value: { a: [value] } }] },
          { where: [{ field: 'n', operator: 'lt', value }] as const, set },
        ]) {
          const error = await expectError(connection.update({ ...job, ...update }), 'value_invalid');
          assert.match(error.why ?? '', /38 digits/);
        }
      }
      const field = { name: 'more', type: 'json', default: { a: 1e300 } } as const;
      assert.throws(() => dynamodb.compile({ type: 'addField', collection: 'users', field }, model()), {
        code: 'field_invalid',
      });
    }));

  test('the error for an item that would be too large names it', () =>
    on(async (run, connection) => {
      await run(create);
      await items(connection, 'users', [{ id: N(1), n: S('x'.repeat(409_560)) }, { id: N(2) }]);
      const field = { name: 'kind', type: 'string', default: 'a default that is too long for it' } as const;
      const error = await expectError(run({ type: 'addField', collection: 'users', field }), 'data_violates');
      assert.match(error.why ?? '', /^\{"id":1\}: .*size/i);
    }));

  test('an update cannot set a required field to null', () =>
    on(async (run, connection, model) => {
      await run({
        type: 'createCollection',
        name: 'users',
        fields: [
          { name: 'id', type: 'integer', primaryKey: true },
          { name: 'n', type: 'string', required: true },
        ],
      });
      await items(connection, 'users', [{ id: N(1), n: S('a') }]);
      const collection = model().get('users');
      assert.ok(collection);
      const job = { table: 'users', collection, key: 'k1', where: [], set: [{ field: 'n', value: null }] };
      await expectError(connection.update(job), 'data_violates');
      assert.deepEqual(await scan(connection, 'users'), [{ id: 1, n: 'a' }]);
    }));

  test('a timestamp becomes text that converts back', () =>
    on(async (run, connection) => {
      const field = { name: 'at', type: 'timestamp' } as const;
      const list = { name: 'all', type: 'array', items: 'timestamp' } as const;
      const fields = [{ name: 'id', type: 'integer', primaryKey: true } as const, field, list];
      await run({ type: 'createCollection', name: 'users', fields });
      const moment = N(1700000000000);
      await items(connection, 'users', [{ id: N(1), at: moment, all: { L: [moment] } }]);
      const modify = (name: string, changes: object): Operation => ({
        type: 'modifyField',
        collection: 'users',
        field: name,
        changes,
      });
      await run(modify('at', { type: 'string' }));
      await run(modify('all', { items: 'string' }));
      const text = '2023-11-14T22:13:20.000Z';
      assert.deepEqual(await scan(connection, 'users'), [{ id: 1, at: text, all: [text] }]);
      await run(modify('at', { type: 'timestamp' }));
      await run(modify('all', { items: 'timestamp' }));
      assert.deepEqual(await scan(connection, 'users'), [{ id: 1, at: 1700000000000, all: [1700000000000] }]);
    }));

  test('the update stops at an item where the result of $CONCAT does not fit the field', () =>
    on(async (run, connection, model) => {
      await run({
        type: 'createCollection',
        name: 'users',
        fields: [
          { name: 'id', type: 'integer', primaryKey: true },
          { name: 'small', type: 'smallint' },
          { name: 'whole', type: 'integer' },
          { name: 'big', type: 'bigint' },
          { name: 'mark', type: 'uuid' },
          { name: 'mood', type: 'enum', enumValues: ['a'] },
          { name: 'name', type: 'string', length: 3 },
        ],
      });
      await items(connection, 'users', [{ id: N(1) }]);
      const collection = model().get('users');
      assert.ok(collection);
      const give = (field: string, literal: string) =>
        connection.update({
          table: 'users',
          collection,
          key: `${field} ${literal}`,
          where: [],
          set: [{ field, concat: [{ literal }] }],
        });
      const misfits: readonly [string, string][] = [
        ['small', '32768'],
        ['whole', '2147483648'],
        ['whole', ''],
        ['whole', '0x10'],
        ['big', '9223372036854775808'],
        ['mark', 'none'],
        ['mood', 'b'],
        ['name', 'long'],
      ];
      for (const [field, literal] of misfits) await expectError(give(field, literal), 'data_violates');
      assert.deepEqual(await scan(connection, 'users'), [{ id: 1 }]);
      await give('small', '-32768');
      await give('big', '9223372036854775807');
      await give('mark', 'A0000000-0000-4000-8000-00000000000A');
      assert.deepEqual(await scan(connection, 'users'), [
        { id: 1, small: -32768, big: '9223372036854775807', mark: 'a0000000-0000-4000-8000-00000000000a' },
      ]);
    }));

  test('a resumed scan finds items inserted before the position where it was interrupted', () =>
    on(async (run, connection, model) => {
      await run(create);
      const ids = [1, 2, 3, 4, 5];
      await items(
        connection,
        'users',
        ids.map((id) => ({ id: N(id), n: S('old') })),
      );
      // In the order of the scan; the saved position is before the last item.
      const order = (await scan(connection, 'users')).map(({ id }) => Number(id));
      const stopped = async (id: string, job: string) => {
        const last = JSON.stringify({ id: N(order[3] ?? 0) });
        const position = JSON.stringify({ segments: [{ last, done: false }], scanned: 4, matched: 4, changed: 4 });
        const Item = { id: S(id), job: S(job), position: S(position), at: N(Date.now()) };
        await connection.query(JSON.stringify({ PutItem: { TableName: '_svc_state', Item } }));
      };
      const collection = model().get('users');
      assert.ok(collection);
      await stopped('update#k1', 'k1');
      const where = [{ field: 'n', operator: 'eq', value: 'old' }] as const;
      const set = [{ field: 'n', value: 'new' }];
      const result = await connection.update({ table: 'users', collection, key: 'k1', where, set });
      assert.deepEqual(result, { matched: 4 + 5, modified: 4 + 5 });
      assert.ok((await scan(connection, 'users')).every(({ n }) => n === 'new'));
      await stopped('update#k2', 'k2');
      const late = [{ field: 'when', value: '2026-01-31T10:00:00.000' }];
      const clock = { table: 'users', collection, key: 'k2', usesNow: true, where: [], set: late } as const;
      assert.deepEqual(await connection.update(clock), { matched: 5, modified: 5 });
      const [, move] = dynamodb.compile(
        { type: 'renameField', collection: 'users', from: 'n', to: 'm' },
        new Map([['users', collection]]),
      );
      assert.ok(move);
      const what = canonicalJson({ kind: 'rename', from: 'n', to: 'm' });
      await stopped('move#users', createHash('sha256').update(what).digest('hex'));
      const moved = await connection.run([{ transactional: false, statements: [move], writes: [] }], 0);
      assert.equal(moved.failure, undefined);
      assert.ok((await scan(connection, 'users')).every((item) => item.m === 'new' && !('n' in item)));
      const left = (await scan(connection, '_svc_state')).map(({ id }) => String(id));
      assert.deepEqual(
        left.filter((id) => /^(move|update)#/.test(id)),
        [],
      );
    }));

  test('an item deleted during an update stays deleted, and a changed one is read again', async () => {
    const fresh = freshPrefix(server.port);
    const otherClient = await dynamodb.connect(fresh.url, {});
    let struck = false;
    const proxy = await startProxy(server.port, async ({ action }): Promise<ProxyAction> => {
      if (action === 'BatchExecuteStatement' && !struck) {
        struck = true;
        await otherClient.query(JSON.stringify({ DeleteItem: { TableName: 'users', Key: { id: N(1) } } }));
        await items(otherClient, 'users', [{ id: N(2), n: S('new') }]);
      }
      return 'pass';
    });
    const connection = await dynamodb.connect(`dynamodb://127.0.0.1:${proxy.port}/${fresh.prefix}`, {});
    try {
      let model: SchemaModel = new Map();
      const run = async (operation: Operation) => {
        model = await runOperations(dynamodb, connection, [operation], model);
      };
      await run(create);
      await items(
        connection,
        'users',
        [1, 2, 3].map((id) => ({ id: N(id), n: S('old') })),
      );
      await run({ type: 'renameField', collection: 'users', from: 'n', to: 'm' });
      assert.deepEqual(await sorted(otherClient, 'users'), [
        { id: 2, m: 'new' },
        { id: 3, m: 'old' },
      ]);
    } finally {
      await connection.close();
      await otherClient.close();
      await proxy.close();
      await fresh.drop();
    }
  });

  test('itemsPerSecond is respected', () =>
    on(
      async (run, connection) => {
        await run(create);
        await items(
          connection,
          'users',
          Array.from({ length: 100 }, (_, id) => ({ id: N(id) })),
        );
        const began = performance.now();
        await run({ type: 'addField', collection: 'users', field: { name: 'kind', type: 'string', default: 'x' } });
        // At 50 per second the hundredth item takes at least a second on any machine.
        assert.ok(performance.now() - began >= 1000);
      },
      { itemsPerSecond: 50 },
    ));

  test(
    'a killed backfill of 8,000 items resumes where it stopped',
    async () => {
      const fresh = freshPrefix(server.port);
      const migrations = [
        migration('20260101_000000_a')
          .createCollection('users', [{ name: 'id', type: 'integer', primaryKey: true }])
          .build(),
        migration('20260102_000000_b').addField('users', { name: 'kind', type: 'string', default: 'x' }).build(),
      ];
      const progress: Progress[] = [];
      const adapter = await connectTarget(dynamodb, fresh.url, {
        leaseMs: 4000,
        onProgress: (one) => void progress.push(one),
      });
      try {
        await migrate(adapter, [definedInCode(migrations[0]!)]);
        await load(fresh.prefix, server.port, 8_000);
        const start = await prepareMigrators('dynamodb', migrations);
        // Slow enough to save its position several times.
        const { child: doomed } = start(fresh.url, 0, { connect: { leaseMs: 4000, itemsPerSecond: 2000 } });
        const reached = await killedAfter(doomed, 4_000);
        assert.ok(reached >= 4_000 && reached < 8_000, String(reached));
        await migrate(adapter, migrations.map(definedInCode));
        const [first] = progress;
        assert.ok(first && first.done > 1000, `it began again: ${JSON.stringify(first)}`);
        assert.equal(progress.at(-1)?.done, 8_000);
        const left = {
          TableName: 'users',
          Select: 'COUNT',
          FilterExpression: 'kind <> :x',
          ExpressionAttributeValues: { ':x': S('x') },
        };
        assert.deepEqual(await adapter.connection.query(JSON.stringify({ Scan: left })), []);
        assert.equal(await adapter.connection.count('users', 10_000), 8_000);
      } finally {
        await adapter.connection.close();
        await fresh.drop();
      }
    },
    { timeoutMs: 300_000 },
  );
}

/** Kills a migrator with SIGKILL once it reports this many items. Returns the last number it reported. */
async function killedAfter(child: ChildProcess, items: number): Promise<number> {
  let reached = 0;
  child.stdout?.on('data', (chunk) => {
    for (const [, done] of String(chunk).matchAll(/done (\d+)/g)) {
      reached = Number(done);
      if (reached >= items) child.kill('SIGKILL');
    }
  });
  await once(child, 'close');
  return reached;
}

async function load(prefix: string, port: number, count: number): Promise<void> {
  const client = bareClient(port);
  const batches = Array.from({ length: count / 25 }, (_, index) => index * 25);
  const worker = async () => {
    for (let from = batches.pop(); from !== undefined; from = batches.pop()) {
      const start = from;
      const requests = Array.from({ length: 25 }, (_, index) => ({
        PutRequest: { Item: { id: { N: String(start + index) }, padding: { S: 'x'.repeat(100) } } },
      }));
      await client.send(new BatchWriteItemCommand({ RequestItems: { [`${prefix}.users`]: requests } }));
    }
  };
  await Promise.all([worker(), worker(), worker(), worker()]);
  client.destroy();
}
