import * as assert from 'node:assert/strict';
import { diffJson } from '../config/sdk/callback/form/diff.tsx';
import { parametersForm } from '../config/sdk/callback/form/parameters-form.tsx';
import { attribute, textOf } from './kit/html-form.ts';
import { FormUnderTest } from './kit/parameters-form.ts';
import { test } from './kit/test.ts';

const object = (properties: object, required: readonly string[] = Object.keys(properties)) => ({
  type: 'object',
  properties,
  required,
});
/** A form with one parameter, which the call has. */
const one = (schema: object, value: unknown, more: object = {}) =>
  new FormUnderTest({ ...object({ it: schema }), ...more }, { it: value });
const problemsOf = (form: FormUnderTest, texts: Readonly<Record<string, string>>): string => {
  try {
    return `changed to ${JSON.stringify(form.change(texts))}`;
  } catch (error) {
    return (error as Error).message;
  }
};

test('numbers keep their type, and one that a double cannot hold is a problem', () => {
  const number = one({ type: 'number' }, 20);
  for (const [text, value] of [
    ['7', 7],
    ['1e2', 100],
    ['-0.5', -0.5],
    [' 7 ', 7],
    ['7\n', 7],
    ['20.0', undefined],
    ['2e1', undefined],
  ] as const) {
    assert.deepEqual(number.change({ it: text }), value === undefined ? {} : { it: value }, text);
  }
  assert.match(problemsOf(number, { it: '9007199254740993' }), /^it: .*would become 9007199254740992/);
  for (const text of ['007', '0x10', '1,5', 'seven', 'null', '1e400', 'NaN', '7 8', '--7', '.5', '٣']) {
    assert.match(problemsOf(number, { it: text }), /^it: (This is not a number|The number is too long)/, text);
  }
  assert.deepEqual(one({ type: ['number', 'null'] }, 20).change({ it: 'null' }), { it: null });
  assert.deepEqual(one({ type: ['number', 'null'] }, null).change({ it: '7' }), { it: 7 });
});

test('texts stay texts, and line breaks stay as they were', () => {
  const text = one({ type: 'string' }, '20');
  for (const value of ['007', 'true', 'null', '', ' ', '[1]', 'ünï 🎉', '\n\nfirst', '<b>"&amp;\'', 'a\nb\n']) {
    assert.deepEqual(text.change({ it: value }), { it: value });
  }
  for (const value of [
    'a\nb',
    'a\r\nb',
    '\na',
    '\r\n\r\na',
    'a\rb',
    'a\r\nb\nc',
    '\n',
    '\ta  b ',
    'x\u200by',
    '\u202ea',
    '',
  ]) {
    const form = one({ type: 'string' }, value);
    assert.deepEqual(form.change({}), {}, JSON.stringify(value));
  }
  assert.deepEqual(one({ type: 'string' }, 'a\r\nb').change({ it: 'a\r\nc\r\nd' }), { it: 'a\r\nc\r\nd' });
  assert.deepEqual(one({ type: 'string' }, 'a\nb').change({ it: 'a\r\nc' }), { it: 'a\nc' });
});

test('a text with characters that nobody sees is edited as JSON, which shows them', () => {
  const hidden = one({ type: 'string' }, 'pay\u202elap');
  const form = hidden.open();
  assert.equal(form.value('p.0'), '"pay\\u202elap"');
  assert.deepEqual(hidden.change({ it: '"paypal"' }), { it: 'paypal' });
  assert.match(problemsOf(hidden, { it: 'paypal' }), /^it: It is not JSON/);
});

test('formats are checked, but not those of a value that was not changed', () => {
  for (const [format, valid, invalid] of [
    ['date', ['2026-11-28', '2024-02-29'], ['2026-02-29', '28.11.2026', 'tomorrow', '']],
    [
      'date-time',
      ['2026-11-28T09:30:00Z', '2026-11-28t09:30:00.5+02:00'],
      ['2026-11-28 09:30', '2026-02-30T09:30:00Z'],
    ],
    ['email', ['ann@acme.example'], ['ann', 'ann@', 'a b@c']],
    ['uri', ['https://a.example/b?c#d', 'urn:isbn:1'], ['a.example', 'https://', 'https://a b']],
  ] as const) {
    for (const text of valid) assert.deepEqual(one({ type: 'string', format }, 'x').change({ it: text }), { it: text });
    for (const text of invalid)
      assert.match(problemsOf(one({ type: 'string', format }, 'x'), { it: text }), /not valid/);
    assert.deepEqual(one({ type: 'string', format }, 'as the model wrote it').change({}), {});
  }
  const date = one({ type: 'string', format: 'date' }, '2026-11-28').open();
  assert.ok(date.elements.some((element) => attribute(element, 'type') === 'date'));
});

