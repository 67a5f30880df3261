import * as assert from 'node:assert/strict';
import { Ajv } from 'ajv';
import fc from 'fast-check';
import { jsonSchema } from '../config/project/json-schema.ts';
import { formatJson } from '../config/project/json-text.ts';
import { readSchemaFile, SCHEMA_FILE, schemaFileWith } from '../config/project/schema-file.ts';
import { SvcError } from '../core/errors.ts';
import { FIELD_PROPERTIES } from '../core/schema/define-field.ts';
import { FIELD_TYPES } from '../core/schema/model.ts';
import { folder } from './kit/folder.ts';
import { test } from './kit/test.ts';

const read = (text: string, databases = ['main']) => readSchemaFile(folder({ [SCHEMA_FILE]: text }), databases);

async function declared(text: string) {
  const entry = (await read(text)).get('main');
  assert.ok(entry);
  return entry.declare(new Map());
}

async function rejectionOf(work: Promise<unknown>): Promise<SvcError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof SvcError, `no refusal: ${error}`);
  return error;
}

const users = (fields: string) =>
  `[\n  { "db": "main", "tables": {\n    "users": {\n      "id": "integer",\n${fields}\n    }\n  } }\n]`;
const usersWithKey = (fields: string) =>
  users(fields).replace('"integer"', '{ "type": "Integer", "primaryKey": true }');

const BAD: readonly [what: string, text: string, code: string, place: string, words: RegExp][] = [
  ['an empty file', '', 'schema_invalid', ':1:1', /value is expected/],
  ['invalid JSON', '[\n  { "db": main }\n]', 'schema_invalid', ':2:11', /unknown word/],
  ['a comment', '[\n  // tables\n]', 'schema_invalid', ':2:3', /Comments/],
  [
    'a comma before the end',
    '[\n  { "db": "main", "tables": {}, }\n]',
    'schema_invalid',
    ':2:33',
    /comma before a closing/,
  ],
  ['a missing comma', '[\n  { "db": "main"\n    "tables": {} }\n]', 'schema_invalid', ':3:5', /comma is expected/],
  ['single quotes', "[{ 'db': 1 }]", 'schema_invalid', ':1:4', /./],
  ['an unterminated string', '[{ "db": "main }]', 'schema_invalid', ':1:10', /string is not closed/],
  ['a second value', '[]\n[]', 'schema_invalid', ':2:1', /text after the end/],
  ['an object instead of the list', '{ "db": "main", "tables": {} }', 'schema_invalid', ':1:1', /expected an array/],
  ['an entry without tables', '[\n  { "db": "main" }\n]', 'schema_invalid', ':2:3', /tables is missing/],
  [
    'an unknown name',
    '[\n  { "db": "main", "tables": {}, "index": {} }\n]',
    'schema_invalid',
    ':2:33',
    /did you mean "indexes"/,
  ],
  [
    'a table twice',
    '[{ "db": "main", "tables": {\n  "a": {},\n  "b": {},\n  "a": {} } }]',
    'schema_invalid',
    ':4:3',
    /./,
  ],
  ['a field twice', usersWithKey('      "id": "integer"'), 'schema_invalid', ':5:7', /./],
  ['an escaped name twice', '[{ "db": "main", "d\\u0062": 1, "tables": {} }]', 'schema_invalid', ':1:18', /./],
  ['a database that is not configured', '[{ "db": "mian", "tables": {} }]', 'database_unknown', ':1:4', /main/],
  [
    'two entries of one database',
    '[{ "db": "main", "tables": {} },\n { "db": "main", "tables": {} }]',
    'schema_invalid',
    ':2:4',
    /./,
  ],
  ['an unknown type', usersWithKey('      "age": { "type": "integr" }'), 'field_type_unknown', ':5:16', /integer/],
  ['an unknown type in short', usersWithKey('      "age": "integr"'), 'field_type_unknown', ':5:7', /integer/],
  [
    'an unknown property',
    usersWithKey('      "age": { "type": "integer", "uniqe": true }'),
    'field_invalid',
    ':5:35',
    /unique/,
  ],
  [
    'a length that is not a number',
    usersWithKey('      "name": { "type": "string", "length": "9" }'),
    'field_invalid',
    ':5:35',
    /number/,
  ],
  [
    'a decimal whose scale is too large',
    usersWithKey('      "a": { "type": "decimal", "precision": 3, "scale": 4 }'),
    'field_invalid',
    ':5:49',
    /scale/,
  ],
  [
    'a default that does not fit',
    usersWithKey('      "on": { "type": "boolean", "default": "yes" }'),
    'field_invalid',
    ':5:34',
    /boolean/,
  ],
  [
    'a foreign key to an unknown table',
    usersWithKey('      "team": { "type": "integer", "references": { "table": "teams", "column": "id" } }'),
    'collection_unknown',
    ':5:36',
    /teams/,
  ],
];

for (const [what, text, code, place, words] of BAD) {
  test(`rejects ${what}, with line and column`, async () => {
    const error = await rejectionOf(declared(text));
    assert.equal(error.code, code, error.message);
    assert.equal(error.where, `${SCHEMA_FILE}${place}`);
    assert.match([error.message, error.why, ...error.next].join(' '), words);
    assert.ok(error.next.length > 0 || error.why, 'it has a next step or a reason');
  });
}

