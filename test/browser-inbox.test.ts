import * as assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import type { ApprovalsConfig } from '../config/define.ts';
import { chromiumTests, type WithPage } from './kit/chromium.ts';
import { assertPresentable, tabTo } from './kit/page-checks.ts';
import { ORIGIN } from './kit/sign-in.ts';
import { test } from './kit/test.ts';
import { type GateUnderTest, withGate } from './suites/gate-client.ts';
import { waitUntil } from './suites/wait-until.ts';

// The inbox in a real browser: from the agent's call to its result, and pages that stay current while they are open.

const INBOX = `${ORIGIN}/svc/inbox`;
const SERVER: ApprovalsConfig = { roles: { finance: ['group:finance'] }, server: { role: 'finance' } };

interface Opened extends GateUnderTest {
  readonly page: Page;
  readonly token: string;
}

interface Options extends Partial<Parameters<WithPage>[0]> {
  readonly approvals?: ApprovalsConfig;
  readonly humanInLoop?: object;
  readonly proxy?: Proxy;
}

/** Between the browser and the inbox: answers itself, or lets the request pass with `undefined`. */
type Proxy = (request: Request) => Promise<Response | undefined>;

const isStream = ({ url }: Request): boolean => new URL(url).pathname.endsWith('/inbox/events');
/** A page that a script loads. */
const isRefresh = (request: Request): boolean =>
  request.headers.get('sec-fetch-dest') === 'empty' && !isStream(request);

/** Runs `body` with the inbox open in the browser, signed in as Ann. */
async function withInbox(
  withPage: WithPage,
  body: (opened: Opened) => Promise<void>,
  { approvals = {}, humanInLoop = {}, proxy = async () => undefined, ...options }: Options = {},
): Promise<void> {
  await withGate({ approvals: { ...SERVER, ...approvals }, humanInLoop }, async (gate) => {
    const { token } = await gate.svc.people.createToken({ id: 'ann', groups: ['finance'] }, { validForMs: 600_000 });
    const inbox = gate.svc.approvals.inbox();
    const handler = async (request: Request) => (await proxy(request)) ?? inbox(request);
    await withPage({ handler, ...options }, async (page) => {
      await page.goto(INBOX);
      await page.getByLabel('Token').fill(token);
      await press(page, 'Sign in with the token');
      await page.getByText('Signed in as ann').waitFor();
      await body({ ...gate, page, token });
    });
  });
}

/** The list, with a stream and without the pointer on it. */
async function openList(page: Page): Promise<void> {
  await page.mouse.move(0, 0);
  await page.goto(INBOX);
}

/** What the browser does when the person turns to another tab, and back. */
async function setVisible(page: Page, isVisible: boolean): Promise<void> {
  await page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${!isVisible}, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'))`);
}
const title = (page: Page, start: string) =>
  waitUntil(async () => (await page.title()).startsWith(start), `the title does not start with ${start}`);
