import * as assert from 'node:assert/strict';
import fc from 'fast-check';
import type { ErrorCode } from '../core/error-codes.ts';
import { isSvcError } from '../core/errors.ts';
import { applyAll } from '../core/schema/apply.ts';
import type { Declaration } from '../core/schema/declaration/declaration.ts';
import { resolveDeclaration } from '../core/schema/declaration/resolve-declaration.ts';
import { diff } from '../core/schema/diff.ts';
import type { SchemaModel } from '../core/schema/model.ts';
import { NO_RENAMES, orderedRenames } from '../core/schema/rename/renames.ts';
import { undecidedRenames } from '../core/schema/rename/undecided.ts';
import { checkProperty } from './kit/schema-laws.ts';
import { test } from './kit/test.ts';
import { HOSTILE_NAMES, PLAIN_NAMES } from './suites/random-schema.ts';

const SHOP = {
  tables: {
    users: {
      id: { type: 'Integer', primaryKey: true, autoGenerate: true },
      email: { type: 'String', unique: true },
      age: 'integer',
    },
    orders: {
      id: { type: 'uuid', primaryKey: true, autoGenerate: true },
      user: { type: 'integer', references: { table: 'users', column: 'id', onDelete: 'cascade' } },
      total: { type: 'decimal', precision: 10, scale: 2 },
    },
    lines: { order: { type: 'uuid' }, position: 'integer' },
  },
  indexes: {
    orders: [{ columns: ['user', { name: 'total', order: 'desc' }] }, { name: 'by_total', columns: ['total'] }],
  },
  constraints: {
    orders: [{ type: 'check', expression: 'total >= 0' }],
    lines: [{ type: 'primaryKey', columns: ['order', 'position'] }],
  },
  options: { users: { timestamps: true } },
} as const satisfies Declaration;

/** A migration as `generate` would write it. */
function generated(declaration: Declaration, previous: SchemaModel): readonly string[] {
  const { model, renames, ambiguous } = resolveDeclaration(declaration, previous);
  assert.deepEqual(ambiguous, []);
  const operations = diff(previous, model, renames);
  assert.deepEqual(applyAll(operations, previous), model);
  return operations.map(({ type }) => type);
}

test('a derived name still used by an index of a renamed table or field gets a number', () => {
  const table = { id: { type: 'integer', primaryKey: true }, n: 'integer', m: { type: 'integer' } } as const;
  const indexed = { columns: ['n'] };
  const key = { type: 'unique', columns: ['n'] } as const;
  const first = resolveDeclaration({
    tables: { a: table },
    indexes: { a: [indexed] },
    constraints: { a: [key] },
  }).model;
  const renamed = resolveDeclaration(
    {
      tables: { a: table, b: table },
      indexes: { a: [indexed], b: [indexed] },
      constraints: { a: [key], b: [key] },
    },
    first,
    { renames: [{ kind: 'collection', collection: 'b', from: 'a', to: 'b' }], drops: new Set() },
  );
  assert.deepEqual([...(renamed.model.get('b')?.indexes.keys() ?? [])], ['a_n_idx']);
  assert.deepEqual([...(renamed.model.get('a')?.indexes.keys() ?? [])], ['a_n_2_idx']);
  assert.deepEqual([...(renamed.model.get('a')?.constraints.keys() ?? [])], ['a_n_2_key']);
  const field = resolveDeclaration(
    {
      tables: { a: { id: table.id, n: 'integer', o: 'integer' } },
      indexes: { a: [indexed, { columns: ['o'] }] },
    },
    first,
    { renames: [{ kind: 'field', collection: 'a', from: 'n', to: 'o' }], drops: new Set() },
  );
  assert.deepEqual([...(field.model.get('a')?.indexes.keys() ?? [])], ['a_n_2_idx', 'a_n_idx']);
});

