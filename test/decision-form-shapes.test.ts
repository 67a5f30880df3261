import * as assert from 'node:assert/strict';
import { FormUnderTest } from './kit/parameters-form.ts';
import { test } from './kit/test.ts';

const text = { type: 'string' };
const integer = { type: 'integer' };

/** The kinds of shapes of the JSON Schema Test Suite, all of which decision-form-suite.test.ts has, each with values that its own schema allows. */
const SHAPES: readonly (readonly [shape: string, schema: object | boolean, values: readonly unknown[]])[] = [
  [
    'additionalProperties',
    { properties: { foo: {}, bar: {} }, patternProperties: { '^v': {} }, additionalProperties: false },
    [{ foo: 1, vroom: 2 }],
  ],
  [
    'additionalProperties with a schema',
    { properties: { foo: {} }, additionalProperties: { type: 'boolean' } },
    [{ foo: 1, quux: true }],
  ],
  [
    'allOf',
    { allOf: [{ properties: { bar: integer }, required: ['bar'] }, { properties: { foo: text } }] },
    [{ foo: 'baz', bar: 2 }],
  ],
  ['anyOf with a base', { type: 'string', anyOf: [{ maxLength: 2 }, { minLength: 4 }] }, ['f', 'foobar']],
  ['anyOf of types', { anyOf: [{ type: 'integer' }, { minimum: 2 }] }, [1, 2.5, 'x']],
  ['boolean schemas', true, [1, 'foo', null, [], {}]],
  ['const', { const: { foo: 'bar', baz: 'bax' } }, [{ baz: 'bax', foo: 'bar' }]],
  ['const with -2.0', { const: -2 }, [-2]],
  ['contains', { contains: { minimum: 5 } }, [[3, 4, 5]]],
  ['dependentRequired', { dependentRequired: { quux: ['foo'] } }, [{ foo: 1, quux: 3 }]],
  ['dependentSchemas', { dependentSchemas: { bar: { properties: { foo: integer } } } }, [{ foo: 1, bar: 2 }]],
  ['enum of all kinds', { enum: [6, 'foo', [], true, { foo: 12 }, null] }, [6, 'foo', [], true, { foo: 12 }, null]],
  ['enum with escapes', { enum: ['foo\nbar', 'foo\rbar', '', ' '] }, ['foo\nbar', 'foo\rbar', '', ' ']],
  ['enum of 0 and false', { enum: [false, 0, [0], [false]] }, [false, 0, [0], [false]]],
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  ['if, then, else', { if: { properties: { a: { const: 1 } } }, then: { required: ['b'] } }, [{ a: 1, b: 2 }, 'x']],
  ['items', { items: integer }, [[1, 2, 3], { foo: 'bar' }]],
  [
    'items and subitems',
    { type: 'array', items: { type: 'array', items: { type: 'array', items: integer } } },
    [[[[1], []], []]],
  ],
  ['items of draft 7', { items: [integer, text] }, [[1, 'foo']]],
  ['not', { not: { type: 'integer' } }, ['foo', 1.1]],
  [
    'oneOf with required',
    { type: 'object', oneOf: [{ required: ['foo', 'bar'] }, { required: ['foo', 'baz'] }] },
    [{ foo: 1, bar: 2 }],
  ],
  [
    'oneOf of objects',
    {
      oneOf: [
        { properties: { bar: integer }, required: ['bar'] },
        { properties: { foo: text }, required: ['foo'] },
      ],
    },
    [{ bar: 2 }, { foo: 'baz' }],
  ],
  ['oneOf with empty', { oneOf: [{ type: 'number' }, {}] }, ['foo']],
  ['patternProperties', { patternProperties: { 'f.*o': integer } }, [{ foo: 1, foooooo: 2 }, ['foo']]],
  ['prefixItems', { prefixItems: [integer, text], items: false }, [[1, 'foo'], []]],
  [
    'properties named like methods',
    { properties: { toString: { properties: { length: text } }, valueOf: integer } },
    [{ toString: { length: 'x' }, valueOf: 1 }, [], 12],
  ],
  [
    'properties with escapes',
    {
      properties: {
        'foo\nbar': { type: 'number' },
        'foo"bar': { type: 'number' },
        'foo\\bar': { type: 'number' },
        'foo\tbar': { type: 'number' },
      },
    },
    [{ 'foo\nbar': 1, 'foo"bar': 1, 'foo\\bar': 1, 'foo\tbar': 1 }],
  ],
  ['propertyNames', { propertyNames: { maxLength: 3 } }, [{ f: {}, foo: {} }, {}]],
  ['$ref with escapes', { $ref: '#/$defs/a~0b~1c%25d' }, [1]],
  ['$ref that is not resolved', { $ref: 'urn:uuid:x#y' }, [1, 'x', {}]],
  ['type: several', { type: ['integer', 'string'] }, [1, 'foo']],
  ['type: several and null', { type: ['array', 'object', 'null'] }, [[1], { foo: 1 }, null]],
  ['type: one in a list', { type: ['string'] }, ['foo']],
  [
    'unevaluatedProperties',
    { type: 'object', properties: { foo: text }, unevaluatedProperties: false },
    [{ foo: 'foo' }],
  ],
  [
    'uniqueItems',
    { uniqueItems: true, type: 'array', items: { type: ['boolean', 'integer'] } },
    [
      [1, true],
      [0, false],
    ],
  ],
  ['large numbers', { type: 'integer' }, [1e308, -1e21, 9007199254740991, 0, 1.0]],
  ['small numbers', { type: 'number', multipleOf: 1e-8 }, [5e-324, 0.1, 1e-7, -1.5]],
];

