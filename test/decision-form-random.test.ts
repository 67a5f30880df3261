import * as assert from 'node:assert/strict';
import fc from 'fast-check';
import { isPlainText } from '../config/sdk/callback/form/field-text.ts';
import { canonicalJson } from '../core/json.ts';
import { FormUnderTest } from './kit/parameters-form.ts';
import { test } from './kit/test.ts';

/** A schema with values that it allows. */
interface Sample {
  readonly schema: object | boolean;
  readonly values: fc.Arbitrary<unknown>;
}

const RUNS = { numRuns: 300 };
const MARKUP = [
  '</textarea>',
  '"><script>',
  '&amp;',
  '\n',
  '\r\n',
  '\r',
  '\t',
  '\u202e',
  '\u200b',
  ' ',
  '007',
  'null',
  "'",
];
const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.array(fc.constantFrom(...MARKUP), { maxLength: 4 }).map((parts) => parts.join('')),
);
const name = fc.oneof(
  fc.constantFrom('action', 'view', 'a.b', 'a[0]', '', ' ', '"><script>', '\n', 'toString', 'p.0'),
  fc.string({ minLength: 1, maxLength: 6 }),
);
const number = fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer());
const any = fc.jsonValue({ maxDepth: 2 });

const leaf: fc.Arbitrary<Sample> = fc.oneof(
  fc.constant({ schema: { type: 'string' }, values: text }),
  fc
    .constantFrom('date', 'date-time', 'uri', 'email')
    .map((format) => ({ schema: { type: 'string', format }, values: text })),
  fc.constant({ schema: { type: 'string', format: 'date' }, values: fc.constantFrom('2026-11-28', '1999-01-01') }),
  fc.constant({ schema: { type: 'number' }, values: number }),
  fc.constant({ schema: { type: 'integer' }, values: fc.integer() }),
  fc.constant({ schema: { type: 'boolean' }, values: fc.boolean() }),
  fc.constant({ schema: { type: 'null' }, values: fc.constant(null) }),
  fc.constant({ schema: { type: ['integer', 'string'] }, values: fc.oneof(fc.integer(), text) }),
  fc.constantFrom({}, true, { type: 'object' }, { $comment: 'x' }).map((schema) => ({
    schema,
    values: typeof schema === 'object' && 'type' in schema ? fc.dictionary(text, any, { maxKeys: 3 }) : any,
  })),
  fc.uniqueArray(any, { minLength: 1, maxLength: 4, selector: (value) => JSON.stringify(value) }).map((values) => ({
    schema: { enum: values },
    values: fc.constantFrom(...values),
  })),
);

const { sample } = fc.letrec<{ sample: Sample }>((tie) => ({
  sample: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    { weight: 3, arbitrary: leaf },
    { weight: 1, arbitrary: tie('sample').chain(nullable) },
    { weight: 2, arbitrary: tie('sample').map(listOf) },
    { weight: 3, arbitrary: objectOf(tie('sample')) },
    { weight: 1, arbitrary: fc.tuple(objectOf(tie('sample')), objectOf(tie('sample'))).map(unionOf) },
  ),
}));

function nullable({ schema, values }: Sample): fc.Arbitrary<Sample> {
  const all = fc.option(values);
  return fc.constantFrom(
    { schema: { anyOf: [schema, { type: 'null' }] }, values: all },
    { schema: { oneOf: [{ const: null }, { allOf: [schema], description: 'x' }] }, values: all },
  );
}

function listOf({ schema, values }: Sample): Sample {
  return { schema: { type: 'array', items: schema }, values: fc.array(values, { maxLength: 4 }) };
}

function objectOf(member: fc.Arbitrary<Sample>): fc.Arbitrary<Sample> {
  const members = fc.uniqueArray(fc.tuple(name, member, fc.boolean()), { maxLength: 4, selector: ([one]) => one });
  return members.map((all) => {
    const values = Object.fromEntries(all.map(([key, { values }]) => [key, values]));
    const required = all.filter(([, , isRequired]) => isRequired).map(([key]) => key);
    const properties = Object.fromEntries(all.map(([key, { schema }]) => [key, schema]));
    return {
      schema: { type: 'object', properties, required },
      values: fc.record(values, { requiredKeys: required, noNullPrototype: true }),
    };
  });
}

