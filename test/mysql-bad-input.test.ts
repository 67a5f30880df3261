import * as assert from 'node:assert/strict';
import type { ErrorCode } from '../core/error-codes.ts';
import { migrate } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import type { Target } from '../core/migration/target.ts';
import type { FieldChanges, NamedFieldDefinition, Operation } from '../core/schema/operation.ts';
import { committingEngines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

const id: NamedFieldDefinition = { name: 'id', type: 'integer', primaryKey: true };
const table = (name: string, ...fields: NamedFieldDefinition[]): Operation => ({
  type: 'createCollection',
  name,
  fields: [id, ...fields],
});
const migration = (tag: string, up: readonly Operation[]): Migration => ({ tag, name: 'next', up, down: [] });
const users = migration('20260101_000000_users', [
  table('teams'),
  table(
    'users',
    { name: 'team', type: 'integer' },
    { name: 'word', type: 'string', length: 20 },
    { name: 'mood', type: 'enum', enumValues: ['good', 'bad'] },
  ),
]);

async function everything({ connection }: Target): Promise<object> {
  return {
    model: await connection.introspect(),
    rows: await connection.query('SELECT * FROM users ORDER BY id'),
    history: await connection.query(
      'SELECT tag, seq, status, step, checksum, journal FROM _svc_migrations ORDER BY seq',
    ),
  };
}

interface Bad {
  readonly what: string;
  readonly up: readonly Operation[];
  readonly before?: string;
  readonly code: ErrorCode;
  readonly message: RegExp;
}

const modify = (field: string, changes: FieldChanges): Operation => ({
  type: 'modifyField',
  collection: 'users',
  field,
  changes,
});
const add = (field: NamedFieldDefinition): Operation => ({ type: 'addField', collection: 'users', field });
const foreign = (name: string, columns: string[], to: string, target: string[]): Operation => ({
  type: 'addConstraint',
  collection: 'users',
  constraint: { name, type: 'foreignKey', columns, references: { table: to, columns: target } },
});

/** Each fails before it changes anything, or is rolled back: every statement is atomic. */
const BAD: readonly Bad[] = [
  { what: 'a table that exists', up: [table('users')], code: 'collection_exists', message: /already exists/ },
  {
    what: 'a table that svc did not create',
    before: 'CREATE TABLE theirs (i int)',
    up: [table('theirs')],
    code: 'collection_exists',
    message: /already exists/,
  },
  {
    what: 'a field of another case',
    up: [add({ name: 'TEAM', type: 'integer' })],
    code: 'field_exists',
    message: /already exists/,
  },
  {
    what: 'a required field over rows',
    up: [add({ name: 'n', type: 'timestamp', required: true })],
    code: 'data_violates',
    message: /existing rows/,
  },
  {
    what: 'required over nulls',
    up: [modify('team', { required: true })],
    code: 'data_violates',
    message: /1138|1265/,
  },
  {
    what: 'unique over duplicates',
    up: [modify('team', { unique: true })],
    code: 'data_violates',
    message: /1062|duplicate/i,
  },
  {
    what: 'a unique index over duplicates',
    up: [{ type: 'createIndex', collection: 'users', index: 'u', columns: [{ name: 'team' }], unique: true }],
    code: 'data_violates',
    message: /1062/,
  },
  { what: 'a shorter text', up: [modify('word', { length: 2 })], code: 'data_violates', message: /longer than 2/ },
  {
    what: 'words as numbers',
    up: [modify('word', { type: 'integer' })],
    code: 'data_violates',
    message: /whole numbers/,
  },
  { what: 'words as JSON', up: [modify('word', { type: 'json' })], code: 'data_violates', message: /3140|4025/ },
  {
    what: 'JSON that is not an array',
    up: [modify('team', { type: 'array' })],
    code: 'data_violates',
    message: /3819|4025/,
  },
  {
    what: 'a value of an enum that rows have',
    up: [modify('mood', { enumValues: ['good'] })],
    code: 'data_violates',
    message: /not one of good/,
  },
  {
    what: 'an enum without the values of rows',
    up: [modify('word', { type: 'enum', enumValues: ['1', '2'] })],
    code: 'data_violates',
    message: /not one of 1, 2/,
  },
  {
    what: 'a foreign key over orphaned rows',
    up: [foreign('f', ['team'], 'teams', ['id'])],
    code: 'data_violates',
    message: /1452/,
  },
  {
    what: 'a foreign key of another type',
    up: [
      {
        type: 'addConstraint',
        collection: 'users',
        constraint: {
          name: 'f',
          type: 'foreignKey',
          columns: ['word'],
          references: { table: 'teams', columns: ['id'] },
        },
      },
    ],
    code: 'constraint_invalid',
    message: /./,
  },
  {
    what: 'a check that rows violate',
    up: [
      {
        type: 'addConstraint',
        collection: 'users',
        constraint: { name: 'c', type: 'check', expression: 'team > 100' },
      },
    ],
    code: 'data_violates',
    message: /3819|4025/,
  },
  {
    what: 'a check on an unknown field',
    up: [
      {
        type: 'addConstraint',
        collection: 'users',
        constraint: { name: 'c', type: 'check', expression: 'nope > 1', columns: [] },
      },
    ],
    code: 'field_unknown',
    message: /1054/,
  },
  {
    what: 'a migration without operations',
    up: [],
    code: 'migration_invalid',
    message: /no operations|applied as it is/i,
  },
  {
    what: 'the only field',
    up: [{ type: 'dropField', collection: 'teams', field: 'id' }],
    code: 'not_supported',
    message: /no tables without columns/,
  },
];

for (const engine of committingEngines) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: bad input`, engine.missing);
    continue;
  }
  test(
    `${engine.name}: bad input is rejected with its reason and changes nothing`,
    () =>
      engine.withUrl(async (url) => {
        const adapter = await connectTarget(engine.dialect, url, { allowCopy: true });
        const { connection } = adapter;
        try {
          await migrate(adapter, [definedInCode(users)]);
          await connection.query(
            "INSERT INTO users VALUES (1, 7, 'word', 'good'), (2, 7, 'more', 'bad'), (3, NULL, NULL, NULL)",
          );
          for (const [index, { what, up, before, code, message }] of BAD.entries()) {
            if (before !== undefined) await connection.query(before);
            const was = await everything(adapter);
            const next = migration(`20260202_0000${String(index).padStart(2, '0')}_next`, up);
            const bad = migrate(adapter, [users, next].map(definedInCode), { allowDestructive: true });
            const error = await expectError(bad, code).catch((other) => {
              throw new Error(`${what}: ${other.code} ${other.message} ${other.why ?? ''}`);
            });
            assert.match(`${error.message} ${error.why ?? ''}`, message, `${what}: ${error.message} ${error.why}`);
            assert.match(error.state ?? '', /^(Nothing|None of it took effect)/, what);
            assert.ok(error.next.length > 0, what);
            assert.deepEqual(await everything(adapter), was, what);
          }
        } finally {
          await connection.close();
        }
      }),
    { timeoutMs: 120_000 },
  );
}