test('a position counts all kinds of line breaks, but not the byte order mark', async () => {
  const error = await rejectionOf(declared(`\ufeff[\r\n  { "db": "main", "tables": { "a": { "x": "nope" } } }\r\n]`));
  assert.equal(error.where, `${SCHEMA_FILE}:2:38`);
});

test('the error for a missing file shows what to write, and names the command that reads a database', async () => {
  const error = await rejectionOf(readSchemaFile(folder(), ['main']));
  assert.equal(error.code, 'schema_missing');
  assert.match(String(error.next), /"primaryKey": true.*svc db schema pull/s);
});

test('type names match in any letter case, other names are not restricted', async () => {
  const { model } = await declared(
    JSON.stringify([
      {
        db: 'main',
        tables: { 'a "b" 😀': { __proto__id: 'uuid', ID: { type: 'UuId', primaryKey: true }, constructor: 'TEXT' } },
      },
    ]),
  );
  assert.deepEqual(
    [...(model.get('a "b" 😀')?.fields.values() ?? [])].map(({ type }) => type),
    ['uuid', 'uuid', 'text'],
  );
});

test('a colon or a quote inside a string is not parsed as a name', async () => {
  const { model } = await declared(
    usersWithKey('      "note": { "type": "text", "default": "a\\": \\"b\\": {\\"c\\":1}" }'),
  );
  assert.equal(model.get('users')?.fields.get('note')?.default, 'a": "b": {"c":1}');
});

test('a thousand tables are read', async () => {
  const tables = Object.fromEntries(
    Array.from({ length: 1000 }, (_, index) => [
      `t${index}`,
      { id: { type: 'integer', primaryKey: true }, name: { type: 'string', length: 40 } },
    ]),
  );
  assert.equal((await declared(JSON.stringify([{ db: 'main', tables }]))).model.size, 1000);
});

test('a declaration replaces one entry and leaves the others unchanged', async () => {
  const events = { db: 'events', tables: { log: { id: { type: 'uuid', primaryKey: true } } } };
  const root = folder({ [SCHEMA_FILE]: [{ db: 'main', tables: { old: {} } }, events] });
  const { text } = await schemaFileWith(root, 'main', { tables: { fresh: { id: 'integer' } } });
  assert.deepEqual(JSON.parse(text), [{ db: 'main', tables: { fresh: { id: 'integer' } } }, events]);
});

test('formatting does not change the JSON', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
      const plain = JSON.parse(JSON.stringify(value));
      assert.deepEqual(JSON.parse(formatJson(plain)), plain);
    }),
  );
});

test('the published JSON Schema matches the code', () => {
  const { definitions } = JSON.parse(JSON.stringify(jsonSchema()));
  assert.deepEqual(definitions.type.anyOf[0].enum, FIELD_TYPES);
  assert.deepEqual(
    definitions.operation.anyOf.map(
      (operation: { properties: { type: { const: string } } }) => operation.properties.type.const,
    ),
    [
      'createCollection',
      'dropCollection',
      'renameCollection',
      'addField',
      'dropField',
      'renameField',
      'modifyField',
      'createIndex',
      'dropIndex',
      'addConstraint',
      'dropConstraint',
      'createObject',
      'replaceObject',
      'dropObject',
      'raw',
    ],
  );
  assert.deepEqual(
    Object.keys(definitions.namedField.properties).sort(),
    ['name', ...Object.keys(FIELD_PROPERTIES)].sort(),
  );
  assert.match('DateTime', new RegExp(definitions.type.anyOf[1].pattern));
});

const validate = new Ajv({ allowUnionTypes: true }).compile(jsonSchema());
const migrationOf = (operation: object) => ({ tag: 't', up: [operation], down: [] });
const column = { type: 'createIndex', collection: 'a', index: 'i', columns: [{ name: 'x', order: 'Desc' }] };
const rename = { type: 'renameField', collection: 'a', from: 'x', to: 'y' };
const entry = { db: 'main', tables: { a: { id: 'UUID', n: { type: 'Decimal', precision: 5, scale: 0 } } } };

for (const [what, value, isValid] of [
  ['a schema file', [entry], true],
  ['an entry without tables', [{ db: 'main' }], false],
  ['an unknown type', [{ db: 'main', tables: { a: { id: 'integr' } } }], false],
  ['a field with an unknown property', [{ db: 'main', tables: { a: { id: { type: 'uuid', uniqe: true } } } }], false],
  ['a constraint without a name', [{ ...entry, constraints: { a: [{ type: 'unique', columns: ['n'] }] } }], true],
  ['a constraint of two types', [{ ...entry, constraints: { a: [{ type: 'check', columns: ['n'] }] } }], false],
  ['an index in any letter case', migrationOf(column), true],
  ['an index with the options of an engine', migrationOf({ ...column, mongoOptions: { expireAfterSeconds: 5 } }), true],
  ['an index without columns', migrationOf({ ...column, columns: [] }), false],
  ['a rename that converts', migrationOf({ ...rename, strategy: 'copy', changes: { length: null } }), true],
  ['an unknown strategy', migrationOf({ ...rename, strategy: 'move' }), false],
  [
    'a constraint without a name in an operation',
    migrationOf({ type: 'addConstraint', collection: 'a', constraint: { type: 'unique', columns: ['n'] } }),
    false,
  ],
  ['a tag with a space', { tag: 'a b', up: [], down: [] }, false],
] as const) {
  test(`the published JSON Schema ${isValid ? 'accepts' : 'rejects'} ${what}`, () => {
    assert.equal(validate(value), isValid, JSON.stringify(validate.errors));
  });
}
