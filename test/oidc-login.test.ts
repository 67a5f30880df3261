import * as assert from 'node:assert/strict';
import { oidcLogin } from '../cli/people/oidc-login.ts';
import { Browser, CLI_CLIENT, type RealProvider, startProvider } from './kit/oidc.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { waitUntil } from './suites/wait-until.ts';

// A person signs in from a terminal, with the browser of the machine, at a real provider.

async function withProvider(body: (provider: RealProvider) => Promise<void>): Promise<void> {
  const provider = await startProvider('https://shop.example/svc/approvals/signed-in');
  try {
    await body(provider);
  } finally {
    provider.close();
  }
}

/** A login that has begun: its promise, the URL that was printed, and what ends it. */
async function begin(
  { issuer }: RealProvider,
  {
    openBrowser = async () => {},
    ...options
  }: { readonly openBrowser?: (url: string) => Promise<unknown>; readonly timeoutMs?: number } = {},
) {
  const lines: string[] = [];
  const ending = new AbortController();
  const login = oidcLogin(
    { issuer, clientId: CLI_CLIENT, scopes: ['email', 'groups'] },
    { openBrowser, print: (line) => lines.push(line), signal: ending.signal, ...options },
  );
  login.catch(() => undefined);
  await waitUntil(async () => lines.length > 0, 'the URL is printed');
  const [, url = ''] = /^Sign in at (\S+)$/.exec(lines[0] ?? '') ?? [];
  const query = new URL(url).searchParams;
  return { login, lines, url, query, end: () => ending.abort() };
}

const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());

test('a person signs in with PKCE, at a loopback address, also without a browser that svc can open', () =>
  withProvider(async (provider) => {
    const openBrowser = () => Promise.reject(new Error('no browser'));
    const { login, lines, url, query } = await begin(provider, { openBrowser });
    assert.match(query.get('redirect_uri') ?? '', /^http:\/\/127\.0\.0\.1:\d+\/signed-in$/);
    assert.equal(query.get('code_challenge_method'), 'S256');
    assert.deepEqual(query.get('scope')?.split(' '), ['openid', 'email', 'groups']);
    await waitUntil(async () => lines.length === 2, 'it says that the browser could not be opened');
    assert.match(lines[1] ?? '', /could not be opened/);
    const browser = new Browser();
    await browser.open(url);
    await browser.logIn('ann');
    assert.match(browser.page.text, /You are signed in/);
    const { idToken, expiresAt } = await login;
    const { email, aud, exp, groups } = claimsOf(idToken);
    assert.deepEqual([email, aud, groups], ['ann@acme.example', CLI_CLIENT, ['finance']]);
    assert.equal(expiresAt.getTime(), exp * 1_000);
    await assert.rejects(fetch(query.get('redirect_uri') ?? ''), 'the server has stopped');
  }));

test('a person who does not consent is not signed in', () =>
  withProvider(async (provider) => {
    const { login, url } = await begin(provider);
    const browser = new Browser();
    await browser.open(url);
    await browser.follow('\\[ Cancel \\]');
    assert.equal(browser.page.status, 400);
    const { why } = await expectError(login, 'sign_in_failed');
    assert.match(String(why), /access_denied/);
  }));

test('other requests to the address neither end the login nor complete it', () =>
  withProvider(async (provider) => {
    const { login, url, query } = await begin(provider);
    const address = query.get('redirect_uri') ?? '';
    const state = query.get('state') ?? '';
    for (const path of ['?error=access_denied', '?error=access_denied&state=x', '?code=x', `/../x?state=${state}`]) {
      assert.equal((await fetch(`${address}${path}`)).status, 404, path);
    }
    assert.equal((await fetch(`${address}?code=x&state=${state}`, { method: 'POST' })).status, 404);
    const browser = new Browser();
    await browser.open(url);
    await browser.logIn('ann');
    assert.equal(claimsOf((await login).idToken).sub, 'ann');
  }));

test('a code that is not the one of this login is refused', () =>
  withProvider(async (provider) => {
    const { login, query } = await begin(provider);
    const answer = new URLSearchParams({ code: 'x', state: query.get('state') ?? '', iss: provider.issuer });
    assert.equal((await fetch(`${query.get('redirect_uri')}?${answer}`)).status, 400);
    const { why } = await expectError(login, 'sign_in_failed');
    assert.match(String(why), /invalid_grant/);
  }));

test('a login ends in time, when it is interrupted, and if the provider is down', () =>
  withProvider(async (provider) => {
    const late = await begin(provider, { timeoutMs: 50 });
    const { why } = await expectError(late.login, 'sign_in_failed');
    assert.match(String(why), /in time/);
    const interrupted = await begin(provider);
    interrupted.end();
    await expectError(interrupted.login, 'interrupted');
    provider.pause();
    const { issuer } = provider;
    const terminal = { openBrowser: async () => {}, print() {}, signal: new AbortController().signal };
    await expectError(oidcLogin({ issuer, clientId: CLI_CLIENT }, terminal), 'connection_failed');
  }));
