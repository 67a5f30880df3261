import * as assert from 'node:assert/strict';
import fc from 'fast-check';
import { arrangeObjects } from '../core/migration/arrange-objects.ts';
import {
  applyToObjects,
  type DatabaseObject,
  invertObjectOperation,
  isObjectOperation,
  type ObjectModel,
  objectKey,
  objectModel,
} from '../core/schema/database-object.ts';
import type { MigrationOperation, ObjectOperation, Operation } from '../core/schema/operation.ts';
import { objects as rules } from '../plugins/dialects/postgresql/compile/objects.ts';
import { test } from './kit/test.ts';

/** Whatever changes: the operations lead from the objects before to those after and back, and nothing is without what it needs. */

const COUNT = 7;
const name = (index: number): string => `v${index}`;

/** Views that read earlier views or the table `t`, each with one of two texts. */
const views = fc.array(
  fc.record({ exists: fc.boolean(), reads: fc.array(fc.nat(COUNT - 1), { maxLength: 3 }), variant: fc.boolean() }),
  { minLength: COUNT, maxLength: COUNT },
);
type Views = typeof views extends fc.Arbitrary<infer T> ? T : never;

function modelOf(list: Views): ObjectModel {
  const present = new Set(list.flatMap(({ exists }, index) => (exists ? [index] : [])));
  return objectModel(
    [...present].map((index): DatabaseObject => {
      const { reads = [], variant } = list[index] ?? {};
      const sources = [...new Set(reads)].filter((other) => other < index && present.has(other)).map(name);
      const columns = variant ? 'id' : 'id, a';
      return {
        kind: 'view',
        name: name(index),
        definition: `CREATE VIEW ${name(index)} AS SELECT ${columns} FROM ${['t', ...sources].join(', ')}`,
      };
    }),
  );
}

const readsOf = ({ definition }: DatabaseObject, all: ObjectModel): readonly DatabaseObject[] =>
  [...all.values()].filter((other) => new RegExp(`\\b${other.name}\\b`).test(definition.replace(/.* FROM /, '')));

/** Applies the operations as the engine would: nothing is created before, or dropped while, another view reads it. */
function run(operations: readonly MigrationOperation[], from: ObjectModel): Map<string, DatabaseObject> {
  const present = new Map(from);
  for (const operation of operations) {
    if (!isObjectOperation(operation)) {
      for (const view of present.values()) assert.doesNotMatch(view.definition, /\ba\b.* FROM/, view.name);
      continue;
    }
    const key = objectKey(operation);
    const known = present.get(key);
    if (operation.type === 'createObject') assert.equal(known, undefined, key);
    else assert.equal(known?.definition, operation.was, key);
    if (operation.type === 'dropObject') {
      for (const other of present.values()) {
        const isReader = known !== undefined && other !== known && readsOf(other, new Map([[key, known]])).length > 0;
        assert.ok(!isReader, `${other.name} reads ${key}, which is dropped`);
      }
    }
    applyToObjects(present, operation);
    const made = present.get(key);
    const names = made?.definition.replace(/.* FROM /, '').match(/v\d/g) ?? [];
    for (const one of names) assert.ok(present.has(`view/${one}`), `${key} reads ${one}, which does not exist`);
  }
  return present;
}

const CHANGE: Operation = { type: 'modifyField', collection: 't', field: 'a', changes: { type: 'bigint' } };

test('objects are dropped and created in an order in which each has what it reads, and so are the rollbacks', () => {
  fc.assert(
    fc.property(views, views, fc.boolean(), (first, second, changesTable) => {
      const [before, after] = [modelOf(first), modelOf(second)];
      const operations = arrangeObjects(rules, changesTable ? [CHANGE] : [], { before, after });
      assert.deepEqual(run(operations, before), new Map(after));
      const back = [...operations]
        .reverse()
        .map((one): MigrationOperation => (isObjectOperation(one) ? invertObjectOperation(one) : one));
      assert.deepEqual(run(back, after), new Map(before));
      const touched = new Set(operations.filter(isObjectOperation).map(objectKey));
      if (
        !changesTable &&
        before.size > 0 &&
        [...before.keys()].every((key) => after.get(key)?.definition === before.get(key)?.definition)
      )
        assert.ok(
          [...touched].every((key) => !before.has(key)),
          'what does not change is left alone',
        );
    }),
    { numRuns: 2000 },
  );
});

test('what tables use comes before them, and what reads them after', () => {
  const object = (kind: string, called: string, definition: string): DatabaseObject => ({
    kind,
    name: called,
    definition,
  });
  const after = objectModel([
    object('view', 'all_users', 'CREATE VIEW all_users AS SELECT id FROM users'),
    object('type', 'mood', "CREATE TYPE mood AS ENUM ('a')"),
    object('function', 'owner', 'CREATE FUNCTION owner(u users) RETURNS int LANGUAGE sql RETURN 1'),
    object('function', 'made', 'CREATE FUNCTION made() RETURNS mood LANGUAGE sql RETURN NULL'),
    object('extension', 'citext', 'CREATE EXTENSION citext'),
  ]);
  const create: Operation = {
    type: 'createCollection',
    name: 'users',
    fields: [
      { name: 'id', type: 'integer', primaryKey: true },
      { name: 'mood', type: 'text', native: 'mood', default: { $expression: 'made()' } },
    ],
  };
  const keys = (list: readonly MigrationOperation[]) =>
    list.map((one) => (isObjectOperation(one) ? objectKey(one satisfies ObjectOperation) : one.type));
  const up = arrangeObjects(rules, [create], { before: new Map(), after });
  assert.deepEqual(keys(up), [
    'extension/citext',
    'type/mood',
    'function/made',
    'createCollection',
    'function/owner',
    'view/all_users',
  ]);
  const drop: Operation = { type: 'dropCollection', collection: 'users' };
  const down = arrangeObjects(rules, [drop], { before: after, after: new Map() });
  assert.deepEqual(keys(down), [
    'view/all_users',
    'function/owner',
    'dropCollection',
    'function/made',
    'type/mood',
    'extension/citext',
  ]);
});

