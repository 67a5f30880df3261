import * as assert from 'node:assert/strict';
import { Svc } from '../config/sdk/index.ts';
import { idempotencyOf } from '../core/approval/idempotency.ts';
import type { ApprovalRow } from '../core/approval/schema.ts';
import { engines } from './kit/engines.ts';
import { type Answer, type Api, apiOf, SERVER, withApi } from './kit/people-api.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { CALLBACK_KEY } from './suites/gate-client.ts';

// A decision that is sent again, because its answer was lost.

const postgresql = engines.find(({ name }) => name === 'postgresql')!;
const TWO = { ...SERVER, rules: [{ approve: [{ role: 'deciders', count: 2 }], deny: 2 }] };

interface Sender extends Pick<Api, 'call'> {
  readonly requestId: string;
  readonly token: string;
}

const send = ({ call, requestId, token }: Sender, key: string, body: object): Promise<Answer> =>
  call('POST', `/approvals/${requestId}/decision`, { token, body, headers: { 'idempotency-key': key } });

const codeOf = ({ status, body }: Answer) => [status, body.error];

test('the same key, person and body: the same answer, whatever happened since; the effect is one', () =>
  withApi(async ({ call, tokenOf, refund, svc }) => {
    const { request } = await refund();
    const { requestId } = request;
    const ann = { call, requestId, token: await tokenOf('ann', 'finance') };
    const bo = { ...ann, token: await tokenOf('bo', 'finance') };
    const vote = await send(ann, 'k1', { approved: true, reason: 'fine' });
    assert.deepEqual([vote.status, vote.body.status], [202, 'waiting']);
    assert.deepEqual(await send(ann, 'k1', { reason: 'fine', approved: true }).then(({ body }) => body), vote.body);
    // Ann changes her mind; what was sent first arrives once more.
    const second = await send(ann, 'k2', { approved: false });
    assert.deepEqual([second.status, second.body.votes.length], [202, 1]);
    const late = await send(ann, 'k1', { approved: true, reason: 'fine' });
    assert.deepEqual([late.status, late.body.votes[0].approved], [202, false]);
    assert.equal((await send(ann, 'k3', { approved: true })).status, 202);
    const decided = await send(bo, 'k4', { approved: true });
    assert.deepEqual([decided.status, decided.body.status], [200, 'approved']);
    const { unattendedSince: _, ...answer } = (await send(bo, 'k4', { approved: true })).body;
    const { unattendedSince: __, ...before } = decided.body;
    assert.deepEqual(answer, before);
    // Without its key it would be another decision.
    const rejected = await send(ann, 'k2', { approved: false });
    assert.deepEqual([rejected.status, rejected.body.status], [200, 'approved']);
    assert.deepEqual(codeOf(await send(ann, 'k5', { approved: false })), [409, 'approval_decided']);
    const { events } = await svc.approvals.get(requestId);
    assert.deepEqual(
      events.map(({ type }) => type).filter((type) => type === 'voted' || type === 'approved'),
      ['voted', 'voted', 'voted', 'approved'],
    );
    assert.deepEqual((await svc.approvals.verify()).broken, []);
  }, TWO));

test('the same key for another decision, or by another person, is refused, also after the decision', () =>
  withApi(async ({ call, tokenOf, refund, svc }) => {
    const { request } = await refund();
    const { requestId } = request;
    const ann = { call, requestId, token: await tokenOf('ann', 'finance') };
    const body = { approved: true, modifiedParams: { amount: 5 }, reason: 'less' };
    assert.equal((await send(ann, 'key', body)).status, 200);
    const { token } = { token: await tokenOf('bo', 'finance') };
    const reused = [422, 'idempotency_key_reused'];
    for (const other of [
      { approved: true, modifiedParams: { amount: 5 } },
      { ...body, modifiedParams: { amount: 6 } },
      { ...body, reviewToken: (await svc.approvals.get(requestId)).reviewToken },
      { approved: false, reason: 'less' },
    ]) {
      assert.deepEqual(codeOf(await send(ann, 'key', other)), reused, JSON.stringify(other));
    }
    assert.deepEqual(codeOf(await send({ ...ann, token }, 'key', body)), reused);
    // Another token of the same person is the same person; another key is another call.
    assert.equal((await send({ ...ann, token: await tokenOf('Ann', 'finance') }, 'key', body)).status, 200);
    assert.equal((await send({ ...ann, token }, 'other', body)).status, 200);
    // A key is one of its request.
    const next = (await refund()).request.requestId;
    assert.equal((await send({ ...ann, requestId: next }, 'key', { approved: false })).status, 200);
  }));

