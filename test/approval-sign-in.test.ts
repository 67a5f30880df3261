import * as assert from 'node:assert/strict';
import { sign } from 'node:crypto';
import { seal, unseal } from '../config/sdk/callback/cookies.ts';
import { signInKey } from '../core/approval/token.ts';
import { Browser } from './kit/oidc.ts';
import { ORIGIN, withSignIn } from './kit/sign-in.ts';
import { test } from './kit/test.ts';
import { CALLBACK_KEY } from './suites/gate-client.ts';

// People sign in on the page of a request, with a browser that follows redirects and keeps cookies, at a real provider.

const SESSION = '__Host-svc-shop-dev-session';
const PENDING = '__Host-svc-shop-dev-sign-in';

const WAITING = ['waiting'];
const BY_ANN = ['approved', 'ann@acme.example'];
const show = (browser: Browser) => browser.submit('value="show"');
const approve = (browser: Browser) => browser.submit('name="view"', { action: 'approve' });

test('whom the provider signs in reads and decides on the page, with their groups, until they sign out', () =>
  withSignIn(async ({ svc, newBrowser, openRequest, statusOf }) => {
    const browser = newBrowser();
    const first = await openRequest(browser);
    const page = browser.page.url;
    assert.match(browser.page.text, /Nobody is signed in/);
    await browser.signIn('ann');
    assert.equal(browser.page.url, page, 'the browser is back at the request');
    assert.match(browser.page.text, /Signed in as ann@acme\.example/);
    assert.deepEqual([...browser.cookiesOf(ORIGIN).keys()], [SESSION]);
    assert.match((await show(browser)).text, /Signed in as ann@acme\.example[\s\S]*4242/);
    assert.doesNotMatch(browser.page.text, /counts only people who were verified/);
    assert.deepEqual(await statusOf(first), WAITING, 'reading and signing in decide nothing');
    assert.equal((await approve(browser)).status, 200);
    assert.deepEqual(await statusOf(first), BY_ANN);
    const { deciders, events } = await svc.approvals.get(first.requestId);
    assert.deepEqual(deciders, [{ id: 'ann@acme.example', groups: ['finance'], verifiedBy: 'oidc' }]);
    const seen = events.flatMap(({ type, principal }) =>
      principal ? [[type, principal.id, principal.verifiedBy]] : [],
    );
    assert.deepEqual(seen, [
      ['revealed', 'ann@acme.example', 'oidc'],
      ['approved', 'ann@acme.example', 'oidc'],
    ]);
    // The session is one of all requests.
    const second = await openRequest(browser);
    await show(browser);
    const { page: decisionPage } = browser;
    await browser.submit('value="sign-out"');
    assert.match(browser.page.text, /Nobody is signed in/);
    assert.equal(browser.cookiesOf(ORIGIN).size, 0);
    // The page that was shown to Ann does not decide as nobody.
    browser.page = decisionPage;
    assert.equal((await approve(browser)).status, 401);
    assert.match(browser.page.text, /You are not signed in any more\. Nothing was decided/);
    assert.deepEqual(await statusOf(second), WAITING);
    // Somebody of no role.
    await browser.follow('Back to the page');
    browser.forget(new URL('/', browser.page.url).origin);
    const other = newBrowser();
    await other.open(browser.page.url);
    await other.signIn('bo');
    await show(other);
    assert.equal((await approve(other)).status, 403);
    assert.deepEqual(await statusOf(second), WAITING);
  }));

test('a page decides as the person whom it was shown to, or not at all', () =>
  withSignIn(
    async ({ newBrowser, openRequest, statusOf }) => {
      const browser = newBrowser();
      const request = await openRequest(browser);
      const url = browser.page.url;
      const ofNobody = await show(browser);
      await browser.open(url);
      await browser.signIn('ann');
      const ofAnn = await show(browser);
      browser.page = ofNobody;
      assert.equal((await approve(browser)).status, 401);
      assert.match(browser.page.text, /You are signed in as ann@acme\.example now/);
      browser.forget(ORIGIN);
      browser.page = ofAnn;
      assert.equal((await approve(browser)).status, 401);
      // Bo signs in where Ann has been.
      const other = newBrowser();
      await other.open(url);
      await other.signIn('bo');
      other.page = ofAnn;
      assert.equal((await approve(other)).status, 401);
      assert.deepEqual(await statusOf(request), WAITING);
      // The rule counts people whom nobody has verified: they decide on a page that says so.
      browser.page = ofNobody;
      assert.equal((await approve(browser)).status, 200);
      assert.deepEqual(await statusOf(request), ['approved', 'callback token, unverified']);
    },
    { rules: [{ approve: [{ role: 'finance' }], unverified: true }] },
  ));

