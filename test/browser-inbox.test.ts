import * as assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import type { ApprovalsConfig } from '../config/define.ts';
import { chromiumTests, type WithPage } from './kit/chromium.ts';
import { assertPresentable, tabTo } from './kit/page-checks.ts';
import { ORIGIN } from './kit/sign-in.ts';
import { test } from './kit/test.ts';
import { type GateUnderTest, withGate } from './suites/gate-client.ts';

// The inbox in a real browser: from the agent's call to its result, and pages that stay current while they are open.

const INBOX = `${ORIGIN}/svc/inbox`;
const SERVER: ApprovalsConfig = { roles: { finance: ['group:finance'] }, server: { role: 'finance' } };

interface Opened extends GateUnderTest {
  readonly page: Page;
  readonly token: string;
}

interface Options extends Partial<Parameters<WithPage>[0]> {
  readonly humanInLoop?: object;
}

/** Runs `body` with the inbox open in the browser, signed in as Ann. */
async function withInbox(
  withPage: WithPage,
  body: (opened: Opened) => Promise<void>,
  { humanInLoop = {}, ...options }: Options = {},
): Promise<void> {
  await withGate({ approvals: SERVER, humanInLoop }, async (gate) => {
    const { token } = await gate.svc.people.createToken({ id: 'ann', groups: ['finance'] }, { validForMs: 600_000 });
    await withPage({ handler: gate.svc.approvals.inbox(), ...options }, async (page) => {
      await page.goto(INBOX);
      await page.getByLabel('Token').fill(token);
      await press(page, 'Sign in with the token');
      await page.getByText('Signed in as ann').waitFor();
      await body({ ...gate, page, token });
    });
  });
}

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const approveButton = (page: Page) => page.getByRole('button', { name: 'Approve', exact: true });
async function setAmount(page: Page, amount: string): Promise<void> {
  await page.getByText('Change the parameters').click();
  await page.getByLabel('amount', { exact: true }).fill(amount);
}

const openRequest = (page: Page) => page.getByRole('link', { name: 'refund' }).first().click();
const state = (page: Page, text: string) => page.locator('.state').getByText(text).waitFor();

chromiumTests('the inbox in a browser', (withPage) => {
  for (const scripts of [true, false]) {
    const how = scripts ? '' : ', without scripts';
    test(`a person signs in, approves a call with another amount, sees it run, and signs out${how}`, () =>
      withInbox(
        withPage,
        async ({ page, refund, refunds }) => {
          const { outcome } = await refund({ orderId: '7', amount: 20 });
          await page.reload();
          assert.equal(await page.title(), '(1) Waiting for a decision · shop (dev)');
          await openRequest(page);
          await setAmount(page, '15');
          await press(page, 'Approve');
          await press(page, 'Approve with these changes');
          await state(page, 'approved by ann');
          assert.equal((await outcome).status, 'completed');
          assert.deepEqual({ ...(refunds[0] as object) }, { orderId: '7', amount: 15 });
          await press(page, 'Sign out');
          await page.getByRole('heading', { name: 'Sign in to the inbox' }).waitFor();
          await page.goBack();
          assert.equal(await page.getByText('Signed in as').count(), 0, 'no page of the person is kept');
        },
        { scripts },
      ));
  }

  test('an open list shows what comes and what is decided, and its title the number', () =>
    withInbox(withPage, async ({ page, refund, svc }) => {
      await page.getByText('Nothing is waiting for a decision.').waitFor();
      const { request } = await refund({ orderId: '7', amount: 20 });
      await page.getByText('orderId="7"').waitFor();
      await page.waitForFunction('document.title.startsWith("(1)")');
      await svc.approvals.signal(
        { signal: 'reject', payload: { requestId: request.requestId } },
        { actor: 'elsewhere' },
      );
      await page.getByText('Nothing is waiting for a decision.').waitFor();
      await page.waitForFunction('document.title.startsWith("(0)")');
    }));

  test('a request that is decided elsewhere loses its form, and the page says by whom', () =>
    withInbox(withPage, async ({ page, refund, svc }) => {
      const { request } = await refund({ orderId: '7', amount: 20 });
      await page.reload();
      await openRequest(page);
      await page.getByLabel('Reason').fill('half written');
      await refund({ orderId: '8', amount: 1 });
      await svc.approvals.signal(
        { signal: 'reject', payload: { requestId: request.requestId } },
        { actor: 'elsewhere' },
      );
      await state(page, 'rejected by elsewhere');
      assert.equal(await page.getByRole('status').innerText(), 'The request is rejected.');
      assert.equal(await approveButton(page).count(), 0);
      await page
        .locator('.history')
        .getByText(/rejected .*by elsewhere/)
        .waitFor();
    }));

  test('a page that is open when the request expires has no buttons any more, and says so', () =>
    withInbox(
      withPage,
      async ({ page, refund, refunds }) => {
        const { outcome } = await refund({ orderId: '7', amount: 20 });
        await page.reload();
        await openRequest(page);
        await approveButton(page).waitFor();
        await approveButton(page).waitFor({ state: 'detached' });
        assert.match(await page.getByRole('status').innerText(), /expired|rejected/);
        assert.equal((await outcome).status, 'rejected');
        assert.deepEqual(refunds, []);
      },
      { humanInLoop: { approvalTimeout: 4_000 } },
    ));

  test('the keyboard is enough', () =>
    withInbox(withPage, async ({ page, refund }) => {
      const { outcome } = await refund({ orderId: '7', amount: 20 });
      await page.reload();
      await tabTo(page, page.getByRole('link', { name: 'refund' }));
      await page.keyboard.press('Enter');
      await approveButton(page).waitFor();
      await tabTo(page, approveButton(page));
      await page.keyboard.press('Space');
      await state(page, 'approved by ann');
      assert.equal((await outcome).status, 'completed');
    }));

  test('every page has no violation of axe, light and dark, and fits 320 pixels', () =>
    withInbox(withPage, async ({ page, refund }) => {
      await assertPresentable(page, 'inbox-empty');
      await refund({ orderId: `order-${'1234'.repeat(40)} \u202e`, amount: 20 });
      await refund({ orderId: '8', amount: 20, card: '4242' });
      await page.goto(`${INBOX}?agent=payouts`);
      await assertPresentable(page, 'inbox-list');
      await openRequest(page);
      await assertPresentable(page, 'inbox-request');
      await setAmount(page, '-1');
      await press(page, 'Approve');
      await assertPresentable(page, 'inbox-problem');
      await page.getByLabel('amount', { exact: true }).fill('3');
      await press(page, 'Approve');
      await assertPresentable(page, 'inbox-confirm');
      await press(page, 'Approve with these changes');
      await state(page, 'approved by ann');
      await assertPresentable(page, 'inbox-decided');
      await page.goto(INBOX);
      await openRequest(page);
      await assertPresentable(page, 'inbox-masked');
      await press(page, 'Sign out');
      await assertPresentable(page, 'inbox-door');
    }));
});
