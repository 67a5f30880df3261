import * as assert from 'node:assert/strict';
import { mock } from 'node:test';
import { Svc } from '../config/sdk/index.ts';
import { engines } from './kit/engines.ts';
import { EventReader, type ReceivedEvent } from './kit/event-reader.ts';
import { type Api, apiOf, SERVER, withApi } from './kit/people-api.ts';
import { test } from './kit/test.ts';
import { CALLBACK_KEY } from './suites/gate-client.ts';

const postgresql = engines.find(({ name }) => name === 'postgresql')!;
const TWO = { ...SERVER, rules: [{ approve: [{ role: 'deciders', count: 2 }], deny: 2 }] };

async function listen({ fetch }: Pick<Api, 'fetch'>, token: string, lastId?: string): Promise<EventReader> {
  const response = await fetch('/events', { token, headers: lastId === undefined ? {} : { 'last-event-id': lastId } });
  assert.equal(response.status, 200);
  return new EventReader(response);
}

const names = (events: readonly ReceivedEvent[]) => events.map(({ type, data }) => [type, data.requestId, data.status]);

test('a stream begins with sync, and then has every change of a request, without its parameters', () =>
  withApi(async (api) => {
    const { tokenOf, refund, svc, fetch } = api;
    const token = await tokenOf('ann', 'finance');
    await refund();
    const response = await fetch('/events', { token });
    assert.deepEqual(
      ['content-type', 'cache-control', 'x-accel-buffering'].map((name) => response.headers.get(name)),
      ['text/event-stream', 'no-store', 'no'],
    );
    const reader = new EventReader(response);
    const sync = await reader.next();
    assert.deepEqual([sync?.type, sync?.data, reader.retry], ['sync', { type: 'sync' }, 3_000]);
    const { request } = await refund({ orderId: 'order-secret', amount: 5, card: '4111-secret' });
    const { requestId, executionId, agentTag, tool, timestamp, timeout } = request;
    const [created] = await reader.take(1);
    const known = { requestId, executionId, agentTag, tool, timestamp, timeout };
    assert.deepEqual(created?.data, { type: 'created', ...known, status: 'waiting' });
    const { reviewToken = '' } = await svc.approvals.get(requestId, { reveal: true, actor: 'the test' });
    const decide = async (id: string) =>
      svc.approvals.signal(
        {
          signal: 'approve',
          payload: { requestId, modifiedParams: { orderId: 'other-secret' }, reason: 'why-secret' },
        },
        { token: await tokenOf(id, 'finance'), reviewToken },
      );
    await decide('bo');
    const [voted] = await reader.take(1);
    const missing = [{ role: 'deciders', count: 1 }];
    assert.deepEqual(voted?.data, { type: 'voted', ...known, status: 'waiting', missing });
    const { decidedAt } = await decide('cleo');
    const [decided] = await reader.take(1);
    const decidedBy = 'bo, cleo';
    assert.deepEqual(decided?.data, { type: 'decided', ...known, status: 'approved', decidedAt, decidedBy });
    assert.ok(!JSON.stringify([created, voted, decided]).includes('secret'));
    assert.equal(new Set([sync, created, voted, decided].map((event) => event?.id)).size, 4);
    await reader.close();
  }, TWO));

test('Last-Event-ID: what was missed and nothing else; any other id begins with sync', () =>
  withApi(async (api) => {
    const { tokenOf, refund, svc } = api;
    const token = await tokenOf('ann', 'finance');
    const first = await listen(api, token);
    await refund();
    const [sync, created] = await first.take(2);
    await first.close();
    const { request } = await refund();
    const { requestId } = request;
    await svc.approvals.signal({ signal: 'reject', payload: { requestId } });
    const back = await listen(api, token, created?.id);
    const missed = await back.take(2);
    assert.deepEqual(names(missed), [
      ['created', requestId, 'waiting'],
      ['decided', requestId, 'rejected'],
    ]);
    const all = await listen(api, token, sync?.id);
    assert.deepEqual(
      (await all.take(3)).map(({ id }) => id),
      [created, ...missed].map((event) => event?.id),
    );
    for (const id of ['0', 'null', `${sync?.id}0`, '../../1', "' or 1=1 --", 'f'.repeat(16_000), 'é']) {
      const other = await listen(api, token, id);
      assert.equal((await other.next())?.type, 'sync', id);
      await other.close();
    }
    // Of another store.
    await withApi(async (elsewhere) => {
      const other = await listen(elsewhere, await elsewhere.tokenOf('ann', 'finance'), sync?.id);
      assert.equal((await other.next())?.type, 'sync');
      await other.close();
    });
    await Promise.all([back.close(), all.close()]);
  }));

