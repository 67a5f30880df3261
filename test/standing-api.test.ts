import * as assert from 'node:assert/strict';
import { type Api, SERVER, withApi } from './kit/people-api.ts';
import { test } from './kit/test.ts';

// Who lets later calls run needs no password of the database either: the HTTP API, for the person of the token.

const RULED = {
  ...SERVER,
  roles: { deciders: ['group:finance', 'group:heads'], heads: ['group:heads'] },
  rules: [{ approve: [{ role: 'deciders' }], standing: 'heads' }],
};
const tomorrow = () => new Date(Date.now() + 86_400_000).toISOString();

const allow = (api: Api, token: string | undefined, body: unknown) =>
  api.call('POST', '/standing-rules', { body, ...(token !== undefined && { token }) });

/** The id of a request that was approved, once its call has run. */
async function approved({ call, refund }: Api, token: string, parameters?: object, requester?: string) {
  const { request, outcome } = await refund(parameters, requester);
  const path = `/approvals/${request.requestId}`;
  const { reviewToken } = (await call('POST', `${path}/reveal`, { token, body: {} })).body.request;
  const decided = await call('POST', `${path}/decision`, { token, body: { approved: true, reviewToken } });
  assert.equal(decided.status, 200, JSON.stringify(decided.body));
  await outcome;
  return request.requestId;
}

test('a person of the role lets later calls run, which is listed, counted and ended', () =>
  withApi(async (api) => {
    const [ann, hal, hedy] = [
      await api.tokenOf('ann', 'finance'),
      await api.tokenOf('hal', 'heads'),
      await api.tokenOf('hedy', 'heads'),
    ];
    const requestId = await approved(api, ann);
    const input = { requestId, uses: 2, until: tomorrow(), atMost: { amount: 20 } };
    const refused = await allow(api, ann, input);
    assert.deepEqual([refused.status, refused.body.error], [403, 'decision_refused']);
    const made = await allow(api, hal, input);
    assert.equal(made.status, 200, JSON.stringify(made.body));
    assert.deepEqual([made.body.by, made.body.uses, made.body.used, made.body.atMost], ['hal', 2, 0, { amount: 20 }]);
    const listed = async () => (await api.call('GET', '/standing-rules', { token: ann })).body.standingRules;
    assert.deepEqual(await listed(), [made.body]);
    const again = await api.gate.run({ tool: 'refund', parameters: { orderId: '1234', amount: 5 } });
    assert.equal(again.status, 'completed');
    assert.equal((await listed())[0].used, 1);

    const path = `/standing-rules/${made.body.standingId}/revoke`;
    const others = await api.call('POST', path, { token: ann, body: {} });
    assert.deepEqual([others.status, others.body.error], [403, 'decision_refused']);
    assert.equal((await api.call('POST', path, { token: hal, body: { x: 1 } })).status, 400);
    assert.equal((await listed())[0].revokedAt, undefined);
    const ended = await api.call('POST', path, { token: hedy, body: {} });
    assert.equal(ended.status, 200);
    assert.ok(ended.body.revokedAt);
    assert.deepEqual(await listed(), [ended.body]);
  }, RULED));

test('what cannot be allowed is refused by every check of the other ways in, and nothing is stored', () =>
  withApi(async (api) => {
    const [ann, hal] = [await api.tokenOf('ann', 'finance'), await api.tokenOf('hal', 'heads')];
    const requestId = await approved(api, ann);
    const input = { requestId, uses: 2, until: tomorrow() };
    const waiting = (await api.refund()).request.requestId;
    const card = await approved(api, ann, { orderId: '1', amount: 5, card: '4111' });
    const own = await approved(api, ann, undefined, 'hal');
    for (const [body, status, why] of [
      [{ ...input, uses: 0 }, 400, /uses is not a whole number from 1 to 10000/],
      [{ ...input, uses: '2' }, 400, /uses is string, expected a number/],
      [{ ...input, until: 'tomorrow' }, 400, /until is not a date and time/],
      [{ ...input, until: '2020-01-01' }, 400, /until is not in the future/],
      [{ ...input, until: undefined }, 400, /until is missing/],
      [{ ...input, atMost: { amount: 20_000 } }, 400, /amount is not a number from 0 to/],
      [{ ...input, atMost: { orderId: 1 } }, 400, /orderId is not a number in the request/],
      [{ ...input, principal: { id: 'hal', groups: ['heads'] } }, 400, /principal is not a known property/],
      [{ ...input, token: hal }, 400, /token is not a known property/],
      ['{"uses":1,"uses":2}', 400, /twice/],
      [{ ...input, requestId: waiting }, 400, /is waiting, and was not approved/],
      [{ ...input, requestId: card }, 403, /has sensitive parameters/],
      [{ ...input, requestId: own }, 403, /who made the request cannot allow later calls/],
      [{ ...input, requestId: 'apr_1' }, 404, /No request/],
    ] as const) {
      const refused = await allow(api, hal, body);
      assert.equal(refused.status, status, JSON.stringify([body, refused.body]));
      assert.match(refused.body.message, why);
    }
    assert.equal((await allow(api, undefined, input)).status, 401);
    const eve = await api.tokenOf('eve', 'ops');
    assert.equal((await allow(api, eve, input)).status, 403);
    assert.equal((await api.call('GET', '/standing-rules', { token: eve })).status, 403);
    for (const [path, method, methods] of [
      ['/standing-rules', 'DELETE', 'GET, POST'],
      ['/standing-rules/std_1/revoke', 'GET', 'POST'],
    ] as const) {
      const { status, headers } = await api.call(method, path, { token: hal });
      assert.deepEqual([status, headers.get('allow')], [405, methods]);
    }
    const unknown = await api.call('POST', '/standing-rules/std_1/revoke', { token: hal, body: {} });
    assert.deepEqual([unknown.status, unknown.body.error], [404, 'standing_unknown']);
    assert.deepEqual((await api.call('GET', '/standing-rules', { token: hal })).body.standingRules, []);
  }, RULED));
