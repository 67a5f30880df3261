import * as assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { oidcLogin } from '../cli/people/oidc-login.ts';
import type { OidcConfig, ProxyConfig } from '../config/define.ts';
import { approvalHandler } from '../config/sdk/index.ts';
import { Browser, CLI_CLIENT, CLIENT, type RealProvider, startFakeIssuer, startProvider } from './kit/oidc.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { approveByCallback, callbackUrlOf, type GateUnderTest, withGate } from './suites/gate-client.ts';

// ID tokens of a real provider, and forged ones, on the callback and with a signal. The sign-in on the page of a request is in
// approval-sign-in.test.ts. Forged tokens are made by hand, not by the library that verifies them.

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const now = (): number => Math.floor(Date.now() / 1_000);

function jwt(payload: object, key: KeyObject, header: object): string {
  const text = `${encode(header)}.${encode(payload)}`;
  return `${text}.${sign('sha256', Buffer.from(text), key).toString('base64url')}`;
}

interface Fixture extends GateUnderTest {
  readonly provider: RealProvider;
  /** A token of the key of the provider. */
  signed(claims?: object, header?: object): string;
  /** The status of a decision with a bearer token, and who decided it. */
  decide(bearer: string, headers?: Readonly<Record<string, string>>): Promise<readonly [number, unknown?]>;
}

async function withOidc(
  settings: Partial<OidcConfig> & {
    readonly proxy?: (provider: RealProvider) => ProxyConfig;
    readonly server?: { readonly role: string };
  },
  body: (fixture: Fixture) => Promise<void>,
): Promise<void> {
  const provider = await startProvider('https://shop.example/svc/approvals/signed-in');
  const { proxy, server, ...more } = settings;
  const oidc = { issuer: provider.issuer, clientId: CLIENT.id, groups: 'groups', audience: CLI_CLIENT, ...more };
  const approvals = {
    oidc,
    ...(proxy && { proxy: proxy(provider) }),
    ...(server && { server }),
    roles: { finance: ['group:finance'] },
    rules: [{ approve: [{ role: 'finance' }] }],
  };
  try {
    await withGate({ approvals }, async (gate) => {
      const handler = approvalHandler(gate.svc);
      await body({
        ...gate,
        provider,
        signed: (claims = {}, header = {}) =>
          jwt(
            {
              iss: provider.issuer,
              aud: CLIENT.id,
              sub: 'ann',
              iat: now(),
              exp: now() + 3_600,
              email: 'ann@acme.example',
              email_verified: true,
              groups: ['finance'],
              ...claims,
            },
            provider.key.privateKey,
            { alg: 'RS256', kid: provider.key.kid, ...header },
          ),
        async decide(bearer, more) {
          const { request } = await gate.refund();
          const headers = { authorization: `Bearer ${bearer}`, ...more };
          return approveByCallback(gate.svc, handler, request, headers);
        },
      });
    });
  } finally {
    provider.close();
  }
}

const personOf = (id: string) => [200, [{ id, groups: ['finance'], verifiedBy: 'oidc' }]];
const ANN = personOf('ann@acme.example');
const REFUSED = [401, 'token_invalid'];

/** The ID token of a person who signs in on the command line. */
async function idTokenOf(person: string, { issuer }: RealProvider): Promise<string> {
  const browser = new Browser();
  const { idToken } = await oidcLogin(
    { issuer, clientId: CLI_CLIENT, scopes: ['email', 'groups'] },
    {
      openBrowser: async (url) => {
        await browser.open(url);
        await browser.logIn(person);
      },
      print() {},
      signal: new AbortController().signal,
    },
  );
  return idToken;
}

test('an ID token of the provider decides, with the groups of its person', () =>
  withOidc({}, async ({ provider, svc, refund, decide, signed }) => {
    const idToken = await idTokenOf('ann', provider);
    assert.deepEqual(await decide(idToken), ANN);
    assert.deepEqual(await decide(signed()), ANN);
    assert.deepEqual(await decide(await idTokenOf('bo', provider)), [403, 'decision_refused']);
    const { request, outcome } = await refund();
    const result = await svc.approvals.signal(
      { signal: 'approve', payload: { requestId: request.requestId } },
      { token: idToken },
    );
    assert.equal(result.status, 'approved');
    assert.equal((await outcome).status, 'completed');
    const { events, deciders } = await svc.approvals.get(request.requestId);
    assert.deepEqual(deciders, ANN[1]);
    assert.equal(events.find(({ type }) => type === 'approved')?.principal?.verifiedBy, 'oidc');
    // The tokens of the store are as good as ever, and any other authorization is for what is in front of this server.
    const { token } = await svc.people.createToken({ id: 'bo', groups: ['finance'] }, { validForMs: 60_000 });
    assert.deepEqual(await decide(token), [200, [{ id: 'bo', groups: ['finance'], verifiedBy: 'token' }]]);
    assert.deepEqual(await decide('', { authorization: 'Basic YW5uOng=' }), [403, 'decision_refused']);
    const discoveries = provider.requests.filter((path) => path.includes('well-known'));
    assert.equal(
      discoveries.length,
      3,
      'two sign-ins read the metadata once each, and the callback once for all tokens',
    );
  }));

