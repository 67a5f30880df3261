import * as assert from 'node:assert/strict';
import { assertConfig } from '../config/load/validate.ts';
import { startFakeIssuer } from './kit/oidc.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { withGate } from './suites/gate-client.ts';

// Which providers `approvals.oidc` accepts, by the configuration and by their metadata.

test('an issuer whose metadata name another issuer, or addresses without TLS, is not trusted', async () => {
  const { issuer, answers, close } = await startFakeIssuer();
  const decide = async (metadata: object) => {
    answers(metadata);
    let result: unknown;
    await withGate({ approvals: { oidc: { issuer, clientId: 'svc' } } }, async ({ svc, refund }) => {
      const payload = { requestId: (await refund()).request.requestId };
      const failed = await expectError(
        svc.approvals.signal({ signal: 'approve', payload }, { token: 'a.b.c' }),
        'connection_failed',
      );
      result = failed.why;
    });
    return result;
  };
  const valid = {
    issuer,
    authorization_endpoint: `${issuer}/auth`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/jwks`,
  };
  assert.match(String(await decide({ ...valid, issuer: 'https://evil.example' })), /issuer/);
  assert.match(String(await decide({ ...valid, jwks_uri: 'http://evil.example/jwks' })), /jwks_uri is not https/);
  assert.match(
    String(await decide({ ...valid, token_endpoint: 'http://evil.example/' })),
    /token_endpoint is not https/,
  );
  assert.match(
    String(await decide({ ...valid, authorization_endpoint: undefined })),
    /authorization_endpoint is missing/,
  );
  close();
});

test('the issuer of all tenants of Entra ID is not trusted: it would vouch for the people of any', async () => {
  const login = 'https://login.microsoftonline.com';
  const metadata = {
    issuer: `${login}/{tenantid}/v2.0`,
    authorization_endpoint: `${login}/common/oauth2/v2.0/authorize`,
    token_endpoint: `${login}/common/oauth2/v2.0/token`,
    jwks_uri: `${login}/common/discovery/v2.0/keys`,
  };
  const { fetch } = globalThis;
  globalThis.fetch = async () => Response.json(metadata);
  try {
    await withGate(
      { approvals: { oidc: { issuer: `${login}/common/v2.0`, clientId: 'svc' } } },
      async ({ svc, refund }) => {
        const payload = { requestId: (await refund()).request.requestId };
        const signal = svc.approvals.signal({ signal: 'approve', payload }, { token: 'a.b.c' });
        const { why } = await expectError(signal, 'connection_failed');
        assert.match(String(why), /names another issuer/);
      },
    );
  } finally {
    globalThis.fetch = fetch;
  }
});

test('a configuration that would trust anybody is rejected', () => {
  const valid = { issuer: 'https://login.acme.example/realms/acme', clientId: 'svc' };
  const problemsOf = (oidc: object) => {
    try {
      assertConfig({ approvals: { oidc } });
    } catch (error) {
      return (error as { details: { problems: string[] } }).details.problems.join(' ');
    }
    return 'none';
  };
  for (const [oidc, why] of [
    [valid, /^none$/],
    [{ ...valid, issuer: 'http://127.0.0.1:8080' }, /^none$/],
    [{ ...valid, clientSecret: undefined, scopes: ['openid', 'https://acme.example/groups'] }, /^none$/],
    [{ ...valid, issuer: 'http://login.acme.example' }, /issuer: is not https/],
    [{ ...valid, issuer: 'login.acme.example' }, /issuer: is not a URL/],
    [{ ...valid, issuer: 'https://login.acme.example/?tenant=acme' }, /issuer: must not have a query/],
    [{ ...valid, issuer: 'https://ann:secret@login.acme.example' }, /issuer: contains credentials/],
    [{ issuer: valid.issuer }, /clientId: is missing/],
    [{ ...valid, clientId: '' }, /clientId: must be a string/],
    [{ ...valid, algorithms: ['HS256'] }, /algorithms: must be some of RS256/],
    [{ ...valid, algorithms: ['none'] }, /algorithms: must be some of RS256/],
    [{ ...valid, algorithms: [] }, /algorithms: must be some of RS256/],
    [{ ...valid, scopes: ['openid email'] }, /scopes: must be an array of scopes/],
    [{ ...valid, scopes: 'openid' }, /scopes: must be an array of scopes/],
    [{ ...valid, audience: [''] }, /audience: must be a string/],
    [{ ...valid, group: 'groups' }, /group: is not a known setting. Did you mean "groups"/],
  ] as const) {
    assert.match(problemsOf(oidc), why);
  }
});
