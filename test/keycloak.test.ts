import * as assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { oidcLogin } from '../cli/people/oidc-login.ts';
import { approvalHandler } from '../config/sdk/index.ts';
import { Browser, CLI_CLIENT, CLIENT } from './kit/oidc.ts';
import { test } from './kit/test.ts';
import { approveByCallback, callbackUrlOf, type GateUnderTest, withGate } from './suites/gate-client.ts';

// People sign in at a Keycloak: on the page of a request, and on the command line. CONTRIBUTING.md says how to start one.

const url = process.env.SVC_TEST_KEYCLOAK_URL;
const ORIGIN = 'https://shop.example';
const REDIRECT = `${ORIGIN}/svc/approvals/signed-in`;
const PASSWORD = 'a password of a person';

async function send(path: string, init: RequestInit): Promise<Response> {
  const response = await fetch(`${url}${path}`, init);
  if (!response.ok) throw new Error(`${init.method} ${path}: ${response.status} ${await response.text()}`);
  return response;
}

/** An access token, without a browser. */
async function accessToken(realm: string, client_id: string, username: string, password: string): Promise<string> {
  const body = new URLSearchParams({ grant_type: 'password', scope: 'openid', client_id, username, password });
  const response = await send(`/realms/${realm}/protocol/openid-connect/token`, { method: 'POST', body });
  return ((await response.json()) as { access_token: string }).access_token;
}

const person = (id: string, groups: readonly string[], emailVerified = true) => ({
  username: id,
  firstName: id,
  lastName: id,
  email: `${id}@acme.example`,
  emailVerified,
  enabled: true,
  groups,
  credentials: [{ type: 'password', value: PASSWORD }],
});

/** What `docs/reference/who-may-decide.md` says to register at a provider. */
const realmOf = (realm: string) => ({
  realm,
  enabled: true,
  groups: [{ name: 'finance' }, { name: 'sales' }],
  users: [person('ann', ['/finance']), person('bo', ['/sales']), person('eve', ['/finance'], false)],
  clients: [
    {
      clientId: CLIENT.id,
      secret: CLIENT.secret,
      redirectUris: [REDIRECT],
      attributes: { 'pkce.code.challenge.method': 'S256' },
      protocolMappers: [groupsOf()],
    },
    {
      clientId: CLI_CLIENT,
      publicClient: true,
      directAccessGrantsEnabled: true, // for an access token
      redirectUris: ['http://127.0.0.1/signed-in'],
      attributes: { 'pkce.code.challenge.method': 'S256' },
      protocolMappers: [groupsOf()],
    },
  ],
});

const groupsOf = () => ({
  name: 'groups',
  protocol: 'openid-connect',
  protocolMapper: 'oidc-group-membership-mapper',
  config: { 'claim.name': 'groups', 'full.path': 'false', 'id.token.claim': 'true', 'access.token.claim': 'true' },
});

interface Fixture extends GateUnderTest {
  readonly realm: string;
  readonly issuer: string;
  readonly handler: (request: Request) => Promise<Response>;
}

async function withKeycloak(body: (fixture: Fixture) => Promise<void>): Promise<void> {
  const realm = `svc-${randomBytes(6).toString('hex')}`;
  const administer = async (path: string, method: string, body?: object) =>
    send(`/admin/realms${path}`, {
      method,
      headers: {
        authorization: `Bearer ${await accessToken('master', 'admin-cli', 'admin', 'admin')}`,
        'content-type': 'application/json',
      },
      ...(body && { body: JSON.stringify(body) }),
    });
  await administer('', 'POST', realmOf(realm));
  const issuer = `${url}/realms/${realm}`;
  const approvals = {
    callbackBase: `${ORIGIN}/svc`,
    oidc: { issuer, clientId: CLIENT.id, clientSecret: CLIENT.secret, groups: 'groups', audience: CLI_CLIENT },
    roles: { finance: ['group:finance'] },
    rules: [{ approve: [{ role: 'finance' }] }],
  };
  try {
    await withGate({ approvals }, (gate) => body({ ...gate, realm, issuer, handler: approvalHandler(gate.svc) }));
  } finally {
    await administer(`/${realm}`, 'DELETE');
  }
}