test('a token that is forged, expired or for somebody else is refused, and never counts as none', () =>
  withOidc({}, async ({ provider, svc, decide, signed, refund }) => {
    const { kid, publicKey } = provider.key;
    const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const payload = signed().split('.')[1] ?? '';
    const [header = '', , signature = ''] = signed().split('.');
    const publicPem = publicKey.export({ type: 'spki', format: 'pem' });
    const confused = `${encode({ alg: 'HS256', kid })}.${payload}`;
    const none = `${encode({ alg: 'none' })}.${payload}.`;
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object;
    const tokens = {
      'of another key': jwt(claims, stranger.privateKey, { alg: 'RS256', kid }),
      'of a key that is in the token': jwt(claims, stranger.privateKey, {
        alg: 'RS256',
        kid: 'unknown',
        jwk: stranger.publicKey.export({ format: 'jwk' }),
      }),
      'of a key that it names': jwt(claims, stranger.privateKey, {
        alg: 'RS256',
        kid: 'x',
        jku: 'https://evil.example',
      }),
      'without a signature': none,
      'without a signature, in other letters': none.replace(/^[^.]+/, encode({ alg: 'nOnE' })),
      'with the public key as a secret': `${confused}.${createHmac('sha256', publicPem).update(confused).digest('base64url')}`,
      'with an algorithm that is not named': signed({}, { alg: 'PS256' }),
      'with other claims than were signed': `${header}.${encode({ ...claims, email: 'eve@acme.example' })}.${signature}`,
      'that has expired': signed({ exp: now() - 60 }),
      'that never expires': signed({ exp: undefined }),
      'that is not valid yet': signed({ nbf: now() + 600 }),
      'for another client': signed({ aud: 'a stranger' }),
      'for any client': signed({ aud: undefined }),
      'for this client among others, issued to nobody': signed({ aud: [CLIENT.id, 'a stranger'] }),
      'for this client, issued to another': signed({ azp: 'a stranger' }),
      'of another issuer': signed({ iss: 'https://evil.example' }),
      'of the issuer, spelled in another way': signed({ iss: `${provider.issuer}/` }),
      'that is an access token': signed({}, { typ: 'at+jwt' }),
      'that is an access token of Keycloak': signed({ typ: 'Bearer' }),
      'that ends a session': signed({ events: { 'http://schemas.openid.net/event/backchannel-logout': {} } }),
      'without a subject': signed({ sub: undefined }),
      'without the time at which it was issued': signed({ iat: undefined }),
      'of nobody': signed({ email: undefined }),
      'of no text': signed({ email: { id: 'ann' } }),
      'with groups that are no texts': signed({ groups: [7] }),
      'with an address that was not verified': signed({ email_verified: false }),
      'of a person whose address the provider has not verified': await idTokenOf('eve', provider),
      'of a person without an address': await idTokenOf('nobody', provider),
      'that is no token': 'ann@acme.example',
      'that has a space': `${signed()} x`,
      'that is empty': '',
      'of the store, with a space': 'svcp_x x',
    };
    for (const [what, token] of Object.entries(tokens)) {
      assert.deepEqual(await decide(token), REFUSED, what);
      const { request } = await refund();
      const payload = { requestId: request.requestId };
      await expectError(svc.approvals.signal({ signal: 'approve', payload }, { token }), 'token_invalid');
    }
    assert.deepEqual(await decide(signed({ aud: [CLIENT.id, CLI_CLIENT], azp: CLI_CLIENT })), ANN);
    assert.deepEqual(await decide(signed({ email_verified: undefined, typ: 'ID' }, { typ: 'JWT' })), ANN);
  }));

test('a token of another client of the provider is refused, unless `audience` names it', () =>
  withOidc({ audience: CLIENT.id }, async ({ provider, decide, signed }) => {
    assert.deepEqual(await decide(await idTokenOf('ann', provider)), REFUSED);
    assert.deepEqual(await decide(signed()), ANN);
  }));

test('another claim may have the id, and other algorithms may be the ones that count', async () => {
  await withOidc({ id: 'sub' }, async ({ decide, signed }) => {
    assert.deepEqual(await decide(signed({ email_verified: false })), personOf('ann'));
    assert.deepEqual(await decide(signed({ groups: 'finance' })), personOf('ann'));
  });
  await withOidc({ algorithms: ['ES256'] }, async ({ decide, signed }) => {
    assert.deepEqual(await decide(signed()), REFUSED);
  });
});

