import * as assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { webhookSecret } from '../core/approval/token.ts';
import { definePlugin } from '../core/plugin.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { freePort } from './suites/free-port.ts';
import { CALLBACK_KEY, type GateUnderTest, WEBHOOK_SECRET, withGate } from './suites/gate-client.ts';
import { waitUntil } from './suites/wait-until.ts';
import { startWebhookReceiver, type WebhookReceiver } from './suites/webhook-receiver.ts';

/** Runs `body` with a gate that sends its requests to a URL. */
function webhooks(
  url: string,
  body: (gate: GateUnderTest) => Promise<void>,
  { secrets = [WEBHOOK_SECRET], context }: { secrets?: string[]; context?: boolean } = {},
  approvalTimeout = 30_000,
): Promise<void> {
  return withGate(
    {
      approvals: { webhook: { secrets: { [url]: secrets }, ...(context !== undefined && { context }) } },
      humanInLoop: { approvalWebhook: url, approvalTimeout },
    },
    body,
  );
}

const attempts = async ({ svc }: GateUnderTest, requestId: string) => {
  const found: string[] = [];
  for await (const entry of svc.approvals.export()) {
    if (entry.requestId !== requestId || !entry.type.endsWith('delivered')) continue;
    found.push(entry.type === 'delivered' ? 'delivered' : String((entry.details as { error: string }).error));
  }
  return found;
};

async function withReceiver(
  answer: Parameters<typeof startWebhookReceiver>[0],
  body: (to: WebhookReceiver) => Promise<void>,
): Promise<void> {
  const to = await startWebhookReceiver(answer);
  try {
    await body(to);
  } finally {
    to.close();
  }
}

const approve = ({ svc }: GateUnderTest, { requestId, executionId }: { requestId: string; executionId: string }) =>
  svc.agents.signal({ executionId, signal: 'approve', payload: { requestId } });

test('the body has the documented form, and standardwebhooks verifies the signature', () =>
  withReceiver(200, (to) =>
    webhooks(to.url, async (gate) => {
      const { request, outcome } = await gate.refund();
      await waitUntil(() => to.received.length === 1, 'nothing came');
      const [{ headers, body }] = to.received as [WebhookReceiver['received'][0]];
      const sent = new Webhook(WEBHOOK_SECRET).verify(body, headers as Record<string, string>) as Record<
        string,
        unknown
      >;
      const { callbackUrl, ...rest } = sent;
      assert.deepEqual(rest, {
        type: 'approval_request',
        requestId: request.requestId,
        executionId: request.executionId,
        agentTag: 'payouts',
        tool: 'refund',
        parameters: { orderId: '1234', amount: 20 },
        timestamp: request.timestamp,
        expiresAt: request.timeout,
      });
      assert.match(
        String(callbackUrl),
        new RegExp(
          `^https://shop\\.example/svc/approvals/${request.requestId}/respond\\?token=v1\\.[\\w-]{22}\\.[\\w-]{43}$`,
        ),
      );
      assert.equal(headers['webhook-id'], request.requestId);
      assert.deepEqual([headers['svc-product'], headers['svc-env']], ['shop', 'dev']);
      assert.ok(!body.includes(CALLBACK_KEY) && !body.includes(WEBHOOK_SECRET));
      await approve(gate, request);
      assert.equal((await outcome).status, 'completed');
      await waitUntil(async () => (await attempts(gate, request.requestId)).length > 0, 'the attempt is not recorded');
      assert.deepEqual(await attempts(gate, request.requestId), ['delivered']);
    }),
  ));

test('a reminder and an escalation are webhooks of their own', () =>
  withReceiver(200, (to) =>
    withGate(
      {
        approvals: {
          webhook: { secrets: { [to.url]: [WEBHOOK_SECRET] } },
          roles: { finance: ['group:finance'], heads: ['group:heads'] },
          rules: [
            { approve: [{ role: 'finance' }], remind: '1s', escalate: [{ after: '2s', to: 'heads' }], expires: '1h' },
          ],
        },
        humanInLoop: { approvalWebhook: to.url, approvalTimeout: 60_000 },
      },
      async ({ refund, svc }) => {
        const { request, outcome } = await refund();
        await waitUntil(() => to.received.length === 3, 'three messages');
        const webhook = new Webhook(WEBHOOK_SECRET);
        const sent = to.received.map(
          ({ body, headers }) => webhook.verify(body, headers as Record<string, string>) as Record<string, unknown>,
        );
        assert.deepEqual(
          sent.map(({ type }) => type),
          ['approval_request', 'approval_reminder', 'approval_escalation'],
        );
        const [first, reminder, escalation] = sent.map(({ type, notice, ...rest }) => ({ notice, rest }));
        assert.deepEqual([reminder?.rest, escalation?.rest], [first?.rest, first?.rest]);
        const missing = [{ role: 'finance', count: 1 }];
        const { at = '', ...notice } = (escalation?.notice ?? {}) as { at?: string };
        assert.ok(Date.parse(at) >= Date.parse(request.timestamp) + 2_000);
        assert.deepEqual(notice, { kind: 'escalation', to: [{ role: 'heads', members: ['group:heads'] }], missing });
        assert.equal(new Set(to.received.map(({ headers }) => headers['webhook-id'])).size, 3);
        const payload = { requestId: request.requestId };
        await svc.agents.signal({ signal: 'approve', payload }, { principal: { id: 'hal', groups: ['heads'] } });
        assert.equal((await outcome).status, 'completed');
      },
    ),
  ));

