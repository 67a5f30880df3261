import * as assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { chromiumTests } from './kit/chromium.ts';
import { assertPresentable } from './kit/page-checks.ts';
import { ORIGIN, signInOn, withSignIn } from './kit/sign-in.ts';
import { test } from './kit/test.ts';
import { withGate } from './suites/gate-client.ts';

// Who comes into the inbox by a provider or a proxy, in a real browser. By a token: browser-inbox.test.ts.

const INBOX = `${ORIGIN}/svc/inbox`;
const server = { role: 'finance' };

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const state = (page: Page, text: string) => page.locator('.state').getByText(text).waitFor();

chromiumTests('the doors of the inbox in a browser', (withPage) => {
  test('a person signs in at the provider, is back on the page of the request, approves it, and signs out', () =>
    withSignIn(
      async ({ providerOrigins, handler, refund }) => {
        const { request } = await refund({ orderId: '1', amount: 5 });
        const url = `${INBOX}/${request.requestId}`;
        await withPage({ handler, otherOrigins: providerOrigins }, async (page) => {
          await page.goto(url);
          await page.getByRole('heading', { name: 'Sign in to the inbox' }).waitFor();
          await assertPresentable(page, 'inbox-door-provider');
          await signInOn(page, 'ann');
          assert.equal(page.url(), url);
          await press(page, 'Approve');
          await state(page, 'approved by ann@acme.example');
          await press(page, 'Sign out');
          await page.getByRole('heading', { name: 'Sign in to the inbox' }).waitFor();
          assert.deepEqual(await page.context().cookies(ORIGIN), []);
          await page.goto(url);
          assert.equal(await page.getByText('refund').count(), 0);
        });
      },
      { more: { server } },
    ));

  test('whom the proxy names decides without signing in, and cannot sign out', () => {
    const SECRET = 'a secret of the proxy, of thirty-two characters';
    const proxy = {
      header: 'x-user',
      groupsHeader: 'x-groups',
      secret: { header: 'x-secret', value: SECRET },
      peers: ['10.0.0.7'],
    };
    return withGate(
      { approvals: { proxy, roles: { finance: ['group:finance'] }, server } },
      async ({ svc, refund }) => {
        const { request } = await refund();
        const inbox = svc.approvals.inbox({ peerOf: () => '10.0.0.7' });
        const handler = (sent: Request) => {
          const headers = new Headers(sent.headers);
          for (const [name, value] of Object.entries({ user: 'ann', groups: 'finance', secret: SECRET }))
            headers.set(`x-${name}`, value);
          return inbox(new Request(sent, { headers }));
        };
        await withPage({ handler }, async (page) => {
          await page.goto(`${INBOX}/${request.requestId}`);
          await page.getByText('Signed in as ann').waitFor();
          assert.equal(await page.getByRole('button', { name: 'Sign out' }).count(), 0);
          await press(page, 'Approve');
          await state(page, 'approved by ann');
        });
        const { deciders } = await svc.approvals.get(request.requestId);
        assert.deepEqual(deciders, [{ id: 'ann', groups: ['finance'], verifiedBy: 'proxy' }]);
      },
    );
  });
});
