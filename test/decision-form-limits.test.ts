import * as assert from 'node:assert/strict';
import { html } from 'hono/html';
import { parametersForm, renderParametersForm } from '../config/sdk/callback/form/parameters-form.tsx';
import type { StoredSchema } from '../core/tool/json-schema.ts';
import { CALL, statusOf, withPage } from './kit/decision-page.ts';
import { HtmlForm } from './kit/html-form.ts';
import { FormUnderTest } from './kit/parameters-form.ts';
import { test } from './kit/test.ts';

const integer = { type: 'integer' };
const integers = (count: number) => Array.from({ length: count }, (_, index) => index);
const object = (properties: object) => ({ type: 'object', properties, required: Object.keys(properties) });
const list = (items: object) => ({ type: 'array', items });

const large = Object.fromEntries(integers(60).map((index) => [`f${index}`, { type: 'string' }]));
const LARGE = {
  inputSchema: object({
    amount: integer,
    numbers: list(integer),
    how: {
      oneOf: [object({ t: { const: 'small' }, x: { type: 'string' } }), object({ t: { const: 'large' }, ...large })],
    },
  }),
  parameters: { amount: 20, numbers: integers(950), how: { t: 'small', x: 'a' } },
};

test('a kind that makes the form too large is refused: nothing is decided, and what was typed is kept', () =>
  withPage(async (page) => {
    const form = (await page.show()).fill('p.0', '1').fill('reason', 'less').choose('p.2.c', 'large');
    for (const button of ['Approve', 'Show the fields of this kind']) {
      const { status, text } = await page.post(form.press(button));
      assert.deepEqual([status, await statusOf(page)], [422, 'waiting'], button);
      assert.match(text, /at most 1,000 fields and options/);
      const again = new HtmlForm(text);
      assert.deepEqual(
        ['form', 'p.0', 'p.2', 'p.2.v0.0', 'reason'].map((name) => again.value(name)),
        ['fields', '1', '0', 'a', 'less'],
      );
      const confirm = new HtmlForm((await page.post(again.press('Approve'))).text);
      assert.ok(confirm.names.includes('confirmed'));
    }
    const forged = form.press('Approve');
    forged.set('p.1', integers(2_000).join(','));
    for (const action of ['draw', 'approve']) {
      forged.set('action', action);
      const { status, text } = await page.post(forged);
      const again = new HtmlForm(text);
      assert.deepEqual([status, again.value('form'), again.value('p.0')], [422, 'fields', '1']);
      assert.equal((await page.post(again.press('Approve'))).status, 422);
    }
    assert.equal(await statusOf(page), 'waiting');
    assert.deepEqual(page.ran, []);
  }, LARGE));

test('an item too many is refused, and what was typed is kept', () =>
  withPage(
    async (page) => {
      let form = (await page.show()).fill('p.0', '1').fill('p.1.3', '77');
      const room = form.names.length;
      for (let status = 200; status === 200; ) {
        const answer = await page.post(form.press('Add to numbers'));
        status = answer.status;
        form = new HtmlForm(answer.text);
        assert.deepEqual([form.value('p.0'), form.value('p.1.3')], ['1', '77']);
        if (status !== 200) assert.deepEqual([status, /at most 1,000 fields/.test(answer.text)], [422, true]);
      }
      assert.equal(form.names.length, room + 3);
      assert.equal((await page.post(form.press('Remove numbers 1'))).status, 200);
      assert.equal(await statusOf(page), 'waiting');
    },
    {
      inputSchema: object({ amount: integer, numbers: list(integer) }),
      parameters: { amount: 20, numbers: integers(995) },
    },
  ));

test('a post of another form than the one that is drawn is never an approval without changes', () =>
  withPage(async (page) => {
    const form = (await page.show()).fill('p.1', '10');
    const kinds: readonly (readonly [kind: string | undefined, json: string])[] = [
      ['json', ''],
      ['json', '{"amount":10}'],
      ['kept', ''],
      ['', ''],
      [undefined, ''],
    ];
    for (const [kind, json] of kinds) {
      const sent = form.press('Approve');
      if (kind === undefined) sent.delete('form');
      else sent.set('form', kind);
      sent.set('modifiedParams', json);
      const { status, text } = await page.post(sent);
      assert.deepEqual([status, await statusOf(page)], [422, 'waiting'], kind);
      assert.ok(text.includes('Open the request again'));
      const again = new HtmlForm(text);
      assert.deepEqual([again.value('p.1'), again.value('modifiedParams')], ['10', json]);
      assert.equal((await page.post(again.press('Approve'))).status, 422);
    }
    assert.deepEqual(page.ran, []);
  }));