function unionOf([one, other]: [Sample, Sample]): Sample {
  const tagged = ({ schema, values }: Sample, tag: string): Sample => {
    const { properties, required } = schema as { readonly properties: object; readonly required: readonly string[] };
    return {
      schema: { type: 'object', properties: { ...properties, kind: { const: tag } }, required: [...required, 'kind'] },
      values: values.map((value) => ({ ...(value as object), kind: tag })),
    };
  };
  const both = [tagged(one, 'one'), tagged(other, 'other')];
  return { schema: { oneOf: both.map(({ schema }) => schema) }, values: fc.oneof(...both.map(({ values }) => values)) };
}

const plain = (value: unknown) => JSON.parse(JSON.stringify(value)) as unknown;

test('a form that nobody touches changes nothing, whatever the schema and the value', () => {
  fc.assert(
    fc.property(
      objectOf(sample).chain(({ schema, values }) => fc.tuple(fc.constant(schema), values)),
      ([schema, given]) => {
        const parameters = plain(given) as object;
        const form = new FormUnderTest(schema as object, parameters);
        const page = form.open();
        assert.deepEqual(form.changes(page), {});
        // Shown again, it is the same.
        const again = form.open(page.press('Approve'));
        assert.deepEqual(form.changes(again), {});
      },
    ),
    RUNS,
  );
});

/** What is typed, and the value that it then has in place of another one. */
interface Typed {
  readonly schema: object;
  readonly before: unknown;
  readonly typed: string;
  readonly after: unknown;
}

const withLf = (value: string) => value.replace(/\r\n?/g, '\n');
const visible = text.filter(isPlainText);
const typedText = fc.record({ before: visible, typed: visible }).map(({ before, typed }) => {
  const lines = withLf(typed);
  const isSame = lines === withLf(before);
  const after = isSame ? before : before.includes('\r\n') ? lines.replaceAll('\n', '\r\n') : lines;
  return { schema: { type: 'string' }, before, typed, after };
});
const typedNumber = fc.record({ before: number, after: number }).map(({ before, after }) => ({
  schema: { type: 'number' },
  before,
  typed: ` ${JSON.stringify(after)} `,
  after,
}));
const typedJson = fc.record({ before: any, after: any }).map(({ before, after }) => ({
  schema: {},
  before,
  typed: JSON.stringify(after, null, 1),
  after,
}));

const PLACES = {
  parameter: { field: 'p.0', schema: (one: object) => one, value: (one: unknown) => one },
  member: {
    field: 'p.0.0',
    schema: (one: object) => ({ type: 'object', properties: { m: one } }),
    value: (m: unknown) => ({ m, rest: 'a\r\nb\n' }),
  },
  item: {
    field: 'p.0.1',
    schema: (one: object) => ({ type: 'array', items: one }),
    value: (one: unknown) => ['\u200b', one],
  },
} as const;

test('what is typed into a field is its value, type for type, and nothing else changes', () => {
  fc.assert(
    fc.property(
      fc.oneof<fc.Arbitrary<Typed>[]>(typedText, typedNumber, typedJson),
      fc.constantFrom(...Object.values(PLACES)),
      ({ schema, before, typed, after }, { field, schema: schemaAt, value }) => {
        const properties = { it: schemaAt(schema), other: { type: 'integer' } };
        const form = new FormUnderTest({ type: 'object', properties }, { it: value(plain(before)), other: 1 });
        const changes = form.changes(form.open().fill(field, typed));
        const isChanged = canonicalJson(before) !== canonicalJson(after);
        assert.deepEqual(changes, isChanged ? { it: value(plain(after)) } : {});
      },
    ),
    RUNS,
  );
});

test('random text in random fields has problems at fields, or is read the same when it is shown again', () => {
  fc.assert(
    fc.property(
      objectOf(sample).chain(({ schema, values }) => fc.tuple(fc.constant(schema), values)),
      fc.array(fc.tuple(fc.nat(), text), { maxLength: 3 }),
      ([schema, given], typed) => {
        const parameters = plain(given) as object;
        const form = new FormUnderTest(schema as object, parameters);
        const page = form.open();
        const names = page.names.filter((one) => one.startsWith('p.'));
        for (const [at, value] of typed) if (names.length > 0) page.fill(names[at % names.length] ?? '', value);
        const read = form.read(page);
        const again = form.open(page.press('Approve'));
        if ('problems' in read) {
          assert.ok(read.problems.every(({ field }) => field !== undefined && again.names.includes(field)));
          return;
        }
        // A second look at what was posted says the same.
        assert.deepEqual(form.read(again), read);
      },
    ),
    RUNS,
  );
});