test('while the provider is down nothing is decided, and the caller may try again', () =>
  withOidc({}, async ({ provider, svc, decide, signed, refund }) => {
    const waiting = await refund();
    const payload = { requestId: waiting.request.requestId };
    const signal = () => svc.approvals.signal({ signal: 'approve', payload }, { token: signed() });
    provider.pause();
    // First the metadata cannot be read, and then the keys.
    for (const _ of ['a failure is not remembered', 'for the next call']) {
      assert.deepEqual(await decide(signed()), [503, 'store_unavailable']);
      await expectError(signal(), 'connection_failed');
    }
    const { token } = await svc.people.createToken({ id: 'bo', groups: ['finance'] }, { validForMs: 60_000 });
    assert.equal((await decide(token))[0], 200, 'the tokens of the store need no provider');
    provider.resume();
    assert.equal((await signal()).status, 'approved');
    provider.pause();
    assert.deepEqual(await decide(signed()), ANN, 'the keys are known');
  }));

test('with a proxy as well, each verifies its own tokens', () => {
  const proxyKey = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const header = 'cf-access-jwt-assertion';
  const proxy = ({ issuer }: RealProvider): ProxyConfig => ({
    header,
    // A proxy that is never reached.
    jwks: `${issuer}/nowhere`,
    issuer: 'https://acme.example/access',
    audience: 'the approvals',
    algorithms: ['RS256'],
  });
  return withOidc({ proxy }, async ({ decide, signed }) => {
    const claims = {
      iss: 'https://acme.example/access',
      aud: 'the approvals',
      exp: now() + 60,
      email: 'eve@acme.example',
    };
    const ofProxy = jwt(claims, proxyKey.privateKey, { alg: 'RS256', kid: 'rsa' });
    assert.deepEqual(await decide(signed(), { [header]: ofProxy }), ANN, 'the bearer token goes first');
    assert.deepEqual(await decide('', { authorization: '', [header]: ofProxy }), [503, 'store_unavailable']);
    assert.deepEqual(await decide('', { authorization: '', [header]: signed() }), ANN);
  });
});

test('an outage of one source is not the word of another on its tokens', async () => {
  const { issuer: jwks, answers, close } = await startFakeIssuer();
  answers({ keys: [] });
  const ofNobody = () => ({
    header: 'x-proxy',
    jwks,
    issuer: 'https://acme.example/access',
    audience: 'the approvals',
    algorithms: ['RS256'] as const,
  });
  await withOidc({ proxy: ofNobody }, async ({ provider, decide, signed }) => {
    provider.pause();
    assert.deepEqual(await decide(signed()), [503, 'store_unavailable']);
    provider.resume();
    assert.deepEqual(await decide(signed()), ANN);
    assert.deepEqual(await decide(signed({ aud: 'a stranger' })), REFUSED);
  });
  close();
});

test('on the page, a bearer or a header goes before the session', () =>
  withOidc({}, async ({ svc, refund, signed }) => {
    const handler = approvalHandler(svc);
    const { token } = await svc.people.createToken({ id: 'bo', groups: ['finance'] }, { validForMs: 60_000 });
    const { request } = await refund();
    const url = await callbackUrlOf(svc, request);
    const headers = {
      'content-type': 'application/x-www-form-urlencoded',
      authorization: `Bearer ${token}`,
      cookie: `__Host-svc-shop-dev-session=${signed()}`,
    };
    const send = (fields: Record<string, string>) =>
      handler(new Request(url, { method: 'POST', headers, body: new URLSearchParams(fields).toString() }));
    const text = await (await send({ action: 'show' })).text();
    assert.doesNotMatch(text, /igned in as/);
    const [, view = ''] = /name="view" value="([^"]+)"/.exec(text) ?? [];
    assert.equal((await send({ action: 'approve', view })).status, 200);
    assert.equal((await svc.approvals.get(request.requestId)).decidedBy, 'bo');
  }));

test('the API for people takes ID tokens', async () => {
  const server = { role: 'finance' };
  await withOidc({ server }, async ({ svc, signed }) => {
    const handler = approvalHandler(svc);
    const me = async (token: string) => {
      const headers = { authorization: `Bearer ${token}` };
      const response = await handler(new Request('https://shop.example/svc/api/v1/me', { headers }));
      return [response.status, (await response.json()) as { principal?: unknown }] as const;
    };
    const [status, { principal }] = await me(signed());
    assert.deepEqual([status, [principal]], ANN);
    assert.equal((await me(signed({ groups: ['sales'] })))[0], 403);
    assert.equal((await me(signed({ exp: now() - 60 })))[0], 401);
    // A delegation ends with the token that made it, and an ID token may be stolen for less than a delegation lasts.
    const headers = { authorization: `Bearer ${signed()}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ to: 'bo', until: new Date(Date.now() + 60_000).toISOString() });
    const url = 'https://shop.example/svc/api/v1/delegations';
    const refused = await handler(new Request(url, { method: 'POST', headers, body }));
    assert.equal(refused.status, 400);
    assert.match(((await refused.json()) as { message: string }).message, /Only a token of svc people token create/);
  });
});