test('a schema file in normal form', () => {
  const { model, renames } = resolveDeclaration(SHOP);
  assert.deepEqual(renames, NO_RENAMES);
  assert.deepEqual([...(model.get('users')?.fields.keys() ?? [])], ['id', 'email', 'age', 'createdAt', 'updatedAt']);
  assert.deepEqual([...(model.get('orders')?.indexes.keys() ?? [])], ['orders_user_total_idx', 'by_total']);
  assert.deepEqual(
    [...(model.get('orders')?.constraints.values() ?? [])],
    [
      { name: 'orders_total_check', type: 'check', columns: ['total'], expression: 'total >= 0' },
      {
        name: 'orders_user_fkey',
        type: 'foreignKey',
        columns: ['user'],
        references: { table: 'users', columns: ['id'], onDelete: 'CASCADE' },
      },
    ],
  );
  assert.deepEqual(model.get('lines')?.fields.get('position'), { name: 'position', type: 'integer', required: true });
  assert.ok(model.get('lines')?.constraints.has('lines_pkey'));
  assert.deepEqual(generated(SHOP, model), []);
});

test('a renamed table keeps the names of its indexes and constraints', () => {
  const before = resolveDeclaration(SHOP).model;
  const { users: people, ...tables } = SHOP.tables;
  const renamed: Declaration = {
    ...SHOP,
    tables: {
      ...tables,
      people,
      orders: {
        ...tables.orders,
        user: { type: 'integer', references: { table: 'people', column: 'id', onDelete: 'cascade' } },
      },
    },
    options: { people: { timestamps: true, renamedFrom: 'users' } },
  };
  assert.deepEqual(generated(renamed, before), ['renameCollection']);
  const after = resolveDeclaration(renamed, before).model;
  assert.deepEqual(generated(renamed, after), [], 'the second run finds nothing to do');
});

test('indexes and foreign keys follow a renamed field', () => {
  const before = resolveDeclaration({ ...SHOP, constraints: { lines: SHOP.constraints.lines } }).model;
  const { user, ...orders } = SHOP.tables.orders;
  const renamed: Declaration = {
    ...SHOP,
    tables: { ...SHOP.tables, orders: { ...orders, customer: { ...user, renamedFrom: 'user' } } },
    indexes: {
      orders: [{ columns: ['customer', { name: 'total', order: 'desc' }] }, { name: 'by_total', columns: ['total'] }],
    },
    constraints: { lines: SHOP.constraints.lines },
  };
  assert.deepEqual(generated(renamed, before), ['renameField']);
  assert.deepEqual(generated(renamed, resolveDeclaration(renamed, before).model), []);
});

test('a chain of renames is applied once', () => {
  const before = resolveDeclaration({ tables: { t: { a: { type: 'integer', primaryKey: true }, b: 'text' } } }).model;
  const chain: Declaration = {
    tables: {
      t: { b: { type: 'integer', primaryKey: true, renamedFrom: 'a' }, c: { type: 'text', renamedFrom: 'b' } },
    },
  };
  assert.deepEqual(generated(chain, before), ['renameField', 'renameField']);
  assert.deepEqual(generated(chain, resolveDeclaration(chain, before).model), []);
});

test('an old renamedFrom is ignored, a current one is applied, and one that may be either is ambiguous', () => {
  const key = { type: 'integer', primaryKey: true } as const;
  const from = (renamedFrom: string) => ({ type: 'text', renamedFrom }) as const;
  const field = (name: string, to: string, ambiguity: 'newNameExists' | 'oldNameDeclared') => [
    { kind: 'field', collection: 't', from: name, to, ambiguity },
  ];
  const cases: [
    what: string,
    before: Declaration['tables'][string],
    after: Declaration['tables'][string],
    renames: object,
    ambiguous: object,
  ][] = [
    ['done', { y: 'text' }, { y: from('x') }, {}, []],
    ['both stay', { x: 'text', y: 'text' }, { x: 'text', y: from('x') }, {}, []],
    [
      'new next to one that remains',
      { x: 'text' },
      { x: 'text', y: from('x') },
      {},
      field('x', 'y', 'oldNameDeclared'),
    ],
    [
      'removed next to one that remains',
      { x: 'text', y: 'text' },
      { y: from('x') },
      {},
      field('x', 'y', 'newNameExists'),
    ],
    ['one of two claims is obsolete', { x: 'text', y: 'text' }, { y: from('x'), z: from('x') }, { x: 'z' }, []],
    ['a chain', { x: 'text', y: 'text' }, { y: from('x'), z: from('y') }, { x: 'y', y: 'z' }, []],
    [
      'a chain whose first name remains',
      { x: 'text', y: 'text' },
      { x: 'text', y: from('x'), z: from('y') },
      {},
      field('y', 'z', 'oldNameDeclared'),
    ],
  ];
  for (const [what, before, after, renames, ambiguous] of cases) {
    const previous = resolveDeclaration({ tables: { t: { id: key, ...before } } }).model;
    const declared = resolveDeclaration({ tables: { t: { id: key, ...after } } }, previous);
    assert.deepEqual(Object.fromEntries(declared.renames.fields.get('t') ?? []), renames, what);
    assert.deepEqual(declared.ambiguous, ambiguous, what);
  }
  const tables = resolveDeclaration({ tables: { a: { id: key }, b: { id: key } } }).model;
  assert.deepEqual(
    resolveDeclaration({ tables: { b: { id: key } }, options: { b: { renamedFrom: 'a' } } }, tables).ambiguous,
    [{ kind: 'collection', collection: 'b', from: 'a', to: 'b', ambiguity: 'newNameExists' }],
  );
});

