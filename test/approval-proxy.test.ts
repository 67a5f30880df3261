import * as assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startServer } from '../cli/approvals/server.ts';
import { assertConfig } from '../config/load/validate.ts';
import { approvalHandler } from '../config/sdk/index.ts';
import { definePlugin } from '../core/plugin.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { approveByCallback, callbackUrlOf, type GateUnderTest, withGate } from './suites/gate-client.ts';
import { waitUntil } from './suites/wait-until.ts';

// People whom a proxy has authenticated: a signed header with its keys, issuer and audience. Tokens are made by hand here, not
// by the library that verifies them.

const HEADER = 'cf-access-jwt-assertion';
const ISSUER = 'https://acme.example/access';
const AUDIENCE = 'the approvals';

interface Key {
  readonly kid: string;
  readonly alg: 'RS256' | 'ES256' | 'EdDSA';
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

const keys: readonly Key[] = [
  { kid: 'rsa', alg: 'RS256', ...generateKeyPairSync('rsa', { modulusLength: 2048 }) },
  { kid: 'ec', alg: 'ES256', ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) },
  { kid: 'ed', alg: 'EdDSA', ...generateKeyPairSync('ed25519') },
];
const [rsa, ec, ed] = keys as [Key, Key, Key];

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

function signatureOf(text: string, { alg, privateKey }: Key): string {
  const data = Buffer.from(text);
  if (alg === 'EdDSA') return sign(null, data, privateKey).toString('base64url');
  return sign('sha256', data, { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url');
}

function jwt(payload: object, key: Key, header: object = { alg: key.alg, kid: key.kid }): string {
  const text = `${encode(header)}.${encode(payload)}`;
  return `${text}.${signatureOf(text, key)}`;
}

const now = (): number => Math.floor(Date.now() / 1_000);
const claims = (more: object = {}): object => ({
  iss: ISSUER,
  aud: AUDIENCE,
  exp: now() + 3_600,
  email: 'ann@acme.example',
  teams: ['finance'],
  ...more,
});

interface Proxied extends GateUnderTest {
  /** The status of a decision that arrives with a header, and who decided it. */
  decide(token: string | undefined, authorization?: string): Promise<readonly [number, unknown?]>;
  handler: ReturnType<typeof approvalHandler>;
  keyServer: ReturnType<typeof createServer>;
}

/** With the keys of the proxy at a real address. */
async function withProxy(
  body: (fixture: Proxied) => Promise<void>,
  plugins: readonly ReturnType<typeof definePlugin>[] = [],
): Promise<void> {
  const jwks = { keys: keys.map(({ kid, alg, publicKey }) => ({ ...publicKey.export({ format: 'jwk' }), kid, alg })) };
  const keyServer = createServer((_request, response) => response.end(JSON.stringify(jwks))).listen(0, '127.0.0.1');
  await once(keyServer, 'listening');
  const proxy = {
    header: HEADER,
    jwks: `http://127.0.0.1:${(keyServer.address() as AddressInfo).port}/certs`,
    issuer: ISSUER,
    audience: [AUDIENCE, 'another application'],
    algorithms: ['RS256', 'ES256', 'EdDSA'] as const,
    groups: 'teams',
  };
  const roles = { finance: ['group:finance'] };
  const rules = [{ approve: [{ role: 'finance' }] }];
  try {
    await withGate({ config: { plugins }, approvals: { proxy, roles, rules } }, async (gate) => {
      const handler = approvalHandler(gate.svc);
      await body({
        ...gate,
        keyServer,
        handler,
        async decide(token, authorization) {
          const { request } = await gate.refund();
          const headers = {
            ...(token !== undefined && { [HEADER]: token }),
            ...(authorization !== undefined && { authorization }),
          };
          return approveByCallback(gate.svc, handler, request, headers);
        },
      });
    });
  } finally {
    keyServer.close();
  }
}

const ANN = [200, [{ id: 'ann@acme.example', groups: ['finance'], verifiedBy: 'proxy' }]];
const REFUSED = [401, 'token_invalid'];

test('whom the proxy names decides, with their groups', () =>
  withProxy(async ({ decide, svc }) => {
    for (const key of keys) assert.deepEqual(await decide(jwt(claims(), key)), ANN, key.alg);
    assert.deepEqual(await decide(jwt(claims({ aud: ['x', AUDIENCE], teams: 'finance' }), ec)), ANN);
    // One who is logged in, and of no role.
    assert.deepEqual(await decide(jwt(claims({ teams: ['sales'] }), ec)), [403, 'decision_refused']);
    assert.deepEqual(await decide(jwt(claims({ teams: undefined }), ec)), [403, 'decision_refused']);
    // Who comes around the proxy is nobody.
    assert.deepEqual(await decide(undefined), [403, 'decision_refused']);
    // The token of a person says who decides, wherever it comes from.
    const { token } = await svc.people.createToken({ id: 'bo', groups: ['finance'] }, { validForMs: 60_000 });
    const bo = [200, [{ id: 'bo', groups: ['finance'], verifiedBy: 'token' }]];
    assert.deepEqual(await decide(jwt(claims(), ec), `Bearer ${token}`), bo);
    assert.deepEqual(await decide('not a token', `Bearer ${token}`), bo);
  }));

test('a token that is forged, expired or for somebody else is refused, and never counts as none', () =>
  withProxy(async ({ decide }) => {
    const stranger: Key = { kid: 'rsa', alg: 'RS256', ...generateKeyPairSync('rsa', { modulusLength: 2048 }) };
    const [header = '', , signature = ''] = jwt(claims(), rsa).split('.');
    const publicPem = rsa.publicKey.export({ type: 'spki', format: 'pem' });
    const confused = `${encode({ alg: 'HS256', kid: 'rsa' })}.${encode(claims())}`;
    const none = `${encode({ alg: 'none' })}.${encode(claims())}.`;
    const embedded = { alg: 'RS256', kid: 'unknown', jwk: stranger.publicKey.export({ format: 'jwk' }) };
    const tokens = {
      'of another key': jwt(claims(), stranger),
      'of a key that is in the token': jwt(claims(), stranger, embedded),
      'of a key that it names': jwt(claims(), stranger, { alg: 'RS256', kid: 'x', jku: 'https://evil.example' }),
      'without a signature': none,
      'without a signature, in other letters': none.replace(/^[^.]+/, encode({ alg: 'nOnE' })),
      'with the public key as a secret': `${confused}.${createHmac('sha256', publicPem).update(confused).digest('base64url')}`,
      'with an algorithm of another key': jwt(claims(), rsa, { alg: 'ES256', kid: 'ec' }),
      'with an algorithm that is not named': jwt(claims(), rsa, { alg: 'RS384', kid: 'rsa' }),
      'with other claims than were signed': `${header}.${encode(claims({ email: 'eve@acme.example' }))}.${signature}`,
      'with a critical header that nobody knows': jwt(claims(), rsa, { alg: 'RS256', kid: 'rsa', crit: ['x'], x: 1 }),
      'that has expired': jwt(claims({ exp: now() - 60 }), rsa),
      'that never expires': jwt(claims({ exp: undefined }), rsa),
      'that is not valid yet': jwt(claims({ nbf: now() + 600 }), rsa),
      'for another audience': jwt(claims({ aud: 'a stranger' }), rsa),
      'for any audience': jwt(claims({ aud: undefined }), rsa),
      'of another issuer': jwt(claims({ iss: 'https://evil.example/access' }), rsa),
      'of nobody': jwt(claims({ email: undefined }), rsa),
      'of no text': jwt(claims({ email: { id: 'ann' } }), rsa),
      'of a text that cannot be seen': jwt(claims({ email: 'ann@acme.example\u200b' }), ed),
      'with groups that are no texts': jwt(claims({ teams: [7] }), rsa),
      'with an address that was not verified': jwt(claims({ email_verified: false }), rsa),
      'that is no token': 'ann@acme.example',
      'that is empty': '',
    };
    for (const [what, token] of Object.entries(tokens)) assert.deepEqual(await decide(token), REFUSED, what);
    assert.deepEqual(await decide(jwt(claims(), rsa)), ANN);
  }));

test('a token that expires while a hook decides gives no decision', async () => {
  /** Seconds between the clock of the proxy and that of this process for which a token counts. */
  const tolerance = 10;
  const exp = now() + 2 - tolerance;
  const slow = definePlugin({
    name: 'slow',
    apply(kernel) {
      kernel.hooks.beforeDecision.tapPromise('slow', () => waitUntil(() => now() >= exp + tolerance, 'it expires'));
    },
  });
  await withProxy(async ({ decide }) => assert.deepEqual(await decide(jwt(claims({ exp }), rsa)), REFUSED), [slow]);
});

test('on its page, the person whom the proxy names reads and decides', () =>
  withProxy(async ({ refund, svc, handler }) => {
    const { request } = await refund({ orderId: '1', amount: 5, card: '4242' });
    const { requestId } = request;
    const url = await callbackUrlOf(svc, request);
    const send = async (fields: Record<string, string>, token: string) => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded', [HEADER]: token };
      const body = new URLSearchParams(fields).toString();
      const response = await handler(new Request(url, { method: 'POST', headers, body }));
      return { status: response.status, text: await response.text() };
    };
    assert.equal((await send({ action: 'show' }, jwt(claims({ exp: 1 }), rsa))).status, 401);
    const shown = await send({ action: 'show' }, jwt(claims(), rsa));
    assert.match(shown.text, /4242/);
    const [, view = ''] = /name="view" value="([^"]+)"/.exec(shown.text) ?? [];
    assert.equal((await send({ action: 'approve', view }, 'forged')).status, 401);
    assert.equal((await send({ action: 'approve', view }, jwt(claims(), rsa))).status, 200);
    const { events } = await svc.approvals.get(requestId);
    assert.deepEqual(
      events
        .filter(({ principal }) => principal)
        .map(({ type, principal }) => [type, principal?.id, principal?.verifiedBy]),
      [
        ['revealed', 'ann@acme.example', 'proxy'],
        ['approved', 'ann@acme.example', 'proxy'],
      ],
    );
  }));

