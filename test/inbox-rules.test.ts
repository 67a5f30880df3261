import * as assert from 'node:assert/strict';
import { HtmlForm } from './kit/html-form.ts';
import { approve, INBOX, SERVER, withInbox } from './kit/inbox.ts';
import { test } from './kit/test.ts';

// Requests with rules, in the inbox.

test('by a rule, each person sees what waits for them and the votes of others', () =>
  withInbox(
    async ({ signedIn, refund }) => {
      await refund({ orderId: '1', amount: 5 });
      const ann = await signedIn('ann', 'finance');
      await ann.open(`${INBOX}?mine=1`);
      await ann.follow('refund');
      await approve(ann);
      assert.match(ann.page.text, /Your vote counts: approve\.<\/strong> Missing: 1 of heads\./);
      assert.match(ann.page.text, /Waiting[\s\S]*approve by ann[\s\S]*missing: 1 of heads/);
      await ann.open(`${INBOX}?mine=1`);
      assert.match(ann.page.text, /No request matches the filter/);
      const cy = await signedIn('cy');
      await cy.follow('refund');
      assert.match(cy.page.text, /You are not one of the people who decide this request/);
      assert.doesNotMatch(cy.page.text, /name="view"/);
      const di = await signedIn('di', 'finance', 'heads');
      await di.open(`${INBOX}?mine=1`);
      await di.follow('refund');
      await approve(di);
      assert.match(di.page.text, /approved by ann, di/);
    },
    {
      ...SERVER,
      rules: [{ approve: [{ role: 'finance' }, { role: 'heads' }] }],
      roles: { ...SERVER.roles, finance: ['group:finance'] },
    },
  ));

test('who votes after a person with changes sees them first', () =>
  withInbox(
    async ({ signedIn, refund }) => {
      await refund({ orderId: '1', amount: 5 });
      const ann = await signedIn('ann', 'finance');
      await ann.follow('refund');
      const send = (form: URLSearchParams) => ann.submit('name="view"', Object.fromEntries(form));
      await send(new HtmlForm(ann.page.text).fill('p.1', '3').press('Approve'));
      await send(new HtmlForm(ann.page.text).press('Approve with these changes'));
      const di = await signedIn('di', 'heads');
      await di.follow('refund');
      const [before = ''] = di.page.text.split('<dt>What it does');
      assert.match(before, /ann approves with these changes\. An approval with other parameters does not count/);
      assert.match(before, /amount[\s\S]*5[\s\S]*3/);
      assert.doesNotMatch(before, /Your vote counts/);
    },
    {
      server: { role: 'deciders' },
      rules: [{ approve: [{ role: 'finance' }, { role: 'heads' }] }],
      roles: { deciders: ['group:finance', 'group:heads'], finance: ['group:finance'], heads: ['group:heads'] },
    },
  ));

test('a decision that is refused keeps what was typed', () =>
  withInbox(
    async ({ signedIn, refund, svc }) => {
      const { request } = await refund({ orderId: '1', amount: 5 });
      const browser = await signedIn('ann', 'finance');
      await browser.follow('refund');
      const send = (form: URLSearchParams) => browser.submit('name="view"', Object.fromEntries(form));
      await send(new HtmlForm(browser.page.text).fill('p.1', '3').press('Approve'));
      await send(new HtmlForm(browser.page.text).press('Approve with these changes'));
      assert.equal(browser.page.status, 400);
      assert.match(browser.page.text, /role="alert">[^<]*requires a reason/);
      const again = new HtmlForm(browser.page.text);
      assert.equal(again.value('p.1'), '3');
      await send(again.fill('reason', 'half').press('Approve'));
      await send(new HtmlForm(browser.page.text).press('Approve with these changes'));
      assert.equal((await svc.approvals.get(request.requestId)).status, 'approved');
    },
    {
      ...SERVER,
      rules: [{ approve: [{ role: 'finance' }], reason: 'always' }],
      roles: { ...SERVER.roles, finance: ['group:finance'] },
    },
  ));

test('a vote that became void waits for its person again', () =>
  withInbox(
    async ({ signedIn, refund }) => {
      await refund({ orderId: '1', amount: 5 });
      const ann = await signedIn('ann', 'finance');
      await ann.follow('refund');
      await approve(ann);
      const bob = await signedIn('bob', 'finance');
      await bob.follow('refund');
      const send = (form: URLSearchParams) => bob.submit('name="view"', Object.fromEntries(form));
      await send(new HtmlForm(bob.page.text).fill('p.1', '2').press('Approve'));
      await send(new HtmlForm(bob.page.text).press('Approve with these changes'));
      await ann.open(`${INBOX}?mine=1`);
      assert.match(ann.page.text, /refund/);
      await bob.open(`${INBOX}?mine=1`);
      assert.doesNotMatch(bob.page.text, /refund/);
    },
    {
      ...SERVER,
      rules: [{ approve: [{ role: 'finance', count: 2 }] }],
      roles: { ...SERVER.roles, finance: ['group:finance'] },
    },
  ));
