import * as assert from 'node:assert/strict';
import { defineConfig } from '../config/define.ts';
import { Svc } from '../config/sdk/index.ts';
import { Database } from '../core/database/database.ts';
import type { ErrorCode } from '../core/error-codes.ts';
import { isSvcError } from '../core/errors.ts';
import { MigrationHelpers, migration } from '../core/migration/builder.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import { engines } from './kit/engines.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

/** Calls as plain JavaScript can make them, without type checks. */
// biome-ignore lint/suspicious/noExplicitAny: the test passes values of the wrong type
type Any = any;

const pglite = engines.find(({ name }) => name === 'pglite');
assert.ok(pglite);
const on = (name: string, body: (db: Any, engine: Any) => Promise<void>) =>
  test(name, () =>
    pglite.withDatabase((adapter) => body(new Database(adapter) as Any, new MigrationEngine(adapter) as Any)),
  );

const id = { type: 'integer', primaryKey: true };

function throws(call: () => unknown, code: ErrorCode, why?: RegExp): void {
  assert.throws(call, (error) => {
    assert.ok(isSvcError(error), `no refusal: ${error}`);
    assert.equal(error.code, code);
    if (why) assert.match(`${error.message} ${error.why} ${error.next.join(' ')}`, why);
    return true;
  });
}

on('engine.resolve rejects an unknown decision, and keeps the history', async (db, engine) => {
  const { migration: created } = await db.schema.create('u', { id });
  for (const [tag, action] of [
    [created.tag, 'forgot'],
    [created.tag, undefined],
    [created.tag, 'Retry'],
    [5, 'forget'],
  ]) {
    const error = await expectError(engine.resolve(tag, action), 'migration_invalid');
    if (tag === created.tag && action !== undefined)
      assert.match(error.why ?? '', /retry, applied, rolled-back, failed, forget/);
  }
  assert.equal((await engine.getHistory()).length, 1);
  await engine.resolve(created.tag, 'forget');
  assert.equal((await engine.getHistory({ all: true })).length, 0);
});

on('db.schema rejects invalid arguments with a code, through its promise', async (db, engine) => {
  await db.schema.create('u', { id, email: 'text' });
  const before = await engine.getHistory({ all: true });
  const { schema } = db;
  const cases: [string, () => Promise<unknown>, ErrorCode, RegExp?][] = [
    ['create()', () => schema.create(), 'name_invalid'],
    ['null fields', () => schema.create('x', null), 'field_invalid'],
    ['no fields', () => schema.create('q', undefined), 'field_invalid'],
    ['a null field', () => schema.create('x', { id: null }), 'field_invalid'],
    ['a symbol', () => schema.create(Symbol('x'), { id }), 'name_invalid'],
    ['null sqlOptions', () => schema.create('x', { id }, { sqlOptions: null }), 'migration_invalid'],
    ['options 5', () => schema.create('x', { id }, 5), 'migration_invalid'],
    ['timestmps', () => schema.create('x', { id }, { timestmps: true }), 'migration_invalid', /"timestamps"/],
    ['timestamps no', () => schema.create('x', { id }, { timestamps: 'no' }), 'migration_invalid'],
    [
      'ifNotExist',
      () => schema.create('x', { id }, { sqlOptions: { ifNotExist: true } }),
      'migration_invalid',
      /"ifNotExists"/,
    ],
    ['temporary no', () => schema.create('x', { id }, { sqlOptions: { temporary: 'no' } }), 'migration_invalid'],
    ['a function', () => schema.create('x', { id: { ...id, default: () => 1 } }), 'field_invalid'],
    ['createIndex(u)', () => schema.createIndex('u'), 'field_invalid'],
    ['columns a string', () => schema.createIndex('u', 'email'), 'field_invalid'],
    ['columns [null]', () => schema.createIndex('u', [null]), 'field_invalid'],
    ['columns [5]', () => schema.createIndex('u', [5]), 'field_invalid'],
    ['columns []', () => schema.createIndex('u', []), 'field_invalid'],
    ['index options null', () => schema.createIndex('u', ['id'], null), 'migration_invalid'],
    ['uniqe', () => schema.createIndex('u', ['id'], { uniqe: true }), 'migration_invalid', /"unique"/],
    ['dropField(u)', () => schema.dropField('u'), 'name_invalid'],
    ['dropIndex(u)', () => schema.dropIndex('u'), 'name_invalid'],
    ['addField(u, x)', () => schema.addField('u', 'x'), 'field_invalid'],
    ['modifyField', () => schema.modifyField('u', 'email'), 'field_invalid'],
    ['renameField', () => schema.renameField('u', 'email'), 'name_invalid'],
    ['rename', () => schema.rename('u'), 'name_invalid'],
    ['addConstraint(u)', () => schema.addConstraint('u'), 'constraint_invalid'],
    [
      'no references',
      () => schema.addConstraint('u', { name: 'k', type: 'foreignKey', columns: ['id'] }),
      'constraint_invalid',
    ],
    ['dropConstraint(u)', () => schema.dropConstraint('u'), 'constraint_invalid'],
    ['drop()', () => schema.drop(), 'name_invalid'],
    ['drop(u, null)', () => schema.drop('u', null), 'migration_invalid'],
    ['cascade no', () => schema.drop('u', { cascade: 'no' }), 'migration_invalid'],
    ['cascde', () => schema.drop('u', { cascde: true }), 'migration_invalid', /"cascade"/],
  ];
  for (const [name, call, code, why] of cases) {
    const error = await expectError(call(), code).catch((cause) =>
      assert.fail(`${name}: ${cause.code} ${cause.stack}`),
    );
    if (why) assert.match(error.why ?? '', why, name);
  }
  assert.deepEqual(await engine.getHistory({ all: true }), before);
});

