import * as assert from 'node:assert/strict';
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import fc from 'fast-check';
import { isSvcError, type SvcError } from '../core/errors.ts';
import { apply } from '../core/schema/apply.ts';
import type { Field, SchemaModel } from '../core/schema/model.ts';
import { FIELD_TYPES, type FieldType } from '../core/schema/model.ts';
import type { NamedFieldDefinition, Operation } from '../core/schema/operation.ts';
import type { CreateOptions, DynamoOptions } from '../core/schema/options.ts';
import { parseRequest } from '../plugins/dialects/dynamodb/compile/raw-request.ts';
import { identify, parseUrl } from '../plugins/dialects/dynamodb/connection/url.ts';
import { attributeToJson, encodeNow, encodeValue } from '../plugins/dialects/dynamodb/data/attribute.ts';
import { convertValue } from '../plugins/dialects/dynamodb/data/convert-value.ts';
import { dynamodb } from '../plugins/dialects/dynamodb/dialect.ts';
import { sortText } from '../plugins/dialects/dynamodb/records/record-item.ts';
import { compareDecimals, plainDecimal } from '../plugins/dialects/shared/decimal.ts';
import { test } from './kit/test.ts';

const fields: readonly NamedFieldDefinition[] = [
  { name: 'tenant', type: 'string' },
  { name: 'at', type: 'bigint' },
  { name: 'mail', type: 'string' },
  { name: 'done', type: 'boolean' },
  { name: 'until', type: 'timestamp' },
];
const table = (dynamoOptions: DynamoOptions, more: CreateOptions = {}): Operation => ({
  type: 'createCollection',
  name: 'events',
  fields,
  options: { dynamoOptions, ...more },
});
const KEY = {
  partitionKey: { name: 'tenant', type: 'S' },
  sortKey: { name: 'at', type: 'N' },
} as const;

function rejectionOf(operation: Operation, before: SchemaModel = new Map()): SvcError {
  try {
    dynamodb.compile(operation, before);
  } catch (error) {
    if (isSvcError(error)) return error;
    throw error;
  }
  throw new Error(`nothing was refused: ${JSON.stringify(operation)}`);
}

test('every field type has its attribute type', () => {
  assert.deepEqual(Object.fromEntries(FIELD_TYPES.map((type) => [type, dynamodb.types[type]])), {
    ...{ integer: 'N', bigint: 'N', smallint: 'N', float: 'N', double: 'N', decimal: 'N', string: 'S', text: 'S' },
    ...{ boolean: 'BOOL', date: 'S', time: 'S', datetime: 'S', timestamp: 'N', json: 'M', uuid: 'S', enum: 'S' },
    ...{ array: 'L', binary: 'B', blob: 'B' },
  });
});

test('a plan lists keys, indexes, stream and time to live', () => {
  const [statement, ...more] = dynamodb.compile(
    table({
      ...KEY,
      globalSecondaryIndexes: [{ name: 'byMail', partitionKey: { name: 'mail', type: 'S' }, projection: 'ALL' }],
      localSecondaryIndexes: [{ name: 'byUntil', sortKey: { name: 'until', type: 'N' }, projection: 'KEYS_ONLY' }],
      streamEnabled: true,
      streamViewType: 'NEW_IMAGE',
      ttlAttribute: 'until',
    }),
    new Map(),
  );
  assert.deepEqual(more, []);
  assert.equal(
    statement?.text,
    'CreateTable events (partition key tenant S, sort key at N); index byMail (mail S) ALL; local index byUntil (tenant S, until N) KEYS_ONLY; stream NEW_IMAGE; time to live until, in seconds; registered fields mail string, done boolean, until timestamp',
  );
});

