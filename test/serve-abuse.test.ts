import * as assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Svc } from '../config/sdk/index.ts';
import { newRequestId } from '../core/approval/request.ts';
import { startCli } from './kit/cli.ts';
import { engines } from './kit/engines.ts';
import { mapConcurrently } from './kit/map-concurrently.ts';
import { SERVER } from './kit/people-api.ts';
import { LONG, project } from './kit/project.ts';
import { test } from './kit/test.ts';
import { freePort } from './suites/free-port.ts';
import { CALLBACK_KEY } from './suites/gate-client.ts';
import { waitUntil } from './suites/wait-until.ts';

// Attacks on `svc approvals serve` in a process of its own: the inbox and the HTTP API, by people with and without a token.

const postgresql = engines.find(({ name }) => name === 'postgresql')!;
const MIB = 1024 * 1024;

interface Attacked {
  /** Where the server listens. */
  readonly origin: string;
  readonly inbox: string;
  readonly api: string;
  /** Of Ann, who may decide. */
  readonly token: string;
  readonly cookie: string;
  readonly requestId: string;
  readonly outcome: Promise<{ readonly status: string }>;
  /** A decision of Bo, who may decide too. */
  decide(): Promise<number>;
  /** What the process has in memory after a collection, in bytes. */
  memory(): Promise<{ readonly live: number; readonly rss: number }>;
}

async function withServer(body: (attacked: Attacked) => Promise<void>): Promise<void> {
  await postgresql.withUrl(async (url) => {
    const port = await freePort();
    const origin = `http://127.0.0.1:${port}`;
    const base = `${origin}/svc`;
    const approvals = { ...SERVER, store: { database: 'main' }, callbackBase: base, callbackKey: CALLBACK_KEY };
    const shop = project({ main: url }, { approvals });
    const heap = join(shop.root, 'heap.json');
    const preload = fileURLToPath(new URL('./kit/heap-on-signal.cjs', import.meta.url));
    const serving = startCli(
      ['approvals', 'serve', '--port', String(port), '--json'],
      shop.root,
      ['--expose-gc', '--require', preload],
      { SVC_TEST_HEAP: heap },
    );
    const databases = { main: { dialect: 'postgresql', url: { dev: url } } };
    const svc = new Svc({ config: { product: 'shop', env: 'dev', databases, approvals } as never });
    try {
      await waitUntil(() => serving.stdout().includes('"listening"'), serving.stderr());
      const tokenOf = async (id: string) =>
        (await svc.people.createToken({ id, groups: ['finance'] }, { validForMs: 600_000 })).token;
      const [token, other] = [await tokenOf('ann'), await tokenOf('bo')];
      const gate = svc.gate({
        agentTag: 'payouts',
        tools: [{ tag: 'refund', requiresConfirmation: true, handler: () => null }],
        humanInLoop: { enabled: true },
      } as never);
      let outcome: Attacked['outcome'] | undefined;
      const { requestId } = await new Promise<{ requestId: string }>((onRequested, reject) => {
        outcome = gate.run({ tool: 'refund', parameters: {} }, { onRequested });
        outcome.catch(reject);
      });
      assert.ok(outcome);
      const headers = { origin, 'content-type': 'application/x-www-form-urlencoded' };
      const signIn = new URLSearchParams({ action: 'sign-in', token });
      const entered = await fetch(`${base}/inbox`, { method: 'POST', headers, body: signIn, redirect: 'manual' });
      assert.equal(entered.status, 303);
      const cookie = entered.headers.getSetCookie().map((one) => one.replace(/;.*/, ''));
      await body({
        ...{ origin, inbox: `${base}/inbox`, api: `${base}/api/v1`, token, requestId, outcome },
        cookie: cookie.join('; '),
        async decide() {
          const headers = { authorization: `Bearer ${other}`, 'content-type': 'application/json' };
          const init = { method: 'POST', headers, body: '{"approved":true}' };
          return (await fetch(`${base}/api/v1/approvals/${requestId}/decision`, init)).status;
        },
        async memory() {
          rmSync(heap, { force: true });
          serving.child.kill('SIGUSR2');
          await waitUntil(() => existsSync(heap), 'the process did not measure its memory');
          return JSON.parse(readFileSync(heap, 'utf8'));
        },
      });
      assert.equal(serving.child.exitCode, null, serving.stderr());
    } finally {
      serving.child.kill('SIGKILL');
      await svc.close();
      await serving.ended;
    }
  });
}

