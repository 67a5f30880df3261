import * as assert from 'node:assert/strict';
import { FIELD_TYPES, type FieldType } from '../core/schema/model.ts';
import type { Operation } from '../core/schema/operation.ts';
import { compileTextCatalog } from '../plugins/dialects/sql/text-catalog/compile.ts';
import { readTextCatalog } from '../plugins/dialects/sql/text-catalog/read.ts';
import type { TextCatalogSyntax } from '../plugins/dialects/sql/text-catalog/syntax.ts';
import { expressionProblem } from '../plugins/dialects/sql/validate.ts';
import { test } from './kit/test.ts';

const SYNTAX: TextCatalogSyntax = {
  types: Object.fromEntries(FIELD_TYPES.map((type) => [type, type.toUpperCase()])) as Record<FieldType, string>,
  now: { timestamp: 'now_utc()' },
  currentTimestamp: 'now_utc()',
  uuid: 'new_uuid()',
  catalogQuery: 'SELECT name, sql FROM catalog',
  columnsQuery: (table) => `SELECT name FROM columns('${table}')`,
  danglingReferences: (table) => `SELECT why FROM dangling('${table}')`,
};
const RULES = { name: 'keeper', names: { max: 63, unit: 'bytes' }, unsupported: {} } as const;

test('a table not created by svc is read as far as possible and reported', () => {
  const { model, unsupportedObjects } = readTextCatalog(SYNTAX, [
    `CREATE TABLE teams (
      id integer primary key, -- a comment, with ( and '
      "the title" string(40) not null unique /* another, */,
      mood enum default 'it''s, (fine)' check (mood in ('it''s, (fine)', 'b')),
      owner integer references people (id)
    )`,
    'CREATE INDEX by_title ON teams ("the title" DESC, mood)',
    'CREATE INDEX odd ON teams (lower("the title"))',
  ]);
  const teams = model.get('teams');
  assert.deepEqual(
    [...(teams?.fields.values() ?? [])],
    [
      { name: 'id', type: 'integer', primaryKey: true, required: true },
      { name: 'the title', type: 'string', length: 40, required: true, unique: true },
      { name: 'mood', type: 'enum', default: "it's, (fine)", enumValues: ["it's, (fine)", 'b'] },
      { name: 'owner', type: 'integer' },
    ],
  );
  assert.deepEqual(
    [...(teams?.indexes.values() ?? [])],
    [{ name: 'by_title', columns: [{ name: 'the title', order: 'desc' }, { name: 'mood' }] }],
  );
  assert.deepEqual(
    unsupportedObjects.map(({ collection, what }) => [collection, what.replace(/[:,].*/, '')]),
    [
      ['teams', 'was not created by svc'],
      ['teams', 'has the index "odd"'],
    ],
  );
});

test('a table is recreated where ALTER TABLE is not sufficient, and its rows are checked', () => {
  const create: Operation = {
    type: 'createCollection',
    name: 'a',
    fields: [{ name: 'id', type: 'integer', primaryKey: true }],
  };
  const [created] = compileTextCatalog(SYNTAX, RULES, create, new Map());
  const { model, unsupportedObjects } = readTextCatalog(SYNTAX, [String(created?.text)]);
  assert.deepEqual(unsupportedObjects, []);
  const field = { name: 'n', type: 'integer' } as const;
  const texts = (operation: Operation) => compileTextCatalog(SYNTAX, RULES, operation, model).map(({ text }) => text);
  assert.deepEqual(texts({ type: 'addField', collection: 'a', field }), ['ALTER TABLE "a" ADD COLUMN "n" INTEGER']);
  const [rebuilt] = compileTextCatalog(
    SYNTAX,
    RULES,
    { type: 'addField', collection: 'a', field: { ...field, default: 1 } },
    model,
  );
  assert.match(
    rebuilt?.text ?? '',
    /^CREATE TABLE "_svc_rebuilt"[\s\S]*INSERT INTO "_svc_rebuilt" \("id"\) SELECT "id" FROM "a";\nDROP TABLE "a";\n/,
  );
  assert.deepEqual(rebuilt?.run.mustBeEmpty, ["SELECT why FROM dangling('a')"]);
});

test('text that is more than one expression is rejected', () => {
  for (const text of ['1 + 2', "a = ');'", '"odd ) name" IS NOT NULL', 'f((1), 2)', 'a - -1', 'a/b'])
    assert.equal(expressionProblem(text), undefined, text);
  for (const text of ['1; DROP TABLE a', '1) OR (1', '(1', 'a -- b', 'a /* b', "it's", 'a "b'])
    assert.notEqual(expressionProblem(text), undefined, text);
});