test('more missed changes than a client is sent at once: it lists the requests', () =>
  withApi(async (api) => {
    const { tokenOf, refund } = api;
    const token = await tokenOf('ann', 'finance');
    const first = await listen(api, token);
    const sync = await first.next();
    await first.close();
    await Promise.all(Array.from({ length: 300 }, () => refund()));
    const back = await listen(api, token, sync?.id);
    const [again] = await back.take(1);
    assert.equal(again?.type, 'sync');
    assert.notEqual(again?.id, sync?.id);
    await back.close();
  }));

test('who may not listen, and calls that are not valid, get an error and no stream', () =>
  withApi(async ({ call, tokenOf }) => {
    const token = await tokenOf('ann', 'finance');
    const refused = async (expected: [number, string | undefined], ...args: Parameters<Api['call']>) => {
      const { status, body, headers } = await call(...args);
      assert.deepEqual([status, body.error], expected, args.join(' '));
      assert.notEqual(headers.get('content-type'), 'text/event-stream');
    };
    await refused([401, 'token_invalid'], 'GET', '/events');
    await refused([401, 'token_invalid'], 'GET', '/events', { token: 'nonsense' });
    await refused([403, 'access_refused'], 'GET', '/events', { token: await tokenOf('dee', 'ops') });
    await refused([405, 'method_not_allowed'], 'POST', '/events', { token, body: {} });
    await refused([405, 'method_not_allowed'], 'HEAD', '/events', { token });
    await refused([400, 'value_invalid'], 'GET', '/events?token=x', { token });
    await refused([400, 'value_invalid'], 'GET', '/events?lastEventId=1', { token });
  }));

test('a token that is revoked, or whose verification fails, ends its streams within a minute, and those of nobody else', () =>
  withApi(async (api) => {
    const { svc, refund, tokenOf } = api;
    mock.timers.enable({ apis: ['setInterval'] });
    try {
      const { token, tokenId } = await svc.people.createToken({ id: 'cy' }, { validForMs: 600_000 });
      const reader = await listen(api, token);
      const other = await listen(api, await tokenOf('ann', 'finance'));
      await reader.next();
      await other.next();
      mock.timers.tick(45_000);
      await refund();
      assert.deepEqual((await reader.next())?.type, 'created');
      assert.ok(reader.comments.length >= 2, `${reader.comments.length}`);
      await svc.people.revokeToken(tokenId);
      mock.timers.tick(45_000);
      assert.deepEqual(await reader.rest(), []);
      assert.deepEqual((await other.next())?.type, 'created');
      await refund();
      assert.deepEqual((await other.next())?.type, 'created');
      await other.close();
    } finally {
      mock.timers.reset();
    }
  }));

test('a person has at most 20 streams, and a server 2,000; each that ends makes room', () =>
  withApi(async (api) => {
    const { fetch, tokenOf } = api;
    const token = await tokenOf('ann', 'finance');
    const own = await Promise.all(Array.from({ length: 20 }, () => listen(api, token)));
    // Also with another token.
    const refused = await fetch('/events', { token: await tokenOf('Ann', 'finance') });
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '5']);
    assert.equal(((await refused.json()) as { error: string }).error, 'too_many_streams');
    await own[3]?.close();
    own.push(await listen(api, token));
    for (let person = 1; person < 100; person++) {
      const next = await tokenOf(`person ${person}`, 'finance');
      own.push(...(await Promise.all(Array.from({ length: 20 }, () => listen(api, next)))));
    }
    const last = await fetch('/events', { token: await tokenOf('bo', 'finance') });
    assert.deepEqual([last.status, last.headers.get('retry-after')], [503, '5']);
    await Promise.all(own.map((reader) => reader.close()));
    await (await listen(api, token)).close();
  }));