test('choices: their values, and not what their labels look like', () => {
  const form = (schema: object, value: unknown) => ({ under: one(schema, value), page: one(schema, value).open() });
  const { under, page } = form({ enum: ['1', 1, null, 'null', true] }, 1);
  for (const [label, value] of [
    ['"1"', '1'],
    ['null', null],
    ['"null"', 'null'],
    ['true', true],
  ] as const) {
    assert.deepEqual(under.changes(page.choose('p.0', label)), { it: value });
  }
  assert.deepEqual(under.changes(page.choose('p.0', '1')), {});
  const flag = form({ type: 'boolean' }, true);
  assert.deepEqual(flag.under.changes(flag.page.choose('p.0', 'false')), { it: false });
  const titled = form(
    {
      oneOf: [
        { const: 'keep', title: 'Keep' },
        { const: 'drop', title: 'Keep' },
      ],
    },
    'keep',
  );
  assert.deepEqual(titled.under.changes(titled.page.choose('p.0', 'Keep (drop)')), { it: 'drop' });
  // A value that is no option, which a form of options could not show.
  assert.equal(form({ enum: ['a'] }, 'b').page.value('p.0'), '"b"');
});

test('what is left out stays left out, and an empty text is a text', () => {
  const schema = object({ note: { type: 'string' }, count: { type: 'integer' }, size: { enum: ['s', 'm'] } }, []);
  const form = new FormUnderTest(schema, {});
  assert.deepEqual(form.change({}), {});
  assert.deepEqual(form.change({ 'note (optional)': 'x' }), { note: 'x' });
  assert.deepEqual(form.change({ 'count (optional)': '3' }), { count: 3 });
  const page = form.open();
  assert.deepEqual(form.changes(page.choose('p.0.s', 'Text')), { note: '' });
  // It cannot be removed: changes are merged by name.
  const present = new FormUnderTest(schema, { note: 'x' }).open();
  assert.throws(() => present.choose('p.0.s', 'Left out'), /no option/);

  const nested = new FormUnderTest(object({ it: schema }), { it: { note: 'x', size: 's' } });
  assert.deepEqual(nested.changes(nested.open().choose('p.0.0.s', 'Left out')), { it: { size: 's' } });
  assert.deepEqual(nested.changes(nested.open().choose('p.0.2', 'Left out')), { it: { note: 'x' } });
  const contradicted = nested.read(nested.open().choose('p.0.0.s', 'Left out').fill('p.0.0', 'y'));
  assert.match(JSON.stringify(contradicted), /"it\.note","text":"There is a text here/);
});

test('null, and how it differs from nothing', () => {
  for (const schema of [
    { type: ['string', 'null'] },
    { anyOf: [{ type: 'string' }, { type: 'null' }] },
    { oneOf: [{ const: null }, { type: 'string' }] },
  ]) {
    const text = one(schema, 'x');
    assert.deepEqual(text.changes(text.open().choose('p.0.s', 'null')), { it: null });
    const nothing = one(schema, null);
    assert.deepEqual(nothing.change({}), {});
    assert.deepEqual(nothing.change({ it: 'null' }), { it: 'null' });
    assert.deepEqual(nothing.changes(nothing.open().choose('p.0.s', 'Text')), { it: '' });
  }
});

test('lists: items are added, changed and removed, and the others stay exactly as they are', () => {
  const texts = one({ type: 'array', items: { type: 'string' } }, ['a\r\nb', '\u200b', 'c']);
  assert.deepEqual(texts.changes(texts.press(texts.open(), 'Remove it 1')), { it: ['\u200b', 'c'] });
  const added = texts.press(texts.open(), 'Add to it');
  assert.deepEqual(texts.changes(added.fill('p.0.3', '007')), { it: ['a\r\nb', '\u200b', 'c', '007'] });
  assert.deepEqual(texts.changes(texts.press(added, 'Remove it 4')), {});
  let all = texts.open();
  for (const position of [1, 1, 1]) all = texts.press(all, `Remove it ${position}`);
  assert.deepEqual(texts.changes(all), { it: [] });
  const items = object({ sku: { type: 'string' }, count: { type: 'integer' } }, ['sku']);
  const orders = one({ type: 'array', items }, [{ sku: 'x', count: 1 }, { sku: 'y' }]);
  const page = orders.press(orders.press(orders.open(), 'Remove it 1'), 'Add to it');
  assert.deepEqual(page.named('sku'), ['p.0.1.0', 'p.0.2.0']);
  assert.deepEqual(orders.changes(page.fill('p.0.2.0', 'z').fill('p.0.1.1', '5')), {
    it: [{ sku: 'y', count: 5 }, { sku: 'z' }],
  });
  const counts = one({ type: 'array', items: { type: 'integer' } }, [1]);
  assert.match(JSON.stringify(counts.read(counts.press(counts.open(), 'Add to it'))), /An item has no value/);
});

test('objects are added, left out and set to null; so are lists', () => {
  const address = {
    ...object({ city: { type: 'string' }, zip: { type: 'string' } }, ['city']),
    type: ['object', 'null'],
  };
  const schema = object({ to: object({ address, tags: { type: 'array', items: { type: 'string' } } }, []) });
  const form = new FormUnderTest(schema, { to: {} });
  const page = form.press(form.open(), 'Add address');
  assert.deepEqual(form.changes(page.fill('p.0.0.0', 'Cork')), { to: { address: { city: 'Cork' } } });
  assert.deepEqual(form.changes(form.press(page, 'Leave out address')), {});
  assert.deepEqual(form.changes(form.press(form.open(), 'Set address to null')), { to: { address: null } });
  assert.deepEqual(form.changes(form.press(form.open(), 'Add tags')), { to: { tags: [] } });
  const listed = form.press(form.press(form.open(), 'Add tags'), 'Add to tags');
  assert.deepEqual(form.changes(listed.fill('p.0.1.0', 'x')), { to: { tags: ['x'] } });
});

test('one of several objects, by the constant in which they differ', () => {
  const card = object({ kind: { const: 'card' }, number: { type: 'string' } });
  const bank = object({ kind: { const: 'bank' }, iban: { type: 'string' }, note: { type: 'string' } }, [
    'kind',
    'iban',
  ]);
  const form = one(
    { $ref: '#/$defs/pay' },
    { kind: 'card', number: '42' },
    { $defs: { pay: { oneOf: [card, bank] } } },
  );
  assert.deepEqual(form.change({ number: '43' }), { it: { kind: 'card', number: '43' } });
  const switched = form.open().choose('p.0.c', 'bank');
  // Approving at once would decide about fields that were never shown.
  assert.match(JSON.stringify(form.read(switched)), /The fields of bank are shown now/);
  const page = form.press(switched, 'Show the fields of this kind');
  assert.deepEqual(form.changes(page.fill('p.0.v1.0', 'DE1')), { it: { kind: 'bank', iban: 'DE1' } });
  const back = form.press(page.choose('p.0.c', 'card'), 'Show the fields of this kind');
  assert.deepEqual(form.changes(back), {});
});

test('whatever has no control is JSON, in its branch only', () => {
  const schema = object({
    free: { type: 'object' },
    either: { type: ['string', 'integer'] },
    pair: { type: 'array', prefixItems: [{ type: 'string' }] },
    any: {},
    always: true,
    known: object({ a: { type: 'integer' } }),
    name: { type: 'string' },
  });
  const parameters = {
    free: { x: [1] },
    either: '7',
    pair: ['a', 1],
    any: null,
    always: { y: 1 },
    known: { a: 1, more: { z: '\u200b' } },
    name: 'n',
  };
  const form = new FormUnderTest(schema, parameters);
  assert.deepEqual(form.change({}), {});
  assert.deepEqual(form.change({ either: '7' }), { either: 7 });
  assert.deepEqual(form.change({ free: '{"x":[1]}' }), {});
  assert.deepEqual(form.change({ any: '"x"', name: 'm' }), { any: 'x', name: 'm' });
  assert.deepEqual(form.change({ a: '2' }), { known: { a: 2, more: { z: '\u200b' } } });
  assert.match(problemsOf(form, { free: '{"x":9007199254740993}' }), /^free: The number 9007199254740993/);
  assert.match(problemsOf(form, { free: '{"x":1,"x":2}' }), /occurs twice/);
  assert.match(problemsOf(form, { free: '{' }), /^free: It is not JSON/);
});

test('references, also those that repeat themselves, and more fields than a person can use', () => {
  const node = object({ name: { type: 'string' }, next: { $ref: '#/$defs/node' } });
  const form = one({ $ref: '#/$defs/node' }, { name: 'a' }, { $defs: { node } });
  assert.deepEqual(form.change({ name: 'b' }), { it: { name: 'b' } });
  const cycle = one({ $ref: '#/$defs/a' }, 'x', { $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } });
  assert.deepEqual(cycle.change({ it: '"y"' }), { it: 'y' });
  const many = one(
    { type: 'array', items: { type: 'integer' } },
    Array.from({ length: 2_000 }, (_, index) => index),
  );
  assert.deepEqual(many.open().names, ['view', 'form', 'modifiedParams']);
  const long = one({ type: 'string' }, 'ü'.repeat(10_000));
  assert.deepEqual(long.open().names, ['view', 'form', 'modifiedParams']);
  assert.deepEqual(long.changes(long.open().fill('modifiedParams', '{"it":"x"}')), { it: 'x' });
});

