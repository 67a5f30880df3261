import * as assert from 'node:assert/strict';
import { isSvcError } from '../core/errors.ts';
import { apply } from '../core/schema/apply.ts';
import type { SchemaModel } from '../core/schema/model.ts';
import type { NamedFieldDefinition, ObjectOperation, Operation } from '../core/schema/operation.ts';
import type { CassandraOptions, IndexOptions } from '../core/schema/options.ts';
import { canonicalWords } from '../plugins/dialects/cassandra/compile/objects.ts';
import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { test } from './kit/test.ts';

const table = (field: Partial<NamedFieldDefinition>, cassandraOptions?: CassandraOptions): Operation => ({
  type: 'createCollection',
  name: 'books',
  fields: [
    { name: 'id', type: 'integer', primaryKey: true },
    { name: 'at', type: 'integer', primaryKey: true },
    { name: 'tags', type: 'json', ...field },
  ],
  ...(cassandraOptions && { options: { cassandraOptions } }),
});

const modelOf = (operation: Operation): SchemaModel => cassandra.normalize(apply(new Map(), operation));

const codeOf = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    if (isSvcError(error)) return error.code;
    throw error;
  }
  return 'none';
};

const texts = (operation: Operation | ObjectOperation, before: SchemaModel = new Map()): readonly string[] =>
  'definition' in operation || 'was' in operation
    ? (cassandra.objects?.compile(operation as ObjectOperation) ?? []).map(({ text }) => text)
    : cassandra.compile(operation, before).map(({ text }) => text);

test('a native type has one spelling, and is dropped where it is the type of svc', () => {
  const spellings: readonly (readonly [written: string, catalog: string | undefined])[] = [
    ['MAP<varchar,INT>', 'map<text, int>'],
    ['tuple<int, "address">', 'frozen<tuple<int, address>>'],
    ['frozen< list <"Some Type"> >', 'frozen<list<"Some Type">>'],
    ['vector<float,3> STATIC', 'vector<float, 3> static'],
    ['text', undefined],
    ['text static', 'text static'],
  ];
  for (const [native, catalog] of spellings) {
    const found = modelOf(table({ native })).get('books')?.fields.get('tags');
    assert.equal(found?.native, catalog, native);
  }
  for (const native of ['int, b int', 'int PRIMARY KEY', 'map<text', 'list<>', 'ks.address', "int) WITH comment = 'x'"])
    assert.equal(
      codeOf(() => texts(table({ native }))),
      'field_invalid',
      native,
    );
});

test('a native type is what a statement has, and cannot be changed', () => {
  const operation = table({ native: 'map<text, int> static' });
  assert.match(texts(operation)[0] ?? '', /"tags" map<text, int> static/);
  const before = apply(new Map(), operation);
  const change = (native: string | null): Operation => ({
    type: 'modifyField',
    collection: 'books',
    field: 'tags',
    changes: { native },
  });
  assert.equal(
    codeOf(() => texts(change('map<text, bigint>'), before)),
    'not_supported',
  );
  assert.equal(
    codeOf(() => texts(change(null), before)),
    'not_supported',
  );
  assert.equal(
    codeOf(() => texts(change('MAP<varchar, int> static'), before)),
    'none',
  );
  assert.equal(
    codeOf(() => texts(table({ native: 'map<text, int>', default: {} }))),
    'field_invalid',
  );
  const copy: Operation = { type: 'renameField', collection: 'books', from: 'tags', to: 'marks', strategy: 'copy' };
  assert.equal(
    codeOf(() => texts(copy, before)),
    'not_supported',
  );
});

test('properties of a table are written as CQL, and others are refused', () => {
  const properties = { comment: "it's", gc_grace_seconds: 60, compression: { class: 'ZstdCompressor', level: 3 } };
  assert.match(
    texts(table({}, { properties }))[0] ?? '',
    /WITH comment = 'it''s' AND gc_grace_seconds = 60 AND compression = \{'class': 'ZstdCompressor', 'level': '3'\}/,
  );
  for (const wrong of [{ 'x = 1 AND y': 1 }, { default_time_to_live: 1 }, { compaction: {} }, { comment: ['x'] }])
    assert.equal(
      codeOf(() => texts(table({}, { properties: wrong }))),
      'schema_invalid',
      JSON.stringify(wrong),
    );
});

