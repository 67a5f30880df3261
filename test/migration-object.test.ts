import * as assert from 'node:assert/strict';
import fc from 'fast-check';
import { SvcError } from '../core/errors.ts';
import { canonicalJson } from '../core/json.ts';
import { MigrationHelpers, migration } from '../core/migration/builder.ts';
import { availableTag, generateTag, isTag, nameOfTag } from '../core/migration/tag.ts';
import { test } from './kit/test.ts';

const { checksum, problems, validate } = MigrationHelpers;

test('a tag is the time in UTC and the name', () => {
  assert.equal(generateTag('create_users', new Date('2026-11-20T10:30:05.999Z')), '20261120_103005_create_users');
  assert.equal(
    generateTag('add e-mail to users', new Date('2026-01-02T03:04:05Z')),
    '20260102_030405_add_e-mail_to_users',
  );
  assert.match(MigrationHelpers.generateTag('x'), /^\d{8}_\d{6}_x$/);
});

test('tags that one process makes sort in the order in which it made them', () => {
  const tags = ['users', 'orders', 'a'].map((name) => MigrationHelpers.generateTag(name));
  assert.deepEqual([...tags].sort(), tags);
});

test('whatever the name, the tag is one', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme' }),
      fc.date({ noInvalidDate: true, min: new Date(0), max: new Date('9999-01-01') }),
      (name, at) => isTag(generateTag(name, at)),
    ),
  );
});

test('a name of letters, digits, _ and - comes back out of its tag', () => {
  fc.assert(fc.property(fc.stringMatching(/^[A-Za-z0-9_-]{1,60}$/), (name) => nameOfTag(generateTag(name)) === name));
});

test('a taken tag moves on by seconds', () => {
  const taken = new Set(['20260101_000000_x', '20260101_000001_x']);
  assert.equal(
    availableTag('x', new Date('2026-01-01T00:00:00Z'), (tag) => taken.has(tag)),
    '20260101_000002_x',
  );
});

const sample = () =>
  migration('20261120_103005_orders')
    .description('orders of a user')
    .createCollection('orders', [
      { name: 'id', type: 'integer', primaryKey: true },
      { name: 'total', type: 'decimal', precision: 10, scale: 2, nullable: false },
    ])
    .createIndex('orders', 'orders_total', [{ name: 'total' }])
    .raw('postgresql', 'CREATE VIEW big AS SELECT 1', { down: 'DROP VIEW big' })
    .build();

test('the builder writes the way back in reverse', () => {
  const built = sample();
  assert.deepEqual(built.down, [
    { type: 'raw', dialect: 'postgresql', statement: 'DROP VIEW big' },
    { type: 'dropIndex', collection: 'orders', index: 'orders_total' },
    { type: 'dropCollection', collection: 'orders' },
  ]);
  assert.equal(built.name, 'orders');
  assert.equal(built.description, 'orders of a user');
  assert.equal(validate(built), true);
});

test('a drop that is not told what was there is irreversible, with the reason', () => {
  const built = migration('x').addField('users', { name: 'a', type: 'text' }).dropField('users', 'age').build();
  assert.deepEqual(built.down, []);
  assert.match(built.irreversible ?? '', /dropField users\.age/);
  assert.deepEqual(built.lossy, ['Values of users.age cannot be restored.']);
});

test('a drop that is told what was there has its way back', () => {
  const built = migration('x')
    .dropField('users', 'age', { was: { type: 'integer' } })
    .dropCollection('logs', { was: { fields: [{ name: 'id', type: 'integer' }] } })
    .build();
  assert.deepEqual(built.down, [
    { type: 'createCollection', name: 'logs', fields: [{ name: 'id', type: 'integer' }] },
    { type: 'addField', collection: 'users', field: { name: 'age', type: 'integer' } },
  ]);
});

test('a raw statement without down makes the migration irreversible', () => {
  assert.match(migration('x').raw('postgresql', 'SELECT 1').build().irreversible ?? '', /raw postgresql/);
});

test('build refuses what is no migration, with every reason', () => {
  assert.throws(
    () => migration('.hidden').build(),
    (error) => error instanceof SvcError && error.code === 'migration_invalid' && /tag/.test(error.why ?? ''),
  );
});

test('the checksum sees the content and not its form', () => {
  const built = sample();
  const reordered = JSON.parse(
    JSON.stringify({ down: built.down, up: built.up, description: 'other', tag: built.tag, name: 'n' }, null, 7),
  );
  assert.equal(checksum(reordered), checksum(built));
  assert.notEqual(checksum({ ...built, tag: 'other' }), checksum(built));
  assert.notEqual(checksum({ ...built, down: [] }), checksum(built));
  assert.match(checksum(built), /^[0-9a-f]{64}$/);
});

test('canonical JSON is stable under key order and refuses what JSON would lose', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = canonicalJson(value);
      assert.equal(canonicalJson(JSON.parse(JSON.stringify(value))), text);
      assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(value)));
    }),
  );
  assert.equal(canonicalJson({ b: 1, a: [null, 1e21] }), '{"a":[null,1e+21],"b":1}');
  for (const value of [1n, Number.NaN, new Date(), [undefined], { a: () => 1 }]) {
    assert.throws(
      () => canonicalJson(value),
      (error) => error instanceof SvcError && error.code === 'value_invalid',
    );
  }
});

test('problems tells every reason, and validate is their absence', () => {
  const broken = { tag: 'a b', up: [{ type: 'explode' }], extra: 1 };
  const found = problems(broken).join('\n');
  for (const part of ['tag', 'extra', 'down', 'up[0]']) assert.ok(found.includes(part), `${part} in ${found}`);
  assert.equal(validate(broken), false);
  assert.equal(validate(null), false);
  assert.equal(validate({ tag: 'x', up: [], down: [] }), true);
});
