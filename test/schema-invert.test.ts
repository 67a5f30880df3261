import * as assert from 'node:assert/strict';
import { apply, applyAll } from '../core/schema/apply.ts';
import { invert, invertAll, withoutNeedlessDrops } from '../core/schema/invert.ts';
import type { CreateCollection, Operation } from '../core/schema/operation.ts';
import { test } from './kit/test.ts';

const users: CreateCollection = {
  type: 'createCollection',
  name: 'users',
  fields: [{ name: 'id', type: 'integer', primaryKey: true }],
};
const ifNotExists: CreateCollection = { ...users, options: { sqlOptions: { ifNotExists: true } } };
const temporary: CreateCollection = { ...users, options: { sqlOptions: { temporary: true } } };
const drop = [{ type: 'dropCollection', collection: 'users' }];

test('the inverse of a table that ifNotExists creates drops it', () => {
  assert.deepEqual(invert(ifNotExists, new Map()), drop);
});

test('the inverse of ifNotExists drops nothing if the table existed before', () => {
  assert.deepEqual(invert(ifNotExists, apply(new Map(), users)), []);
});

test('a temporary table needs no inverse', () => {
  assert.deepEqual(invert(users, new Map()), drop);
  assert.deepEqual(invert(temporary, new Map()), []);
});

test('what goes with a table is not dropped before it', () => {
  const fields = [
    { name: 'id', type: 'integer', primaryKey: true },
    { name: 'n', type: 'integer' },
  ] as const;
  const create = (name: string): Operation => ({ type: 'createCollection', name, fields });
  const index = (collection: string): Operation => ({
    type: 'createIndex',
    collection,
    index: `${collection}_n_idx`,
    columns: [{ name: 'n' }],
  });
  const unique = (table: string): Operation => ({
    type: 'addConstraint',
    collection: table,
    constraint: { name: `${table}_n`, type: 'unique', columns: ['n'] },
  });
  const refers = (table: string, to: string, column: string): Operation => ({
    type: 'addConstraint',
    collection: table,
    constraint: {
      name: `${table}_${to}`,
      type: 'foreignKey',
      columns: ['n'],
      references: { table: to, columns: [column] },
    },
  });
  const dropTable = (collection: string): Operation => ({ type: 'dropCollection', collection });
  const dropKey = (collection: string, constraint: string): Operation => ({
    type: 'dropConstraint',
    collection,
    constraint,
  });
  const before = applyAll([create('old')]);
  const cases: readonly (readonly [up: readonly Operation[], down: readonly Operation[]])[] = [
    [[create('a'), index('a'), unique('a'), refers('a', 'a', 'id'), refers('a', 'old', 'id')], [dropTable('a')]],
    // The one that is referenced is dropped last.
    [
      [create('a'), create('b'), index('a'), refers('b', 'a', 'id')],
      [dropTable('b'), dropTable('a')],
    ],
    [
      [create('a'), create('b'), refers('a', 'b', 'id')],
      [dropKey('a', 'a_b'), dropTable('b'), dropTable('a')],
    ],
    // The key that is referenced is dropped between.
    [
      [create('a'), unique('old'), refers('a', 'old', 'n')],
      [dropKey('a', 'a_old'), dropKey('old', 'old_n'), dropTable('a')],
    ],
    [
      [index('old'), unique('old')],
      [dropKey('old', 'old_n'), { type: 'dropIndex', collection: 'old', index: 'old_n_idx' }],
    ],
  ];
  for (const [up, expected] of cases) {
    const after = applyAll(up, before);
    const down = withoutNeedlessDrops(invertAll(up, before), after);
    assert.deepEqual(down, expected);
    assert.deepEqual(applyAll(down, after), before);
  }
});