test('if the keys cannot be read, nothing is decided, and the caller may try again', () =>
  withProxy(async ({ decide, keyServer }) => {
    keyServer.closeAllConnections();
    await new Promise((resolve) => keyServer.close(resolve));
    assert.deepEqual(await decide(jwt(claims(), rsa)), [503, 'store_unavailable']);
  }));

const SECRET = 'a secret of the proxy, of thirty-two characters';
const plain = {
  header: 'x-forwarded-email',
  groupsHeader: 'x-forwarded-groups',
  secret: { header: 'x-proxy-secret', value: SECRET },
  peers: ['10.0.0.7', '10.1.0.0/16', 'fd00::/8'],
};
const fromProxy = {
  'x-forwarded-email': 'ann@acme.example',
  'x-forwarded-groups': 'sales, finance,',
  'x-proxy-secret': SECRET,
};

test('plain headers count from the addresses of the proxy, with its secret', () =>
  withGate(
    { approvals: { proxy: plain, roles: { finance: ['group:finance'] }, rules: [{ approve: [{ role: 'finance' }] }] } },
    async ({ svc, refund }) => {
      let peer: string | undefined;
      const handler = approvalHandler(svc, { peerOf: () => peer });
      const decide = async (from: string | undefined, headers: Record<string, string>) => {
        peer = from;
        const { request } = await refund();
        const url = await callbackUrlOf(svc, request);
        const all = { 'content-type': 'application/json', ...headers };
        const response = await handler(new Request(url, { method: 'POST', headers: all, body: '{"approved":true}' }));
        const { deciders, status } = await svc.approvals.get(request.requestId);
        assert.equal(status, response.status === 200 ? 'approved' : 'waiting');
        return [response.status, deciders?.[0]?.id];
      };
      const { 'x-proxy-secret': _, ...withoutSecret } = fromProxy;
      const { 'x-forwarded-email': __, ...withoutPerson } = fromProxy;
      for (const known of ['10.0.0.7', '10.1.200.3', '::ffff:10.0.0.7', '::FFFF:10.1.0.1', 'fd12::1']) {
        assert.deepEqual(await decide(known, fromProxy), [200, 'ann@acme.example'], known);
      }
      for (const stranger of [
        '10.0.0.8',
        '10.2.0.1',
        '::ffff:10.0.0.8',
        'fe80::1',
        '127.0.0.1',
        '',
        undefined,
        '10.0.0.7, 1.2.3.4',
      ]) {
        assert.deepEqual(await decide(stranger, fromProxy), [401, undefined], String(stranger));
      }
      assert.deepEqual(await decide('10.0.0.7', withoutSecret), [401, undefined]);
      assert.deepEqual(await decide('10.0.0.7', { ...fromProxy, 'x-proxy-secret': `${SECRET}x` }), [401, undefined]);
      assert.deepEqual(await decide('10.0.0.7', { ...fromProxy, 'x-forwarded-email': '' }), [401, undefined]);
      // Who says nothing is nobody, and of no role.
      assert.deepEqual(await decide('10.0.0.7', withoutPerson), [403, undefined]);
      assert.deepEqual(await decide('10.0.0.7', { ...fromProxy, 'x-forwarded-groups': 'sales' }), [403, undefined]);
      // What the handler makes of the headers is not for others to make.
      const { request } = await refund();
      const forged = Buffer.from('{"id":"ann@acme.example","groups":["finance"]}').toString('base64url');
      for (const token of [forged, `${forged}.`, `${forged}.${forged}`]) {
        const payload = { requestId: request.requestId };
        await expectError(svc.approvals.signal({ signal: 'approve', payload }, { token }), 'token_invalid');
      }
    },
  ));