test('a removed and an added name that look like a rename are undecided', () => {
  const before = resolveDeclaration(SHOP).model;
  const { age: _, ...users } = SHOP.tables.users;
  const { lines, ...tables } = SHOP.tables;
  const target = resolveDeclaration({
    tables: { ...tables, users: { ...users, years: 'integer', name: 'text' }, items: lines },
    constraints: { items: SHOP.constraints.lines },
    options: SHOP.options,
  }).model;
  assert.deepEqual(undecidedRenames(before, target, NO_RENAMES), [
    { kind: 'field', collection: 'users', from: 'age', to: 'years' },
    { kind: 'collection', collection: 'items', from: 'lines', to: 'items' },
  ]);
  const decided = {
    collections: new Map([['lines', 'items']]),
    fields: new Map([['users', new Map([['age', 'years']])]]),
  };
  assert.deepEqual(undecidedRenames(before, target, decided), []);
  assert.deepEqual(undecidedRenames(before, before, NO_RENAMES), []);
});

const REFUSED: readonly [name: string, code: ErrorCode, change: object, path: readonly (string | number)[]][] = [
  ['an unknown type', 'field_type_unknown', { tables: { t: { id: 'integr' } } }, ['tables', 't', 'id', 'type']],
  [
    'an unknown property',
    'field_invalid',
    { tables: { t: { id: { type: 'text', lenght: 3 } } } },
    ['tables', 't', 'id', 'lenght'],
  ],
  ['a field without a valid definition', 'field_invalid', { tables: { t: { id: 5 } } }, ['tables', 't', 'id']],
  ['a table that is not an object', 'schema_invalid', { tables: { t: [] } }, ['tables', 't']],
  [
    'a table of svc',
    'name_invalid',
    { tables: { _svc_t: { id: { type: 'text', primaryKey: true } } } },
    ['tables', '_svc_t'],
  ],
  ['an unknown part', 'schema_invalid', { tables: {}, indices: {} }, ['indices']],
  ['indexes of an unknown table', 'collection_unknown', { ...SHOP, indexes: { order: [] } }, ['indexes', 'order']],
  [
    'options of an unknown table',
    'collection_unknown',
    { ...SHOP, options: { toString: {} } },
    ['options', 'toString'],
  ],
  [
    'unknown options',
    'schema_invalid',
    { ...SHOP, options: { users: { sqlOption: {} } } },
    ['options', 'users', 'sqlOption'],
  ],
  [
    'a temporary table',
    'schema_invalid',
    { ...SHOP, options: { users: { sqlOptions: { temporary: true } } } },
    ['options', 'users', 'sqlOptions', 'temporary'],
  ],
  [
    'an index over an unknown field',
    'field_unknown',
    { ...SHOP, indexes: { users: [{ columns: ['mail'] }] } },
    ['indexes', 'users', 0],
  ],
  [
    'two indexes of one name',
    'index_exists',
    { ...SHOP, indexes: { users: [{ columns: ['age'] }, { name: 'users_age_idx', columns: ['email'] }] } },
    ['indexes', 'users', 1],
  ],
  [
    'a constraint of an unknown type',
    'schema_invalid',
    { ...SHOP, constraints: { users: [{ type: 'uniqe', columns: ['age'] }] } },
    ['constraints', 'users', 0, 'type'],
  ],
  [
    'a check without columns',
    'constraint_invalid',
    { ...SHOP, constraints: { ...SHOP.constraints, users: [{ type: 'check', expression: '' }] } },
    ['constraints', 'users', 0, 'expression'],
  ],
  [
    'a foreign key to an unknown table',
    'collection_unknown',
    { tables: { t: { id: { type: 'integer', primaryKey: true, references: { table: 'u', column: 'id' } } } } },
    ['tables', 't', 'id', 'references'],
  ],
  [
    'a foreign key to an unknown field',
    'field_unknown',
    { tables: { t: { id: { type: 'integer', primaryKey: true, references: { table: 't', column: 'di' } } } } },
    ['tables', 't', 'id', 'references'],
  ],
  [
    'a foreign key to a field that is not unique',
    'constraint_invalid',
    {
      tables: {
        t: {
          id: { type: 'integer', primaryKey: true },
          up: { type: 'integer', references: { table: 't', column: 'up' } },
        },
      },
    },
    ['tables', 't', 'up', 'references'],
  ],
  [
    'an unknown action',
    'constraint_invalid',
    {
      tables: {
        t: { id: { type: 'integer', primaryKey: true, references: { table: 't', column: 'id', onDelete: 'BOOM' } } },
      },
    },
    ['tables', 't', 'id', 'references', 'onDelete'],
  ],
  [
    'a second primary key',
    'constraint_invalid',
    { ...SHOP, constraints: { ...SHOP.constraints, users: [{ type: 'primaryKey', columns: ['age'] }] } },
    ['constraints', 'users', 0],
  ],
  [
    'a field renamed from itself',
    'schema_invalid',
    { tables: { t: { id: { type: 'text', primaryKey: true, renamedFrom: 'id' } } } },
    ['tables', 't', 'id', 'renamedFrom'],
  ],
  [
    'a table renamed from itself',
    'schema_invalid',
    { tables: { t: { id: { type: 'text', primaryKey: true } } }, options: { t: { renamedFrom: 't' } } },
    ['options', 't', 'renamedFrom'],
  ],
  [
    'two renames from one field',
    'schema_invalid',
    {
      tables: {
        t: {
          id: { type: 'text', primaryKey: true },
          a: { type: 'text', renamedFrom: 'x' },
          b: { type: 'text', renamedFrom: 'x' },
        },
      },
    },
    ['tables', 't', 'b', 'renamedFrom'],
  ],
];

