import * as assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { schemaEntry } from '../config/project/schema-file.ts';
import * as executions from '../core/agent/execution-record.ts';
import * as approvals from '../core/approval/schema.ts';
import * as seals from '../core/approval/seal/schema.ts';
import type { Connection, UpdateJob } from '../core/dialect.ts';
import * as plans from '../core/migration/approval-table.ts';
import * as history from '../core/migration/history-table.ts';
import type { AnyRecordDefinition } from '../core/records.ts';
import type { Field } from '../core/schema/model.ts';
import { assertDistinctNames } from '../core/schema/names.ts';
import * as lease from '../plugins/dialects/shared/lease.ts';
import * as definitions from '../plugins/dialects/sql/text-catalog/definitions.ts';
import {
  engineErrors,
  enumCheckName,
  fieldConstraints,
  primaryKeyName,
  readRecordColumn,
  recordTableStatements,
  relationNames,
  uniqueName,
  updateParts,
} from '../plugins/dialects/toolkit.ts';
import { test } from './kit/test.ts';
import { sqlSyntax } from './suites/sql-syntax.ts';

const FIELDS: readonly Field[] = [
  { name: 'id', type: 'integer', primaryKey: true, required: true },
  { name: 'mood', type: 'string' },
];
const job: UpdateJob = {
  table: 'users',
  set: [{ field: 'mood', value: 'calm' }],
  where: [{ field: 'id', operator: 'eq', value: 7 }],
  key: 'job',
  collection: {
    name: 'users',
    fields: new Map(FIELDS.map((field) => [field.name, field])),
    indexes: new Map(),
    constraints: new Map(),
    options: {},
  },
};
const syntax = {
  quoteIdentifier: (name: string) => `"${name}"`,
  typedLiteral: (value: unknown) => (typeof value === 'string' ? `'${value}'` : String(value)),
  now: () => 'now()',
  concat: () => "''",
};

test('the condition of the rows that an update changes contains the condition of its rows', () => {
  const { matching, changing } = updateParts(job, syntax);
  assert.equal(matching, '"id" = 7');
  assert.equal(changing, `"id" = 7 AND ("mood" IS DISTINCT FROM 'calm')`);
});

test('without a condition, or a value to compare, the conditions are those that are left', () => {
  assert.deepEqual(
    [
      { ...job, where: [] },
      { ...job, set: [{ field: 'mood', now: true } as const] },
    ].map((one) => updateParts(one, syntax).changing),
    [`("mood" IS DISTINCT FROM 'calm')`, '"id" = 7'],
  );
  assert.equal(updateParts({ ...job, where: [], set: [] }, syntax).changing, 'true');
});

test('an error of the engine is recognized before and after it is converted', () => {
  const errors = engineErrors({
    engine: 'Abacus',
    messages: { collection_unknown: /^no such table/ },
    duplicate: /^bead taken/,
  });
  for (const convert of [(error: Error) => error, errors.toSvcError]) {
    assert.equal(errors.isMissing(convert(new Error('no such table: beads'))), true);
    assert.equal(errors.isDuplicate(convert(new Error('bead taken'))), true);
    assert.equal(errors.isMissing(convert(new Error('bead taken'))), false);
    assert.equal(errors.isDuplicate(convert(new Error('no such table: beads'))), false);
  }
});

test('JSON that a driver returns as text is parsed', () => {
  assert.deepEqual(readRecordColumn('{"a":[1]}', { type: 'json' }), { a: [1] });
  assert.deepEqual(readRecordColumn({ a: 1 }, { type: 'json' }), { a: 1 });
  assert.equal(readRecordColumn(null, { type: 'json' }), null);
});

const SHORT = { max: 31, unit: 'bytes' } as const;
const LONG_TABLE = 'customer_subscriptions';

test('names that svc derives fit the names of the engine', async () => {
  const entry = schemaEntry('main', {
    tables: {
      organisations: { id: { type: 'integer', primaryKey: true } },
      [LONG_TABLE]: {
        id: { type: 'integer', primaryKey: true },
        organisationId: { type: 'integer', references: { table: 'organisations', column: 'id' } },
      },
    },
    indexes: { [LONG_TABLE]: [{ columns: ['organisationId'] }] },
  });
  const namesFor = async (names?: { readonly max: number; readonly unit: 'bytes' }) => {
    const table = (await entry.declare(new Map(), undefined, names)).model.get(LONG_TABLE);
    return [...(table?.indexes.keys() ?? []), ...(table?.constraints.keys() ?? [])];
  };
  const short = await namesFor(SHORT);
  assert.deepEqual(
    short.map((name) => name.slice(0, 23)),
    ['customer_subscriptions_', 'customer_subscriptions_'],
  );
  assert.deepEqual(
    short.map((name) => name.length),
    [31, 31],
  );
  const portable = [`${LONG_TABLE}_organisationId_idx`, `${LONG_TABLE}_organisationId_fkey`];
  assert.deepEqual(await namesFor(), portable);
  // A longer limit does not make the names of a schema file differ between engines.
  const long = 't'.repeat(70);
  assert.equal(uniqueName(long, 'id', { max: 128, unit: 'bytes' }), uniqueName(long, 'id'));
});