on('db.update rejects invalid updates', async (db) => {
  await db.schema.create('t', {
    id,
    s: { type: 'string', length: 3 },
    b: 'text',
    n: 'integer',
    j: 'json',
    y: 'binary',
    l: 'array',
    at: 'timestamp',
    day: 'date',
    time: 'time',
    wall: 'datetime',
  });
  await db
    .getAdapter()
    .connection.query(`INSERT INTO t (id, s, b, n, j) VALUES (1, 'a', 'b', 2, '{}'), (2, 'c', 'd', 3, '{}')`);
  const all = true;
  const cases: [Any, RegExp?][] = [
    [undefined],
    [null],
    [{ table: 't', data: { b: 'x' }, where: null, all }],
    [{ table: 't', data: { b: 'x' }, where: { id: undefined } }],
    [{ table: 't', data: { b: 'x' }, where: { id: { $gt: undefined } } }],
    [{ table: 't', data: { b: 'x' }, where: { id: { toString: 1 } } }],
    [{ table: 't', data: { b: 'x' }, where: { id: { $gt: 1, toString: 1 } } }],
    [{ table: 't', data: { b: undefined }, all }],
    [{ table: 't', data: { n: { toString: 1 } }, all }],
    [{ table: 't', data: { b: { $INC: 1 } }, all }],
    [{ table: 't', data: { b: { $CONCT: ['s'] } }, all }, /"\$CONCAT"/],
    [{ table: 't', data: { j: { $concat: ['s'] } }, all }, /"\$CONCAT"/],
    [{ table: 't', data: { b: { a: 1 } }, all }],
    [{ table: 't', data: { b: true }, all }],
    [{ table: 't', data: { b: 5 }, all }],
    [{ table: 't', data: { s: 'long' }, all }],
    [{ table: 't', data: { n: 1.5 }, all }],
    [{ table: 't', data: { l: 'x' }, all }],
    [{ table: 't', data: { l: [5] }, all }],
    [{ table: 't', data: { y: 5 }, all }],
    ...['\\x48', 'SGVsbG8==', 'SGVs bG8=', 'A', '='].map((y): [Any, RegExp] => [
      { table: 't', data: { y }, all },
      /bytes as base64/,
    ]),
    [{ table: 't', data: { b: 'x' }, where: { y: { $in: ['\\x48'] } } }, /bytes as base64/],
    ...[
      { at: '31.12.2026' },
      { at: { $gt: '2026-02-30T00:00:00Z' } },
      { at: { $gt: '2026-01-31T24:00:00Z' } },
      { at: { $in: ['now', 'then'] } },
      { day: '2026-02-30' },
      { wall: '2026-13-01T00:00:00' },
      { time: { $lt: '23:60' } },
      { n: '2' },
      { n: { $lt: 2.5 } },
      { b: { $ne: true } },
      { l: [5] },
    ].map((where): [Any, RegExp] => [{ table: 't', data: { b: 'x' }, where }, /cannot be compared with/]),
    ...[{ at: '2026-02-30T00:00:00Z' }, { day: '2026-02-29' }, { time: '25:00' }].map((data): [Any, RegExp] => [
      { table: 't', data, all },
      /date or time does not exist/,
    ]),
    ...['j', 'y', 'l'].map((field): [Any] => [{ table: 't', data: { [field]: { $CONCAT: ['s'] } }, all }]),
    [{ table: 't', data: { b: 'x' }, wher: { id: 1 }, all }, /"where"/],
  ];
  for (const [request, why] of cases) {
    const error = await expectError(db.update(request), 'update_invalid').catch((cause) =>
      assert.fail(`${JSON.stringify(request)}: ${cause.stack}`),
    );
    if (why) assert.match(`${error.message} ${error.why} ${error.next.join(' ')}`, why);
  }
  const rows = await db.getAdapter().connection.query('SELECT b, n FROM t ORDER BY id');
  assert.deepEqual(
    rows.map(({ b, n }: Any) => [b, Number(n)]),
    [
      ['b', 2],
      ['d', 3],
    ],
  );
  const data: Any = { j: { $INC: 1, a: [null] }, l: ['x', null], y: 'AA==', n: null, s: { $CONCAT: ['b'] } };
  const updating = db.update({ table: 't', data, where: { id: 1 } });
  data.s = { $CONCAT: ['n', 'n', 'n', 'n'] };
  assert.equal((await updating).modified, 1);
  const [first] = await db.getAdapter().connection.query('SELECT s, j FROM t WHERE id = 1');
  assert.deepEqual([first.s, first.j], ['b', { $INC: 1, a: [null] }]);
});

