import * as assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { approvalHandler } from '../config/sdk/index.ts';
import { chromiumTests, type WithPage } from './kit/chromium.ts';
import { withHostileRequest } from './kit/hostile-request.ts';
import { assertPresentable, tabTo } from './kit/page-checks.ts';
import { ORIGIN, signInOn, withSignIn } from './kit/sign-in.ts';
import { test } from './kit/test.ts';
import { callbackUrlOf, type GateUnderTest, withGate } from './suites/gate-client.ts';

// The page of a request, from the agent's call to its result, in a real browser.

const SHOW = 'Show the request';

const show = (page: Page) => press(page, SHOW);
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true });
const textOf = (page: Page) => page.locator('body').innerText();

const OPEN_FORM = 'Change the parameters';
const CONFIRM = 'Approve with these changes';

const openForm = (page: Page) => page.getByText(OPEN_FORM).click();
const amountOn = (page: Page) => page.getByRole('textbox', { name: 'amount' });

interface Opened extends GateUnderTest, Awaited<ReturnType<GateUnderTest['refund']>> {
  readonly page: Page;
  readonly url: string;
  readonly handler: (request: Request) => Promise<Response>;
}

interface RequestOptions extends Partial<Parameters<WithPage>[0]> {
  readonly parameters?: object;
  readonly humanInLoop?: object;
}

/** Runs `body` with a request that waits, and its page open in the browser. */
async function withRequest(
  withPage: WithPage,
  body: (opened: Opened) => Promise<void>,
  { parameters, humanInLoop = {}, ...options }: RequestOptions = {},
): Promise<void> {
  await withGate({ humanInLoop }, async (gate) => {
    const waiting = await gate.refund(parameters);
    const url = await callbackUrlOf(gate.svc, waiting.request);
    const handler = approvalHandler(gate.svc);
    await withPage({ handler, ...options }, async (page) => {
      await page.goto(url);
      await body({ ...gate, ...waiting, handler, page, url });
    });
  });
}

const statusOf = async ({ svc, request }: Opened) => (await svc.approvals.get(request.requestId)).status;

