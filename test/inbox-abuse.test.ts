import * as assert from 'node:assert/strict';
import type { ApprovalsConfig, Config } from '../config/define.ts';
import { Browser } from './kit/oidc.ts';
import { ORIGIN } from './kit/sign-in.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { type GateUnderTest, withGate } from './suites/gate-client.ts';

// Who attacks the inbox has no token, or makes the browser of somebody who has one send requests.

const INBOX = `${ORIGIN}/svc/inbox`;
const SERVER: ApprovalsConfig = { roles: { finance: ['group:finance'] }, server: { role: 'finance' } };
const FORM = { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' };

interface Attacked extends GateUnderTest {
  readonly browser: Browser;
  /** What the browser of Ann would send. */
  readonly cookie: string;
  send(path: string, init?: RequestInit): Promise<Response>;
  tokenOf(id: string): Promise<string>;
}

async function withInbox(
  body: (attacked: Attacked) => Promise<void>,
  more: ApprovalsConfig = {},
  config: Config = {},
): Promise<void> {
  await withGate({ approvals: { ...SERVER, ...more }, config }, async (gate) => {
    const handler = gate.svc.approvals.inbox();
    const tokenOf = async (id: string) =>
      (await gate.svc.people.createToken({ id, groups: ['finance'] }, { validForMs: 60_000 })).token;
    const browser = new Browser({ [ORIGIN]: handler });
    await browser.open(INBOX);
    await browser.submit('name="token"', { token: await tokenOf('ann') });
    const cookie = [...browser.cookiesOf(ORIGIN)].map(([name, value]) => `${name}=${value}`).join('; ');
    const send = (path: string, init: RequestInit = {}) => handler(new Request(`${INBOX}${path}`, init));
    await body({ ...gate, browser, cookie, send, tokenOf });
  });
}

test('no page is kept or framed, names its URL elsewhere, or loads anything', () =>
  withInbox(async ({ send, cookie, refund }) => {
    const { request } = await refund();
    for (const [path, headers] of [
      ['', {}],
      ['', { cookie }],
      [`/${request.requestId}`, { cookie }],
      ['/apr_x', { cookie }],
      ['?status=x', { cookie }],
    ] as const) {
      const response = await send(path, { headers });
      assert.equal(response.headers.get('cache-control'), 'no-store', path);
      assert.equal(response.headers.get('x-frame-options'), 'DENY');
      assert.equal(response.headers.get('referrer-policy'), 'no-referrer');
      const policy = response.headers.get('content-security-policy') ?? '';
      assert.match(policy, /^default-src 'none'; .*form-action 'self'; frame-ancestors 'none'; base-uri 'none'/);
      assert.doesNotMatch(policy, /unsafe|\*|https?:/);
    }
  }));

test('a form of another site neither signs in nor out nor decides', () =>
  withInbox(async ({ send, cookie, tokenOf, refund, svc }) => {
    const { request } = await refund();
    const token = await tokenOf('mallory');
    for (const site of ['cross-site', 'same-site', 'none']) {
      for (const fields of ['action=sign-out', `action=sign-in&token=${token}`, 'action=approve', 'action=show']) {
        for (const path of ['', `/${request.requestId}`]) {
          const headers = { ...FORM, cookie, 'sec-fetch-site': site };
          const response = await send(path, { method: 'POST', headers, body: fields });
          assert.deepEqual([response.status, response.headers.getSetCookie()], [403, []], `${site} ${fields}`);
        }
      }
    }
    // An old browser says only where the form is from.
    const { 'sec-fetch-site': _, ...old } = FORM;
    for (const origin of ['https://evil.example', 'null', `${ORIGIN}.evil.example`]) {
      const response = await send('', { method: 'POST', headers: { ...old, cookie, origin }, body: 'action=sign-out' });
      assert.equal(response.status, 403, origin);
    }
    assert.equal((await svc.approvals.get(request.requestId)).status, 'waiting');
  }));

test('after a sign-in the browser goes nowhere but to the page of the inbox that asked for it', () =>
  withInbox(async ({ send, tokenOf }) => {
    const body = new URLSearchParams({ action: 'sign-in', token: await tokenOf('ann') }).toString();
    for (const query of ['?next=https://evil.example', '?status=approved&to=//evil.example']) {
      const response = await send(query, { method: 'POST', headers: FORM, body });
      assert.equal(response.status, 303);
      assert.ok(response.headers.get('location')?.startsWith(`${INBOX}?`));
    }
  }));

test('a page of a person who has signed out, or of another one, decides nothing', () =>
  withInbox(async ({ browser, tokenOf, refund, svc }) => {
    const { request } = await refund();
    await browser.open(`${INBOX}/${request.requestId}`);
    const { page } = browser;
    await browser.submit('value="sign-out"');
    browser.page = page;
    await browser.submit('name="view"', { action: 'approve' });
    assert.equal(browser.page.status, 401);
    await browser.open(INBOX);
    await browser.submit('name="token"', { token: await tokenOf('bo') });
    browser.page = page;
    await browser.submit('name="view"', { action: 'approve' });
    assert.equal(browser.page.status, 401);
    assert.match(browser.page.text, /You are signed in as bo now\. Nothing was decided/);
    assert.equal((await svc.approvals.get(request.requestId)).status, 'waiting');
  }));

test('who signs in gets a session of their own, whatever cookie their browser had', () =>
  withInbox(async ({ browser, send, cookie, tokenOf }) => {
    // The cookie is that of the attacker, who has put it into the browser of the victim.
    const body = new URLSearchParams({ action: 'sign-in', token: await tokenOf('victim') }).toString();
    const entered = await send('', { method: 'POST', headers: { ...FORM, cookie }, body });
    const session = entered.headers.getSetCookie().map((one) => one.replace(/;.*/, ''));
    assert.ok(session.every((one) => !cookie.includes(one)));
    const whoIs = async (headers: Record<string, string>) =>
      /Signed in as (\w+)/.exec(await (await send('', { headers })).text())?.[1];
    assert.deepEqual([await whoIs({ cookie: session.join('; ') }), await whoIs({ cookie })], ['victim', 'ann']);
    const [[name = ''] = []] = browser.cookiesOf(ORIGIN);
    assert.equal(await whoIs({ cookie: `${name}=made-up` }), undefined);
  }));

test('with the same key, a session and an id of another product are worth nothing', () =>
  withInbox(async (own) => {
    const { request } = await own.refund();
    await withInbox(
      async ({ send, cookie }) => {
        assert.equal((await send(`/${request.requestId}`, { headers: { cookie } })).status, 404);
        const [name = ''] = cookie.split('=');
        const foreign = own.cookie.replace(/^[^=]+/, name);
        assert.notEqual(foreign, own.cookie, 'the names differ too');
        const response = await send('', { headers: { cookie: foreign } });
        assert.equal(response.status, 401);
        assert.doesNotMatch(await response.text(), /Signed in as/);
      },
      {},
      { product: 'other' },
    );
  }));

test('a form that is sent twice decides once, and one of another request not at all', () =>
  withInbox(async ({ browser, refund, svc, refunds }) => {
    const first = await refund({ orderId: '1', amount: 1 });
    const second = await refund({ orderId: '2', amount: 2 });
    await browser.open(`${INBOX}/${first.request.requestId}`);
    const { page } = browser;
    browser.page = { ...page, url: `${INBOX}/${second.request.requestId}` };
    await browser.submit('name="view"', { action: 'approve' });
    assert.equal(browser.page.status, 400);
    for (let times = 0; times < 2; times++) {
      browser.page = page;
      await browser.submit('name="view"', { action: 'approve' });
      assert.equal(browser.page.status, 200);
    }
    await first.outcome;
    assert.equal(refunds.length, 1);
    assert.equal((await svc.approvals.get(second.request.requestId)).status, 'waiting');
  }));

test('a large body, a field twice, bytes that are no text and other methods are refused', () =>
  withInbox(async ({ send, cookie, refund }) => {
    const { request } = await refund();
    const post = async (body: string) =>
      (await send(`/${request.requestId}`, { method: 'POST', headers: { ...FORM, cookie }, body })).status;
    assert.equal(await post(`reason=${'x'.repeat(64 * 1024)}`), 413);
    assert.equal(await post(`reason=${'x'.repeat(1024 * 1024)}`), 413);
    assert.equal(await post('action=approve&action=reject'), 400);
    assert.equal(await post('action=%ff'), 400);
    for (const method of ['PUT', 'DELETE', 'PATCH']) {
      assert.equal((await send('', { method, headers: { cookie } })).status, 405);
    }
    assert.equal((await send('', { method: 'POST', headers: { ...FORM, cookie }, body: 'x=1' })).status, 405);
    assert.equal((await send('/events', { method: 'HEAD', headers: { cookie } })).status, 405);
  }));

test('the header of a proxy counts only from the proxy', () => {
  const proxy = {
    header: 'x-user',
    secret: { header: 'x-secret', value: 'of the proxy, thirty-two characters' },
    peers: ['10.0.0.1'],
  };
  return withInbox(
    async ({ send, refund }) => {
      await refund();
      const forged = await send('', { headers: { 'x-user': 'ann', 'x-secret': proxy.secret.value } });
      assert.equal(forged.status, 401);
      assert.doesNotMatch(await forged.text(), /refund/);
    },
    { proxy } as never,
  );
});

test('who reads a lot can still decide', () =>
  withInbox(async ({ send, cookie, browser, refund }) => {
    const { request } = await refund();
    let status = 200;
    for (let reads = 0; reads < 700 && status === 200; reads++) {
      status = (await send('?status=rejected', { headers: { cookie } })).status;
    }
    assert.equal(status, 429);
    const page = {
      url: `${INBOX}/${request.requestId}`,
      status: 200,
      text: '<form><input name="view" value=""></form>',
    };
    browser.page = page;
    await browser.submit('name="view"', { action: 'approve', person: 'ann' });
    assert.equal(browser.page.status, 400, 'not 429');
  }));

test('events are for those who are let in', () =>
  withInbox(async ({ send, cookie }) => {
    assert.equal((await send('/events')).status, 401);
    const stop = new AbortController();
    const response = await send('/events', { headers: { cookie }, signal: stop.signal });
    assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'text/event-stream']);
    stop.abort();
  }));

test('a program without approvals.server or callbackBase has no inbox', async () => {
  await withGate({ approvals: {} }, async ({ svc }) => {
    await expectError(svc.approvals.inbox()(new Request(INBOX)), 'config_invalid');
  });
});