on('the engine rejects invalid migrations, and runs the list as it was at the time of the call', async (db, engine) => {
  for (const wrong of [undefined, null, 5, {}, { tag: 'a', up: [], down: [], fields: () => 1 }]) {
    await expectError(engine.up(wrong), 'migration_invalid');
    await expectError(engine.down(wrong), 'migration_invalid');
  }
  for (const wrong of [undefined, {}, { definedMigrations: [null] }, { definedMigrations: 5 }]) {
    await expectError(engine.getStatus(wrong), 'migration_invalid');
  }
  await expectError(engine.getHistory(null), 'migration_invalid');
  await expectError(engine.getHistory({ al: true }), 'migration_invalid');
  throws(() => new MigrationEngine({} as Any), 'database_unknown');

  const m: Any = migration('20260101_000000_a')
    .createCollection('a', [{ name: 'id', type: 'integer' }])
    .build();
  await expectError(engine.getStatus({ definedMigrations: [m, m] }), 'tag_taken');
  const up = engine.up(m);
  const { up: written } = structuredClone(m);
  m.up[0].name = 'b';
  await up;
  const columns: Any = { id: 'integer' };
  const creating = db.schema.create('c', columns);
  columns.id = 'text';
  const { migration: made } = await creating;
  assert.equal(made.fields[0].type, 'integer');
  assert.deepEqual([...(await db.getAdapter().connection.introspect()).keys()].sort(), ['a', 'c']);
  assert.deepEqual((await engine.getHistory())[0].migration.up, written);
});

test('helpers and the builder reject invalid arguments', () => {
  const helpers: Any = MigrationHelpers;
  const start: Any = migration;
  throws(() => helpers.generateTag(), 'tag_invalid');
  throws(() => helpers.generateTag(5), 'tag_invalid');
  throws(() => helpers.checksum(), 'migration_invalid');
  throws(() => helpers.checksum({}), 'migration_invalid');
  for (const tag of [undefined, 5, Symbol('x')]) throws(() => start(tag), 'tag_invalid');
  const misuses: ((builder: Any) => Any)[] = [
    (b) => b.createCollection(),
    (b) => b.createCollection('a', [{ name: 'id', type: 'integer' }], null),
    (b) => b.dropCollection(Symbol('a')),
    (b) => b.dropCollection('a', null),
    (b) => b.dropCollection('a', { wsa: {} }),
    (b) => b.addField('a'),
    (b) => b.dropField('a', 'b', null),
    (b) => b.modifyField('a', 'b', { length: 5 }, 5),
    (b) => b.createIndex('a', 'i', [{ name: 'b' }], 5),
    (b) => b.createIndex('a', 'i', [{ name: 'b' }], { uniqe: true }),
    (b) => b.dropIndex('a', 'i', null),
    (b) => b.addConstraint('a'),
    (b) => b.dropConstraint('a', 'c', null),
    (b) => b.raw('postgresql', 'SELECT 1', null),
    (b) => b.raw(Symbol('x'), 'SELECT 1'),
    (b) => b.raw('postgresql', 'SELECT 1', { dwon: 'SELECT 2' }),
  ];
  for (const misuse of misuses) throws(() => misuse(start('20260101_000000_a')).build(), 'migration_invalid');
});

test('validate and build check definitions too, without a dialect', () => {
  const fields = [{ name: 'id', type: 'integer' }] as const;
  const wrong: Any[] = [
    { type: 'createCollection', name: 'a', fields: [{ name: 'id', type: 'Foo' }] },
    { type: 'createCollection', name: '', fields },
    { type: 'createCollection', name: '_svc_a', fields },
    { type: 'createCollection', name: 'a', fields: [{ name: 'id', type: 'string', length: -5 }] },
    { type: 'addField', collection: 'a', field: { name: 'id', type: 'Foo' } },
    { type: 'renameField', collection: 'a', from: 'x', to: '' },
    { type: 'createIndex', collection: 'a', index: 'i', columns: [] },
    { type: 'addConstraint', collection: 'a', constraint: { name: 'c', type: 'unique', columns: [] } },
    { type: 'dropCollection', collection: '' },
  ];
  for (const operation of wrong) {
    assert.equal(MigrationHelpers.validate({ tag: 'a', up: [operation], down: [] }), false, JSON.stringify(operation));
  }
  throws(() => migration('a').createCollection('', fields).build(), 'migration_invalid', /empty/);
});

test('a closed client does not open connections', async () => {
  const databases = { main: { dialect: 'postgresql', url: 'pglite://memory' } } as const;
  const svc = new Svc({ config: defineConfig({ product: 'shop', env: 'dev', databases }) });
  await expectError((svc.database as Any).connect(), 'database_unknown');
  const early = svc.database.connect({ database: 'main' });
  await svc.close();
  await expectError(early, 'connection_failed');
  await expectError(svc.database.connect({ database: 'main' }), 'connection_failed');
});