test('fields that come back without the schema, or to a request without a form, decide nothing', async () => {
  const posted = new URLSearchParams({ form: 'fields', 'p.0': '1' });
  assert.equal(parametersForm(undefined, { amount: 20 }, posted).kind, 'kept');
  assert.equal(parametersForm(undefined, { amount: 20 }, new URLSearchParams({ form: 'json' })).kind, 'json');
  await withPage(
    async (page) => {
      const sent = (await page.show()).press('Approve');
      for (const form of ['fields', 'json']) {
        sent.set('form', form);
        assert.deepEqual([(await page.post(sent)).status, await statusOf(page)], [422, 'waiting']);
      }
    },
    { agentTag: 'svc', tag: 'svc_db_migrate', parameters: CALL },
  );
});

const kindOf = (schema: object, parameters: object) =>
  parametersForm(schema as StoredSchema, parameters as Parameters<typeof parametersForm>[1]).kind;

test('a choice of more than 200 options is a text of JSON, however the schema lists them', () => {
  const names = integers(201).map((index) => `o${index}`);
  const shapes = (all: readonly string[]) => [
    { enum: all },
    { oneOf: all.map((name) => ({ const: name })) },
    { anyOf: all.map((name) => object({ t: { const: name } })) },
  ];
  const drawn = (all: readonly string[], value: unknown, shape: number) =>
    new FormUnderTest(object({ it: shapes(all)[shape] ?? {} }), { it: value }).open();
  for (const shape of [0, 1, 2]) {
    const value = shape === 2 ? { t: 'o7' } : 'o7';
    const isSelect = (form: HtmlForm) => form.elements.some(({ tagName }) => tagName === 'select');
    assert.deepEqual(
      [isSelect(drawn(names.slice(1), value, shape)), isSelect(drawn(names, value, shape))],
      [true, false],
    );
  }
  const form = new FormUnderTest(object({ it: { enum: names } }), { it: 'o7' });
  assert.deepEqual(form.change({}), {});
  assert.deepEqual(form.change({ it: '"o8"' }), { it: 'o8' });
});

test('options count as fields do', () => {
  const choice = { enum: integers(9) };
  const union = { oneOf: integers(9).map((index) => object({ t: { const: index } })) };
  const kinds = (items: object, value: unknown) =>
    [99, 100].map((count) => kindOf(object({ it: list(items) }), { it: integers(count).map(() => value) }));
  assert.deepEqual(kinds(choice, 1), ['fields', 'json']);
  assert.deepEqual(kinds(union, { t: 1 }), ['fields', 'json']);
});

test('a small schema never makes a large page', () => {
  const long = 'x'.repeat(30_000);
  const $defs = { many: { enum: integers(5_000) }, kinds: { anyOf: integers(2_000).map((one) => ({ const: one })) } };
  const refs = (name: string) => integers(900).map((index) => [`r${index}`, { $ref: `#/$defs/${name}` }]);
  const shapes: readonly (readonly [string, object, object])[] = [
    ['options', list({ enum: integers(5_000) }), integers(900)],
    ['long options', list({ enum: [long] }), integers(300).map(() => long.slice(1))],
    ['a long constant', list(object({ c: { const: long } })), integers(300).map(() => ({}))],
    ['a long name', list(object({ [long]: integer })), integers(400).map(() => ({ [long.slice(29_900)]: 1 }))],
    ['a long text', list({ type: 'integer', description: long }), integers(900)],
    ['references', object(Object.fromEntries(refs('many'))), {}],
    ['references to kinds', object(Object.fromEntries(refs('kinds'))), {}],
  ];
  for (const [shape, schema, value] of shapes) {
    const form = parametersForm({ ...object({ it: schema }), $defs } as StoredSchema, { it: value } as never);
    const { length } = String(html`${renderParametersForm(form, [], false)}`);
    assert.ok(length < 2_000_000, `${shape}: ${length}`);
  }
});
