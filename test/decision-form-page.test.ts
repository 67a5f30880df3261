import * as assert from 'node:assert/strict';
import { CALL, statusOf, withPage } from './kit/decision-page.ts';
import { attribute, HtmlForm, textOf } from './kit/html-form.ts';
import { test } from './kit/test.ts';

/** The text of the page that each of these elements has. */
const textsOf = (page: HtmlForm, tagName: string) =>
  page.elements.filter((element) => element.tagName === tagName).map((element) => textOf(element).trim());

/** The paths of the changes. Before them, `dt` are the names of facts. */
const changesOn = (page: HtmlForm) => textsOf(page, 'dt').slice(5);

const labelled = (before: string, after: string) => `Before${before}After${after}`;

test('unchanged, it approves at once, with a reason', () =>
  withPage(async (page) => {
    const form = (await page.show()).fill('reason', 'fine');
    const { status, text } = await page.post(form.press('Approve'));
    assert.equal(status, 200);
    assert.ok(text.includes('The request is approved') && !text.includes('Changes'));
    assert.equal((await page.outcome).status, 'completed');
    assert.deepEqual(page.ran, [CALL]);
    const { modifiedParams, decisionReason } = await page.svc.approvals.get(page.request.requestId);
    assert.deepEqual([modifiedParams, decisionReason], [undefined, 'fine']);
  }));

test('changes are confirmed first, by path; what was confirmed is what runs', () =>
  withPage(async (page) => {
    const form = (await page.show()).fill('reason', 'half\nis fair').fill('p.1', '1e1').fill('p.2.0.0', 'chair');
    const { status, text } = await page.post(form.press('Approve'));
    assert.equal(status, 200);
    assert.equal(await statusOf(page), 'waiting');
    const confirm = new HtmlForm(text);
    assert.match(text, /Your reason<\/h2><blockquote>half\nis fair<[\s\S]*<button name="action" value="approve">/);
    assert.deepEqual(changesOn(confirm), ['amount', 'items[0].sku']);
    assert.deepEqual(textsOf(confirm, 'pre'), ['20', '10', '"lamp"', '"chair"']);

    const back = await page.post(confirm.press('Back to the form'));
    const again = new HtmlForm(back.text);
    assert.deepEqual([back.status, again.value('p.1'), again.value('reason')], [200, '1e1', 'half\nis fair']);
    assert.equal(await statusOf(page), 'waiting');

    const decided = await page.post(confirm.press('Approve with these changes'));
    assert.equal(decided.status, 200, decided.text);
    assert.ok(decided.text.includes('items[0].sku'));
    assert.equal((await page.outcome).status, 'completed');
    assert.deepEqual(page.ran, [{ ...CALL, amount: 10, items: [{ sku: 'chair' }] }]);
    const { modifiedParams, decisionReason } = await page.svc.approvals.get(page.request.requestId);
    assert.deepEqual(modifiedParams, { amount: 10, items: [{ sku: 'chair' }] });
    assert.equal(decisionReason, 'half\nis fair');

    // The same page again, and another one that is late.
    assert.equal((await page.post(confirm.press('Approve with these changes'))).status, 200);
    assert.equal((await page.post(form.fill('p.1', '11').press('Approve'))).status, 409);
    const closed = await page.post(form.fill('p.1', 'x').press('Approve'));
    assert.ok(closed.text.includes('was approved') && !closed.text.includes('lamp'));
  }));

test('a confirmation counts for what it showed only', () =>
  withPage(async (page) => {
    const form = (await page.show()).fill('p.1', '10');
    const confirm = new HtmlForm((await page.post(form.press('Approve'))).text);
    for (const [name, text] of [
      ['p.1', '99'],
      ['p.0', 'eve'],
      ['confirmed', 'x'],
    ] as const) {
      const sent = confirm.press('Approve with these changes');
      sent.set(name, text);
      const { status, text: answer } = await page.post(sent);
      assert.equal(status, 200);
      assert.ok(answer.includes('Approve with these changes') && answer.includes('Nothing was decided'));
    }
    const forged = confirm.press('Approve with these changes');
    forged.set('view', 'v1.forged');
    assert.equal((await page.post(forged)).status, 400);
    assert.equal(await statusOf(page), 'waiting');
    assert.deepEqual(page.ran, []);
  }));

