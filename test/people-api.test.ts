import * as assert from 'node:assert/strict';
import { jsonDigest } from '../core/json.ts';
import { callDigest } from '../core/tool/call-digest.ts';
import { type Answer, type Api, SERVER, withApi } from './kit/people-api.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { withGate } from './suites/gate-client.ts';

// What `svc approvals … --server` sends, to the handler of a program.

const CARD = { orderId: '1', amount: 5, card: '4111-secret' };

test('a person of the role lists, reads and decides; the record has who it was', () =>
  withApi(async ({ call, tokenOf, refund, svc }) => {
    const token = await tokenOf('ann@acme.example', 'finance', 'staff');
    const me = await call('GET', '/me', { token });
    const { expiresAt, ...known } = me.body;
    assert.deepEqual(known, {
      product: 'shop',
      env: 'dev',
      principal: { id: 'ann@acme.example', groups: ['finance', 'staff'], verifiedBy: 'token' },
    });
    assert.ok(Date.parse(expiresAt) > Date.now());
    assert.equal(me.headers.get('cache-control'), 'no-store');
    const { request, outcome } = await refund();
    const { requestId } = request;
    const listed = await call('GET', '/approvals', { token });
    assert.deepEqual(
      listed.body.records.map((one: { requestId: string }) => one.requestId),
      [requestId],
    );
    const { request: shown } = (await call('GET', `/approvals/${requestId}`, { token })).body;
    assert.deepEqual(shown, JSON.parse(JSON.stringify(await svc.approvals.get(requestId))));
    const body = { approved: true, modifiedParams: { amount: 7 }, reviewToken: shown.reviewToken };
    const decided = await call('POST', `/approvals/${requestId}/decision`, { token, body });
    assert.deepEqual([decided.status, decided.body.status], [200, 'approved']);
    assert.equal((await outcome).status, 'completed');
    const { decidedBy, deciders, parameters, modifiedParams } = (await svc.approvals.get(requestId)) as never as Record<
      string,
      unknown
    >;
    assert.deepEqual(
      { decidedBy, deciders, parameters, modifiedParams },
      {
        decidedBy: 'ann@acme.example',
        deciders: [{ id: 'ann@acme.example', groups: ['finance', 'staff'], verifiedBy: 'token' }],
        parameters: { orderId: '1234', amount: 20 },
        modifiedParams: { amount: 7 },
      },
    );
  }));

test('sensitive parameters are masked, and shown with an event that says to whom', () =>
  withApi(async ({ call, tokenOf, refund, svc }) => {
    const token = await tokenOf('cy');
    const { request, outcome } = await refund(CARD);
    const path = `/approvals/${request.requestId}`;
    const masked = (await call('GET', path, { token })).body.request;
    assert.ok(!JSON.stringify(masked).includes(CARD.card) && masked.reviewToken === undefined);
    assert.ok(!JSON.stringify((await call('GET', '/approvals', { token })).body).includes(CARD.card));
    const blind = await call('POST', `${path}/decision`, { token, body: { approved: true } });
    assert.deepEqual([blind.status, blind.body.error], [403, 'approval_unseen']);
    const { request: whole } = (await call('POST', `${path}/reveal`, { token, body: {} })).body;
    assert.equal(whole.parameters.card, CARD.card);
    const revealed = (await svc.approvals.get(request.requestId)).events.filter(({ type }) => type === 'revealed');
    assert.deepEqual(
      revealed.map(({ by, principal, from }) => [by, principal?.verifiedBy, from]),
      [['cy', 'token', 'approvals server']],
    );
    const body = { approved: true, reviewToken: whole.reviewToken };
    assert.equal((await call('POST', `${path}/decision`, { token, body })).body.status, 'approved');
    assert.equal((await outcome).status, 'completed');
  }));