test('a session that was changed, or whose token has expired, decides nothing and offers a sign-in', () =>
  withSignIn(
    async ({ provider, newBrowser, openRequest, statusOf }) => {
      const browser = newBrowser();
      const request = await openRequest(browser);
      await browser.signIn('ann');
      const shown = await show(browser);
      const key = signInKey(CALLBACK_KEY, { product: 'shop', env: 'dev' });
      const sealed = (token: string, until = Date.now() + 60_000, purpose = 'session') =>
        seal(key, purpose, JSON.stringify({ token, until }));
      const kept = unseal(key, 'session', browser.cookiesOf(ORIGIN).get(SESSION) ?? '') ?? '{}';
      const { token } = JSON.parse(kept) as { token: string };
      const [header = '', payload = '', signature = ''] = token.split('.');
      const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { email: string; exp: number };
      const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
      const expired = `${header}.${encode({ ...claims, exp: 1 })}`;
      const signed = sign('sha256', Buffer.from(expired), provider.key.privateKey).toString('base64url');
      for (const [what, session] of Object.entries({
        'of another person': sealed(`${header}.${encode({ ...claims, email: 'bo@acme.example' })}.${signature}`),
        'without a signature': sealed(`${encode({ alg: 'none' })}.${payload}.`),
        'whose token has expired': sealed(`${expired}.${signed}`),
        'that is no token': sealed('ann@acme.example'),
        'that has ended': sealed(token, Date.now() - 1),
        'of another cookie': sealed(token, Date.now() + 60_000, 'sign-in'),
        'that is the token itself': token,
      })) {
        for (const send of [approve, show]) {
          browser.setCookie(ORIGIN, SESSION, session);
          browser.page = send === approve ? shown : await browser.open(shown.url);
          assert.equal((await send(browser)).status, 401, what);
          assert.match(browser.page.text, /Your session has ended\. Nothing was decided/);
          assert.doesNotMatch(browser.page.text, /4242/);
          assert.equal(browser.cookiesOf(ORIGIN).size, 0, 'the cookie is removed');
        }
        assert.deepEqual(await statusOf(request), WAITING);
      }
      // The provider still knows who it is.
      await browser.follow('Sign in');
      await show(browser);
      assert.equal((await approve(browser)).status, 200);
      assert.deepEqual(await statusOf(request), BY_ANN);
    },
    { rules: [{ approve: [{ role: 'finance' }], unverified: true }] },
  ));

test('a form of another site decides nothing, and does not sign out', () =>
  withSignIn(async ({ handler, newBrowser, openRequest, statusOf }) => {
    const browser = newBrowser();
    const request = await openRequest(browser);
    await browser.signIn('ann');
    const { url, text } = await show(browser);
    const cookie = `${SESSION}=${browser.cookiesOf(ORIGIN).get(SESSION)}`;
    const [, view = ''] = /name="view" value="([^"]+)"/.exec(text) ?? [];
    const send = async (headers: Record<string, string>, action = 'approve') => {
      const body = new URLSearchParams({ action, view, person: 'ann@acme.example' }).toString();
      const all = { 'content-type': 'application/x-www-form-urlencoded', cookie, ...headers };
      return (await handler(new Request(url, { method: 'POST', headers: all, body }))).status;
    };
    for (const headers of [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site', origin: ORIGIN },
      { 'sec-fetch-site': 'none' },
      { origin: 'https://evil.example' },
      { origin: 'null' },
      {},
    ] as Record<string, string>[]) {
      for (const action of ['approve', 'show', 'sign-out']) {
        assert.equal(await send(headers, action), 403, `${action} ${JSON.stringify(headers)}`);
      }
    }
    // A browser with the rules of cookies sends none at all.
    const elsewhere = { ...browser.page, url: 'https://evil.example/' };
    browser.page = {
      ...elsewhere,
      text: text.replace('<form method="post" id="decision">', `<form method="post" action="${url}">`),
    };
    assert.equal((await approve(browser)).status, 401);
    assert.deepEqual(await statusOf(request), WAITING);
    assert.equal(await send({ origin: ORIGIN }), 200);
    assert.deepEqual(await statusOf(request), BY_ANN);
  }));

