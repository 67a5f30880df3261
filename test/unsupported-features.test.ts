import * as assert from 'node:assert/strict';
import { isSvcError } from '../core/errors.ts';
import { apply, applyAll } from '../core/schema/apply.ts';
import { invert } from '../core/schema/invert.ts';
import type { CreateCollection, Operation } from '../core/schema/operation.ts';
import { operationProblems } from '../core/schema/operation-problems.ts';
import { assertSupported, type Feature, requiredFeatures } from '../core/schema/unsupported-features.ts';
import { test } from './kit/test.ts';

const model = applyAll([
  {
    type: 'createCollection',
    name: 't',
    fields: [
      { name: 'id', type: 'integer', primaryKey: true },
      { name: 'a', type: 'integer' },
      { name: 'long', type: 'text' },
      { name: 'code', type: 'string', unique: true },
      { name: 'seal', type: 'binary' },
      { name: 'list', type: 'array' },
    ],
  },
  { type: 'createIndex', collection: 't', index: 'i', columns: [{ name: 'a' }] },
  { type: 'createCollection', name: 'single', fields: [{ name: 'a', type: 'integer' }] },
]);
const modify = (field: string, changes: object): Operation => ({
  type: 'modifyField',
  collection: 't',
  field,
  changes,
});

const ASKED: readonly (readonly [Operation, readonly Feature[]])[] = [
  [{ type: 'createCollection', name: 'u', fields: [{ name: 'a', type: 'integer' }] }, ['tableWithoutKey']],
  [{ type: 'createCollection', name: 'u', fields: [{ name: 'a', type: 'Text', primaryKey: true }] }, ['longKey']],
  [
    {
      type: 'createCollection',
      name: 'u',
      fields: [{ name: 'a', type: 'Text' }],
      primaryKey: { name: 'k', columns: ['a'] },
    },
    ['primaryKeyConstraint', 'longKey'],
  ],
  [
    { type: 'addField', collection: 't', field: { name: 'n', type: 'integer', nullable: false } },
    ['required', 'addRequired'],
  ],
  [
    { type: 'addField', collection: 't', field: { name: 'n', type: 'uuid', autoGenerate: true, primaryKey: true } },
    ['generated', 'changeKey'],
  ],
  [modify('a', { default: 1 }), ['default']],
  [modify('a', { default: null }), []],
  [modify('a', { type: 'text' }), ['changeType', 'changeIndexedField', 'longKey']],
  [modify('a', { type: 'array' }), ['array', 'changeType', 'changeIndexedField', 'longKey']],
  [modify('list', { default: ['x'] }), ['array', 'default', 'arrayDefault']],
  [
    { type: 'addField', collection: 't', field: { name: 'n', type: 'Array', default: [] } },
    ['array', 'default', 'arrayDefault'],
  ],
  [modify('id', { type: 'bigint' }), ['changeType', 'changeKeyField']],
  [modify('id', { primaryKey: false }), ['changeKey']],
  [{ type: 'renameField', collection: 't', from: 'id', to: 'x' }, ['renameKeyField']],
  [{ type: 'renameField', collection: 't', from: 'a', to: 'x' }, ['renameField', 'renameIndexedField']],
  [{ type: 'renameField', collection: 't', from: 'code', to: 'x' }, ['renameField', 'renameUniqueField']],
  [modify('code', { length: 254 }), ['shortenField']],
  [modify('code', { length: 255 }), []],
  [modify('code', { length: 256 }), []],
  [modify('seal', { length: 900 }), ['shortenField']],
  [{ type: 'dropField', collection: 't', field: 'id' }, ['dropField', 'changeKey']],
  [{ type: 'dropField', collection: 'single', field: 'a' }, ['dropField', 'dropLastField']],
  [
    {
      type: 'createIndex',
      collection: 't',
      index: 'j',
      columns: [{ name: 'a', order: 'DESC' }, { name: 'long' }],
      unique: true,
    },
    ['index', 'compositeIndex', 'longKey', 'uniqueIndex', 'descendingIndex'],
  ],
  [{ type: 'raw', dialect: 'x', statement: 'y' }, []],
];

test('an operation requires exactly the features it uses', () => {
  for (const [operation, features] of ASKED)
    assert.deepEqual([...requiredFeatures(operation, model)].sort(), [...features].sort(), JSON.stringify(operation));
});

