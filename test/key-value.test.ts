import * as assert from 'node:assert/strict';
import type { UpdateJob } from '../core/dialect.ts';
import { isSvcError } from '../core/errors.ts';
import { migrate } from '../core/migration/migrate.ts';
import { anyDefinition, type RecordDefinition } from '../core/records.ts';
import { defineCollection } from '../core/schema/define.ts';
import type { NamedFieldDefinition, Operation } from '../core/schema/operation.ts';
import { keyValueDialect, UNSUPPORTED_BY_KEY_VALUE } from '../plugins/dialects/shared/key-value/dialect.ts';
import type { KeyValueDriver } from '../plugins/dialects/shared/key-value/driver.ts';
import { type KeyValueRow, runCommand } from '../plugins/dialects/shared/key-value/object-rows.ts';
import { rowUpdate, type TextRow } from '../plugins/dialects/shared/key-value/text-rows.ts';
import { emptyMemory, type Memory, memoryDriver, text } from './kit/memory-driver.ts';
import { definedInCode } from './kit/migrations.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { recordStoreSuite, type Thing, thing, things } from './suites/record-store-suite.ts';
import { runOperations } from './suites/run-operations.ts';

const dialectOver = (memory: Memory, driver = memoryDriver(memory)) =>
  keyValueDialect({
    name: 'memory',
    unsupported: UNSUPPORTED_BY_KEY_VALUE,
    identify: (url) => url,
    open: async () => driver,
  });

recordStoreSuite(test, {
  name: 'a key-value driver',
  async createStore() {
    const dialect = dialectOver(emptyMemory());
    return { connect: () => dialect.connect('memory', {}), drop: async () => undefined };
  },
});

test('an index sorts numbers by value, and names that begin alike by name', async () => {
  const connection = await dialectOver(emptyMemory()).connect('memory', {});
  const definition: RecordDefinition<Thing> = {
    ...things,
    indexes: [
      { name: 'byTook', equals: [], sort: 'took' },
      { name: 'byKind', equals: [], sort: 'kind' },
    ],
  };
  const store = connection.records(definition);
  const numbers = [1, -1.5, 1e300, 0, -2, 0.1, 10, -1e-9];
  for (const [at, took] of numbers.entries()) {
    await store.insert({ ...thing(`${at}`, at, `a${'!'.repeat(at)}`), took });
  }
  const ascending = await store.page('byTook', { limit: 100, from: -1.5 });
  assert.deepEqual(
    ascending.records.map(({ record }) => record.took),
    [-1.5, -1e-9, 0, 0.1, 1, 10, 1e300],
  );
  const named = await store.page('byKind', { limit: 100, to: 'a!!', direction: 'desc' });
  assert.deepEqual(
    named.records.map(({ record }) => record.kind),
    ['a!!', 'a!', 'a'],
  );
});

test('records of an earlier version are in the indexes that a newer one adds', async () => {
  const memory = emptyMemory();
  const connection = await dialectOver(memory).connect('memory', {});
  const old = { ...things, indexes: [] };
  await connection.ensureTables([anyDefinition(old)]);
  for (const id of ['a', 'b', 'c']) await connection.records(old).insert(thing(id, 1));
  const store = connection.records(things);
  const keys = async () =>
    (await store.page('bySize', { equals: { kind: 'k' }, limit: 10 })).records.map(({ record }) => record.id);
  assert.deepEqual(await keys(), []);
  await connection.ensureTables([anyDefinition(things)]);
  assert.deepEqual(await keys(), ['a', 'b', 'c']);
});

const FIELDS: readonly NamedFieldDefinition[] = [
  { name: 'id', type: 'integer', primaryKey: true },
  { name: 'big', type: 'bigint' },
  { name: 'price', type: 'decimal', precision: 30, scale: 4 },
  { name: 'name', type: 'string' },
  { name: 'at', type: 'timestamp' },
  { name: 'data', type: 'json' },
  { name: 'bytes', type: 'binary' },
];
const collection = defineCollection({ name: 't', fields: FIELDS });
const NOW = new Date('2026-01-31T12:00:00.000Z');

const changesOf = (job: Partial<UpdateJob>, row: TextRow) =>
  rowUpdate({ table: 't', collection, key: 'k', where: [], set: [{ field: 'name', value: 'new' }], ...job }).changes(
    row,
    NOW,
  );