type Attack = readonly [url: string, init?: RequestInit];

/** Requests that nobody should send, each with a part that is never the same. */
function attacks({ origin, inbox, api, token, cookie, requestId }: Attacked): ((round: number) => Attack)[] {
  const json = { 'content-type': 'application/json' };
  const form = { 'content-type': 'application/x-www-form-urlencoded', origin };
  const bearer = { authorization: `Bearer ${token}` };
  const post = (headers: Record<string, string>, body: string) => ({ method: 'POST', headers, body });
  return [
    // The API: without a token, with a bad one, and with a good one.
    () => [`${api}/approvals`],
    (round) => [`${api}/approvals/${newRequestId()}/audit?x=${round}`],
    (round) => [`${api}/approvals`, { headers: { authorization: `Bearer ${token}${round}` } }],
    (round) => [`${api}/me`, { headers: { authorization: `Bearer ${'x'.repeat(round % 4_000)}` } }],
    (round) => [`${api}/approvals/${requestId}/decision`, post({ ...json }, `{"approved":${round}}`)],
    (round) => [`${api}/approvals?cursor=${round}`, { headers: bearer }],
    () => [`${api}/approvals/${newRequestId()}`, { headers: bearer }],
    (round) => [`${api}/approvals/${requestId}/decision`, post({ ...json, ...bearer }, `{"approved":${round}}`)],
    (round) => [`${api}/executions/%ff${round}`, { headers: bearer }],
    (round) => [`${api}/${'n'.repeat(round % 4_000)}`, { headers: bearer }],
    // The inbox: without a session, with a forged one, and signed in.
    (round) => [`${inbox}?status=${round}`],
    (round) => [inbox, { headers: { cookie: `${cookie}${round}` } }],
    (round) => [`${inbox}/events`, { headers: { cookie: `svc-shop-dev-session=${'y'.repeat(round % 4_000)}` } }],
    (round) => [inbox, post(form, `action=sign-in&token=${round}`)],
    (round) => [inbox, post({ ...form, origin: `http://evil-${round}.example` }, 'action=sign-out')],
    (round) => [`${inbox}?cursor=${round}`, { headers: { cookie } }],
    (round) => [`${inbox}/apr_${round}`, { headers: { cookie } }],
    (round) => [`${inbox}/${requestId}`, post({ ...form, cookie }, `action=approve&view=${round}`)],
    (round) => [`${inbox}/${requestId}`, post({ ...form, cookie }, `action=%ff${round}`)],
    (round) => [`${inbox}/${requestId}`, post({ ...form, cookie }, `form=fields&p.${round}=1&p.${round}=2`)],
  ];
}

async function attack(attacked: Attacked, count: number): Promise<Map<number, number>> {
  const kinds = attacks(attacked);
  const statuses = new Map<number, number>();
  const rounds = Array.from({ length: count }, (_, round) => round);
  await mapConcurrently(rounds, async (round) => {
    const [url, init] = kinds[round % kinds.length]?.(round) ?? [attacked.inbox];
    const response = await fetch(url, { ...init, redirect: 'manual' });
    await response.arrayBuffer();
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
  });
  return statuses;
}

