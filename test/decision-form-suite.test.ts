import * as assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { isPlainObject, type Json } from '../core/json.ts';
import { assertRoundTrip } from './kit/form-changes.ts';
import { test } from './kit/test.ts';

/** A group of the JSON Schema Test Suite, with the values that its schema allows and those that it does not. */
type Group = readonly [
  draft: string,
  file: string,
  description: string,
  schema: Json,
  valid: readonly Json[],
  invalid: readonly Json[],
];

const { groups } = JSON.parse(readFileSync(new URL('./kit/json-schema-suite.json', import.meta.url), 'utf8')) as {
  readonly groups: readonly Group[];
};

/** With its references to the document as they are where it is the schema of a parameter. */
function asParameter(schema: Json, key?: string): Json {
  if (key === '$ref' && typeof schema === 'string') return schema.replace(/^#(?=\/|$)/, '#/properties/value');
  if (Array.isArray(schema)) return schema.map((one) => asParameter(one));
  if (!isPlainObject(schema)) return schema;
  return Object.fromEntries(Object.entries(schema).map(([name, one]) => [name, asParameter(one as Json, name)]));
}

for (const draft of ['draft7', 'draft2020-12']) {
  test(`what goes in comes out, and a change is only that: the JSON Schema Test Suite, ${draft}`, () => {
    const own = groups.filter(([one]) => one === draft);
    assert.ok(own.length >= 250);
    let changes = 0;
    for (const [, file, description, schema, valid, invalid] of own) {
      for (const value of [...valid, ...invalid]) {
        const parameter = { type: 'object', properties: { value: asParameter(schema) }, required: ['value'] };
        try {
          changes += assertRoundTrip(parameter, { value });
          if (isPlainObject(schema) && isPlainObject(value)) changes += assertRoundTrip(schema, value);
        } catch (error) {
          throw new Error(`${file}: ${description}: ${JSON.stringify(value)}`, { cause: error });
        }
      }
    }
    assert.ok(changes > 1_000, String(changes));
  }, 240_000);
}