test('svc approvals serve knows the address that a connection comes from', async () => {
  const seen: (string | undefined)[] = [];
  const { url, close } = await startServer({
    host: '127.0.0.1',
    port: 0,
    handler: async (_request, peer) => {
      seen.push(peer);
      return new Response('ok');
    },
    isReady: async () => undefined,
  });
  await (await fetch(`${url}/x`, { headers: { 'x-forwarded-for': '10.0.0.7' } })).text();
  await close();
  assert.deepEqual(seen, ['127.0.0.1']);
});

test('a configuration that would accept a token of anybody is rejected', () => {
  const valid = {
    header: HEADER,
    jwks: 'https://acme.example/certs',
    issuer: ISSUER,
    audience: 'x',
    algorithms: ['RS256'],
  };
  const problemsOf = (proxy: object) => {
    try {
      assertConfig({ approvals: { proxy } });
    } catch (error) {
      return (error as { details: { problems: string[] } }).details.problems.join(' ');
    }
    return 'none';
  };
  for (const [proxy, why] of [
    [valid, /^none$/],
    [{ ...valid, algorithms: ['HS256'] }, /algorithms: must be some of RS256/],
    [{ ...valid, algorithms: ['none'] }, /algorithms: must be some of RS256/],
    [{ ...valid, algorithms: [] }, /algorithms: must be some of RS256/],
    [{ ...valid, audience: [] }, /audience: is empty/],
    [{ ...valid, audience: '' }, /audience: must be a string/],
    [{ ...valid, jwks: 'http://acme.example/certs' }, /jwks: is not https/],
    [{ ...valid, header: 'Authorization' }, /header: must be the name of a header other than/],
    [{ ...valid, header: 'x y' }, /header: must be the name of a header/],
    [{ ...valid, groupz: 'teams' }, /groupz: is not a known setting/],
    [plain, /^none$/],
    [{ ...plain, peers: [] }, /peers: must be addresses or ranges/],
    [{ ...plain, peers: ['proxy.internal'] }, /peers: must be addresses or ranges/],
    [{ ...plain, peers: ['10.0.0.0/33'] }, /peers: must be addresses or ranges/],
    [{ ...plain, peers: undefined }, /peers: must be addresses or ranges|peers: is missing/],
    [{ ...plain, secret: { header: 'x', value: 'short' } }, /secret\.value: must have at least 32 characters/],
    [{ ...plain, secret: { header: 'x', value: undefined } }, /secret\.value: must have at least 32 characters/],
    [{ header: HEADER }, /jwks: is missing.*issuer: is missing.*audience: is missing.*algorithms: is missing/],
  ] as const) {
    assert.match(problemsOf(proxy), why);
  }
});