const MANY = '20,000 bad requests to the inbox and the API: memory stays flat, and who has a token decides';
const LARGE = 'bodies of 64 KiB and 1 MiB are refused in the inbox and the API, with a length and without';
const SLOW = 'bodies that arrive slowly end after seconds in the inbox and the API, and nobody else waits for them';
if (postgresql.missing !== undefined) for (const name of [MANY, LARGE, SLOW]) test.skip(name, postgresql.missing);
else {
  test(
    MANY,
    () =>
      withServer(async (attacked) => {
        await attack(attacked, 2_000);
        const before = await attacked.memory();
        const statuses = await attack(attacked, 20_000);
        const after = await attacked.memory();
        assert.deepEqual([...statuses.keys()].sort(), [400, 401, 403, 404, 429]);
        const grown = after.live - before.live;
        assert.ok(grown < 4 * MIB, `${grown} bytes more after 20,000 requests`);
        assert.equal(await attacked.decide(), 200);
        assert.equal((await attacked.outcome).status, 'completed');
      }),
    LONG,
  );

  test(
    LARGE,
    () =>
      withServer(async ({ inbox, api, origin, token, cookie, requestId, decide }) => {
        const json = { 'content-type': 'application/json' };
        const form = { 'content-type': 'application/x-www-form-urlencoded', origin };
        for (const size of [64 * 1024, MIB]) {
          const text = 'x'.repeat(size);
          for (const [url, headers, body, status] of [
            [`${inbox}`, form, `action=sign-in&token=${text}`, 413],
            [`${inbox}/${requestId}`, { ...form, cookie }, `action=approve&reason=${text}`, 413],
            [`${inbox}/${requestId}`, { ...form, cookie, origin: 'http://evil.example' }, `reason=${text}`, 403],
            [`${api}/approvals/${requestId}/decision`, json, `{"reason":"${text}"}`, 401],
            [
              `${api}/approvals/${requestId}/decision`,
              { ...json, authorization: `Bearer ${token}` },
              `{"approved":true,"reason":"${text}"}`,
              413,
            ],
            [`${api}/approvals/${requestId}/reveal`, { ...json, authorization: `Bearer ${token}` }, `${text}x`, 413],
          ] as const) {
            const init = { method: 'POST', headers, redirect: 'manual' } as const;
            assert.equal((await fetch(url, { ...init, body })).status, status, `${url} ${size}`);
            const stream = new Blob([body]).stream();
            const chunked = { ...init, body: stream, duplex: 'half' } as RequestInit;
            assert.equal((await fetch(url, chunked)).status, status, `${url} ${size} in chunks`);
          }
        }
        assert.equal(await decide(), 200);
      }),
    LONG,
  );

  test(
    SLOW,
    () =>
      withServer(async ({ inbox, api, origin, token, cookie, requestId, decide }) => {
        const { port } = new URL(origin);
        const answered = new Map<string, Set<string>>();
        let open = 0;
        const send = async (name: string, url: string, headers: Readonly<Record<string, string>>) => {
          const socket = connect(Number(port), '127.0.0.1').setNoDelay(true);
          let text = '';
          socket.setEncoding('utf8').on('data', (part) => {
            text += part;
          });
          socket.on('error', () => undefined);
          await once(socket, 'connect');
          open += 1;
          socket.once('close', () => {
            open -= 1;
            answered.set(name, (answered.get(name) ?? new Set()).add(text.slice(9, 12)));
          });
          const lines = Object.entries({ host: 'x', 'content-length': '1000', ...headers }).map((one) =>
            one.join(': '),
          );
          socket.write(`POST ${new URL(url).pathname} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n{`);
        };
        const json = { 'content-type': 'application/json' };
        const form = { 'content-type': 'application/x-www-form-urlencoded', origin };
        const decision = `${api}/approvals/${requestId}/decision`;
        for (let round = 0; round < 25; round++) {
          await send('inbox', inbox, form);
          await send('inbox, signed in', `${inbox}/${requestId}`, { ...form, cookie });
          await send('inbox, another site', inbox, { ...form, origin: 'http://evil.example' });
          await send('API', decision, json);
          await send('API, bad token', decision, { ...json, authorization: 'Bearer x' });
          await send('API, with a token', decision, { ...json, authorization: `Bearer ${token}` });
        }
        assert.equal(await decide(), 200);
        await waitUntil(() => open === 0, 'connections are still open', 60_000);
        assert.deepEqual(Object.fromEntries([...answered].map(([name, statuses]) => [name, [...statuses]])), {
          inbox: ['408'],
          'inbox, signed in': ['408'],
          'inbox, another site': ['403'],
          API: ['401'],
          'API, bad token': ['401'],
          'API, with a token': ['408'],
        });
      }),
    LONG,
  );
}