test('the context names what the call is about if configured', () =>
  withReceiver(200, (to) =>
    webhooks(
      to.url,
      async (gate) => {
        const { request } = await gate.refund();
        await waitUntil(() => to.received.length === 1, 'nothing came');
        assert.deepEqual(JSON.parse(to.received[0]?.body ?? '').context, {
          reason: request.reason,
          toolDescription: 'Pays money back.',
          product: 'shop',
          env: 'dev',
        });
      },
      { context: true },
    ),
  ));

test('without a secret of its own, a webhook is signed with one that the callback key yields for its URL', () =>
  withReceiver(200, (to) =>
    withGate({ humanInLoop: { approvalWebhook: to.url } }, async ({ refund }) => {
      await refund();
      await waitUntil(() => to.received.length === 1, 'nothing came');
      const [{ headers, body }] = to.received as [WebhookReceiver['received'][0]];
      const verify = (secret: string) => new Webhook(secret).verify(body, headers as Record<string, string>);
      const of = { product: 'shop', env: 'dev', url: new URL(to.url).href };
      assert.ok(verify(webhookSecret(CALLBACK_KEY, of)));
      for (const other of [{ env: 'prd' }, { product: 'bank' }, { url: 'https://ops.example/' }]) {
        assert.throws(() => verify(webhookSecret(CALLBACK_KEY, { ...of, ...other })), JSON.stringify(other));
      }
      assert.throws(() => verify(webhookSecret(`${CALLBACK_KEY}.`, of)));
    }),
  ));

test('a policy can require approval although humanInLoop is not enabled: what cannot be delivered is in the audit', () => {
  const plugin = definePlugin({
    name: 'strict',
    apply: ({ hooks }) =>
      void hooks.beforeToolCall.tap('strict', (review) => review.requireApproval('A policy requires approval.')),
  });
  const humanInLoop = { enabled: false, approvalWebhook: 'https://ops.example/' };
  return withGate(
    { config: { plugins: [plugin] }, approvals: { callbackBase: undefined }, humanInLoop },
    async (gate) => {
      const { request, outcome } = await gate.refund();
      await waitUntil(async () => (await attempts(gate, request.requestId)).length > 0, 'no attempt is recorded');
      assert.deepEqual(await attempts(gate, request.requestId), ['The approval webhook needs approvals.callbackBase.']);
      await approve(gate, request);
      assert.equal((await outcome).status, 'completed');
    },
  );
});

test('during a key rotation, the old and the new key both verify', () => {
  const old = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;
  return withReceiver(200, (to) =>
    webhooks(
      to.url,
      async (gate) => {
        await gate.refund();
        await waitUntil(() => to.received.length === 1, 'nothing came');
        const [{ headers, body }] = to.received as [WebhookReceiver['received'][0]];
        for (const secret of [WEBHOOK_SECRET, old]) new Webhook(secret).verify(body, headers as Record<string, string>);
        assert.throws(() =>
          new Webhook(`whsec_${Buffer.alloc(32, 9).toString('base64')}`).verify(body, headers as never),
        );
      },
      { secrets: [WEBHOOK_SECRET, old] },
    ),
  );
});

const answered = (url: string, status: number) => `POST to ${new URL(url).host} was answered with ${status}`;

test('500 and 429 are retried until delivery, with every attempt in the audit and the same id', () =>
  withReceiver(
    (response, attempt) => {
      if (attempt === 1) response.writeHead(500).end();
      else if (attempt === 2) response.writeHead(429).end();
      else response.writeHead(204).end();
    },
    (to) =>
      webhooks(to.url, async (gate) => {
        const { request } = await gate.refund();
        await waitUntil(() => to.received.length === 3, 'it was not tried again');
        await waitUntil(
          async () => (await attempts(gate, request.requestId)).length === 3,
          'an attempt is not recorded',
        );
        assert.deepEqual(await attempts(gate, request.requestId), [
          ...[500, 429].map((status) => answered(to.url, status)),
          'delivered',
        ]);
        assert.deepEqual([...new Set(to.received.map(({ headers }) => headers['webhook-id']))], [request.requestId]);
      }),
  ));

