import * as assert from 'node:assert/strict';
import { fieldOf } from '../config/sdk/callback/form/field-type.ts';
import { test } from './kit/test.ts';

test('a field says which values its schema allows', () => {
  for (const [schema, limits] of [
    [{ type: 'number' }, []],
    [{ type: 'integer', minimum: 1, maximum: 500 }, ['At least 1, at most 500.']],
    [{ type: 'number', exclusiveMinimum: 0, multipleOf: 0.5 }, ['More than 0.', 'A multiple of 0.5.']],
    [{ type: ['number', 'null'], exclusiveMaximum: 10 }, ['Less than 10.']],
    [
      { type: 'string', minLength: 2, maxLength: 20, pattern: '^[a-z]+$' },
      ['2 to 20 characters.', 'It matches ^[a-z]+$.'],
    ],
    [{ type: 'string', minLength: 1 }, ['At least 1 character.']],
    [{ type: 'string', minLength: 3, maxLength: 3 }, ['3 characters.']],
    [{ type: 'string', pattern: '\u202e' }, ['It matches \\u{202e}.']],
    [{ type: 'array', items: {}, minItems: 0, maxItems: 1, uniqueItems: true }, ['At most 1 item.', 'No item twice.']],
    [{ anyOf: [{ type: 'number', minimum: 2 }, { type: 'null' }] }, ['At least 2.']],
    [{ enum: [1, 2], minimum: 1 }, []],
    [{ type: 'number', minimum: 'x' }, []],
  ] as const) {
    assert.deepEqual(fieldOf(schema, schema).limits, limits, JSON.stringify(schema));
  }
});