const logIn = (browser: Browser, username: string) =>
  browser.submit('name="username"', { username, password: PASSWORD });

/** The ID token of a person who signs in on the command line. */
async function idTokenOf(issuer: string, username: string): Promise<string> {
  const browser = new Browser();
  const { idToken } = await oidcLogin(
    { issuer, clientId: CLI_CLIENT, scopes: ['email'] },
    {
      openBrowser: async (address) => {
        await browser.open(address);
        await logIn(browser, username);
        assert.match(browser.page.text, /You are signed in/);
      },
      print() {},
      signal: new AbortController().signal,
    },
  );
  return idToken;
}

const keycloakTest = (name: string, body: (fixture: Fixture) => Promise<void>) =>
  url === undefined
    ? test.skip(name, 'SVC_TEST_KEYCLOAK_URL is the URL of none')
    : test(name, () => withKeycloak(body));

keycloakTest('a person whom Keycloak signs in on the page decides, with their groups, until they sign out', (fixture) =>
  inBrowser(fixture, async ({ browser, request, svc }) => {
    await browser.follow('Sign in');
    await logIn(browser, 'ann');
    assert.match(browser.page.text, /Signed in as ann@acme\.example/);
    await browser.submit('value="show"');
    assert.equal((await browser.submit('name="view"', { action: 'approve' })).status, 200);
    const { status, deciders } = await svc.approvals.get(request.requestId);
    assert.equal(status, 'approved');
    assert.deepEqual(deciders, [{ id: 'ann@acme.example', groups: ['finance'], verifiedBy: 'oidc' }]);
    await browser.open(browser.page.url);
    await browser.submit('value="sign-out"');
    assert.match(browser.page.text, /Nobody is signed in/);
  }),
);

keycloakTest(
  'a person of no role, and one whose address is not verified, decide nothing on the page',
  async (fixture) => {
    await inBrowser(fixture, async ({ browser, request, svc }) => {
      await browser.follow('Sign in');
      await logIn(browser, 'bo');
      await browser.submit('value="show"');
      assert.equal((await browser.submit('name="view"', { action: 'approve' })).status, 403);
      assert.equal((await svc.approvals.get(request.requestId)).status, 'waiting');
    });
    await inBrowser(fixture, async ({ browser }) => {
      await browser.follow('Sign in');
      await logIn(browser, 'eve');
      assert.doesNotMatch(browser.page.text, /Signed in as/);
    });
  },
);

keycloakTest('an ID token of svc login decides, and an access token of Keycloak does not', async (fixture) => {
  const { realm, issuer, svc, handler, refund } = fixture;
  const decide = async (bearer: string) => {
    const { request } = await refund();
    return approveByCallback(svc, handler, request, { authorization: `Bearer ${bearer}` });
  };
  const ann = [200, [{ id: 'ann@acme.example', groups: ['finance'], verifiedBy: 'oidc' }]];
  const idToken = await idTokenOf(issuer, 'ann');
  assert.deepEqual(await decide(idToken), ann);
  assert.deepEqual(await decide(await idTokenOf(issuer, 'bo')), [403, 'decision_refused']);
  assert.deepEqual(await decide(await idTokenOf(issuer, 'eve')), [401, 'token_invalid']);
  const access = await accessToken(realm, CLI_CLIENT, 'ann', PASSWORD);
  assert.deepEqual(await decide(access), [401, 'token_invalid']);
  const [header, payload = '', signature] = idToken.split('.');
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object;
  const changed = Buffer.from(JSON.stringify({ ...claims, email: 'cy@acme.example' })).toString('base64url');
  assert.deepEqual(await decide(`${header}.${changed}.${signature}`), [401, 'token_invalid']);
});

interface InBrowser extends Fixture {
  readonly browser: Browser;
  readonly request: Awaited<ReturnType<GateUnderTest['refund']>>['request'];
}

/** Opens the page of a new request in a browser of its own. */
async function inBrowser(fixture: Fixture, body: (page: InBrowser) => Promise<void>): Promise<void> {
  const browser = new Browser({ [ORIGIN]: fixture.handler });
  const { request } = await fixture.refund();
  await browser.open(await callbackUrlOf(fixture.svc, request));
  await body({ ...fixture, browser, request });
}
