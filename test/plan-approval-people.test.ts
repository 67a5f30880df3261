import * as assert from 'node:assert/strict';
import type { ApprovalsConfig } from '../config/define.ts';
import { peopleSources } from '../config/load/plan-approval.ts';
import { approvalHandler, type Svc } from '../config/sdk/index.ts';
import { callbackToken } from '../core/approval/token.ts';
import { migrate } from '../core/migration/migrate.ts';
import { definedInCode } from './kit/migrations.ts';
import { approvalConfig, dba, drops, ground, requestOf, withClient } from './kit/plan-approval.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

const all = [ground, ...drops].map(definedInCode);
const callbackKey = Buffer.alloc(32, 7).toString('base64');
const secret = { header: 'x-proxy-secret', value: 'p'.repeat(40) };
const proxy = { header: 'x-person', groupsHeader: 'x-groups', secret, peers: ['10.0.0.7'] };

/** The configuration of one who has this proxy, or none. */
const withProxy = (url: string, found?: ApprovalsConfig['proxy']) =>
  approvalConfig('postgresql', url, {
    approvals: {
      store: { database: 'main' },
      roles: { dba: ['group:dba'] },
      callbackBase: 'https://shop.example/svc',
      callbackKey,
      ...(found && { proxy: found }),
    },
  });

/** The status of an approval by somebody whom a proxy at this address calls a database administrator. */
async function approvalThrough(svc: Svc, requestId: string, peer: string, header: string): Promise<number> {
  const { timeout, reviewToken: digest = '' } = await svc.approvals.get(requestId, { reveal: true, actor: 'the test' });
  const token = callbackToken(callbackKey, { product: 'shop', env: 'prd', requestId, digest, timeout });
  const headers = {
    'content-type': 'application/json',
    [header]: dba.id,
    'x-groups': 'dba',
    [secret.header]: secret.value,
  };
  const url = `https://shop.example/svc/approvals/${requestId}/respond?token=${token}`;
  const request = new Request(url, { method: 'POST', headers, body: '{"approved":true}' });
  return (await approvalHandler(svc, { peerOf: () => peer })(request)).status;
}

test('what the store remembers of a provider and a proxy has no secret', () => {
  const oidc = { issuer: 'https://login.example', clientId: 'shop', clientSecret: 'of the client' };
  const texts = [...peopleSources({ oidc, proxy }).values()];
  assert.equal(texts[0], 'oidc:{"clientId":"shop","issuer":"https://login.example"}');
  assert.match(String(texts[1]), /^proxy:.*"10\.0\.0\.7".*"x-proxy-secret"/);
  assert.doesNotMatch(String(texts), /of the client|pppp/);
  assert.notDeepEqual(texts, [...peopleSources({ oidc: { ...oidc, groups: 'nicknames' }, proxy }).values()]);
});

const name = 'a plan is approved through the proxy that the store remembers, and through no other';
const missing = await unavailable();
if (missing !== undefined) test.skip(name, missing);
else
  test(name, async () => {
    const { url, drop } = await freshDatabase();
    const others: ApprovalsConfig['proxy'][] = [
      { ...proxy, peers: ['127.0.0.1'] },
      { ...proxy, header: 'x-user' },
    ];
    try {
      await withClient(withProxy(url, proxy), async (svc, target) => {
        await migrate(target, all, { to: ground.tag });
        const requestId = await requestOf(migrate(target, all));
        for (const other of others)
          await withClient(withProxy(url, other), async (stranger, itsTarget) => {
            const [peer = ''] = (other as typeof proxy).peers;
            assert.equal(await approvalThrough(stranger, requestId, peer, other?.header ?? ''), 403);
            assert.equal((await svc.approvals.get(requestId)).status, 'waiting');
            if (other === others[0]) return;
            await svc.people.createToken(dba, { validForMs: 60_000 });
            await expectError(migrate(itsTarget, all), 'approver_required');
          });
        assert.equal(await approvalThrough(svc, requestId, '10.0.0.7', proxy.header), 200);
        assert.equal((await migrate(target, all)).migrations.length, drops.length);
      });
    } finally {
      await drop();
    }
  });