test('options that AWS rejects are rejected before anything runs, with a remedy', () => {
  const index = { name: 'byMail', partitionKey: { name: 'mail', type: 'S' } } as const;
  const bad: readonly [DynamoOptions, string][] = [
    [{ ...KEY, billingMode: 'FREE' }, 'schema_invalid'],
    [{ ...KEY, billingMode: 'PROVISIONED' }, 'schema_invalid'],
    [{ ...KEY, readCapacityUnits: 5 }, 'schema_invalid'],
    [{ ...KEY, streamViewType: 'NEW_IMAGE' }, 'schema_invalid'],
    [{ ...KEY, streamEnabled: true, streamViewType: 'ALL' }, 'schema_invalid'],
    [{ ...KEY, ttlAttribute: 'nothing' }, 'schema_invalid'],
    [{ ...KEY, ttlAttribute: 'mail' }, 'schema_invalid'],
    [{ ...KEY, globalSecondaryIndexes: [{ ...index, projection: 'INCLUDE' }] }, 'schema_invalid'],
    [{ ...KEY, globalSecondaryIndexes: [index, index] }, 'schema_invalid'],
    [{ ...KEY, globalSecondaryIndexes: [{ ...index, name: 'a!' }] }, 'name_invalid'],
    [{ ...KEY, globalSecondaryIndexes: [{ ...index, name: 'ab' }] }, 'name_invalid'],
    [{ ...KEY, globalSecondaryIndexes: [{ ...index, partitionKey: { name: 'done', type: 'S' } }] }, 'not_supported'],
    [{ ...KEY, globalSecondaryIndexes: [{ ...index, partitionKey: { name: 'mail', type: 'N' } }] }, 'field_invalid'],
    [
      {
        ...KEY,
        globalSecondaryIndexes: Array.from({ length: 21 }, (_, n) => ({ ...index, name: `index${n}` })),
      },
      'schema_invalid',
    ],
    [
      {
        partitionKey: KEY.partitionKey,
        localSecondaryIndexes: [{ name: 'byUntil', sortKey: { name: 'until', type: 'N' } }],
      },
      'schema_invalid',
    ],
    [{ partitionKey: { name: 'tennant', type: 'S' } }, 'field_unknown'],
    [{ partitionKey: { name: 'tenant', type: 'N' } }, 'field_invalid'],
    [{ sortKey: KEY.sortKey }, 'not_supported'],
  ];
  for (const [options, code] of bad) {
    const error = rejectionOf(table(options));
    assert.equal(error.code, code, JSON.stringify(options));
    assert.ok(error.why && error.next.length > 0, JSON.stringify(options));
  }
  assert.ok(
    dynamodb.compile(
      table({ ...KEY, billingMode: 'PROVISIONED', readCapacityUnits: 1, writeCapacityUnits: 2 }),
      new Map(),
    ),
  );
});

test('unsupported features are rejected with a reason and an alternative', () => {
  const index = { name: 'byMail', partitionKey: { name: 'mail', type: 'S' } } as const;
  const before = apply(new Map(), table({ ...KEY, globalSecondaryIndexes: [index], ttlAttribute: 'until' }));
  const collection = 'events';
  const rejected: readonly [Operation, RegExp][] = [
    [{ type: 'renameCollection', collection, to: 'others' }, /cannot rename a table/],
    [{ type: 'addField', collection, field: { name: 'u', type: 'string', unique: true } }, /unique/],
    [{ type: 'addField', collection, field: { name: 'u', type: 'integer', autoGenerate: true } }, /no sequences/],
    [
      { type: 'addField', collection, field: { name: 'u', type: 'integer', default: { $expression: '1' } } },
      /default expressions/,
    ],
    [{ type: 'addField', collection, field: { name: 'u', type: 'integer', primaryKey: true } }, /key of a table/],
    [{ type: 'renameField', collection, from: 'tenant', to: 'x' }, /key of the table/],
    [{ type: 'renameField', collection, from: 'mail', to: 'x' }, /index "byMail"/],
    [{ type: 'renameField', collection, from: 'until', to: 'x' }, /time to live/],
    [{ type: 'modifyField', collection, field: 'tenant', changes: { type: 'integer' } }, /key of the table/],
    [{ type: 'modifyField', collection, field: 'mail', changes: { type: 'json' } }, /index "byMail"/],
    [{ type: 'createIndex', collection, index: 'one', columns: [{ name: 'mail' }], unique: true }, /unique/],
    [{ type: 'createIndex', collection, index: 'one', columns: [{ name: 'mail', order: 'desc' }] }, /either direction/],
    [{ type: 'createIndex', collection, index: 'one', columns: [{ name: 'done' }] }, /type boolean/],
    [
      { type: 'createIndex', collection, index: 'one', columns: [{ name: 'mail' }, { name: 'at' }, { name: 'until' }] },
      /at most one sort key/,
    ],
    [
      { type: 'addConstraint', collection, constraint: { name: 'c', type: 'check', expression: 'x' } },
      /no constraints/,
    ],
  ];
  for (const [operation, why] of rejected) {
    const error = rejectionOf(operation, before);
    assert.equal(error.code, 'not_supported', JSON.stringify(operation));
    assert.match(error.why ?? '', why);
    assert.ok(error.next[0]);
  }
});

