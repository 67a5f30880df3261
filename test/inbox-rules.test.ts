import * as assert from 'node:assert/strict';
import { HtmlForm } from './kit/html-form.ts';
import { approve, INBOX, SERVER, withInbox } from './kit/inbox.ts';
import type { Browser } from './kit/oidc.ts';
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

test('a person approves what another one has proposed, as it is shown, with one button', () =>
  withInbox(
    async ({ signedIn, refund, svc }) => {
      const { request } = await refund({ orderId: '1', amount: 5 });
      const propose = async (browser: Browser, amount: string) => {
        const send = (form: URLSearchParams) => browser.submit('name="view"', Object.fromEntries(form));
        await browser.open(`${INBOX}/${request.requestId}`);
        await send(new HtmlForm(browser.page.text).fill('p.1', amount).fill('reason', 'less').press('Approve'));
        await send(new HtmlForm(browser.page.text).press('Approve with these changes'));
      };
      const agreement =
        /<button form="decision" name="action" value="(agree:[^"]+)" formaction="#problems">Approve these changes/;
      const ann = await signedIn('ann', 'finance');
      await propose(ann, '3');
      assert.doesNotMatch(ann.page.text, agreement, 'not what one has proposed oneself');
      const [di, cy] = [await signedIn('di', 'heads'), await signedIn('cy')];
      await di.open(`${INBOX}/${request.requestId}`);
      const [, action = ''] = agreement.exec(di.page.text) ?? [];
      await cy.open(`${INBOX}/${request.requestId}`);
      assert.doesNotMatch(cy.page.text, agreement, 'nobody agrees who may not decide');
      assert.doesNotMatch(cy.page.text, /--override/);
      const eve = await signedIn('eve');
      await eve.open(`${INBOX}/${request.requestId}`);
      assert.match(eve.page.text, /As one of chiefs you may decide alone: <code>[^<]*--override/);
      await propose(ann, '2');
      await approve(di, { action });
      assert.equal(di.page.status, 422);
      assert.match(di.page.text, /The changes that were proposed are not those any more/);
      const [, current = ''] = agreement.exec(di.page.text) ?? [];
      await approve(di, { action: current, reason: '' });
      assert.equal(di.page.status, 422, 'a reason is required');
      await approve(di, { action: current, reason: 'fine' });
      assert.match(di.page.text, /approved by ann, di/);
      assert.deepEqual((await svc.approvals.get(request.requestId)).modifiedParams, { amount: 2 });
    },
    {
      server: { role: 'deciders' },
      rules: [{ approve: [{ role: 'finance' }, { role: 'heads' }], reason: 'approve', override: 'chiefs' }],
      roles: {
        deciders: ['group:finance', 'group:heads', 'user:cy', 'user:eve'],
        finance: ['group:finance'],
        heads: ['group:heads'],
        chiefs: ['user:eve'],
      },
    },
  ));

test('a reason that the rule requires is asked for at its field, before anything else is confirmed', () =>
  withInbox(
    async ({ signedIn, refund, svc }) => {
      const { request } = await refund({ orderId: '1', amount: 5 });
      const browser = await signedIn('ann', 'finance');
      await browser.follow('refund');
      const send = (form: URLSearchParams) => browser.submit('name="view"', Object.fromEntries(form));
      assert.match(browser.page.text, /id="reason-hint">Required\./);
      assert.doesNotMatch(browser.page.text, /aria-invalid="true"/);
      for (const button of ['Approve', 'Reject']) {
        await send(new HtmlForm(browser.page.text).fill('p.1', '3').press(button));
        assert.equal(browser.page.status, 422);
        assert.match(browser.page.text, /<a href="#reason">The rule of the request requires a reason\.<\/a>/);
        assert.match(
          browser.page.text,
          /<textarea id="reason"[^>]* aria-describedby="reason-hint reason-problem" aria-invalid="true">/,
        );
      }
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

test('a request that has ended without a vote has no heading for votes', () =>
  withInbox(
    async ({ signedIn, svc }) => {
      const tool = { tag: 'pay', requiresConfirmation: true, handler: () => 'paid' };
      const humanInLoop = { enabled: true, approvalTimeout: 1_000 };
      const gate = svc.gate({ agentTag: 'payouts', tools: [tool], humanInLoop } as never);
      const { requestId } = await gate.run({ tool: 'pay', parameters: {} });
      const ann = await signedIn('ann', 'finance');
      await ann.open(`${INBOX}/${requestId}`);
      assert.match(ann.page.text, />rejected by timeout/);
      assert.doesNotMatch(ann.page.text, /<h2>Votes/);
    },
    { ...SERVER, rules: [{ approve: [{ role: 'deciders' }] }] },
  ));