test('an unsupported feature is rejected with its reason and an alternative', () => {
  const refuses = { renameField: { why: 'It cannot.', next: 'Do without.' } };
  const rename: Operation = { type: 'renameField', collection: 't', from: 'long', to: 'x' };
  assert.throws(
    () => assertSupported('acme', refuses, rename, model),
    (error) =>
      isSvcError(error) &&
      error.code === 'not_supported' &&
      error.message === 'acme cannot rename a field: "t.long".' &&
      error.why === 'It cannot.' &&
      error.next[0] === 'Do without.',
  );
  assertSupported('acme', refuses, { type: 'dropField', collection: 't', field: 'long' }, model);
});

test('an engine that renames no fields renames none of the key, unless it says so', () => {
  const renameField = { why: 'It cannot.', next: 'Do without.' };
  const rename: Operation = { type: 'renameField', collection: 't', from: 'id', to: 'x' };
  assert.throws(() => assertSupported('acme', { renameField }, rename, model), {
    code: 'not_supported',
    message: 'acme cannot rename a field of the primary key: "t.id".',
    why: 'It cannot.',
  });
  assertSupported('acme', { renameField, renameKeyField: undefined }, rename, model);
});

test('the field of a new table that is not supported is named with the table', () => {
  const id = { name: 'id', type: 'uuid', primaryKey: true } as const;
  const create = (options: Partial<CreateCollection>): Operation => {
    const { type, name, fields } = { type: 'createCollection', name: 'users', fields: [id] } as const;
    return { type, name, fields, ...options };
  };
  const email = { name: 'email', type: 'string', unique: true } as const;
  for (const [feature, operation, subject] of [
    ['unique', create({ fields: [id, email] }), '"users.email"'],
    ['required', create({ options: { timestamps: true } }), '"users.createdAt"'],
    ['tableWithoutKey', create({ fields: [{ name: 'id', type: 'uuid' }] }), '"users"'],
  ] as const) {
    assert.throws(
      () => assertSupported('acme', { [feature]: { why: 'It cannot.', next: 'Do without.' } }, operation, model),
      (error) => isSvcError(error) && error.message.endsWith(`: ${subject}.`),
      feature,
    );
  }
});

test('an operation that needs several unsupported features names all of them, with what needs each', () => {
  const refuses = {
    required: { why: 'It knows no rules.', next: 'Validate in the application.' },
    unique: { why: 'It knows no rules.', next: 'Compare in the application.' },
  };
  const field = (name: string) => ({ name, type: 'string', required: true, unique: name === 'b' }) as const;
  const fields = [{ name: 'id', type: 'uuid', primaryKey: true } as const, field('a'), field('b')];
  assert.throws(() => assertSupported('acme', refuses, { type: 'createCollection', name: 'u', fields }, model), {
    code: 'not_supported',
    message: 'acme cannot enforce a required field: "u.a", "u.b". acme cannot enforce a unique field: "u.b".',
    why: 'It knows no rules.',
    next: ['Validate in the application.', 'Compare in the application.'],
  });
});

test('a rename with changes needs an engine that copies, and its inverse restores the definition', () => {
  const copy: Operation = {
    type: 'renameField',
    collection: 't',
    from: 'long',
    to: 'short',
    strategy: 'copy',
    changes: { type: 'string', length: 5, default: 'x' },
  };
  assert.throws(() => assertSupported('acme', {}, copy, model), { code: 'not_supported' });
  assertSupported('acme', { renameChanged: undefined }, copy, model);
  const after = apply(model, copy);
  const field = after.get('t')?.fields.get('short');
  assert.deepEqual(field, { name: 'short', type: 'string', length: 5, default: 'x' });
  assert.equal(after.get('t')?.fields.has('long'), false);
  assert.deepEqual(
    invert(copy, model).reduce((one, operation) => apply(one, operation), after),
    model,
  );
  const taken: Operation = { ...copy, to: 'a' };
  assert.throws(() => apply(model, taken), { code: 'field_exists' });
  assert.deepEqual(model.get('t')?.fields.get('long'), { name: 'long', type: 'text' });
  assert.match(operationProblems({ ...copy, strategy: undefined }).join(), /changes requires strategy: 'copy'/);
  assert.deepEqual(operationProblems(copy), []);
});
