import * as assert from 'node:assert/strict';
import type { Operation } from '../core/schema/operation.ts';
import { FIELD_TYPES, type FieldType } from '../core/schema/types.ts';
import { expressionProblem } from '../plugins/sql/expression.ts';
import { compileKept } from '../plugins/sql/kept/compile.ts';
import { readKept } from '../plugins/sql/kept/read.ts';
import type { KeptWords } from '../plugins/sql/kept/words.ts';
import { test } from './kit/test.ts';

const WORDS: KeptWords = {
  types: Object.fromEntries(FIELD_TYPES.map((type) => [type, type.toUpperCase()])) as Record<FieldType, string>,
  now: { timestamp: 'now_utc()' },
  clock: 'now_utc()',
  uuid: 'new_uuid()',
  dangling: (table) => `SELECT why FROM dangling('${table}')`,
};
const RULES = { name: 'keeper', names: { most: 63, of: 'bytes' }, refuses: {} } as const;

test('a table that somebody else wrote is read as far as it says the same, and told of', () => {
  const { model, unreadable } = readKept(WORDS, [
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
    unreadable.map(({ collection, what }) => [collection, what.replace(/[:,].*/, '')]),
    [
      ['teams', 'was not made by svc'],
      ['teams', 'has the index "odd"'],
    ],
  );
});

test('a table is made anew where ALTER TABLE would not do, and asked whether its rows still hold', () => {
  const create: Operation = {
    type: 'createCollection',
    name: 'a',
    fields: [{ name: 'id', type: 'integer', primaryKey: true }],
  };
  const [made] = compileKept(WORDS, RULES, create, new Map());
  const { model, unreadable } = readKept(WORDS, [String(made?.text)]);
  assert.deepEqual(unreadable, []);
  const field = { name: 'n', type: 'integer' } as const;
  const texts = (operation: Operation) => compileKept(WORDS, RULES, operation, model).map(({ text }) => text);
  assert.deepEqual(texts({ type: 'addField', collection: 'a', field }), ['ALTER TABLE "a" ADD COLUMN "n" INTEGER']);
  const [rebuilt] = compileKept(
    WORDS,
    RULES,
    { type: 'addField', collection: 'a', field: { ...field, default: 1 } },
    model,
  );
  assert.match(
    rebuilt?.text ?? '',
    /^CREATE TABLE "_svc_rebuilt"[\s\S]*INSERT INTO "_svc_rebuilt" \("id"\) SELECT "id" FROM "a";\nDROP TABLE "a";\n/,
  );
  assert.deepEqual((rebuilt?.run as { must?: unknown } | undefined)?.must, ["SELECT why FROM dangling('a')"]);
});

test('what would be more than one expression is not one', () => {
  for (const text of ['1 + 2', "a = ');'", '"odd ) name" IS NOT NULL', 'f((1), 2)', 'a - -1', 'a/b'])
    assert.equal(expressionProblem(text), undefined, text);
  for (const text of ['1; DROP TABLE a', '1) OR (1', '(1', 'a -- b', 'a /* b', "it's", 'a "b'])
    assert.notEqual(expressionProblem(text), undefined, text);
});