test('what goes in comes out with the shapes of the JSON Schema test suite, as a parameter, a member and an item', () => {
  const $defs = { 'a~b/c%d': integer };
  for (const [shape, schema, values] of SHAPES) {
    for (const value of values) {
      const members = { type: 'object', properties: { m: schema }, required: ['m'] };
      const properties = { it: schema, inner: members, list: { type: 'array', items: { allOf: [schema] } } };
      const form = new FormUnderTest(
        { type: 'object', $defs, properties, required: ['it'] },
        { it: value, inner: { m: value, more: value }, list: [value, value] },
      );
      const page = form.open();
      assert.deepEqual(form.changes(page), {}, shape);
      assert.deepEqual(form.changes(form.open(page.press('Approve'))), {}, shape);
      const shorter = form.press(page, 'Remove list 1');
      assert.deepEqual(form.changes(shorter), { list: [value] }, shape);
      const emptied = form.press(shorter, 'Remove list 1');
      assert.deepEqual(form.changes(emptied), { list: [] }, shape);
    }
  }
});

/** What the fields of a form show, without the hidden ones. */
const textsIn = (schema: object, parameters: object) => {
  const page = new FormUnderTest(schema, parameters).open();
  return page.names.filter((name) => name !== 'view' && name !== 'form').map((name) => page.value(name));
};

test('what a control could not show as it is, is JSON', () => {
  const it = (schema: object, value: unknown) =>
    textsIn({ properties: { it: schema }, required: ['it'] }, { it: value });
  assert.deepEqual(it(text, 'a\r\nb'), ['a\nb']);
  assert.deepEqual(it(text, 'a\rb'), ['"a\\rb"']);
  assert.deepEqual(it(text, 'a\r\nb\n'), ['"a\\r\\nb\\n"']);
  const same = { properties: { kind: { const: 'a' }, x: text } };
  assert.deepEqual(it({ oneOf: [same, { ...same }] }, { kind: 'a' }), ['{\n  "kind": "a"\n}']);
  const twice = { allOf: [{ properties: { it: text } }, { properties: { it: { minLength: 1 } } }], required: ['it'] };
  assert.deepEqual(textsIn(twice, { it: 'x' }), ['"x"']);
  const once = { allOf: [{ properties: { it: text } }, { properties: { other: integer } }], required: ['it'] };
  assert.deepEqual(textsIn(once, { it: 'x', other: 1 }), ['x', '1']);
});

test('alternatives that only require properties do not hide them', () => {
  const properties = { a: text, b: integer };
  const either = { properties, anyOf: [{ required: ['a'] }, { required: ['b'] }] };
  const form = new FormUnderTest({ properties: { it: either } }, { it: { b: 1 } });
  assert.deepEqual(form.change({ 'a (optional)': 'x' }), { it: { a: 'x', b: 1 } });
});

test('a choice that nobody made is not made by the form', () => {
  const items = { type: 'object', properties: { size: { enum: ['s', 'm'] } }, required: ['size'] };
  const form = new FormUnderTest({ properties: { it: { type: 'array', items } } }, { it: [] });
  const page = form.press(form.open(), 'Add to it');
  assert.deepEqual(form.changes(page), { it: [{}] });
  assert.deepEqual(form.changes(page.choose('p.0.0.0', 'm')), { it: [{ size: 'm' }] });
});