test('names of the constraints of field flags fit the names of the engine', () => {
  const field: Field = { name: 'organisationId', type: 'integer', unique: true };
  const grammar = {
    quoteIdentifier: (name: string) => name,
    enumCheck: () => 'true',
    names: SHORT,
  } as unknown as Parameters<typeof fieldConstraints>[0];
  const names = fieldConstraints(grammar, field, LONG_TABLE).map((text) => text.split(' ')[1]);
  assert.deepEqual(names, [uniqueName(LONG_TABLE, field.name, SHORT), enumCheckName(LONG_TABLE, field.name, SHORT)]);
  for (const name of [...names, primaryKeyName('t'.repeat(31), SHORT)]) assert.equal(name?.length, 31);
});

test('a name that a dialect returns twice for one table is an error of the dialect', () => {
  const rules = { ...SHORT, databaseWideNames: () => ['users', 'users_key', 'users_key'] };
  const model = new Map([['users', job.collection]]);
  assert.throws(() => assertDistinctNames('abacus', rules, model), {
    code: 'plugin_invalid',
    message: 'The dialect "abacus" returned the name "users_key" twice for the table "users".',
  });
  const correct = { ...SHORT, databaseWideNames: (one: typeof job.collection) => relationNames(one, SHORT) };
  assert.doesNotThrow(() => assertDistinctNames('abacus', correct, model));
  const index = { name: 'users_mood_key', columns: [{ name: 'mood' }] };
  const fields = new Map(
    FIELDS.map((field) => [field.name, field.name === 'mood' ? { ...field, unique: true as const } : field]),
  );
  const twice = new Map([['users', { ...job.collection, fields, indexes: new Map([[index.name, index]]) }]]);
  assert.throws(() => assertDistinctNames('abacus', correct, twice), {
    code: 'name_invalid',
    message: 'The name "users_mood_key" is used twice: in "users".',
  });
});

test('names of the indexes of svc fit the names of the engine', () => {
  const all = [executions, approvals, plans, history].flatMap((module) => Object.values(module).filter(isDefinition));
  const grammar = { quoteIdentifier: (name: string) => `"${name}"`, columnType: () => 'text' };
  const namesOf = (names?: typeof SHORT) =>
    all.flatMap((definition) =>
      recordTableStatements({ ...grammar, ...(names && { names }) } as never, '', definition as never).flatMap(
        (text) => /^CREATE INDEX IF NOT EXISTS "(.*?)"/.exec(text)?.[1] ?? [],
      ),
    );
  const short = namesOf(SHORT);
  assert.ok(namesOf().some((name) => name.length > 31));
  assert.deepEqual(
    short.filter((name) => name.length > 31),
    [],
  );
  assert.equal(new Set(short).size, namesOf().length);
});

const isDefinition = (value: unknown): value is AnyRecordDefinition =>
  typeof value === 'object' && value !== null && 'collection' in value && 'indexes' in value;

test('the names of the tables of svc are as short as the page on dialects says', async () => {
  const all = [executions, approvals, seals, plans, history, lease, definitions].flatMap((module) =>
    Object.values(module).filter(isDefinition),
  );
  const longest = (names: readonly string[]) => Math.max(...names.map((name) => name.length));
  const found = [
    longest(all.map(({ collection }) => collection)),
    longest(all.flatMap(({ columns }) => Object.keys(columns))),
    longest(all.flatMap(({ collection, indexes }) => indexes.map(({ name }) => `${collection}_${name}`))),
  ];
  const page = await readFile('docs/how-to/write-a-dialect.md', 'utf8');
  const stated = /tables have names of up to (\d+) bytes, their columns (\d+), and their indexes (\d+)\./.exec(page);
  assert.deepEqual(stated?.slice(1).map(Number), found);
});

test('the rows of the suite are inserted in statements of as many rows as an engine accepts', async () => {
  const sent: string[] = [];
  const query = async (text: string) => {
    sent.push(text);
    return [];
  };
  const rows = [{ id: 1 }, { id: 2 }, { id: 3 }];
  for (const options of [{}, { rowsPerInsert: 2 }, { rowsPerInsert: 1 }]) {
    const { insert } = sqlSyntax((name) => name, undefined, options);
    await insert({ query } as unknown as Connection, 't', rows, new Map(), { url: '', drop: async () => undefined });
  }
  const into = 'INSERT INTO t (id) VALUES';
  assert.deepEqual(sent, [`${into} (1), (2), (3)`, `${into} (1), (2)`, ...[3, 1, 2, 3].map((id) => `${into} (${id})`)]);
});