test('a client that reads nothing loses its stream and not its place; nobody else waits for it', () =>
  withApi(async (api) => {
    const { fetch, tokenOf, svc } = api;
    const token = await tokenOf('ann', 'finance');
    const slow = await fetch('/events', { token });
    const quick = await listen(api, token);
    await quick.next();
    const gate = svc.gate({
      agentTag: 'many',
      tools: [{ tag: 't'.repeat(60), requiresConfirmation: true, handler: () => null }],
      humanInLoop: { enabled: true },
    } as never);
    const calls = new AbortController();
    const executionId = 'e'.repeat(200);
    const outcomes = Promise.allSettled(
      Array.from({ length: 700 }, () =>
        gate.run({ tool: 't'.repeat(60), parameters: {}, executionId }, { signal: calls.signal }),
      ),
    );
    const created = await quick.take(700);
    assert.ok(created.every(({ type }) => type === 'created'));
    const reader = new EventReader(slow);
    const read = await reader.rest();
    assert.ok(read.length < 700, `${read.length}`);
    assert.ok(read.every(({ type, id }, index) => type === 'sync' || id === created[index - 1]?.id));
    calls.abort();
    await outcomes;
    await quick.close();
  }));

test('streams end when the program says that its server stops, when the request is aborted, and with the client', async () => {
  await withApi(async ({ svc, tokenOf }) => {
    const token = await tokenOf('ann', 'finance');
    const stopping = new AbortController();
    const api = apiOf(svc, stopping.signal);
    const aborted = new AbortController();
    const gone = new EventReader(await api.fetch('/events', { token, signal: aborted.signal }));
    const open = await listen(api, token);
    const pending = open.rest();
    await gone.next();
    aborted.abort();
    assert.deepEqual(await gone.rest(), []);
    stopping.abort();
    assert.deepEqual(names(await pending), [['sync', undefined, undefined]]);
    const late = await api.fetch('/events', { token });
    assert.deepEqual([late.status, ((await late.json()) as { error: string }).error], [503, 'server_stopping']);
    const own = await listen(apiOf(svc), token);
    await own.next();
    const rest = own.rest();
    await svc.close();
    assert.deepEqual(await rest, []);
  });
});

const between = 'what another process creates and decides in PostgreSQL arrives within a second or two';
if (postgresql.missing !== undefined) test.skip(between, postgresql.missing);
else
  test(between, () =>
    postgresql.withUrl(async (url) => {
      const config = { databases: { main: { dialect: 'postgresql', url: { dev: url } } } } as const;
      const approvals = { ...SERVER, store: { database: 'main' } };
      await withApi(
        async ({ refund, svc, tokenOf }) => {
          const base = { callbackBase: 'https://shop.example/svc', callbackKey: CALLBACK_KEY };
          const server = new Svc({
            config: { product: 'shop', env: 'dev', ...config, approvals: { ...base, ...approvals } },
          });
          try {
            const api = apiOf(server);
            const reader = await listen(api, await tokenOf('ann', 'finance'));
            await reader.next();
            const delays: number[] = [];
            for (let round = 0; round < 5; round++) {
              const { requestId } = (await refund()).request;
              const created = performance.now();
              assert.deepEqual(names(await reader.take(1)), [['created', requestId, 'waiting']]);
              const decided = performance.now();
              await svc.approvals.signal({ signal: 'approve', payload: { requestId } });
              assert.deepEqual(names(await reader.take(1)), [['decided', requestId, 'approved']]);
              delays.push(decided - created, performance.now() - decided);
            }
            assert.ok(Math.max(...delays) < 10_000, `${delays}`);
            await reader.close();
          } finally {
            await server.close();
          }
        },
        approvals,
        { config },
      );
    }),
  );