test('a URL has a region or an endpoint, and a prefix', () => {
  assert.deepEqual(parseUrl('dynamodb://eu-west-1/shop'), { region: 'eu-west-1', prefix: 'shop' });
  assert.equal(parseUrl('dynamodb://us-gov-west-1').prefix, '');
  const local = parseUrl('dynamodb://127.0.0.1:8000/shop_dev?region=eu-west-1');
  assert.equal(local.endpoint, 'http://127.0.0.1:8000');
  assert.equal(local.region, 'eu-west-1');
  assert.equal(
    parseUrl('dynamodb://vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com/x?region=eu-west-1').endpoint?.slice(0, 8),
    'https://',
  );
  assert.equal(identify('dynamodb://EU-west-1/shop'), 'dynamodb:eu-west-1/shop');
  assert.notEqual(identify('dynamodb://127.0.0.1:8000/a'), identify('dynamodb://127.0.0.1:8000/b'));
  for (const url of [
    'dynamodb:///x',
    'dynamodb://eu-west-1/a.b',
    'dynamodb://eu-west-1/a/b',
    `dynamodb://eu-west-1/${'x'.repeat(61)}`,
    'dynamodb://key:secret@eu-west-1/x',
    'dynamodb://example.com/x',
    'dynamodb://eu-west-1/x?profile=a',
    'postgresql://eu-west-1/x',
    'nothing',
  ]) {
    assert.throws(
      () => parseUrl(url),
      (error) => isSvcError(error) && error.code === 'url_invalid' && !`${error.why}`.includes('secret'),
      url,
    );
  }
});

test('a raw statement must be exactly one request', () => {
  assert.deepEqual(parseRequest('{"PutItem":{"TableName":"a"}}'), { action: 'PutItem', input: { TableName: 'a' } });
  for (const text of ['', 'SELECT 1', '[]', '{}', '{"PutItem":1}', '{"PutItem":{},"GetItem":{}}', '{"put item":{}}']) {
    assert.throws(
      () => dynamodb.compile({ type: 'raw', dialect: 'dynamodb', statement: text }, new Map()),
      (error) => isSvcError(error) && error.code === 'migration_invalid',
      text,
    );
  }
});