for (const [name, code, declaration, path] of REFUSED) {
  test(`rejected: ${name}`, () => {
    const previous = applyAll([{ type: 'createCollection', name: 't', fields: [{ name: 'x', type: 'text' }] }]);
    try {
      resolveDeclaration(declaration as Declaration, previous);
    } catch (error) {
      assert.ok(isSvcError(error), String(error));
      assert.equal(error.code, code, `${error.message} ${error.why}`);
      assert.deepEqual(error.details.path, path);
      return;
    }
    assert.fail('was not refused');
  });
}

test('renames in any order, with cycles and chains, result in the right names', () => {
  const names: readonly string[] = [...PLAIN_NAMES, ...HOSTILE_NAMES];
  const permuted = fc
    .subarray([...names], { minLength: 1 })
    .chain((from) =>
      fc
        .shuffledSubarray([...names], { minLength: from.length, maxLength: from.length })
        .map((to) => from.map((old, at) => [old, to[at] ?? old] as const)),
    );
  checkProperty(
    fc.property(permuted, (renames) => {
      // New names differ from the remaining ones.
      const staying = names.filter((name) => !renames.some(([from, to]) => from === name || to === name));
      const present = new Map([...staying, ...renames.map(([from]) => from)].map((name) => [name, name]));
      for (const [from, to] of orderedRenames(renames, present.keys())) {
        const origin = present.get(from);
        assert.ok(origin !== undefined && !present.has(to), `${from} to ${to}`);
        present.delete(from);
        present.set(to, origin);
      }
      for (const [from, to] of renames) assert.equal(present.get(to), from);
    }),
    2_000,
  );
});