test('a key that is not valid is refused before anything is decided', () =>
  withApi(async ({ call, tokenOf, refund, svc }) => {
    const { request } = await refund();
    const sender = { call, requestId: request.requestId, token: await tokenOf('ann', 'finance') };
    for (const key of ['', ' ', 'x'.repeat(256), 'clé', 'a\tb']) {
      const answer = await send(sender, key, { approved: true });
      assert.deepEqual(codeOf(answer), [400, 'decision_invalid'], key);
      assert.match(answer.body.message, /idempotencyKey/);
    }
    assert.equal((await svc.approvals.get(request.requestId)).status, 'waiting');
    const signal = { signal: 'approve', payload: { requestId: request.requestId } } as const;
    await expectError(svc.approvals.signal(signal, { idempotencyKey: 7 as never }), 'decision_invalid');
    assert.equal((await send(sender, 'x'.repeat(255), { approved: true })).status, 200);
  }));

test('of calls at the same time with one key, one has an effect and all have its answer', () =>
  withApi(async ({ call, tokenOf, refund, svc }) => {
    const { request } = await refund();
    const sender = { call, requestId: request.requestId, token: await tokenOf('ann', 'finance') };
    const body = { approved: true, reason: 'r' };
    const answers = await Promise.all(Array.from({ length: 8 }, () => send(sender, 'once', body)));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([202]));
    const { events, votes } = await svc.approvals.get(request.requestId);
    assert.deepEqual([events.filter(({ type }) => type === 'voted').length, votes?.length], [1, 1]);
  }, TWO));

test('what is stored of a key does not let readers find a masked value by trying', () =>
  withApi(async ({ call, tokenOf, refund, svc }) => {
    const { request } = await refund({ orderId: '1', amount: 5, card: '4111-secret' });
    const { requestId } = request;
    const token = await tokenOf('ann', 'finance');
    const { reviewToken } = (await call('POST', `/approvals/${requestId}/reveal`, { token, body: {} })).body.request;
    const body = { approved: true, modifiedParams: { card: '4222-secret' }, reviewToken };
    assert.equal((await send({ call, requestId, token }, '1', body)).status, 200);
    const events = async (id: string) => (await svc.approvals.get(id)).events.filter((event) => event.idempotency);
    const own = await events(requestId);
    assert.equal(own.length, 1);
    const { principal: decider, by = '' } = own[0] ?? {};
    const sent = { ...body, override: undefined };
    const known = { requestId, body: {} } as ApprovalRow;
    const guessed = idempotencyOf(known, '1', { by, principal: decider! }, sent as never);
    assert.ok(guessed.key !== own[0]?.idempotency?.key && guessed.decision !== own[0]?.idempotency?.decision);
    assert.ok(!JSON.stringify(await svc.approvals.get(requestId)).includes('secret'));
    const other = (await refund({ orderId: '1', amount: 5, card: '4111-secret' })).request.requestId;
    assert.equal((await send({ call, requestId: other, token }, '1', { approved: false })).status, 403);
    const shown = (await call('POST', `/approvals/${other}/reveal`, { token, body: {} })).body.request;
    const again = { ...body, reviewToken: shown.reviewToken };
    assert.equal((await send({ call, requestId: other, token }, '1', again)).status, 200);
    assert.notEqual((await events(other))[0]?.idempotency?.key, own[0]?.idempotency?.key);
  }));

const between = 'a key is known to another server, and after a restart';
if (postgresql.missing !== undefined) test.skip(between, postgresql.missing);
else
  test(between, () =>
    postgresql.withUrl(async (url) => {
      const config = { databases: { main: { dialect: 'postgresql', url: { dev: url } } } } as const;
      const approvals = { ...TWO, store: { database: 'main' } };
      await withApi(
        async ({ call, tokenOf, refund }) => {
          const { request } = await refund();
          const sender = { call, requestId: request.requestId, token: await tokenOf('ann', 'finance') };
          const body = { approved: true, reason: 'r' };
          const first = await send(sender, 'key', body);
          assert.equal(first.status, 202);
          const base = { callbackBase: 'https://shop.example/svc', callbackKey: CALLBACK_KEY };
          const other = new Svc({
            config: { product: 'shop', env: 'dev', ...config, approvals: { ...base, ...approvals } },
          });
          try {
            const elsewhere = { ...sender, call: apiOf(other).call };
            assert.deepEqual((await send(elsewhere, 'key', body)).body, first.body);
            const reused = await send(elsewhere, 'key', { approved: false });
            assert.deepEqual(codeOf(reused), [422, 'idempotency_key_reused']);
          } finally {
            await other.close();
          }
        },
        approvals,
        { config },
      );
    }),
  );
