import * as assert from 'node:assert/strict';
import type { ErrorCode } from '../core/error-codes.ts';
import { isSvcError, type SvcError } from '../core/errors.ts';
import { apply, applyAll, applyInPlace } from '../core/schema/apply.ts';
import { dataLossWarnings } from '../core/schema/data-risks.ts';
import { defineField, defineIndex } from '../core/schema/define.ts';
import { diff } from '../core/schema/diff.ts';
import { unknownError } from '../core/schema/find-or-throw.ts';
import { dependents, dependentsOfCollection } from '../core/schema/keys.ts';
import type { Collection } from '../core/schema/model.ts';
import { derivedName } from '../core/schema/names.ts';
import type { FieldDefinition, Operation } from '../core/schema/operation.ts';
import { operationProblems } from '../core/schema/operation-problems.ts';
import { test } from './kit/test.ts';

const SHOP: readonly Operation[] = [
  {
    type: 'createCollection',
    name: 'users',
    fields: [
      { name: 'id', type: 'integer', primaryKey: true },
      { name: 'email', type: 'string', length: 100, required: true, unique: true },
      { name: 'age', type: 'integer' },
      { name: 'mood', type: 'enum', enumValues: ['good', 'bad'], default: 'good' },
    ],
  },
  {
    type: 'createCollection',
    name: 'orders',
    fields: [
      { name: 'id', type: 'integer', primaryKey: true },
      { name: 'user', type: 'integer' },
      { name: 'total', type: 'decimal', precision: 10, scale: 2 },
      { name: 'note', type: 'text' },
    ],
  },
  { type: 'createIndex', collection: 'orders', index: 'orders_total', columns: [{ name: 'total', order: 'DESC' }] },
  {
    type: 'addConstraint',
    collection: 'orders',
    constraint: {
      name: 'orders_user',
      type: 'foreignKey',
      columns: ['user'],
      references: { table: 'users', columns: ['id'] },
    },
  },
  {
    type: 'addConstraint',
    collection: 'orders',
    constraint: { name: 'positive', type: 'check', expression: `total > 0 and 'note' <> ''` },
  },
];
const shop = applyAll(SHOP);

function assertRejected(code: ErrorCode, work: () => unknown): SvcError {
  try {
    work();
  } catch (error) {
    assert.ok(isSvcError(error), String(error));
    assert.equal(error.code, code, `${error.message} ${error.why ?? ''}`);
    assert.ok(
      error.message.length > 0 && (error.why ?? '') + error.next.join('') !== '',
      'an error has a reason or a next step',
    );
    return error;
  }
  throw new Error(`was not rejected with ${code}`);
}