test('the answer of the provider counts in the browser that asked, once, and only for what was asked', () =>
  withSignIn(async ({ provider, handler, newBrowser, openRequest, statusOf }) => {
    const browser = newBrowser();
    const request = await openRequest(browser);
    const page = browser.page.url;
    /** The URL at which the browser comes back, without going there, and what it then has. */
    const answerFor = async (person: string) => {
      let answer = '';
      const stopped = new Browser({
        [ORIGIN]: async (asked) => {
          if (!asked.url.includes('/signed-in')) return handler(asked);
          answer = asked.url;
          return new Response('stopped');
        },
      });
      await stopped.open(page);
      await stopped.signIn(person);
      return { answer, pending: stopped.cookiesOf(ORIGIN).get(PENDING) ?? '' };
    };
    const come = async (url: string, pending: string | undefined) => {
      const headers = pending === undefined ? {} : { cookie: `${PENDING}=${pending}` };
      const response = await handler(new Request(url, { headers }));
      const hasSession = response.headers.getSetCookie().some((one) => one.startsWith(`${SESSION}=`));
      assert.equal(hasSession, response.status === 303);
      return { status: response.status, text: await response.text(), location: response.headers.get('location') };
    };
    const mine = await answerFor('ann');
    const other = await answerFor('bo');
    assert.equal((await come(mine.answer, undefined)).status, 400);
    const edited = `${mine.pending.slice(0, 40)}${mine.pending[40] === 'A' ? 'B' : 'A'}${mine.pending.slice(41)}`;
    assert.equal((await come(mine.answer, edited)).status, 400);
    assert.equal((await come(mine.answer, 'x')).status, 400);
    const tokens = provider.requests.filter((path) => path === '/token').length;
    assert.equal((await come(mine.answer, other.pending)).status, 401, 'of another sign-in: the state differs');
    assert.equal((await come(mine.answer.replace(/state=[^&]+/, 'state=x'), mine.pending)).status, 401);
    assert.equal(
      (await come(mine.answer.replace(/iss=[^&]+/, 'iss=https%3A%2F%2Fevil.example'), mine.pending)).status,
      401,
    );
    assert.equal(provider.requests.filter((path) => path === '/token').length, tokens, 'no code was sent');
    const done = await come(mine.answer, mine.pending);
    assert.deepEqual([done.status, done.location], [303, page]);
    const again = await come(mine.answer, mine.pending);
    assert.equal(again.status, 401, 'a code counts once');
    assert.match(again.text, /invalid_grant/);
    // What the browser keeps cannot be read, and returns to the page of the request only.
    assert.doesNotMatch(Buffer.from(mine.pending, 'base64url').toString('latin1'), /respond|state|http/);
    const denied = await come(mine.answer.replace(/code=[^&]+/, 'error=access_denied'), other.pending);
    assert.equal(denied.status, 401);
    assert.deepEqual(await statusOf(request), WAITING);
  }));

test('a sign-in takes ten minutes at most, and is not tried without end', () =>
  withSignIn(async ({ handler, newBrowser, openRequest }) => {
    const browser = newBrowser();
    const { requestId } = await openRequest(browser);
    const key = signInKey(CALLBACK_KEY, { product: 'shop', env: 'dev' });
    const come = async (until: number, sealedWith = key) => {
      const pending = {
        codeVerifier: 'v',
        state: 's',
        nonce: 'n',
        place: `/approvals/${requestId}/respond?token=x`,
        until,
      };
      const headers = { cookie: `${PENDING}=${seal(sealedWith, 'sign-in', JSON.stringify(pending))}` };
      return (await handler(new Request(`${ORIGIN}/svc/approvals/signed-in?code=x&state=y`, { headers }))).status;
    };
    assert.equal(await come(Date.now() - 1), 400);
    assert.equal(await come(Date.now() + 60_000, Buffer.alloc(32)), 400);
    let status = await come(Date.now() + 60_000);
    assert.equal(status, 401);
    for (let tries = 0; tries < 60 && status === 401; tries++) status = await come(Date.now() + 60_000);
    assert.equal(status, 429);
  }));