test('without a token, with a wrong one, or without the role, nothing is shown and nothing is done', () =>
  withApi(async ({ call, tokenOf, refund, svc, refunds }) => {
    const { request } = await refund(CARD);
    const ended = await svc.people.createToken({ id: 'ed', groups: ['finance'] }, { validForMs: 60_000 });
    await svc.people.revokeToken(ended.tokenId);
    const routes = [
      ['GET', '/approvals', undefined],
      ['GET', '/me', undefined],
      ['GET', `/approvals/${request.requestId}`, undefined],
      ['POST', `/approvals/${request.requestId}/reveal`, {}],
      ['POST', `/approvals/${request.requestId}/decision`, { approved: true }],
    ] as const;
    const stranger = await tokenOf('dee', 'ops');
    const cases: [string, string | undefined, number, string][] = [
      ['none', undefined, 401, 'token_invalid'],
      ['nonsense', 'nonsense', 401, 'token_invalid'],
      ['of nobody', `svcp_${'a'.repeat(61)}`, 401, 'token_invalid'],
      [
        'edited',
        `${stranger.slice(0, 20)}${stranger[20] === 'x' ? 'y' : 'x'}${stranger.slice(21)}`,
        401,
        'token_invalid',
      ],
      ['revoked', ended.token, 401, 'token_invalid'],
      ['another role', stranger, 403, 'access_refused'],
    ];
    for (const [name, token, status, error] of cases) {
      for (const [method, path, body] of routes) {
        const answer = await call(method, path, { ...(token !== undefined && { token }), body });
        assert.deepEqual([answer.status, answer.body.error], [status, error], `${name} at ${method} ${path}`);
        assert.ok(
          !JSON.stringify(answer.body).includes(request.requestId) && !JSON.stringify(answer.body).includes(CARD.card),
        );
      }
    }
    const { status, events } = await svc.approvals.get(request.requestId);
    assert.equal(status, 'waiting');
    assert.ok(!events.some(({ type }) => type === 'revealed'));
    assert.deepEqual(refunds, []);
  }));

test('a token that is revoked, or whose person leaves the role, ends at once', () =>
  withApi(async ({ call, svc }) => {
    const { token, tokenId } = await svc.people.createToken({ id: 'cy' }, { validForMs: 60_000 });
    assert.equal((await call('GET', '/approvals', { token })).status, 200);
    await svc.people.revokeToken(tokenId);
    assert.equal((await call('GET', '/approvals', { token })).status, 401);
  }));

test('without approvals.server there is no API, and the role must exist', async () => {
  await withApi(
    async ({ fetch, tokenOf, refund, svc }) => {
      const token = await tokenOf('cy', 'finance');
      const { requestId } = (await refund()).request;
      const decision = { method: 'POST', body: '{"approved":true}', headers: { 'content-type': 'application/json' } };
      for (const [path, init] of [
        ['/approvals', {}],
        ['/me', {}],
        [`/approvals/${requestId}`, {}],
        [`/approvals/${requestId}/decision`, decision],
      ] as const) {
        const response = await fetch(path, { token, ...init });
        const { error, message } = (await response.json()) as { error: string; message: string };
        assert.deepEqual([response.status, error], [404, 'route_unknown']);
        assert.match(message, /approvals\.server is not in the configuration/);
      }
      assert.equal((await svc.approvals.get(requestId)).status, 'waiting');
    },
    { roles: SERVER.roles! },
  );
  const unknown = withGate({ approvals: { ...SERVER, server: { role: 'decider' } } }, async ({ refund }) => {
    await refund();
  });
  assert.match(
    (await expectError(unknown, 'config_invalid')).why ?? '',
    /approvals\.server\.role: is not a role; did you mean "deciders"\?/,
  );
  const none = withGate({ approvals: { server: { role: 'deciders' } } }, async ({ refund }) => {
    await refund();
  });
  assert.match(
    (await expectError(none, 'config_invalid')).why ?? '',
    /approvals\.server\.role: is not a role; add it to approvals\.roles\./,
  );
});

test('the rules of a request bind here too', () =>
  withApi(
    async ({ call, tokenOf, refund, refunds, svc }) => {
      const { request, outcome } = await refund({ orderId: '1', amount: 20 }, 'ann');
      const { requestId } = request;
      const decide = async (token: string, body: object) =>
        call('POST', `/approvals/${requestId}/decision`, { token, body });
      const requester = await decide(await tokenOf('Ann', 'finance'), { approved: true });
      assert.deepEqual([requester.status, requester.body.error], [403, 'decision_refused']);
      const vote = await decide(await tokenOf('bo', 'finance'), { approved: true });
      assert.deepEqual(
        [vote.status, vote.body.status, vote.body.missing],
        [202, 'waiting', [{ role: 'deciders', count: 1 }]],
      );
      const head = await decide(await tokenOf('hal', 'heads'), { approved: true, override: true, reason: 'r' });
      assert.deepEqual([head.status, head.body.error], [403, 'access_refused']);
      const both = await decide(await tokenOf('hal', 'heads', 'finance'), {
        approved: false,
        override: true,
        reason: 'no',
      });
      assert.equal(both.body.status, 'rejected');
      assert.equal((await outcome).status, 'rejected');
      assert.deepEqual(refunds, []);
      const { deciders, override } = await svc.approvals.get(requestId);
      assert.deepEqual([deciders?.map(({ id }) => id), override], [['hal'], true]);
      const again = await decide(await tokenOf('cy'), { approved: true });
      assert.deepEqual([again.status, again.body.error, again.body.status], [409, 'approval_decided', 'rejected']);
    },
    { ...SERVER, rules: [{ approve: [{ role: 'deciders', count: 2 }], override: 'heads' }] },
  ));

