import * as assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type RunningServer, startServer } from '../cli/approvals/server.ts';
import { callbackHandler } from '../config/sdk/callback/handler.ts';
import { tokenClaims } from '../config/sdk/callback/token.ts';
import { ApprovalGate } from '../core/approval/gate.ts';
import { createApprovalHooks } from '../core/approval/policy.ts';
import { newRequestId } from '../core/approval/request.ts';
import { ApprovalService } from '../core/approval/service.ts';
import { callbackToken } from '../core/approval/token.ts';
import type { RecordDefinition, RecordStore } from '../core/records.ts';
import { compileHumanInLoop } from '../core/tool/human-in-loop.ts';
import { compileTools } from '../core/tool/tool.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { test } from './kit/test.ts';
import { CALLBACK_KEY } from './suites/gate-client.ts';
import { waitUntil } from './suites/wait-until.ts';

const OWNER = { product: 'shop', env: 'dev', database: 'memory' };

interface Callback {
  readonly handler: (request: Request) => Promise<Response>;
  /** Reads of single rows since the start. */
  reads(): number;
  /** A request that waits: the path and query of its callback, and the status of its call. */
  createRequest(): Promise<{ readonly requestId: string; readonly path: string; readonly ended: Promise<string> }>;
}

class CountingStore extends MemoryStore {
  reads = 0;

  override records<R extends object>(definition: RecordDefinition<R>): RecordStore<R> {
    const records = super.records(definition);
    const get = (key: string) => {
      this.reads += 1;
      return records.get(key);
    };
    return {
      get,
      insert: (record) => records.insert(record),
      replace: (key, version, record, guard) => records.replace(key, version, record, guard),
      page: (index, query) => records.page(index, query),
      remove: (key, version) => records.remove(key, version),
    };
  }
}

async function withCallback(body: (callback: Callback) => Promise<void>): Promise<void> {
  const store = new CountingStore();
  const service = await ApprovalService.open({ backend: store, hooks: createApprovalHooks(), owner: OWNER });
  const definition = { tag: 'refund', description: 'Pays.', parameters: {}, requiresConfirmation: true };
  const tools = compileTools([{ ...definition, handler: () => 'paid' }], [], []);
  const humanInLoop = compileHumanInLoop({ enabled: true }, ['refund'], [], []);
  const gate = new ApprovalGate(service, { agentTag: 'payouts', tools, humanInLoop });
  try {
    await body({
      handler: callbackHandler({ approvals: service, ...OWNER, key: CALLBACK_KEY }),
      reads: () => store.reads,
      async createRequest() {
        const call = { tool: 'refund', parameters: {} };
        let ended = Promise.resolve('');
        const { requestId } = await new Promise<{ requestId: string }>((onRequested, reject) => {
          ended = gate.call(call, { onRequested }).then(({ status }) => status);
          ended.catch(reject);
        });
        const row = await service.read(requestId);
        assert.ok(row);
        const token = callbackToken(CALLBACK_KEY, tokenClaims(OWNER, row));
        return { requestId, path: `/svc/approvals/${requestId}/respond?token=${token}`, ended };
      },
    });
  } finally {
    await service.close();
    await store.close();
  }
}

const urlOf = (path: string) => `https://shop.example${path}`;
const APPROVE = {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ approved: true }),
};

test(
  '20,000 bad requests read the store at most 600 times in a minute, and do not block who has a token',
  () =>
    withCallback(async ({ handler, reads, createRequest }) => {
      const { requestId, path, ended } = await createRequest();
      const [name, rest] = path.split('?token=');
      const token = rest ?? '';
      const forged = `${token.slice(0, 3)}${'A'.repeat(token.length - 3)}`;
      const bad = [
        () => `/svc/approvals/${newRequestId()}/respond?token=${token}`,
        () => `/svc/approvals/${newRequestId()}/respond?token=x`,
        () => `${name}?token=${forged}`,
        () => `${name}?token=`,
        () => `${name}`,
        () => path.replace(requestId, "apr_'"),
      ];
      const before = reads();
      const startedAt = performance.now();
      const statuses = new Map<number, number>();
      for (let round = 0; round < 20_000; round++) {
        const next = bad[round % bad.length]?.() ?? '';
        const { status } = await handler(new Request(urlOf(next), round % 2 === 0 ? APPROVE : {}));
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
      const windows = 1 + Math.floor((performance.now() - startedAt) / 60_000);
      const counted = reads() - before;
      assert.ok(counted <= 600 * windows, `${counted} reads`);
      assert.deepEqual([...statuses.keys()].sort(), [401, 404, 429]);
      assert.equal((await handler(new Request(urlOf(path), APPROVE))).status, 200);
      assert.equal(await ended, 'completed');
    }),
  240_000,
);

test('calls over the limit of a request do not read the store', () =>
  withCallback(async ({ handler, reads, createRequest }) => {
    const { path } = await createRequest();
    const before = reads();
    const statuses = new Set<number>();
    for (let round = 0; round < 500; round++) statuses.add((await handler(new Request(urlOf(path)))).status);
    assert.deepEqual([...statuses], [200, 429]);
    const windows = 2;
    assert.ok(reads() - before <= 60 * windows, `${reads() - before} reads`);
  }));

test('the body is read only with a valid token', () =>
  withCallback(async ({ handler, createRequest }) => {
    const { path } = await createRequest();
    for (const [url, status] of [
      [urlOf(`${path}x`), 401],
      [urlOf(path.replace(/token=.*/, 'token=x')), 401],
      [urlOf(path.replace(/approvals\/[^/]+/, `approvals/${newRequestId()}`)), 404],
    ] as const) {
      // A stream that never ends: reading it would never return.
      const body = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => undefined) });
      const init = { method: 'POST', headers: APPROVE.headers, body, duplex: 'half' } as RequestInit;
      assert.equal((await handler(new Request(url, init))).status, status);
    }
  }));