test('a condition compares values by their type, beyond the precision of a double', () => {
  const row: TextRow = {
    big: '9007199254740993',
    price: '10.50',
    name: 'b',
    at: '2026-01-31T12:00:00+02:00',
    data: '{"b": 1, "a": [2]}',
    bytes: 'AA==',
  };
  const isMet = (
    field: string,
    operator: 'eq' | 'ne' | 'gt' | 'gte' | 'lt' | 'lte',
    value: string | number | object | null,
  ) => changesOf({ where: [{ field, operator, value: value as string }] }, row) !== undefined;
  assert.deepEqual([isMet('big', 'gt', '9007199254740992'), isMet('big', 'gt', '9007199254740993')], [true, false]);
  assert.deepEqual(
    [isMet('price', 'eq', 10.5), isMet('price', 'lt', 9.75), isMet('price', 'gte', '10.5')],
    [true, false, true],
  );
  assert.deepEqual([isMet('at', 'eq', '2026-01-31T10:00:00Z'), isMet('at', 'lt', '2026-01-31 11:00Z')], [true, true]);
  assert.deepEqual([isMet('data', 'eq', { a: [2], b: 1 }), isMet('data', 'eq', { a: [2] })], [true, false]);
  assert.deepEqual(
    [isMet('bytes', 'eq', 'AA'), isMet('bytes', 'ne', 'AA=='), isMet('name', 'ne', null)],
    [true, false, true],
  );
  assert.equal(changesOf({ where: [{ field: 'big', operator: 'lt', value: 5 }] }, { big: 'no number' }), undefined);
});

test('a new time alone is not a change, unless nothing else is set', () => {
  const now = { field: 'at', now: true } as const;
  assert.deepEqual(changesOf({ set: [{ field: 'name', value: 'x' }, now] }, { name: 'x', at: null }), {});
  assert.deepEqual(changesOf({ set: [{ field: 'name', value: 'y' }, now] }, { name: 'x', at: null }), {
    name: 'y',
    at: '2026-01-31T12:00:00.000Z',
  });
  assert.deepEqual(changesOf({ set: [now] }, { at: null }), { at: '2026-01-31T12:00:00.000Z' });
});

test('a row that another program changes between read and write is read again', async () => {
  const memory = emptyMemory();
  const bytes = (value: string) => Buffer.from(value);
  let writes = 0;
  memory.beforeWrite = () => {
    writes += 1;
    if (writes === 1) memory.rows.set('t:1', { id: bytes('1'), first: bytes('Grace') });
  };
  const dialect = dialectOver(memory);
  const connection = await dialect.connect('memory', {});
  const fields: readonly NamedFieldDefinition[] = [
    { name: 'id', type: 'integer', primaryKey: true },
    { name: 'first', type: 'string' },
  ];
  const model = await runOperations(dialect, connection, [{ type: 'createCollection', name: 't', fields }]);
  memory.rows.set('t:1', { id: bytes('1'), first: bytes('Ada') });
  await runOperations(
    dialect,
    connection,
    [{ type: 'renameField', collection: 't', from: 'first', to: 'name' }],
    model,
  );
  assert.equal(text(memory.rows.get('t:1')?.name ?? null), 'Grace');
  assert.equal(text(memory.rows.get('t:1')?.first ?? null), null);
});

test('a row with both names of a renamed field, or one in the way of a renamed table, stops the change before it begins', async () => {
  const memory = emptyMemory();
  const dialect = dialectOver(memory);
  const connection = await dialect.connect('memory', {});
  const model = await runOperations(dialect, connection, [{ type: 'createCollection', name: 't', fields: FIELDS }]);
  const [one, two] = ['1', '2'].map((id) => Buffer.from(id)) as [Buffer, Buffer];
  memory.rows.set('t:1', { id: one, name: one }).set('t:2', { id: two, name: two, title: two }).set('u:9', { id: one });
  for (const operation of [
    { type: 'renameField', collection: 't', from: 'name', to: 'title' },
    { type: 'renameCollection', collection: 't', to: 'u' },
  ] as const) {
    await assert.rejects(
      runOperations(dialect, connection, [operation], model),
      (error) => isSvcError(error) && error.code === 'data_violates',
    );
  }
  assert.deepEqual([...memory.rows.keys()], ['t:1', 't:2', 'u:9']);
  assert.equal(text(memory.rows.get('t:1')?.name ?? null), '1');
});