test('without the definition of the tool, the changes are JSON', () => {
  assert.deepEqual(parametersForm(undefined, { it: 1 }), { kind: 'json', text: '' });
});

test('no text of a model is markup, a name or an id, and no name of a parameter is a field of the form', () => {
  const nasty = '"><script>alert(1)</script>\u202e&quot;';
  const names = [
    'action',
    'view',
    'reason',
    'person',
    'form',
    'modifiedParams',
    'confirmed',
    '__proto__',
    'constructor',
    nasty,
  ];
  const type = { type: 'string', title: nasty, description: nasty, enum: [nasty, 'x'] };
  const properties = Object.fromEntries(names.map((name) => [name, type]));
  const union = { oneOf: [object({ t: { const: nasty }, [nasty]: type }), object({ t: { const: 'b' } })] };
  const form = new FormUnderTest(
    object({ ...properties, list: { type: 'array', items: type }, union }, names),
    Object.fromEntries([
      ...names.map((name) => [name, nasty]),
      ['list', [nasty]],
      ['union', { t: nasty, [nasty]: nasty }],
      [`${nasty}2`, { [nasty]: nasty }],
    ]),
  );
  const page = form.open();
  assert.deepEqual(form.changes(page), {});
  assert.ok(page.elements.every(({ tagName }) => tagName !== 'script'));
  for (const name of page.names) assert.match(name, /^(view|form|p(\.\w+)+)$/);
  for (const element of page.elements) {
    for (const { name, value } of element.attrs) {
      if (name !== 'aria-label') assert.ok(!value.includes('script'), `${element.tagName} ${name}="${value}"`);
    }
  }
  assert.ok(page.elements.some((element) => element.tagName === 'label' && textOf(element).includes('\\u{202e}')));
  const changed = form.changes(page.choose('p.7', 'x'));
  assert.deepEqual(Object.entries(changed), [['__proto__', 'x']]);
  assert.equal(({} as { x?: string }).x, undefined);
});

