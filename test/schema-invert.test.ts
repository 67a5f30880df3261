import * as assert from 'node:assert/strict';
import { apply } from '../core/schema/apply.ts';
import { invert } from '../core/schema/invert.ts';
import type { CreateCollection } from '../core/schema/operation.ts';
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
