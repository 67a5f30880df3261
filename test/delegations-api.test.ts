import * as assert from 'node:assert/strict';
import { type Api, SERVER, withApi } from './kit/people-api.ts';
import { test } from './kit/test.ts';

// Who delegates needs no password of the database either: the HTTP API, for the person of the token.

const RULED = { ...SERVER, rules: [{ approve: [{ role: 'deciders', count: 1 }], not: ['user:bo'] }] };
const DAY = 86_400_000;
const tomorrow = () => new Date(Date.now() + DAY).toISOString();

const delegate = (api: Api, token: string | undefined, body: unknown) =>
  api.call('POST', '/delegations', { body, ...(token !== undefined && { token }) });

test('a person delegates, sees what is from and to them, and ends it; others do not', () =>
  withApi(async (api) => {
    const [ann, cy, dee] = [
      await api.tokenOf('ann', 'finance'),
      await api.tokenOf('CY2', 'finance'),
      await api.tokenOf('dee', 'finance'),
    ];
    const made = await delegate(api, ann, { to: 'cy2', until: tomorrow() });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    assert.deepEqual([made.body.from, made.body.groups, made.body.to], ['ann', ['finance'], 'cy2']);
    // With the token, which is valid for a minute.
    assert.ok(Date.parse(made.body.until) < Date.now() + DAY / 2);
    const listed = async (token: string) => (await api.call('GET', '/delegations', { token })).body.delegations;
    assert.deepEqual(await listed(ann), [made.body]);
    assert.deepEqual(await listed(cy), [made.body]);
    assert.deepEqual(await listed(dee), []);

    const path = `/delegations/${made.body.delegationId}/revoke`;
    for (const token of [cy, dee]) {
      const refused = await api.call('POST', path, { token, body: {} });
      assert.deepEqual([refused.status, refused.body.error], [404, 'delegation_unknown']);
    }
    assert.equal((await listed(ann))[0].revokedAt, undefined);
    assert.equal((await api.call('POST', path, { token: ann, body: { to: 'x' } })).status, 400);
    const ended = await api.call('POST', path, { token: ann, body: {} });
    assert.equal(ended.status, 200);
    assert.ok(ended.body.revokedAt);
    assert.deepEqual(await listed(ann), [ended.body]);
  }, RULED));

test('what cannot be delegated is refused, and nothing is stored', () =>
  withApi(async (api) => {
    const ann = await api.tokenOf('ann', 'finance');
    for (const [body, why] of [
      [{ to: 'ann', until: tomorrow() }, /to themselves/],
      [{ to: 'agent:payouts', until: tomorrow() }, /An agent cannot decide/],
      [{ to: 'bo' }, /until is missing/],
      [{ to: 'bo', until: 'tomorrow' }, /until is not a date and time/],
      [{ to: 'bo', until: '2026-13-01' }, /until is not a date/],
      [{ to: 'bo', until: '2020-01-01' }, /until is not in the future/],
      [{ to: 'bo', until: tomorrow(), from: { id: 'eve' } }, /from is not a known property/],
      [{ to: 'bo', until: tomorrow(), token: ann }, /token is not a known property/],
      ['{"to":"bo","to":"cy","until":"2026-12-24"}', /twice/],
    ] as const) {
      const refused = await delegate(api, ann, body);
      assert.equal(refused.status, 400, JSON.stringify(body));
      assert.match(refused.body.message, why);
    }
    assert.equal((await delegate(api, undefined, { to: 'bo', until: tomorrow() })).status, 401);
    assert.equal((await delegate(api, await api.tokenOf('eve', 'ops'), { to: 'bo', until: tomorrow() })).status, 403);
    for (const method of ['DELETE', 'PUT']) {
      const { status, headers } = await api.call(method, '/delegations', { token: ann });
      assert.deepEqual([status, headers.get('allow')], [405, 'GET, POST']);
    }
    assert.equal((await api.call('GET', '/delegations/dlg_1/revoke', { token: ann })).headers.get('allow'), 'POST');
    assert.equal((await api.call('POST', '/delegations/dlg_1/revoke', { token: ann, body: {} })).status, 404);
    assert.deepEqual((await api.call('GET', '/delegations', { token: ann })).body.delegations, []);
  }));