test('lists in pages, by status, agent and execution; a query that is not valid is refused', () =>
  withApi(async ({ call, tokenOf, refund, svc }) => {
    const token = await tokenOf('cy');
    const made = [await refund(), await refund(), await refund()].map(({ request }) => request);
    const list = async (query: string) => call('GET', `/approvals?${query}`, { token });
    const idsOf = ({ body }: Answer) => body.records.map((one: { requestId: string }) => one.requestId);
    const first = await list('limit=2');
    assert.deepEqual(
      idsOf(first),
      made.slice(0, 2).map(({ requestId }) => requestId),
    );
    const rest = await list(new URLSearchParams({ limit: '2', cursor: first.body.cursor }).toString());
    assert.deepEqual([idsOf(rest), rest.body.cursor], [[made[2]?.requestId], undefined]);
    assert.deepEqual(idsOf(await list('limit=1&newestFirst=true')), [made[2]?.requestId]);
    assert.deepEqual(idsOf(await list('agentTag=other')), []);
    assert.deepEqual(idsOf(await list(`executionId=${made[1]?.executionId}`)), [made[1]?.requestId]);
    assert.deepEqual(idsOf(await list('status=rejected')), []);
    assert.equal(idsOf(await list(`since=${new Date(0).toISOString()}`)).length, 3);
    assert.deepEqual(idsOf(await list(`before=${new Date(0).toISOString()}`)), []);
    for (const query of [
      'status=open',
      'limit=0',
      'limit=x',
      'limit=0x10',
      'since=1',
      'since=2026-13-01',
      'limit=1001',
      'since=soon',
      'colour=red',
      'limit=1&limit=2',
      '__proto__=1',
      'newestFirst=yes',
      'cursor=nonsense',
    ]) {
      const answer = await list(query);
      assert.deepEqual([answer.status, answer.body.error], [400, 'value_invalid'], query);
    }
    assert.equal((await svc.approvals.list()).records.length, 3);
  }));

test('only JSON, only the method of the route, only ids, no unknown field, no field twice, no more than 64 KiB', () =>
  withApi(async ({ call, tokenOf, refund, svc }) => {
    const token = await tokenOf('cy');
    const { request } = await refund();
    const at = `/approvals/${request.requestId}`;
    const refused = async (expected: [number, string], ...[method, path, more]: Parameters<Api['call']>) => {
      const answer = await call(method, path, { token, ...more });
      assert.deepEqual([answer.status, answer.body.error], expected, `${method} ${path} ${JSON.stringify(more?.body)}`);
    };
    await refused([405, 'method_not_allowed'], 'POST', '/approvals', { body: {} });
    await refused([405, 'method_not_allowed'], 'DELETE', at);
    await refused([405, 'method_not_allowed'], 'GET', `${at}/decision`);
    await refused([405, 'method_not_allowed'], 'GET', `${at}/reveal`);
    await refused([404, 'approval_unknown'], 'GET', '/approvals/apr_1');
    await refused([404, 'approval_unknown'], 'GET', '/approvals/apr_0192f0c1-7b1e-7cc0-8f3e-3a1f0d9b2c11');
    await refused([404, 'route_unknown'], 'POST', '/me/decision', { body: { approved: true } });
    for (const path of ['', '/', '/approval', '/approvals/a/b/c', '/../v1/x'])
      await refused([404, 'route_unknown'], 'GET', path);
    await refused([404, 'approval_unknown'], 'POST', '/approvals/apr_0192f0c1-7b1e-7cc0-8f3e-3a1f0d9b2c11/reveal', {
      body: {},
    });
    const invalid: [number, string] = [400, 'decision_invalid'];
    await refused(invalid, 'POST', `${at}/reveal`, { body: '', type: 'application/x-www-form-urlencoded' });
    await refused(invalid, 'POST', `${at}/reveal`, { body: '{}', type: 'text/plain' });
    await refused(invalid, 'POST', `${at}/reveal`, { body: { all: true } });
    await refused(invalid, 'POST', `${at}/reveal`, { body: 'garbage' });
    await refused(invalid, 'POST', `${at}/decision`, { body: 'approved=true', type: 'text/plain' });
    await refused(invalid, 'POST', `${at}/decision`, { body: '{"approved":false,"approved":true}' });
    await refused(invalid, 'POST', `${at}/decision`, { body: { approved: 'true' } });
    await refused(invalid, 'POST', `${at}/decision`, { body: { approved: true, principal: { id: 'ann' } } });
    await refused(invalid, 'POST', `${at}/decision`, { body: 'null' });
    await refused([403, 'approval_unseen'], 'POST', `${at}/decision`, {
      body: { approved: true, reviewToken: 'wrong' },
    });
    await refused([413, 'body_too_large'], 'POST', `${at}/decision`, {
      body: { approved: true, reason: 'x'.repeat(70_000) },
    });
    assert.equal((await svc.approvals.get(request.requestId)).status, 'waiting');
  }));

