import * as assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { startServer } from '../cli/approvals/server.ts';
import { Svc } from '../config/sdk/index.ts';
import { startCli } from './kit/cli.ts';
import { engines } from './kit/engines.ts';
import { EventReader } from './kit/event-reader.ts';
import { SERVER } from './kit/people-api.ts';
import { LONG, project } from './kit/project.ts';
import { test } from './kit/test.ts';
import { CALLBACK_KEY, withGate } from './suites/gate-client.ts';
import { waitUntil } from './suites/wait-until.ts';

// Event streams of a real server.

const postgresql = engines.find(({ name }) => name === 'postgresql')!;
const QUICK_MS = 5_000;

const served = 'svc approvals serve: streams of a second process, and SIGTERM ends them and the server at once';
if (postgresql.missing !== undefined) test.skip(served, postgresql.missing);
else
  test(
    served,
    () =>
      postgresql.withUrl(async (url) => {
        const approvals = { ...SERVER, store: { database: 'main' }, callbackKey: CALLBACK_KEY };
        const shop = project({ main: url }, { product: 'shop', approvals });
        const serving = startCli(['approvals', 'serve', '--port', '0', '--json'], shop.root);
        const config = {
          product: 'shop',
          env: 'dev',
          databases: { main: { dialect: 'postgresql', url: { dev: url } } },
        };
        const svc = new Svc({ config: { ...config, approvals } as never });
        try {
          await waitUntil(() => serving.stdout().includes('"listening"'), serving.stderr());
          const { url: server } = JSON.parse(serving.stdout()) as { url: string };
          const { token } = await svc.people.createToken({ id: 'cy' }, { validForMs: 600_000 });
          const headers = { authorization: `Bearer ${token}` };
          const streams = await Promise.all(
            Array.from({ length: 20 }, () => fetch(`${server}/api/v1/events`, { headers })),
          );
          const readers = streams.map((response) => new EventReader(response));
          for (const reader of readers) assert.equal((await reader.next())?.type, 'sync');
          const gate = svc.gate({
            agentTag: 'payouts',
            tools: [{ tag: 'refund', requiresConfirmation: true, handler: () => null }],
            humanInLoop: { enabled: true },
          } as never);
          const outcome = gate.run({ tool: 'refund', parameters: {} });
          for (const reader of readers) assert.equal((await reader.next())?.type, 'created');
          const [{ requestId = '' } = {}] = (await svc.approvals.list()).records;
          const decision = { method: 'POST', body: '{"approved":true}' };
          const decided = await fetch(`${server}/api/v1/approvals/${requestId}/decision`, {
            ...decision,
            headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': 'k' },
          });
          assert.equal(decided.status, 200);
          for (const reader of readers) assert.equal((await reader.next())?.data.decidedBy, 'cy');
          assert.equal((await outcome).status, 'completed');
          const stopped = performance.now();
          serving.child.kill('SIGTERM');
          for (const reader of readers) assert.deepEqual(await reader.rest(), []);
          assert.equal((await serving.ended).status, 0);
          assert.ok(performance.now() - stopped < QUICK_MS, `${performance.now() - stopped} ms`);
        } finally {
          serving.child.kill('SIGKILL');
          await svc.close();
        }
      }),
    LONG,
  );

test('a client that goes away, also one that never reads, ends its stream; the server stops at once', () =>
  withGate({ approvals: SERVER }, async ({ svc, refund }) => {
    const stopping = new AbortController();
    const handler = svc.approvals.handler({ stopping: stopping.signal });
    const server = await startServer({ host: '127.0.0.1', port: 0, handler, isReady: async () => true });
    const { token } = await svc.people.createToken({ id: 'cy' }, { validForMs: 600_000 });
    const { port } = new URL(server.url);
    const headers = { authorization: `Bearer ${token}` };
    const answers: number[] = [];
    const statusOf = async () => {
      const response = await fetch(`${server.url}/api/v1/events`, { headers });
      answers.push(response.status);
      if (response.status === 200) await response.body?.cancel();
      return response.status;
    };
    // As many as a person may have, of clients that read nothing.
    const sockets = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const socket = connect(Number(port), '127.0.0.1');
        await once(socket, 'connect');
        socket.write(`GET /api/v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`);
        await once(socket, 'readable');
        return socket;
      }),
    );
    assert.equal(await statusOf(), 429);
    for (const socket of sockets) socket.destroy();
    await waitUntil(async () => (await statusOf()) === 200, 'the streams did not end');
    await refund();
    const open = await fetch(`${server.url}/api/v1/events`, { headers });
    const reader = new EventReader(open);
    await reader.next();
    const stopped = performance.now();
    stopping.abort();
    await Promise.all([server.close(), reader.rest()]);
    assert.ok(performance.now() - stopped < QUICK_MS, `${performance.now() - stopped} ms`);
  }));