test('values have one encoding each, and the time to live is in seconds', () => {
  assert.deepEqual(encodeValue('2026-01-31 23:59', { type: 'datetime' }), { S: '2026-01-31T23:59:00.000' });
  assert.deepEqual(encodeValue('23:59:01.5', { type: 'time' }), { S: '23:59:01.500' });
  assert.deepEqual(encodeValue('2026-01-31T23:59+0200', { type: 'timestamp' }), {
    N: String(Date.UTC(2026, 0, 31, 21, 59)),
  });
  assert.deepEqual(encodeValue('1970-01-01T00:01:00.900Z', { type: 'timestamp', seconds: true }), { N: '60' });
  assert.deepEqual(encodeValue('9007199254740993', { type: 'bigint' }), { N: '9007199254740993' });
  assert.deepEqual(encodeValue(-0, { type: 'double' }), { N: '0' });
  assert.deepEqual(attributeToJson(encodeValue({ a: [1, null, 'x', { b: true }] }, { type: 'json' })), {
    a: [1, null, 'x', { b: true }],
  });
  assert.deepEqual(attributeToJson(encodeValue('AQI=', { type: 'blob' })), 'AQI=');
  assert.deepEqual(encodeNow(0, { type: 'date' }), { S: '1970-01-01' });
});

test('values are converted without loss or not at all', () => {
  const to = (type: string, more: object = {}) => ({ name: 'f', type, ...more }) as never;
  const fits: readonly [object, object, object][] = [
    [{ S: '12' }, to('integer'), { N: '12' }],
    [{ N: '1E+2' }, to('bigint'), { N: '100' }],
    [{ S: '-0.50' }, to('decimal', { precision: 3, scale: 2 }), { N: '-0.5' }],
    [{ N: '5' }, to('string'), { S: '5' }],
    [{ BOOL: true }, to('string'), { S: 'true' }],
    [{ S: 'false' }, to('boolean'), { BOOL: false }],
    [{ S: '2026-01-31' }, to('datetime'), { S: '2026-01-31T00:00:00.000' }],
    [{ N: '0' }, to('datetime'), { S: '1970-01-01T00:00:00.000' }],
    [{ S: '1970-01-01T00:00:01Z' }, to('timestamp'), { N: '1000' }],
    [{ L: [{ S: '1' }] }, to('array', { items: 'integer' }), { L: [{ N: '1' }] }],
    [{ M: { a: { N: '1' } } }, to('text'), { S: '{"a":1}' }],
    [{ NULL: true }, to('integer'), { NULL: true }],
  ];
  for (const [value, field, expected] of fits) {
    assert.deepEqual(convertValue(value as never, field as never), { value: expected }, JSON.stringify(value));
  }
  const misfits: readonly [object, object][] = [
    [{ N: '1.5' }, to('integer')],
    [{ N: '40000' }, to('smallint')],
    ...['007', '+5', '-0', '5.0', '1.20e1', '5\n'].map((S): [object, object] => [{ S }, to('integer')]),
    [{ N: '9223372036854775808' }, to('bigint')],
    [{ S: '1.234' }, to('decimal', { precision: 3, scale: 2 })],
    [{ S: '12345' }, to('string', { length: 4 })],
    [{ S: 'maybe' }, to('boolean')],
    [{ S: 'c' }, to('enum', { enumValues: ['a', 'b'] })],
    [{ S: '2026-01-31T10:00' }, to('date')],
    [{ S: 'x' }, to('array')],
    [{ NULL: true }, to('integer', { required: true })],
    [{ S: '1e500' }, to('double')],
    [{ S: '2024-02-31T10:00:00Z' }, to('timestamp')],
    [{ S: '2024-06-31 10:00' }, to('timestamp')],
    [{ S: '2024-13-01 10:00:00Z' }, to('timestamp')],
    [{ S: '2024-99-99T00:00:00.000' }, to('datetime')],
    [{ S: '2024-02-31' }, to('datetime')],
    [{ S: '2024-99-99' }, to('date')],
    [{ S: '99:99' }, to('time')],
  ];
  for (const [value, field] of misfits)
    assert.ok('problem' in convertValue(value as never, field as never), JSON.stringify(value));
});