test('problems are at their fields, all that was typed is kept, and nothing is decided', () =>
  withPage(async (page) => {
    const first = await page.show();
    const form = first.fill('p.1', 'lots').fill('p.3', ' typed\n<b>').fill('reason', '\nwhy');
    const { status, text } = await page.post(form.press('Approve'));
    assert.equal(status, 422);
    const again = new HtmlForm(text);
    assert.deepEqual(
      ['p.1', 'p.3', 'reason'].map((name) => again.value(name)),
      ['lots', ' typed\n<b>', '\nwhy'],
    );
    const invalid = (found: HtmlForm) =>
      found.elements
        .filter((element) => attribute(element, 'aria-invalid') === 'true')
        .map((one) => attribute(one, 'id'));
    assert.deepEqual(invalid(again), ['p.1']);
    const links = again.elements.filter(({ tagName }) => tagName === 'a');
    assert.deepEqual(
      links.map((link) => [attribute(link, 'href'), textOf(link)]),
      [['#p.1', 'amount: This is not a number. Write it as 1250 or 0.5.']],
    );
    assert.ok(again.elements.some((element) => attribute(element, 'role') === 'alert'));

    // What the schema of the tool does not allow.
    const wrong = again.fill('p.1', '101').fill('p.0', 'x').fill('p.2.0.0', 'UPPER');
    const refused = await page.post(wrong.press('Approve'));
    assert.equal(refused.status, 422);
    const last = new HtmlForm(refused.text);
    assert.deepEqual(invalid(last), ['p.0', 'p.1', 'p.2.0.0']);
    assert.deepEqual([last.value('p.1'), last.value('p.2.0.0')], ['101', 'UPPER']);

    // Both in one answer.
    const both = new HtmlForm((await page.post(last.fill('p.1', 'lots').press('Approve'))).text);
    assert.deepEqual(invalid(both), ['p.0', 'p.1', 'p.2.0.0']);
    assert.deepEqual(
      both.elements.filter(({ tagName }) => tagName === 'a').map((link) => textOf(link).split(':')[0]),
      ['to', 'amount', 'items[0].sku'],
      'in the order of the fields',
    );
    assert.equal(await statusOf(page), 'waiting');
  }));

test('buttons of lists and the Enter key show the form again, with all that was typed, and decide nothing', () =>
  withPage(async (page) => {
    const form = (await page.show()).fill('p.0', 'bo').fill('reason', 'r');
    for (const fields of [form.pressEnter(), form.press('Add to items'), form.press('Remove items 1')]) {
      const { status, text } = await page.post(fields);
      const again = new HtmlForm(text);
      assert.deepEqual([status, again.value('p.0'), again.value('reason')], [200, 'bo', 'r']);
      assert.ok(!text.includes('role="alert"') && !text.includes('Approve with these changes'));
      const unseen = new URLSearchParams(fields);
      unseen.delete('view');
      assert.equal((await page.post(unseen)).status, 400);
    }
    const added = new HtmlForm((await page.post(form.press('Add to items'))).text).fill('p.2.1.0', 'sofa');
    const confirm = new HtmlForm((await page.post(added.press('Approve'))).text);
    assert.deepEqual(textsOf(confirm, 'dd').slice(5), [
      labelled('"ann"', '"bo"'),
      labelled('not present', '{\n  "sku": "sofa"\n}'),
    ]);
    const removed = new HtmlForm((await page.post(added.press('Remove items 1'))).text);
    const fewer = new HtmlForm((await page.post(removed.press('Remove items 1'))).text).press('Approve');
    const { text: without } = await page.post(fewer);
    assert.equal(textsOf(new HtmlForm(without), 'dd').at(-1), labelled('{\n  "sku": "lamp"\n}', 'removed'));
    assert.equal((await page.post(confirm.press('Approve with these changes'))).status, 200);
    assert.equal((await page.outcome).status, 'completed');
    assert.deepEqual(page.ran, [{ ...CALL, to: 'bo', items: [{ sku: 'lamp' }, { sku: 'sofa' }] }]);
  }));