test('problems of the tool are at their fields', () => {
  const items = object({ sku: { type: 'string' } });
  const form = one({ type: 'array', items }, [{ sku: 'a' }, { sku: 'b' }]);
  const page = form.open(undefined, [{ field: 'p.0.1.0', path: 'it[1].sku', text: '<b>' }]);
  const field = page.elements.find((element) => attribute(element, 'id') === 'p.0.1.0');
  assert.equal(field && attribute(field, 'aria-invalid'), 'true');
  const described = (field && attribute(field, 'aria-describedby'))?.split(' ') ?? [];
  const said = page.elements.filter((element) => described.includes(attribute(element, 'id') ?? ''));
  assert.ok(said.map(textOf).includes('<b>'));
});

test('what differs, by path', () => {
  const path = (before: unknown, after: unknown) =>
    diffJson(before as never, after as never).map((change) => [change.path.join('/'), change.before, change.after]);
  assert.deepEqual(path({ a: 1, b: { c: [1, 2] } }, { b: { c: [1, 2] }, a: 1 }), []);
  assert.deepEqual(path({ a: 1, b: { c: [1, 2, 3] } }, { a: '1', b: { c: [1, 4, 3] } }), [
    ['a', 1, '1'],
    ['b/c/1', 2, 4],
  ]);
  assert.deepEqual(path([1, 2, 3], [2, 3]), [['0', 1, undefined]]);
  assert.deepEqual(path([1, 3], [1, 2, 3]), [['1', undefined, 2]]);
  assert.deepEqual(path({ a: null }, { b: null }), [
    ['a', null, undefined],
    ['b', undefined, null],
  ]);
  assert.deepEqual(path({ a: [] }, { a: {} }), [['a', [], {}]]);
});