chromiumTests('the page of a request in a browser', (withPage) => {
  test('an error, an exception, a missing file and a request to another site fail a test', async () => {
    const body = `<script src="/missing.js"></script><img src="https://elsewhere.example/">
      <script>console.error('wrong'); throw new Error('thrown')</script>`;
    const handler = async ({ url }: Request) =>
      new Response(body, { status: url.endsWith('.js') ? 404 : 200, headers: { 'content-type': 'text/html' } });
    const failed = withPage({ handler }, async (page) => void (await page.goto(ORIGIN)));
    await assert.rejects(failed, ({ message }: Error) =>
      [/404 of .*missing\.js/, /to https:\/\/elsewhere\.example/, /wrong/, /Error: thrown/].every((one) =>
        one.test(message),
      ),
    );
    const silent = withPage({ handler: async () => new Response('x'), expected: /./ }, async () => undefined);
    await assert.rejects(silent, /does not report/);
  });

  for (const scripts of [true, false]) {
    const how = scripts ? '' : ', without scripts';
    test(`a call waits, a person changes the amount and approves, and the tool runs with it${how}`, () =>
      withRequest(
        withPage,
        async (opened) => {
          const { page, outcome, refunds } = opened;
          assert.doesNotMatch(await textOf(page), /1234/, 'a link shows no parameters');
          await show(page);
          assert.match(await textOf(page), /"orderId": "1234",\s+"amount": 20/);
          assert.equal(await statusOf(opened), 'waiting');
          await openForm(page);
          await amountOn(page).fill('15');
          await press(page, 'Approve');
          assert.match(await textOf(page), /amount[\s\S]*20[\s\S]*15/);
          assert.equal(await statusOf(opened), 'waiting');
          await press(page, CONFIRM);
          await heading(page, 'The request is approved').waitFor();
          assert.deepEqual((await outcome).result, { paid: true });
          assert.deepEqual({ ...(refunds[0] as object) }, { orderId: '1234', amount: 15 });
        },
        { scripts },
      ));

    test(`a person rejects with a reason, and the tool does not run${how}`, () =>
      withRequest(
        withPage,
        async ({ svc, request, page, outcome, refunds }) => {
          await show(page);
          await page.getByLabel('Reason').fill('Twice the price.');
          await press(page, 'Reject');
          await heading(page, 'The request is rejected').waitFor();
          assert.equal((await outcome).status, 'rejected');
          assert.equal((await svc.approvals.get(request.requestId)).decisionReason, 'Twice the price.');
          assert.deepEqual(refunds, []);
        },
        { scripts },
      ));
  }

  test('the keyboard is enough, the focus is always visible, and Enter in a text decides nothing', () =>
    withRequest(withPage, async (opened) => {
      const { page, outcome, refunds } = opened;
      await tabTo(page, page.getByRole('button', { name: SHOW }));
      await page.keyboard.press('Enter');
      await tabTo(page, page.getByText(OPEN_FORM));
      await page.keyboard.press('Enter');
      await tabTo(page, amountOn(page));
      await page.keyboard.press('Control+A');
      await page.keyboard.type('15');
      await tabTo(page, page.getByLabel('Reason'));
      await page.keyboard.type('Agreed');
      await page.keyboard.press('Enter');
      await tabTo(page, page.getByRole('button', { name: 'Approve' }));
      assert.equal(await statusOf(opened), 'waiting');
      await page.keyboard.press('Space');
      await tabTo(page, page.getByRole('button', { name: CONFIRM }));
      await page.keyboard.press('Enter');
      await heading(page, 'The request is approved').waitFor();
      assert.equal((await outcome).status, 'completed');
      assert.deepEqual({ ...(refunds[0] as object) }, { orderId: '1234', amount: 15 });
    }));

  test('every page has no violation of axe, light and dark, and fits 320 pixels', () =>
    withRequest(
      withPage,
      async ({ page, url }) => {
        await assertPresentable(page, 'summary');
        await show(page);
        await assertPresentable(page, 'decision');
        await openForm(page);
        await amountOn(page).fill('-1 of them');
        await press(page, 'Approve');
        assert.match(await textOf(page), /Nothing was decided/);
        await assertPresentable(page, 'form-with-problem');
        await amountOn(page).fill('15');
        await press(page, 'Approve');
        await assertPresentable(page, 'confirmation');
        await press(page, CONFIRM);
        await assertPresentable(page, 'decided');
        await page.goto(url);
        await show(page);
        await assertPresentable(page, 'closed');
        await page.goto(`${url}x`);
        await assertPresentable(page, 'error');
      },
      { parameters: { orderId: 'order-1234 \u202e', amount: 20, card: '4242' } },
    ));

  test('whatever a model writes is text: it creates no element, runs nothing, and fits 320 pixels', () =>
    withHostileRequest(({ svc, request, payloads }) =>
      withPage({ handler: approvalHandler(svc) }, async (page) => {
        await page.goto(await callbackUrlOf(svc, request));
        const assertHarmless = async () => {
          assert.equal(await page.locator('script, img, svg, iframe, [onload], [onerror]').count(), 0);
          assert.equal(await page.evaluate('"ran" in window'), false);
        };
        await show(page);
        await assertHarmless();
        for (const payload of payloads) assert.ok((await textOf(page)).includes(payload), payload);
        await openForm(page);
        await assertPresentable(page, 'hostile');
        await press(page, 'Reject');
        await heading(page, 'The request is rejected').waitFor();
        await assertHarmless();
      }),
    ));

  test('a script, a style and an image that got into a page are blocked', () =>
    withRequest(
      withPage,
      async ({ page }) => {
        await page.evaluate(`{
          const script = document.createElement('script');
          script.textContent = 'window.ran = true';
          const image = document.createElement('img');
          image.src = 'https://elsewhere.example/';
          document.body.append(script, image);
          document.body.setAttribute('style', 'display:none');
        }`);
        assert.equal(await page.evaluate('"ran" in window'), false);
        assert.ok(await page.getByRole('button').isVisible());
      },
      { expected: /violates the following Content Security Policy|^a request to https:\/\/elsewhere\.example\/$/ },
    ));

  test('a page cannot be framed, not even by its own site', () =>
    withGate({}, async ({ svc, refund }) => {
      const url = await callbackUrlOf(svc, (await refund()).request);
      const answer = approvalHandler(svc);
      const frame = `<iframe src="${url}"></iframe>`;
      const handler = async (request: Request) =>
        request.url === url ? answer(request) : new Response(frame, { headers: { 'content-type': 'text/html' } });
      await withPage({ handler, expected: /Framing .* violates/ }, async (page) => {
        await page.goto(ORIGIN);
        const buttons = await Promise.all(page.frames().map((one) => one.getByText('Show the request').count()));
        assert.deepEqual(buttons, [0, 0]);
      });
    }));

  test('a double click on Approve decides once', () =>
    withRequest(withPage, async ({ svc, request, page, outcome, refunds }) => {
      await show(page);
      await page.getByRole('button', { name: 'Approve' }).dblclick();
      await heading(page, 'The request is approved').waitFor();
      assert.equal((await outcome).status, 'completed');
      const { events } = await svc.approvals.get(request.requestId);
      assert.equal(events.filter(({ type }) => type === 'approved').length, 1);
      assert.equal(refunds.length, 1);
    }));

  test('the back button brings no parameters back and decides nothing: the request is closed', () =>
    withRequest(withPage, async ({ page, url, refunds }) => {
      await show(page);
      await press(page, 'Reject');
      await heading(page, 'The request is rejected').waitFor();
      await assert.rejects(page.goBack(), /ERR_CACHE_MISS/);
      await page.waitForURL('chrome-error://chromewebdata/');
      await page.goto(url);
      await show(page);
      assert.match(await textOf(page), /The request was rejected/);
      assert.equal(await page.getByRole('button').count(), 0);
      assert.deepEqual(refunds, []);
    }));

  test('the request expires while its page is open: the late click does not decide, and the page says so', () =>
    withRequest(
      withPage,
      async (opened) => {
        const { page, outcome, refunds } = opened;
        await show(page);
        assert.equal((await outcome).status, 'rejected');
        await press(page, 'Approve');
        assert.match(await textOf(page), /The request has expired/);
        assert.equal(await page.getByRole('button').count(), 0);
        assert.deepEqual(refunds, []);
      },
      { humanInLoop: { approvalTimeout: 6_000 } },
    ));

  test('the request is decided elsewhere: the late click gets that decision', () =>
    withRequest(withPage, async (opened) => {
      const { page, url, handler, outcome, refunds } = opened;
      await show(page);
      const headers = { 'content-type': 'application/json' };
      await handler(new Request(url, { method: 'POST', headers, body: '{"approved":false}' }));
      await press(page, 'Approve');
      assert.match(await textOf(page), /The request is already rejected/);
      assert.equal(await statusOf(opened), 'rejected');
      assert.equal((await outcome).status, 'rejected');
      assert.deepEqual(refunds, []);
    }));

  test('a form on another site decides nothing for a person who is signed in', () =>
    withSignIn(async ({ providerOrigins, handler, openRequest, statusOf }) => {
      await withPage({ handler, otherOrigins: providerOrigins }, async (page) => {
        const request = await openRequest({ open: (url) => page.goto(url) });
        await signInOn(page, 'ann');
        await show(page);
        const view = await page.locator('[name=view]').getAttribute('value');
        const fields = Object.entries({ view, person: 'ann@acme.example', action: 'approve' });
        const inputs = fields.map(([name, value]) => `<input name="${name}" value="${value}">`).join('');
        const form = `<form method="post" action="${page.url()}">${inputs}<button>Win</button></form>`;
        await page.goto('about:blank');
        await page.setContent(form);
        await press(page, 'Win');
        assert.match(await textOf(page), /Nothing was decided/);
        assert.equal((await page.context().cookies(ORIGIN)).length, 1);
        assert.deepEqual(await statusOf(request), ['waiting']);
      });
    }));

  test('a person signs in at the provider, decides as that person and signs out', () =>
    withSignIn(async ({ providerOrigins, handler, openRequest, statusOf }) => {
      await withPage({ handler, otherOrigins: providerOrigins }, async (page) => {
        const open = (url: string) => page.goto(url);
        const request = await openRequest({ open });
        await assertPresentable(page, 'signed-out');
        await signInOn(page, 'ann');
        assert.equal(new URL(page.url()).origin, ORIGIN);
        const cookies = await page.context().cookies(ORIGIN);
        const held = cookies.map(({ name, httpOnly, secure, sameSite }) => ({ name, httpOnly, secure, sameSite }));
        assert.deepEqual(held, [
          { name: '__Host-svc-shop-dev-session', httpOnly: true, secure: true, sameSite: 'Lax' },
        ]);
        await show(page);
        await assertPresentable(page, 'signed-in');
        await press(page, 'Approve');
        await heading(page, 'The request is approved').waitFor();
        assert.deepEqual(await statusOf(request), ['approved', 'ann@acme.example']);

        const second = await openRequest({ open });
        await show(page);
        const other = await page.context().newPage();
        await other.goto(page.url());
        await press(other, 'Sign out');
        await other.getByText('Nobody is signed in').waitFor();
        assert.deepEqual(await page.context().cookies(ORIGIN), []);
        // The page that was shown to Ann is still open.
        await press(page, 'Approve');
        assert.match(await textOf(page), /You are not signed in any more\. Nothing was decided/);
        await assertPresentable(page, 'sign-in-again');
        assert.deepEqual(await statusOf(second), ['waiting']);
      });
    }));
});