test('a driver can keep a name for itself, also from a field that is renamed', () => {
  const dialect = keyValueDialect({
    name: 'memory',
    unsupported: UNSUPPORTED_BY_KEY_VALUE,
    identify: (url) => url,
    nameProblem: (name, kind) => (kind === 'field' && name === '_key' ? 'The driver has the key there.' : undefined),
    open: async () => memoryDriver(emptyMemory()),
  });
  const refuses = (operation: Operation, why: string) =>
    assert.throws(
      () => dialect.compile(operation, new Map([['t', collection]])),
      (error) => isSvcError(error) && error.code === 'name_invalid' && error.why === why,
    );
  refuses({ type: 'renameField', collection: 't', from: 'name', to: '_key' }, 'The driver has the key there.');
  const field = { name: '_key', type: 'string' } as const;
  refuses({ type: 'addField', collection: 't', field }, 'The driver has the key there.');
  const colon = 'In the key of a row, a colon ends the name of the table.';
  refuses({ type: 'createCollection', name: 'a:b', fields: FIELDS }, colon);
});

test('a plan says what changes of a table, and not its whole definition', () => {
  const dialect = dialectOver(emptyMemory());
  const fields = ['id', 'name', 'notes'].map((name): NamedFieldDefinition => ({ name, type: 'text' }));
  const before = new Map([['users', defineCollection({ name: 'users', fields })]]);
  const textsOf = (operation: Operation) => dialect.compile(operation, before).map(({ text }) => text);
  const collection = 'users';
  assert.deepEqual(textsOf({ type: 'addField', collection, field: { name: 'age', type: 'integer' } }), [
    'DEFINE users: ADD FIELD {"name":"age","type":"integer"}',
  ]);
  assert.equal(textsOf({ type: 'dropField', collection, field: 'notes' })[0], 'DEFINE users: DROP FIELD notes');
  assert.equal(
    textsOf({ type: 'renameField', collection, from: 'name', to: 'title' }).at(-1),
    'DEFINE users: RENAME FIELD name TO title',
  );
  assert.deepEqual(textsOf({ type: 'modifyField', collection, field: 'name', changes: { default: 'none' } }), [
    'DEFINE users: CHANGE FIELD TO {"name":"name","type":"text","default":"none"}',
  ]);
});

test('an error that the driver does not recognize is one of the dialect', async () => {
  const driver = memoryDriver(emptyMemory());
  const fail = () => Promise.reject(new Error('no rod'));
  const broken: KeyValueDriver = { ...driver, read: fail, entries: fail };
  const connection = await dialectOver(emptyMemory(), broken).connect('memory', {});
  for (const call of [() => connection.introspect(), () => connection.records(things).get('a')]) {
    const error = await expectError(call(), 'plugin_invalid');
    assert.deepEqual([error.message.includes('"memory"'), error.why], [true, 'no rod']);
  }
});

test('a text that is no command changes nothing, and its migration can be corrected', async () => {
  const rows = new Map<string, KeyValueRow>();
  const driver: KeyValueDriver = {
    ...memoryDriver(emptyMemory()),
    query: (text) =>
      runCommand(text, {
        get: async (key) => rows.get(key),
        keys: async () => [...rows.keys()],
        put: async (key, row) => void rows.set(key, row),
        remove: async (key) => void rows.delete(key),
      }),
  };
  const target = await connectTarget(dialectOver(emptyMemory(), driver), 'memory');
  const raw = (statement: string) =>
    definedInCode({
      ...{ tag: '20260101_000000_put', name: 'put', down: [], irreversible: 'A test.' },
      up: [{ type: 'raw', dialect: 'memory', statement }],
    });
  await expectError(migrate(target, [raw('["frob", "users:1"]')]), 'value_invalid');
  const { migrations } = await migrate(target, [raw('["put", "users:1", { "n": 1 }]')]);
  assert.deepEqual([migrations.length, rows.get('users:1')], [1, { n: 1 }]);
});