/** Sends the head of a request and never its whole body. */
async function sendPart({ url }: RunningServer, text: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).setNoDelay(true);
  socket.on('error', () => undefined).resume();
  await once(socket, 'connect');
  socket.write(text);
  return socket;
}

const head = (path: string) =>
  `POST ${path} HTTP/1.1\r\nhost: shop.example\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{`;

async function withServer(
  { handler }: Pick<Callback, 'handler'>,
  body: (server: RunningServer) => Promise<void>,
  isReady: () => Promise<unknown> = async () => undefined,
): Promise<void> {
  const server = await startServer({ host: '127.0.0.1', port: 0, handler, isReady });
  try {
    await body(server);
  } finally {
    await server.close();
  }
}

test(
  'clients that send slowly are disconnected: without a token, with one, and in the headers',
  () =>
    withCallback(async (callback) => {
      const { path } = await callback.createRequest();
      await withServer(callback, async (server) => {
        const open = new Set<Socket>();
        const send = async (text: string) => {
          const socket = await sendPart(server, text);
          open.add(socket);
          socket.once('close', () => open.delete(socket));
        };
        const unknown = `/svc/approvals/${newRequestId()}/respond?token=x`;
        const texts = [head(unknown), head(`${path}x`), head(path), 'POST /svc HTTP/1.1\r\nhost: ', ''];
        for (let round = 0; round < 200; round++) await send(texts[round % texts.length] ?? '');
        await waitUntil(() => open.size === 0, 'connections are still open', 60_000);
        const decided = await fetch(`${server.url}${path}`, APPROVE);
        assert.ok([200, 429].includes(decided.status), String(decided.status));
      });
    }),
  240_000,
);

test(
  'more than 4,000 connections are not accepted, and the server responds once they are gone',
  () =>
    withServer({ handler: async () => new Response('ok') }, async (server) => {
      const sockets: Socket[] = [];
      let closed = 0;
      for (let count = 0; count < 4_050; count++) {
        const socket = await sendPart(server, '');
        socket.once('close', () => {
          closed += 1;
        });
        sockets.push(socket);
      }
      await waitUntil(() => closed >= 50, 'too few connections were closed');
      for (const socket of sockets) socket.destroy();
      await waitUntil(
        async () => (await fetch(`${server.url}/healthz`).catch(() => undefined))?.status === 200,
        'no response',
      );
    }),
  240_000,
);

test('/readyz asks the store at most once a second, and not while it has not answered', async () => {
  let asked = 0;
  let answer: () => Promise<unknown> = async () => undefined;
  const isReady = () => {
    asked += 1;
    return answer();
  };
  const handler = async () => new Response('');
  await withServer(
    { handler },
    async ({ url }) => {
      const status = async () => (await fetch(`${url}/readyz`)).status;
      const startedAt = performance.now();
      for (let round = 0; round < 20; round++) {
        const statuses = await Promise.all(Array.from({ length: 25 }, status));
        assert.deepEqual(new Set(statuses), new Set([200]));
      }
      const limit = 1 + Math.floor((performance.now() - startedAt) / 1_000);
      assert.ok(asked >= 1 && asked <= limit, `${asked} of ${limit}`);
      answer = () => Promise.reject(new Error('down'));
      await waitUntil(async () => (await status()) === 503, 'an outage is not noticed');
      let respond: (value?: unknown) => void = () => undefined;
      answer = () =>
        new Promise((resolve) => {
          respond = resolve;
        });
      const before = asked;
      await waitUntil(async () => (await status()) === 503 && asked > before, 'the store is not asked again');
      for (let round = 0; round < 100; round++) assert.equal(await status(), 503);
      assert.equal(asked, before + 1);
      answer = async () => undefined;
      respond();
      await waitUntil(async () => (await status()) === 200, 'the recovery is not noticed');
    },
    isReady,
  );
});