const at = { collection: 'orders' } as const;
const OPERATIONS: readonly [name: string, code: ErrorCode, operation: Operation, words?: RegExp][] = [
  [
    'a table that exists',
    'collection_exists',
    { type: 'createCollection', name: 'users', fields: [] },
    /already exists/,
  ],
  ['a table of svc', 'name_invalid', { type: 'createCollection', name: '_svc_x', fields: [] }],
  ['a table without name', 'name_invalid', { type: 'createCollection', name: '', fields: [] }],
  ['a NUL in a name', 'name_invalid', { type: 'renameCollection', collection: 'users', to: 'a\0b' }],
  ['half a character', 'name_invalid', { type: 'renameCollection', collection: 'users', to: '\ud83d' }],
  [
    'ifNotExists over another table',
    'table_differs',
    { type: 'createCollection', name: 'users', fields: [], options: { sqlOptions: { ifNotExists: true } } },
    /already exists/,
  ],
  [
    'a field twice',
    'field_exists',
    {
      type: 'createCollection',
      name: 'x',
      fields: [
        { name: 'a', type: 'text' },
        { name: 'a', type: 'text' },
      ],
    },
  ],
  [
    'a field that timestamps adds',
    'field_exists',
    {
      type: 'createCollection',
      name: 'x',
      fields: [{ name: 'createdAt', type: 'date' }],
      options: { timestamps: true },
    },
    /timestamps/,
  ],
  ['an unknown table', 'collection_unknown', { type: 'dropCollection', collection: 'user' }, /"users"/],
  [
    'a table that others reference',
    'collection_referenced',
    { type: 'dropCollection', collection: 'users' },
    /orders_user/,
  ],
  ['a rename onto a table', 'collection_exists', { type: 'renameCollection', collection: 'users', to: 'orders' }],
  [
    'a field that exists',
    'field_exists',
    { type: 'addField', ...at, field: { name: 'note', type: 'text' } },
    /already exists/,
  ],
  ['an unknown field', 'field_unknown', { type: 'dropField', ...at, field: 'totl' }, /"total"/],
  ['a field of an index', 'field_in_use', { type: 'dropField', ...at, field: 'total' }, /orders_total/],
  ['a field of a foreign key', 'field_in_use', { type: 'dropField', ...at, field: 'user' }, /orders_user/],
  [
    'a field that a foreign key references',
    'field_in_use',
    { type: 'dropField', collection: 'users', field: 'id' },
    /orders_user/,
  ],
  ['a rename onto a field', 'field_exists', { type: 'renameField', ...at, from: 'note', to: 'user' }],
  ['a rename under a check', 'field_in_use', { type: 'renameField', ...at, from: 'total', to: 'sum' }, /positive/],
  [
    'a primary key that may be null',
    'field_invalid',
    { type: 'modifyField', collection: 'users', field: 'id', changes: { required: false } },
    /primary key/,
  ],
  [
    'a key that a foreign key needs',
    'key_in_use',
    { type: 'modifyField', collection: 'users', field: 'id', changes: { primaryKey: false } },
    /orders_user/,
  ],
  [
    'a key that gets another column',
    'key_in_use',
    { type: 'addField', collection: 'users', field: { name: 'part', type: 'integer', primaryKey: true } },
  ],
  [
    'a type that no longer matches its reference',
    'constraint_invalid',
    { type: 'modifyField', ...at, field: 'user', changes: { type: 'uuid' } },
    /uuid/,
  ],
  [
    'a default that no longer fits',
    'field_invalid',
    { type: 'modifyField', collection: 'users', field: 'mood', changes: { type: 'integer' } },
    /default/,
  ],
  [
    'an unknown change',
    'field_invalid',
    { type: 'modifyField', ...at, field: 'note', changes: { lenght: 3 } as object },
    /"length"/,
  ],
  [
    'an index that exists',
    'index_exists',
    { type: 'createIndex', ...at, index: 'orders_total', columns: [{ name: 'id' }] },
  ],
  ['an index over an unknown field or none', 'schema_invalid', { type: 'createIndex', ...at, index: 'i', columns: [] }],
  [
    'an index over a field twice',
    'schema_invalid',
    { type: 'createIndex', ...at, index: 'i', columns: [{ name: 'id' }, { name: 'id' }] },
  ],
  [
    'an index with an invalid order',
    'schema_invalid',
    { type: 'createIndex', ...at, index: 'i', columns: [{ name: 'id', order: 'up' }] },
  ],
  [
    'an index over an unknown field',
    'field_unknown',
    { type: 'createIndex', ...at, index: 'i', columns: [{ name: 'x' }] },
  ],
  ['an unknown index', 'index_unknown', { type: 'dropIndex', ...at, index: 'orders_totals' }, /orders_total"/],
  ['an unknown constraint', 'constraint_unknown', { type: 'dropConstraint', ...at, constraint: 'positiv' }, /positive/],
  [
    'a constraint that exists',
    'constraint_exists',
    { type: 'addConstraint', ...at, constraint: { name: 'positive', type: 'unique', columns: ['note'] } },
  ],
  [
    'a second primary key',
    'constraint_invalid',
    { type: 'addConstraint', ...at, constraint: { name: 'pk', type: 'primaryKey', columns: ['note'] } },
    /already has a primary key/,
  ],
  [
    'a foreign key to an unknown table',
    'collection_unknown',
    {
      type: 'addConstraint',
      ...at,
      constraint: { name: 'fk', type: 'foreignKey', columns: ['user'], references: { table: 'usrs', columns: ['id'] } },
    },
    /"users"/,
  ],
  [
    'a foreign key to a field that is not unique',
    'constraint_invalid',
    {
      type: 'addConstraint',
      ...at,
      constraint: {
        name: 'fk',
        type: 'foreignKey',
        columns: ['user'],
        references: { table: 'users', columns: ['age'] },
      },
    },
    /unique/,
  ],
  [
    'a foreign key with unequal numbers of columns',
    'constraint_invalid',
    {
      type: 'addConstraint',
      ...at,
      constraint: {
        name: 'fk',
        type: 'foreignKey',
        columns: ['user', 'id'],
        references: { table: 'users', columns: ['id'] },
      },
    },
  ],
  [
    'an unknown action',
    'constraint_invalid',
    {
      type: 'addConstraint',
      ...at,
      constraint: {
        name: 'fk',
        type: 'foreignKey',
        columns: ['user'],
        references: { table: 'users', columns: ['id'], onDelete: 'EXPLODE' as 'CASCADE' },
      },
    },
    /CASCADE/,
  ],
];

for (const [name, code, operation, words] of OPERATIONS) {
  test(`rejected: ${name}`, () => {
    const draft = new Map(shop);
    const error = assertRejected(code, () => applyInPlace(draft, operation));
    assert.deepEqual(draft, shop, 'nothing was changed');
    if (words) assert.match([error.message, error.why, ...error.next].join('\n'), words);
  });
}

const FIELDS: readonly [
  name: string,
  code: ErrorCode,
  definition: object | string,
  path: readonly (string | number)[],
][] = [
  ['an unknown type', 'field_type_unknown', 'integr', ['type']],
  ['no type', 'field_invalid', { required: true }, ['type']],
  ['an unknown property', 'field_invalid', { type: 'text', requird: true }, ['requird']],
  ['a hostile property', 'field_invalid', JSON.parse('{"type":"text","__proto__":true}'), ['__proto__']],
  ['a property of the wrong type', 'field_invalid', { type: 'text', required: 'yes' }, ['required']],
  ['required and nullable', 'field_invalid', { type: 'text', required: true, nullable: true }, ['nullable']],
  ['a primary key that may be null', 'field_invalid', { type: 'text', primaryKey: true, nullable: true }, ['nullable']],
  ['a length of a number', 'field_invalid', { type: 'integer', length: 4 }, ['length']],
  ['a length of zero', 'field_invalid', { type: 'string', length: 0 }, ['length']],
  ['a precision of a float', 'field_invalid', { type: 'float', precision: 4 }, ['precision']],
  ['a scale over the precision', 'field_invalid', { type: 'decimal', precision: 4, scale: 5 }, ['scale']],
  ['a scale alone', 'field_invalid', { type: 'decimal', scale: 5 }, ['scale']],
  ['a scale that is not an integer', 'field_invalid', { type: 'decimal', precision: 5, scale: 0.5 }, ['scale']],
  ['an enum without values', 'field_invalid', { type: 'enum' }, ['enumValues']],
  ['an enum with no values', 'field_invalid', { type: 'enum', enumValues: [] }, ['enumValues']],
  ['an enum value twice', 'field_invalid', { type: 'enum', enumValues: ['a', 'b', 'a'] }, ['enumValues', 2]],
  ['values of a string', 'field_invalid', { type: 'string', enumValues: ['a'] }, ['enumValues']],
  ['unknown items', 'field_type_unknown', { type: 'array', items: 'strng' }, ['items']],
  ['arrays in arrays', 'field_invalid', { type: 'array', items: 'array' }, ['items']],
  ['items of a string', 'field_invalid', { type: 'string', items: 'text' }, ['items']],
  ['a generated boolean', 'field_invalid', { type: 'boolean', autoGenerate: true }, ['autoGenerate']],
  ['a generated default', 'field_invalid', { type: 'uuid', autoGenerate: true, default: 'x' }, ['default']],
  ['a string for an integer', 'field_invalid', { type: 'integer', default: '5' }, ['default']],
  ['a fraction for an integer', 'field_invalid', { type: 'integer', default: 5.5 }, ['default']],
  ['an integer out of range', 'field_invalid', { type: 'smallint', default: 40000 }, ['default']],
  ['a bigint out of range', 'field_invalid', { type: 'bigint', default: '9223372036854775808' }, ['default']],
  ['a number for a boolean', 'field_invalid', { type: 'boolean', default: 1 }, ['default']],
  ['now for a string that is too short', 'field_invalid', { type: 'string', length: 2, default: 'now' }, ['default']],
  ['an invalid date', 'field_invalid', { type: 'date', default: 'tomorrow' }, ['default']],
  [
    'a default that is not a valid value',
    'field_invalid',
    { type: 'enum', enumValues: ['a'], default: 'b' },
    ['default'],
  ],
  ['an item that does not fit', 'field_invalid', { type: 'array', items: 'integer', default: [1, 'x'] }, ['default']],
  ['an empty expression', 'field_invalid', { type: 'integer', default: { $expression: ' ' } }, ['default']],
  ['bytes that are not base64', 'field_invalid', { type: 'blob', default: '\\x48' }, ['default']],
  ['too many bytes', 'field_invalid', { type: 'binary', length: 4, default: 'SGVsbG8=' }, ['default']],
];

for (const [name, code, definition, path] of FIELDS) {
  test(`rejected: a field with ${name}`, () => {
    const error = assertRejected(code, () => defineField('f', definition as FieldDefinition, 't'));
    assert.match(error.message, /"t\.f"/);
    assert.deepEqual(error.details.path, path);
  });
}

test('a field is normalized', () => {
  const define = (definition: FieldDefinition | string) => {
    const { name: _, ...field } = defineField('f', definition, 't');
    return field;
  };
  assert.deepEqual(define('String'), { type: 'string' });
  assert.deepEqual(define({ type: 'INTEGER', primaryKey: true, unique: false }), {
    type: 'integer',
    primaryKey: true,
    required: true,
  });
  assert.deepEqual(define({ type: 'text', nullable: false }), { type: 'text', required: true });
  assert.deepEqual(define({ type: 'text', nullable: true, required: false, default: null }), { type: 'text' });
  assert.deepEqual(define({ type: 'array' }), { type: 'array', items: 'string' });
  assert.deepEqual(define({ type: 'bigint', default: '12' }), { type: 'bigint', default: 12 });
  assert.deepEqual(define({ type: 'bigint', default: '9007199254740993' }), {
    type: 'bigint',
    default: '9007199254740993',
  });
  assert.deepEqual(define({ type: 'double', default: -0 }), { type: 'double', default: 0 });
  assert.deepEqual(define({ type: 'timestamp', default: 'now' }), { type: 'timestamp', default: 'now' });
  assert.deepEqual(define({ type: 'json', default: { $expression: 'f()' } }), {
    type: 'json',
    default: { $expression: 'f()' },
  });
});

test('an index is normalized', () => {
  const index = defineIndex({
    collection: 't',
    index: 'i',
    columns: [
      { name: 'a', order: 'ASC' },
      { name: 'b', order: 'Desc' },
    ],
    unique: false,
  });
  assert.deepEqual(index, { name: 'i', columns: [{ name: 'a' }, { name: 'b', order: 'desc' }] });
});

test('timestamps adds two fields and is not stored as an option', () => {
  const model = applyAll([
    { type: 'createCollection', name: 't', fields: [], options: { timestamps: true, sqlOptions: { unlogged: true } } },
  ]);
  const { fields, options } = model.get('t') as Collection;
  assert.deepEqual([...fields.keys()], ['createdAt', 'updatedAt']);
  assert.deepEqual(fields.get('createdAt'), { name: 'createdAt', type: 'timestamp', required: true, default: 'now' });
  assert.deepEqual(options, { sqlOptions: { unlogged: true } });
});

test('a temporary table is not in the model, and ifNotExists does not change an equal table', () => {
  const [users] = SHOP;
  assert.ok(users?.type === 'createCollection');
  const temporary = apply(shop, { ...users, name: 'session', options: { sqlOptions: { temporary: true } } });
  assert.deepEqual(temporary, shop);
  assert.deepEqual(apply(shop, { ...users, options: { sqlOptions: { ifNotExists: true } } }), shop);
});

test('the dependents of a field or a table can be dropped first', () => {
  const drops = dependents(shop, 'orders', 'total');
  assert.deepEqual(drops, [
    { type: 'dropConstraint', collection: 'orders', constraint: 'positive' },
    { type: 'dropIndex', collection: 'orders', index: 'orders_total' },
  ]);
  const after = applyAll([...drops, { type: 'dropField', collection: 'orders', field: 'total' }], shop);
  assert.ok(!after.get('orders')?.fields.has('total'));
  const [pointing] = dependentsOfCollection(shop, 'users');
  assert.deepEqual(pointing, { type: 'dropConstraint', collection: 'orders', constraint: 'orders_user' });
  assert.deepEqual(dependents(shop, 'users', 'id'), [pointing]);
});

test('a check without columns reads the fields its expression names', () => {
  assert.deepEqual(shop.get('orders')?.constraints.get('positive')?.columns, ['total']);
});

test('a foreign key is dropped before and added after a change of the key it references', () => {
  const keyed = (name: string): Operation => ({
    type: 'addConstraint',
    collection: 'users',
    constraint: { name, type: 'unique', columns: ['age'] },
  });
  const pointing: Operation = {
    type: 'addConstraint',
    ...at,
    constraint: {
      name: 'by_age',
      type: 'foreignKey',
      columns: ['user'],
      references: { table: 'users', columns: ['age'] },
    },
  };
  const operations = diff(applyAll([...SHOP, keyed('old'), pointing]), applyAll([...SHOP, keyed('new'), pointing]));
  assert.deepEqual(
    operations.map(({ type }) => type),
    ['dropConstraint', 'dropConstraint', 'addConstraint', 'addConstraint'],
  );
});

test('options of a table cannot be changed', () => {
  const with_ = (unlogged: boolean) =>
    applyAll([{ type: 'createCollection', name: 't', fields: [], options: { sqlOptions: { unlogged } } }]);
  assertRejected('options_cannot_change', () => diff(with_(false), with_(true)));
});

test('options follow the rename of a field they name, and prevent dropping it', () => {
  const model = applyAll([
    {
      type: 'createCollection',
      name: 't',
      fields: [{ name: 'a', type: 'text' }],
      options: { cassandraOptions: { partitionKey: ['a'] }, dynamoOptions: { partitionKey: { name: 'a', type: 'S' } } },
    },
  ]);
  const renamed = apply(model, { type: 'renameField', collection: 't', from: 'a', to: 'b' });
  assert.deepEqual(renamed.get('t')?.options, {
    cassandraOptions: { partitionKey: ['b'] },
    dynamoOptions: { partitionKey: { name: 'b', type: 'S' } },
  });
  assertRejected('field_in_use', () => apply(renamed, { type: 'dropField', collection: 't', field: 'b' }));
});

test('data loss is described in words', () => {
  const messages = (operation: Operation) => dataLossWarnings(operation, shop).join();
  assert.match(messages({ type: 'dropCollection', collection: 'orders' }), /Rows of orders cannot be restored/);
  assert.match(messages({ type: 'dropField', ...at, field: 'note' }), /Values of orders\.note/);
  const change = (collection: string, field: string, changes: object) =>
    messages({ type: 'modifyField', collection, field, changes });
  assert.match(change('users', 'email', { length: 50 }), /length 100 to 50/);
  assert.match(change('users', 'mood', { enumValues: ['good'] }), /with bad/);
  assert.match(change('orders', 'total', { scale: 1 }), /decimal\(10, 2\) to decimal\(10, 1\)/);
  assert.match(change('orders', 'note', { type: 'string' }), /text to string/);
  for (const [field, changes] of [
    ['email', { length: 200 }],
    ['email', { type: 'text' }],
    ['email', { unique: false }],
    ['mood', { enumValues: ['good', 'bad', 'ugly'] }],
    ['mood', { type: 'string' }],
    ['age', { type: 'bigint', required: true }],
  ] as const) {
    assert.equal(change('users', field, changes), '', field);
  }
});

test('derived names are deterministic and never cut inside a character', () => {
  assert.equal(derivedName('users', ['email', 'age'], 'idx'), 'users_email_age_idx');
  const long = derivedName('ü'.repeat(40), ['x'], 'key');
  assert.equal(long, derivedName('ü'.repeat(40), ['x'], 'key'));
  assert.ok(Buffer.byteLength(long) <= 63 && /^ü+_[0-9a-f]{8}$/.test(long), long);
  assert.notEqual(long, derivedName('ü'.repeat(40), ['y'], 'key'));
  assert.equal(Buffer.byteLength(derivedName('a'.repeat(80), [], 'pkey')), 63);
});

test('any external value can be validated as an operation', () => {
  for (const operation of SHOP) assert.deepEqual(operationProblems(operation), []);
  const deep = JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`);
  for (const value of [null, undefined, 5, 'x', [], () => 0, { type: 'nope' }, { type: '__proto__' }, deep]) {
    assert.ok(operationProblems(value).length > 0);
  }
  const messages = (value: unknown) => operationProblems(value).join('\n');
  assert.match(
    messages({ type: 'createCollection', name: 't', fields: [{ type: 'text' }] }),
    /fields\[0\]\.name is missing/,
  );
  assert.match(
    messages({ type: 'dropField', collection: 't', field: 'f', cascade: true }),
    /cascade is not a known property/,
  );
  assert.match(
    messages({ type: 'modifyField', collection: 't', field: 'f', changes: { lenght: 1 } }),
    /changes\.lenght .*"length"/,
  );
  assert.match(
    messages({ type: 'addConstraint', collection: 't', constraint: { type: 'unique', columns: 'a' } }),
    /constraint\.columns is string/,
  );
  assert.match(
    messages({ type: 'addConstraint', collection: 't', constraint: { type: 'unique', columns: [] } }),
    /constraint\.name is missing/,
  );
  assert.match(
    messages({ type: 'createCollection', name: 't', fields: [], options: { sqlOptons: {} } }),
    /"sqlOptions"/,
  );
});

test('applying operations takes linear time with ten thousand tables', () => {
  const operations: Operation[] = [];
  for (let n = 0; n < 10_000; n++) {
    operations.push({
      type: 'createCollection',
      name: `t${n}`,
      fields: [{ name: 'id', type: 'integer', primaryKey: true }],
    });
    if (n === 0) continue;
    const references = { table: `t${n - 1}`, columns: ['id'] };
    operations.push({
      type: 'addConstraint',
      collection: `t${n}`,
      constraint: { name: 'fk', type: 'foreignKey', columns: ['id'], references },
    });
  }
  for (let n = 0; n < 10_000; n++) operations.push({ type: 'renameCollection', collection: `t${n}`, to: `r${n}` });
  for (let n = 0; n < 10_000; n++) operations.push({ type: 'dropCollection', collection: `r${n}`, cascade: true });
  // Quadratic time would exceed the time limit of the test.
  assert.equal(applyAll(operations).size, 0);
});

test('an unknown name is answered with at most twelve known ones, and the number of others', () => {
  const why = (count: number) =>
    unknownError(
      'index',
      'x',
      Array.from({ length: count }, (_, n) => `i${n}`),
    ).why;
  assert.equal(why(0), 'Known: none.');
  assert.match(why(12) ?? '', / i11\.$/);
  assert.match(why(13) ?? '', / i11, and 1 more\.$/);
});