test('a native index is read into one spelling, and is on its column', () => {
  const before = modelOf(table({ native: 'map<text, int>' }));
  const index = (options: IndexOptions): Operation => ({
    type: 'createIndex',
    collection: 'books',
    index: 'books_tags',
    columns: [{ name: 'tags' }],
    ...options,
  });
  const native = "( KEYS(tags) ) using 'sai' with options = {'normalize':'true', 'ascii': true}";
  assert.deepEqual(texts(index({ native }), before), [
    `CREATE INDEX "books_tags" ON "books" (keys("tags")) USING 'sai' WITH OPTIONS = {'ascii': 'true', 'normalize': 'true'}`,
  ]);
  assert.match(
    texts(index({ native: "(tags) USING 'a.b.C'" }), before)[0] ?? '',
    /^CREATE CUSTOM INDEX .* USING 'a.b.C'$/,
  );
  const plain = cassandra.normalize(apply(before, index({ native: "(values(tags)) USING 'StorageAttachedIndex'" })));
  assert.deepEqual(plain.get('books')?.indexes.get('books_tags')?.cassandraOptions, { using: 'sai' });
  for (const wrong of ['(id)', '(tags) ; DROP TABLE books', 'tags', '(tags, id)', "(tags) USING 'x' WITH OPTIONS = {"])
    assert.equal(
      codeOf(() => texts(index({ native: wrong }), before)),
      'schema_invalid',
      wrong,
    );
});

test('a user type gets fields and names, and nothing else', () => {
  const was = 'CREATE TYPE address (street text, zip int)';
  const replace = (definition: string): ObjectOperation => ({
    type: 'replaceObject',
    kind: 'type',
    name: 'address',
    definition,
    was,
  });
  assert.deepEqual(texts(replace('CREATE TYPE address (road text, zip int, more frozen<map<text, int>>)')), [
    'ALTER TYPE "address" RENAME "street" TO "road"',
    'ALTER TYPE "address" ADD "more" frozen<map<text, int>>',
  ]);
  for (const wrong of ['(street text)', '(street int, zip int)', '(zip int, street text)'])
    assert.equal(
      codeOf(() => texts(replace(`CREATE TYPE address ${wrong}`))),
      'not_supported',
      wrong,
    );
});

test('a function is replaced in place if its parameters and result stay', () => {
  const text = (parameters: string, body: string) =>
    `CREATE FUNCTION f (${parameters}) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS '${body}'`;
  const was = text('x int, y map<text, int>', 'return 1;');
  const replace = (definition: string): ObjectOperation => ({
    ...{ type: 'replaceObject', kind: 'function', name: 'f', definition, was },
  });
  assert.match(texts(replace(text('x int, z map<text, int>', 'return 2;')))[0] ?? '', /^CREATE OR REPLACE FUNCTION f/);
  const moved = texts(replace(text('x text', 'return 2;')));
  assert.equal(moved[0], 'DROP FUNCTION IF EXISTS "f" (int, map<text, int>)');
  assert.match(moved[1] ?? '', /^CREATE FUNCTION f \(x text\)/);
});

test('the text of an object is one statement that creates it', () => {
  const create = (kind: string, definition: string): ObjectOperation => ({
    ...{ type: 'createObject', kind, name: 'a', definition },
  });
  for (const [kind, wrong] of [
    ['type', 'CREATE TYPE b (x int)'],
    ['type', 'CREATE TABLE a (x int PRIMARY KEY)'],
    ['type', 'CREATE TYPE ks.a (x int)'],
    ['type', 'CREATE TYPE a (x int); DROP TABLE b'],
    ['type', "CREATE TYPE a (x int) -- it's\n '"],
    ['materialized_view', 'CREATE VIEW a AS SELECT 1'],
  ] as const)
    assert.equal(
      codeOf(() => texts(create(kind, wrong))),
      'migration_invalid',
      wrong,
    );
  assert.equal(texts(create('type', 'create type if not exists "a" (x int)')).length, 1);
});

test('views that mean the same have the same words', () => {
  const catalog = `CREATE MATERIALIZED VIEW v AS SELECT a, b, c FROM t WHERE a IS NOT NULL PRIMARY KEY ((b), a) WITH CLUSTERING ORDER BY (a DESC) AND comment = 'X' AND gc_grace_seconds = 5`;
  const written = `create materialized view if not exists "v" as select c, a from t where a is not null
    primary key ((b), a) with gc_grace_seconds = 5 and comment = 'X' and clustering order by (a desc) -- why`;
  assert.equal(canonicalWords(written), canonicalWords(catalog));
  assert.notEqual(canonicalWords(written.replace("'X'", "'x'")), canonicalWords(catalog));
});