test('tokens that are not valid are limited, which keeps out nobody who was known before', () =>
  withApi(async ({ call, tokenOf }) => {
    const token = await tokenOf('cy');
    assert.equal((await call('GET', '/me', { token })).status, 200);
    const statuses = new Set<number>();
    let tries = 0;
    for (; tries < 7_000 && !statuses.has(429); tries++)
      statuses.add((await call('GET', '/me', { token: `svcp_${tries}` })).status);
    assert.deepEqual([...statuses], [401, 429]);
    assert.ok(tries > 5_000, `${tries}`);
    assert.equal((await call('GET', '/me', { token })).status, 200);
    const late = await call('GET', '/me', { token: await tokenOf('ann', 'finance') });
    assert.deepEqual([late.status, late.headers.get('retry-after') !== null], [429, true]);
    let own = 0;
    while (own < 700 && (await call('GET', '/me', { token })).status === 200) own++;
    assert.ok(own > 500 && own < 700, `${own}`);
  }));

test('digests of a request with sensitive parameters do not let readers find these by trying', () =>
  withApi(async ({ call, tokenOf, refund, svc }) => {
    const token = await tokenOf('cy');
    const { request } = await refund({ orderId: '1', amount: 5, card: '4821' });
    const { requestId, executionId, agentTag, tool, reason } = request;
    const { request: masked } = (await call('GET', `/approvals/${requestId}`, { token })).body;
    const { reviewToken, ...whole } = await svc.approvals.get(requestId, { reveal: true, actor: 'the test' });
    const bound = { requestId, executionId, agentTag, tool, reason, toolDigest: whole.toolDigest, sensitive: ['card'] };
    const guessed = callDigest({ ...bound, parameters: whole.parameters });
    assert.notEqual(guessed, reviewToken);
    assert.ok(!guessed.startsWith(masked.digest) && reviewToken?.startsWith(masked.digest));
    const [, revealed] = whole.events;
    assert.equal(revealed?.type, 'revealed');
    assert.notEqual(revealed?.state, jsonDigest({ status: 'waiting', run: 'none' }));
    const shown = JSON.stringify([masked, whole, (await call('GET', '/approvals', { token })).body]);
    assert.ok(!shown.includes('salt'));
  }));

test('a login of a proxy alone reads and decides nothing here', async () => {
  const secret = { header: 'x-proxy-secret', value: 'a secret of the proxy, of thirty-two characters' };
  const approvals = { ...SERVER, proxy: { header: 'x-user', secret, peers: ['127.0.0.1'] } };
  await withGate({ approvals }, async ({ svc }) => {
    const handler = svc.approvals.handler({ peerOf: () => '127.0.0.1' });
    const headers = { 'x-user': 'cy', 'x-proxy-secret': secret.value };
    const response = await handler(new Request('https://shop.example/svc/api/v1/me', { headers }));
    assert.deepEqual([response.status, response.headers.get('www-authenticate')], [401, 'Bearer']);
  });
});

test('without a rule too, nobody who was verified decides their own request, and no agent', () =>
  withApi(async ({ tokenOf, refund, svc }) => {
    const { request, outcome } = await refund({ orderId: '1', amount: 20 }, 'Ann');
    const signal = { signal: 'approve', payload: { requestId: request.requestId } } as const;
    for (const id of ['ann', 'agent:x', 'payouts']) {
      if (id === 'agent:x') {
        const { why } = await expectError(tokenOf(id, 'finance'), 'value_invalid');
        assert.match(why ?? '', /An agent cannot decide/);
      } else {
        const token = await tokenOf(id, 'finance');
        await expectError(svc.approvals.signal(signal, { token }), 'decision_refused');
      }
      await expectError(svc.agents.signal(signal, { principal: { id } }), 'decision_refused');
    }
    await svc.approvals.signal(signal, { token: await tokenOf('bo', 'finance') });
    assert.equal((await outcome).status, 'completed');
  }));