const focusedHref = (page: Page) => page.evaluate('document.activeElement.getAttribute("href")');
const showChanges = (page: Page) => page.getByRole('button', { name: 'The list has changed: show' });
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
          // Lists share what was read within a moment, which may be before the request.
          await waitUntil(async () => {
            await page.reload();
            return (await page.title()) === '(1) Waiting for a decision · shop (dev)';
          }, 'the title does not have the number');
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
      await openList(page);
      const { request } = await refund({ orderId: '7', amount: 20 });
      await page.getByText('orderId="7"').waitFor();
      await title(page, '(1)');
      await svc.approvals.signal(
        { signal: 'reject', payload: { requestId: request.requestId } },
        { actor: 'elsewhere' },
      );
      await page.getByText('Nothing is waiting for a decision.').waitFor();
      await title(page, '(0)');
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

  test('the page that names a missing reason begins there, whatever was pressed', () =>
    withInbox(
      withPage,
      async ({ page, refund, svc }) => {
        const { request } = await refund({ orderId: '7', amount: 20 });
        const { token } = await svc.people.createToken({ id: 'bo', groups: ['finance'] }, { validForMs: 600_000 });
        const payload = { requestId: request.requestId, modifiedParams: { amount: 3 }, reason: 'less' };
        await svc.approvals.signal({ signal: 'approve', payload }, { token });
        for (const button of ['Approve', 'Reject', 'Approve these changes']) {
          await page.goto(`${INBOX}/${request.requestId}`);
          await press(page, button);
          await page.getByText('Write a reason.').waitFor();
          await page.keyboard.press('Tab');
          assert.equal(await focusedHref(page), '#reason', button);
        }
        await page.setViewportSize({ width: 640, height: 400 });
        await page.keyboard.press('Enter');
        await page.locator('#reason:focus').waitFor();
        for (const name of ['label[for=reason]', '#reason-problem', '#reason']) {
          const { y = -1 } = (await page.locator(name).boundingBox()) ?? {};
          assert.ok(y >= 0 && y < 400, `${name} is at ${y}`);
        }
      },
      { approvals: { rules: [{ approve: [{ role: 'finance', count: 2 }], reason: 'always' }] } },
    ));

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

  test('only a page that is visible has a stream and is kept current, and it sends a form without the stream', () => {
    const streams: Request[] = [];
    const hasStream = () => streams.some(({ signal }) => !signal.aborted);
    const noStream = () => waitUntil(() => !hasStream(), 'the stream is still open');
    let refreshes = 0;
    const proxy: Proxy = async (request) => {
      if (isStream(request)) streams.push(request);
      if (isRefresh(request)) refreshes += 1;
      if (request.url.includes('/inbox/apr_') && request.method === 'POST') await noStream();
      return undefined;
    };
    return withInbox(
      withPage,
      async ({ page, refund }) => {
        await openList(page);
        await waitUntil(hasStream, 'no stream is open');
        await setVisible(page, false);
        await noStream();
        const before = refreshes;
        await refund({ orderId: '7', amount: 20 });
        assert.equal(refreshes, before);
        await setVisible(page, true);
        await page.getByText('orderId="7"').waitFor();
        await waitUntil(hasStream, 'no stream is open again');
        await openRequest(page);
        await approveButton(page).waitFor();
        await waitUntil(hasStream, 'the page of a request has no stream');
        await press(page, 'Approve');
        await state(page, 'approved by ann');
      },
      { proxy },
    );
  });

  test('a page whose stream or whose refresh fails says so, and is live again when the server answers', () => {
    let isDown = false;
    let failed = 0;
    const proxy: Proxy = async (request) => {
      if (!isDown || !(isStream(request) || isRefresh(request))) return undefined;
      if (isRefresh(request)) failed += 1;
      return new Response(null, { status: 502 });
    };
    return withInbox(
      withPage,
      async ({ page, refund }) => {
        isDown = true;
        await openList(page);
        await page.getByText('This page does not update at the moment.').waitFor();
        await waitUntil(() => failed > 0, 'the page does not try again');
        isDown = false;
        await page.getByText('This page does not update at the moment.').waitFor({ state: 'detached' });
        await refund({ orderId: '7', amount: 20 });
        await page.getByText('orderId="7"').waitFor();
      },
      { proxy, expected: /^502 of/ },
    );
  });

  test('an open page whose stream lives says that the store does not answer, until it does', () => {
    let send = (_text: string) => {};
    const proxy: Proxy = async (request) => {
      if (!isStream(request)) return undefined;
      const body = new ReadableStream<string>({
        start(controller) {
          send = (text) => controller.enqueue(text);
        },
      }).pipeThrough(new TextEncoderStream());
      return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
    };
    return withInbox(
      withPage,
      async ({ page }) => {
        const opened = page.waitForResponse((response) => response.url().endsWith('/events'));
        await openList(page);
        await opened;
        send('event: outage\ndata: {}\n\n');
        await page.getByText('This page does not update at the moment.').waitFor();
        send('event: changed\ndata: {}\n\n');
        await page.getByText('This page does not update at the moment.').waitFor({ state: 'detached' });
      },
      { proxy },
    );
  });

  test('a page of a person who is signed out says so, has no form, and asks no more', () => {
    let refused = 0;
    const proxy: Proxy = async (request) => {
      if (request.headers.get('cookie') === null && (isStream(request) || isRefresh(request))) refused += 1;
      return undefined;
    };
    return withInbox(
      withPage,
      async ({ page, refund, svc }) => {
        const { request } = await refund({ orderId: '7', amount: 20 });
        await page.clock.install();
        await page.reload();
        await openRequest(page);
        await approveButton(page).waitFor();
        await page.context().clearCookies();
        await svc.approvals.signal({ signal: 'reject', payload: { requestId: request.requestId } }, { actor: 'me' });
        await page.getByText('You are signed out.').waitFor();
        assert.equal(await approveButton(page).count(), 0);
        await page.clock.runFor(120_000);
        assert.equal(refused, 1);
      },
      { proxy, expected: /^401 of/ },
    );
  });

  test('many changes are one refresh in a second', () => {
    const refreshes: number[] = [];
    const proxy: Proxy = async (request) => {
      if (isRefresh(request)) refreshes.push(performance.now());
      return undefined;
    };
    return withInbox(
      withPage,
      async ({ page, refund }) => {
        await openList(page);
        const before = refreshes.length;
        await waitUntil(async () => {
          await refund();
          return refreshes.length >= before + 3;
        }, 'the page does not refresh');
        const [first = 0, second = 0, third = 0] = refreshes.slice(before);
        assert.ok(second - first > 900 && third - second > 900, String(refreshes));
      },
      { proxy },
    );
  });

  test('a list with the focus or the pointer on it does not move before the person asks', () =>
    withInbox(withPage, async ({ page, refund }) => {
      const { request } = await refund({ orderId: '7', amount: 20 });
      await openList(page);
      const link = page.getByRole('link', { name: 'refund' }).first();
      await link.focus();
      await refund({ orderId: '8', amount: 20 });
      await title(page, '(2)');
      await showChanges(page).waitFor();
      assert.equal(await focusedHref(page), `${INBOX}/${request.requestId}`);
      assert.equal(await page.getByText('orderId="8"').count(), 0);
      await tabTo(page, showChanges(page));
      await page.keyboard.press('Enter');
      await page.getByText('orderId="8"').waitFor();
      await refund({ orderId: '9', amount: 20 });
      await page.getByText('orderId="9"').waitFor();
      await link.hover();
      await refund({ orderId: '10', amount: 20 });
      await showChanges(page).click();
      await page.getByText('orderId="10"').waitFor();
    }));

  test('the link with the focus keeps it when the page of a request changes', () =>
    withInbox(withPage, async ({ page, svc, gate }) => {
      const call = { tool: 'refund', parameters: { orderId: '7', amount: 20 }, executionId: 'one' };
      for (const _ of [1, 2]) gate.run(call).catch(() => undefined);
      await openList(page);
      await page.getByRole('link', { name: 'refund' }).nth(1).waitFor();
      await openRequest(page);
      await approveButton(page).waitFor();
      const link = page.getByRole('link', { name: 'refund' });
      await link.focus();
      const requestId = page.url().slice(INBOX.length + 1);
      await svc.approvals.signal({ signal: 'reject', payload: { requestId } }, { actor: 'me' });
      await state(page, 'rejected by me');
      assert.equal(await focusedHref(page), await link.getAttribute('href'));
    }));

  test('an open page shows that the approved call runs, and that it has run', () =>
    withInbox(withPage, async ({ page, svc }) => {
      let isFinished = false;
      const handler = () => waitUntil(() => isFinished, 'the call never ends');
      const tool = { tag: 'slow', description: 'Takes long.', requiresConfirmation: true, handler };
      const gate = svc.gate({ agentTag: 'payouts', tools: [tool], humanInLoop: { enabled: true } } as never);
      gate.run({ tool: 'slow', parameters: {} }).catch(() => undefined);
      await openList(page);
      await page.getByRole('link', { name: 'slow' }).click();
      await press(page, 'Approve');
      await state(page, 'run: claimed');
      await page.waitForResponse((response) => response.request().resourceType() === 'fetch');
      isFinished = true;
      await state(page, 'run: done');
    }));
});