test('Retry-After delays the next attempt', () => {
  // By default the pause after the first attempt is at most a second.
  const AFTER_S = 3;
  const came: number[] = [];
  return withReceiver(
    (response, attempt) => {
      came.push(performance.now());
      if (attempt === 1) response.writeHead(429, { 'retry-after': String(AFTER_S) }).end();
      else response.writeHead(204).end();
    },
    (to) =>
      webhooks(to.url, async (gate) => {
        const { request } = await gate.refund();
        await waitUntil(async () => (await attempts(gate, request.requestId)).length === 2, 'it was not tried again');
        assert.deepEqual(await attempts(gate, request.requestId), [answered(to.url, 429), 'delivered']);
        assert.ok(came[1]! - came[0]! > (AFTER_S - 0.5) * 1_000, 'it came again too soon');
      }),
  );
});

for (const [status, why] of [
  [302, ': redirects are not followed'],
  [410, ''],
  [404, ''],
] as const) {
  test(`${status} is not retried, and the request keeps waiting`, () =>
    withReceiver(
      (response) => response.writeHead(status, { location: 'http://127.0.0.1:1/elsewhere' }).end(),
      (to) =>
        webhooks(to.url, async (gate) => {
          const { request, outcome } = await gate.refund();
          await waitUntil(async () => (await attempts(gate, request.requestId)).length === 1, 'no attempt is recorded');
          assert.deepEqual(await attempts(gate, request.requestId), [`${answered(to.url, status)}${why}`]);
          await approve(gate, request);
          assert.equal((await outcome).status, 'completed');
          assert.equal(to.received.length, 1);
        }),
    ));
}

test('a receiver that hangs, responds slowly, sends 100 MB or disconnects blocks nothing', async () => {
  const started = performance.now();
  for (const answer of [
    () => {}, // never answers
    (response: { write(text: string): void; writeHead(status: number): void }) => {
      response.writeHead(200);
      const drip = setInterval(() => response.write('x'), 50);
      drip.unref();
    },
    (response: { writeHead(status: number): void; write(chunk: Buffer): void }) => {
      response.writeHead(200);
      for (let part = 0; part < 100; part++) response.write(Buffer.alloc(1 << 20));
    },
    (response: { destroy(): void }) => response.destroy(),
  ]) {
    await withReceiver(answer as never, (to) =>
      webhooks(to.url, async (gate) => {
        const { request, outcome } = await gate.refund();
        await waitUntil(() => to.received.length >= 1, 'nothing came');
        await approve(gate, request);
        assert.equal((await outcome).status, 'completed');
      }),
    );
  }
  // No call waited for a delivery: a single attempt may take 15 seconds.
  assert.ok(performance.now() - started < 15_000);
});

test('a webhook is retried until its receiver is up', async () => {
  const port = await freePort();
  await webhooks(`http://127.0.0.1:${port}/`, async (gate) => {
    const { request } = await gate.refund();
    await waitUntil(
      async () => (await attempts(gate, request.requestId)).includes(`POST to 127.0.0.1:${port}: ECONNREFUSED`),
      'no attempt was made',
    );
    const server = createServer(
      (socket) =>
        void socket
          .on('error', () => {})
          .once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')),
    );
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    await waitUntil(
      async () => (await attempts(gate, request.requestId)).includes('delivered'),
      'it was not tried again',
    );
    server.close();
  });
});

test('a decided request is no longer delivered', () =>
  withReceiver(500, (to) =>
    webhooks(to.url, async (gate) => {
      const { request, outcome } = await gate.refund();
      await waitUntil(() => to.received.length >= 1, 'nothing came');
      await approve(gate, request);
      await outcome;
      const count = to.received.length;
      await new Promise((later) => setTimeout(later, 1_500));
      assert.equal(to.received.length, count);
    }),
  ));

test('sensitive parameters are masked in the body', () =>
  withReceiver(200, (to) =>
    webhooks(to.url, async (gate) => {
      await gate.refund({ orderId: '1', amount: 1, card: '4111-1111-1111-1111' });
      await waitUntil(() => to.received.length === 1, 'nothing came');
      assert.deepEqual(JSON.parse(to.received[0]?.body ?? '').parameters, {
        orderId: '1',
        amount: 1,
        card: { masked: true },
      });
    }),
  ));

test('a webhook with a missing or weak secret or a weak callback key is rejected before a request is created', async () => {
  const url = 'https://ops.example/approvals';
  const run = (secrets: Record<string, string[]>, callbackKey = CALLBACK_KEY) =>
    withGate(
      { approvals: { callbackKey, webhook: { secrets } }, humanInLoop: { approvalWebhook: url } },
      async ({ refund }) => {
        await refund();
      },
    );
  await expectError(run({ [url]: [] }), 'config_invalid');
  await expectError(run({ [url]: ['whsec_c2hvcnQ='] }), 'config_invalid');
  await expectError(run({ [url]: ['not a secret at all'] }), 'config_invalid');
  await expectError(run({ [url]: [WEBHOOK_SECRET] }, 'short'), 'config_invalid');
});