test('a conversion can be reversed, and converting again changes nothing', () => {
  type Kind = Pick<Field, 'type' | 'items'>;
  const become = (value: AttributeValue, to: Kind, from: Kind) => {
    const result = convertValue(value, { name: 'f', ...to }, from);
    return 'value' in result ? result.value : undefined;
  };
  const there: readonly [AttributeValue, FieldType, FieldType, AttributeValue][] = [
    [{ S: '2026-01-31' }, 'date', 'datetime', { S: '2026-01-31T00:00:00.000' }],
    [{ N: '1' }, 'integer', 'boolean', { BOOL: true }],
    [{ N: '0' }, 'smallint', 'boolean', { BOOL: false }],
    [{ N: '1700000000000' }, 'bigint', 'datetime', { S: '2023-11-14T22:13:20.000' }],
    [{ N: '-1' }, 'double', 'datetime', { S: '1969-12-31T23:59:59.999' }],
    [
      {
        M: {
          n: { N: '12345678901234567890123456789' },
          's"': { S: 'n\\1' },
          l: { L: [{ NULL: true }, { BOOL: true }] },
        },
      },
      'json',
      'text',
      { S: '{"n":12345678901234567890123456789,"s\\"":"n\\\\1","l":[null,true]}' },
    ],
    [{ N: '12.5' }, 'json', 'text', { S: '12.5' }],
    [{ S: 'a text' }, 'json', 'text', { S: 'a text' }],
    [{ S: '"quoted"' }, 'text', 'json', { S: '"quoted"' }],
    [{ S: '1.0' }, 'text', 'json', { S: '1.0' }],
    [{ L: [{ S: '1' }, { S: 'a' }] }, 'array', 'text', { S: '["1","a"]' }],
  ];
  for (const [value, type, other, expected] of there) {
    const [from, to] = [{ type }, { type: other }];
    assert.deepEqual(become(value, to, from), expected, JSON.stringify(value));
    assert.deepEqual(become(expected, to, from), expected, JSON.stringify(expected));
    assert.deepEqual(become(expected, from, to), value, JSON.stringify(expected));
    assert.deepEqual(become(value, from, to), value, JSON.stringify(value));
  }
  const losing: readonly [AttributeValue, FieldType, FieldType][] = [
    [{ N: '1.5' }, 'double', 'datetime'],
    [{ N: '1.5' }, 'timestamp', 'text'],
    [{ N: '1e15' }, 'timestamp', 'datetime'],
    [{ S: '2026-01-31T10:00:00.000' }, 'datetime', 'date'],
    [{ M: { a: { B: new Uint8Array([1]) } } }, 'json', 'text'],
    [{ SS: ['a'] }, 'json', 'text'],
  ];
  for (const [value, type, other] of losing) {
    assert.equal(become(value, { type: other }, { type }), undefined, JSON.stringify(value));
  }
});

test('numbers are compared by value, in any notation and with any number of digits', () => {
  const number = fc.tuple(fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }), fc.integer({ min: 0, max: 12 }));
  const written = ([digits, scale]: readonly [bigint, number]): string => `${digits}e-${scale}`;
  fc.assert(
    fc.property(number, number, (a, b) => {
      const [left, right] = [a[0] * 10n ** BigInt(12 - a[1]), b[0] * 10n ** BigInt(12 - b[1])];
      assert.equal(Math.sign(compareDecimals(written(a), written(b))), left < right ? -1 : left > right ? 1 : 0);
      assert.equal(compareDecimals(written(a), plainDecimal(written(a)) ?? ''), 0);
    }),
  );
});

test('the sort texts of an index have the order of their values', () => {
  const ordered = [-1e300, -5.5, -1, 0, 1e-9, 1, 2, 10, 2 ** 40, 1e300];
  const texts = ordered.map(sortText);
  assert.deepEqual([...texts].sort(), texts);
  const strings = ['', 'a', 'a\0', 'a\0b', 'a\u0001', 'ab', 'b'].map(sortText);
  assert.deepEqual([...strings].sort(), strings);
  assert.ok(sortText(null) > sortText('\uffff'));
});