test('scripts cannot read the cookies, and other hosts and sites cannot set or send them', () =>
  withSignIn(async ({ provider, handler, openRequest }) => {
    const set: string[] = [];
    const browser = new Browser({
      [ORIGIN]: async (request) => {
        const response = await handler(request);
        set.push(...response.headers.getSetCookie());
        return response;
      },
    });
    await openRequest(browser);
    await browser.signIn('ann');
    assert.ok(set.length > 3);
    for (const cookie of set) {
      assert.match(
        cookie,
        /^__Host-svc-shop-dev-[\w.-]+=[\w.-]*; Max-Age=\d+; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
      );
    }
    // An ID token of the provider is in no page, and in no URL.
    assert.doesNotMatch(browser.page.text + browser.page.url, /eyJ/);
    assert.doesNotMatch(provider.requests.join(), /respond/);
  }));

test('who does not consent, or whom the provider does not know well enough, is not signed in', () =>
  withSignIn(async ({ newBrowser, openRequest, statusOf }) => {
    const browser = newBrowser();
    const request = await openRequest(browser);
    await browser.follow('Sign in');
    await browser.follow('\\[ Cancel \\]');
    assert.equal(browser.page.status, 401);
    assert.match(browser.page.text, /access_denied/);
    for (const [person, why] of [
      ['eve', /address is not verified/],
      ['nobody', /names no person/],
      ['di', /larger than a browser keeps/],
    ] as const) {
      const other = newBrowser();
      await other.open(browser.page.url);
      await openRequest(other);
      await other.signIn(person);
      assert.equal(other.page.status, 401, person);
      assert.match(other.page.text, why);
      assert.equal(other.cookiesOf(ORIGIN).size, 0);
    }
    assert.deepEqual(await statusOf(request), WAITING);
  }));

test('a token with many groups takes several cookies', () =>
  withSignIn(async ({ provider, newBrowser, openRequest, statusOf }) => {
    const browser = newBrowser();
    const request = await openRequest(browser);
    await browser.signIn('cy');
    assert.ok(browser.cookiesOf(ORIGIN).size > 1);
    await show(browser);
    assert.equal((await approve(browser)).status, 200);
    assert.deepEqual(await statusOf(request), ['approved', 'cy@acme.example']);
    await openRequest(browser);
    await browser.submit('value="sign-out"');
    assert.equal(browser.cookiesOf(ORIGIN).size, 0);
    // The session at the provider is not that of svc.
    browser.forget(provider.issuer);
    await browser.signIn('ann');
    assert.equal(browser.cookiesOf(ORIGIN).size, 1);
  }));

test('while the provider is down nobody signs in, and a page says so', () =>
  withSignIn(async ({ provider, handler, newBrowser, openRequest, statusOf }) => {
    provider.pause();
    const browser = newBrowser();
    const request = await openRequest(browser);
    assert.equal(browser.page.status, 200, 'the page itself needs no provider');
    const { page } = browser;
    assert.equal((await browser.follow('Sign in')).status, 503);
    provider.resume();
    browser.page = page;
    await browser.signIn('ann');
    assert.match(browser.page.text, /Signed in as ann/);
    assert.deepEqual(await statusOf(request), WAITING);
    // It goes down while a person is there: they try again, with the same code.
    let isDown = true;
    const other = new Browser({
      [ORIGIN]: async (asked) => {
        if (isDown && asked.url.includes('/signed-in')) provider.pause();
        return handler(asked);
      },
    });
    await openRequest(other);
    assert.equal((await other.signIn('ann')).status, 503);
    isDown = false;
    provider.resume();
    assert.match((await other.open(other.page.url)).text, /Signed in as ann/);
  }));

test('on a loopback address, cookies need no TLS', () => {
  const base = 'http://127.0.0.1:8787';
  return withSignIn(
    async ({ newBrowser, openRequest, statusOf }) => {
      const browser = newBrowser();
      const request = await openRequest(browser);
      await browser.signIn('ann');
      assert.deepEqual([...browser.cookiesOf(base).keys()], ['svc-shop-dev-session']);
      await show(browser);
      assert.equal((await approve(browser)).status, 200);
      assert.deepEqual(await statusOf(request), BY_ANN);
    },
    { base },
  );
});