test('a rejection never reads the fields', () =>
  withPage(async (page) => {
    const form = (await page.show()).fill('p.1', 'no number').fill('p.2.0.0', 'UPPER').fill('reason', 'no');
    const { status, text } = await page.post(form.press('Reject'));
    assert.equal(status, 200, text);
    assert.equal((await page.outcome).status, 'rejected');
    assert.deepEqual(page.ran, []);
  }));

test('a request with too much for a form of fields has one for its changes', () =>
  withPage(
    async (page) => {
      const form = await page.show();
      assert.ok(form.press('Approve').toString().length < 2_000);
      const wrong = await page.post(form.fill('modifiedParams', '{"amount":').press('Approve'));
      assert.equal(wrong.status, 422);
      const again = new HtmlForm(wrong.text);
      assert.equal(again.value('modifiedParams'), '{"amount":');
      const refused = await page.post(again.fill('modifiedParams', '{"amount":101}').press('Approve'));
      assert.deepEqual([refused.status, refused.text.includes('href="#modifiedParams"')], [422, true]);
      const { text } = await page.post(again.fill('modifiedParams', '{"amount":20,"to":"bo"}').press('Approve'));
      const confirm = new HtmlForm(text);
      assert.deepEqual(changesOn(confirm), ['to']);
      assert.equal((await page.post(confirm.press('Approve with these changes'))).status, 200);
      assert.equal((await page.outcome).status, 'completed');
      assert.deepEqual(page.ran, [{ ...CALL, to: 'bo', note: 'x'.repeat(60_000) }]);
    },
    { parameters: { ...CALL, note: 'x'.repeat(60_000) } },
  ));

test('the plan of a migration is approved as it is: its page has no fields', () =>
  withPage(
    async (page) => {
      const form = await page.show();
      assert.deepEqual(form.names, ['view', 'reason']);
      assert.equal((await page.post(form.press('Approve'))).status, 200);
      assert.equal((await page.outcome).status, 'completed');
    },
    { agentTag: 'svc', tag: 'svc_db_migrate' },
  ));

test('sensitive parameters are fields of the page that shows them, and of no other', () =>
  withPage(
    async (page) => {
      const form = await page.show();
      assert.equal(form.value('p.0'), 'ann');
      const { events } = await page.svc.approvals.get(page.request.requestId);
      assert.ok(events.some(({ type }) => type === 'revealed'));
      const rejected = await page.post(form.press('Reject'));
      assert.ok(!rejected.text.includes('ann'));
    },
    { more: { sensitive: ['to'] } },
  ));

test('duplicate fields, an unknown action and names that nobody sent', () =>
  withPage(async (page) => {
    const form = await page.show();
    const twice = form.press('Approve');
    twice.append('p.1', '99');
    assert.equal((await page.post(twice)).status, 400);
    for (const action of ['mark', 'Approve', 'approve ', '']) {
      const sent = form.press('Approve');
      sent.set('action', action);
      assert.equal((await page.post(sent)).status, 400, action);
    }
    for (const [name, value] of [
      ['p.__proto__', 'x'],
      ['p.2.7.0', 'x'],
      ['p.2', 'null'],
      ['p.2', '../../etc'],
      ['p.2', '7,8,7,__proto__'],
      ['p.2', `${'9,'.repeat(9_999)}9`],
      ['action', 'remove:p.2.99'],
      ['action', 'remove:p.9.9'],
      ['action', 'mark:p.0=out'],
      ['action', 'mark:view=x'],
      ['action', 'mark:p.2=7,8,7,__proto__'],
    ] as const) {
      const sent = form.press('Approve');
      sent.set('action', 'draw');
      sent.set(name, value);
      const { status, text } = await page.post(sent);
      assert.equal(status, 200, `${name} ${value}`);
      assert.equal(new HtmlForm(text).value('view'), form.value('view'));
    }
    const sent = form.press('Approve');
    for (const name of ['p.99', 'p.__proto__', 'p.2.7.0', 'p.0.s', 'p.0.c']) sent.set(name, 'x');
    assert.equal((await page.post(sent)).status, 200);
    assert.equal((await page.outcome).status, 'completed');
    assert.deepEqual(page.ran, [CALL]);
  }));