test('a name with its schema is not that of another one', () => {
  const object = (kind: string, called: string, definition: string): DatabaseObject => ({
    kind,
    name: called,
    definition,
  });
  const users = (table: string): Operation => ({
    type: 'createCollection',
    name: table,
    fields: [{ name: 'email', type: 'text' }],
  });
  const all = [
    object('schema', 'billing', 'CREATE SCHEMA billing'),
    object('schema', 'User Data', 'CREATE SCHEMA "User Data"'),
    object(
      'view',
      'overview',
      'CREATE VIEW overview AS SELECT u.email FROM users u JOIN billing.users b USING (email)',
    ),
    object('view', 'billing.overview', 'CREATE VIEW billing.overview AS SELECT o.email FROM public.overview o'),
    object('view', 'User Data.emails', 'CREATE VIEW "User Data".emails AS SELECT email FROM "User Data"."Users"'),
    object('function', 'g', 'CREATE FUNCTION g() RETURNS text LANGUAGE sql RETURN billing.g()'),
    object('function', 'billing.g', "CREATE FUNCTION billing.g() RETURNS text LANGUAGE sql RETURN 'x'"),
  ];
  const after = objectModel(all);
  const keys = (operations: readonly MigrationOperation[]): readonly string[] =>
    operations.map((one) =>
      isObjectOperation(one)
        ? objectKey(one)
        : `${one.type} ${one.type === 'createCollection' ? one.name : one.type === 'raw' ? '' : one.collection}`,
    );
  const tables = ['billing', 'users', 'billing.users', 'User Data.Users'];
  const made = keys(arrangeObjects(rules, tables.map(users), { before: new Map(), after }));
  const isInOrder = (...names: readonly string[]): void => {
    const at = names.map((one) => made.indexOf(one));
    assert.ok(!at.includes(-1), names.join());
    assert.deepEqual(
      [...at].sort((a, b) => a - b),
      at,
      made.join('\n'),
    );
  };
  isInOrder('schema/billing', 'createCollection billing', 'view/overview', 'view/billing.overview');
  isInOrder('schema/User Data', 'createCollection User Data.Users', 'view/User Data.emails');
  isInOrder('function/billing.g', 'function/g');
  const dropped = keys(
    arrangeObjects(
      rules,
      tables.map((collection) => ({ type: 'dropCollection', collection }) as const),
      { before: after, after: new Map() },
    ),
  );
  assert.ok(dropped.indexOf('schema/User Data') > dropped.indexOf('dropCollection User Data.Users'));
  assert.ok(dropped.indexOf('view/billing.overview') < dropped.indexOf('view/overview'));
  const changed = (collection: string): readonly string[] =>
    keys(
      arrangeObjects(rules, [{ type: 'modifyField', collection, field: 'email', changes: { type: 'string' } }], {
        before: after,
        after,
      }),
    );
  assert.ok(changed('users').includes('view/overview'));
  assert.ok(!changed('users').includes('view/User Data.emails'));
  assert.ok(changed('billing.users').includes('view/billing.overview'));
  assert.deepEqual(changed('billing'), ['modifyField billing']);
  assert.deepEqual(changed('User Data.Users'), [
    'view/User Data.emails',
    'modifyField User Data.Users',
    'view/User Data.emails',
  ]);
});

test('what new tables need and what needs other new tables is between them, and a table named like a word of it is not waited for', () => {
  const object = (kind: string, called: string, definition: string): DatabaseObject => ({
    kind,
    name: called,
    definition,
  });
  const table = (called: string, native: string): Operation => ({
    type: 'createCollection',
    name: called,
    fields: [{ name: 'id', type: 'text', native }],
  });
  const after = objectModel([
    object('domain', 'positive', 'CREATE DOMAIN positive AS integer'),
    object('view', 'names', 'CREATE VIEW names AS SELECT id FROM people'),
    object('function', 'seven', 'CREATE FUNCTION seven(names) RETURNS integer LANGUAGE sql RETURN 7'),
    object('view', 'status', 'CREATE VIEW status AS SELECT id FROM orders'),
  ]);
  const operations = [
    table('sums', 'positive'),
    table('domain', 'positive'),
    table('orders', 'text GENERATED ALWAYS AS (lower(status)) STORED'),
    table('uses', 'integer DEFAULT seven(NULL)'),
    table('people', 'text'),
  ];
  const up = arrangeObjects(rules, operations, { before: new Map(), after });
  assert.deepEqual(
    up.map((one) => ('name' in one ? one.name : one.type)),
    ['positive', 'sums', 'domain', 'orders', 'people', 'names', 'seven', 'uses', 'status'],
  );
  const added: Operation = { type: 'addField', collection: 'people', field: { name: 'status', type: 'text' } };
  const changed = arrangeObjects(rules, [added, ...operations.slice(3, 4)], { before: new Map(), after });
  assert.deepEqual(changed.map((one) => ('name' in one ? one.name : one.type)).slice(-3), ['names', 'seven', 'status']);
});
