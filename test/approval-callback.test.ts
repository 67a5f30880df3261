import * as assert from 'node:assert/strict';
import { Approvals } from '../config/sdk/approvals.ts';
import { approvalHandler } from '../config/sdk/index.ts';
import { utcText } from '../core/approval/record-text.ts';
import type { ApprovalRequest } from '../core/approval/request.ts';
import { SvcError } from '../core/errors.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { CALLBACK_KEY, type GateUnderTest, WEBHOOK_SECRET, withGate } from './suites/gate-client.ts';
import { waitUntil } from './suites/wait-until.ts';
import { startWebhookReceiver } from './suites/webhook-receiver.ts';

interface Callback extends GateUnderTest {
  /** Creates a request, and returns the callback URL that the webhook received. */
  createRequest(
    parameters?: object,
  ): Promise<{ request: ApprovalRequest; url: string; outcome: Promise<{ status: string }> }>;
  post(
    url: string,
    body: unknown,
    headers?: Record<string, string>,
  ): Promise<{ status: number; body: Record<string, unknown> }>;
  form(
    url: string,
    fields: Record<string, string> | string | Buffer,
  ): Promise<{ status: number; page: string; headers: Headers }>;
  get(url: string): Promise<{ status: number; page: string; headers: Headers }>;
}

async function withCallback(body: (callback: Callback) => Promise<void>, approvalTimeout = 30_000): Promise<void> {
  const to = await startWebhookReceiver(200);
  const secrets = { [to.url]: [WEBHOOK_SECRET] };
  try {
    await withGate(
      { approvals: { webhook: { secrets } }, humanInLoop: { approvalWebhook: to.url, approvalTimeout } },
      async (gate) => {
        const handler = approvalHandler(gate.svc);
        const page = async (response: Response) => ({
          status: response.status,
          page: await response.text(),
          headers: response.headers,
        });
        await body({
          ...gate,
          async createRequest(parameters) {
            const { request, outcome } = await gate.refund(parameters);
            const sent = () => to.received.find(({ headers }) => headers['webhook-id'] === request.requestId);
            await waitUntil(() => sent() !== undefined, 'nothing was delivered');
            return { request, outcome, url: String(JSON.parse(sent()?.body ?? '').callbackUrl) };
          },
          async post(url, value, headers = { 'content-type': 'application/json' }) {
            const body = typeof value === 'string' || Buffer.isBuffer(value) ? value : JSON.stringify(value);
            const response = await handler(new Request(url, { method: 'POST', headers, body }));
            return { status: response.status, body: (await response.json()) as Record<string, unknown> };
          },
          async form(url, fields) {
            const body = Buffer.isBuffer(fields) ? fields : new URLSearchParams(fields).toString();
            const headers = { 'content-type': 'application/x-www-form-urlencoded' };
            return page(await handler(new Request(url, { method: 'POST', headers, body })));
          },
          get: async (url) => page(await handler(new Request(url))),
        });
      },
    );
  } finally {
    to.close();
  }
}

test('200: approved, and the same decision again; 409: another one, with the stored one', () =>
  withCallback(async ({ createRequest, post, refunds }) => {
    const { url, outcome, request } = await createRequest();
    const first = await post(url, { approved: true, modifiedParams: { amount: 15 } });
    assert.equal(first.status, 200);
    assert.equal(first.body.status, 'approved');
    assert.equal((await outcome).status, 'completed');
    assert.deepEqual(
      refunds.map((one) => ({ ...(one as object) })),
      [{ orderId: '1234', amount: 15 }],
    );
    assert.deepEqual(await post(url, { approved: true, modifiedParams: { amount: 15 } }), first);
    for (const other of [{ approved: false }, { approved: true }, { approved: true, modifiedParams: { amount: 16 } }]) {
      const { status, body } = await post(url, other);
      assert.equal(status, 409);
      assert.equal(body.error, 'approval_decided');
      assert.equal(body.status, 'approved');
    }
    assert.equal(refunds.length, 1);
    assert.equal(request.tool, 'refund');
  }));

test('200: rejected, with a reason that the agent receives', () =>
  withCallback(async ({ createRequest, post, refunds }) => {
    const { url, outcome } = await createRequest();
    assert.equal((await post(url, { approved: false, reason: 'paid already' })).status, 200);
    const ended = (await outcome) as { status: string; result?: { reason: string } };
    assert.equal(ended.status, 'rejected');
    assert.equal(ended.result?.reason, 'paid already');
    assert.deepEqual(refunds, []);
  }));

test('200: a reason or modifiedParams that is null is the same as none, repeated too', () =>
  withCallback(async ({ createRequest, post, refunds }) => {
    const { url, outcome } = await createRequest();
    const first = await post(url, { approved: true, reason: null, modifiedParams: null });
    assert.equal(first.status, 200, JSON.stringify(first.body));
    assert.equal((await outcome).status, 'completed');
    assert.deepEqual({ ...(refunds[0] as object) }, { orderId: '1234', amount: 20 });
    assert.deepEqual(await post(url, { approved: true }), first);
    const rejected = await createRequest();
    assert.equal((await post(rejected.url, { approved: false, reason: null, modifiedParams: null })).status, 200);
    const { result } = (await rejected.outcome) as { result?: { reason: unknown } };
    assert.equal(result?.reason, null);
  }));

test('400: anything but the expected JSON', () =>
  withCallback(async ({ createRequest, post }) => {
    const { url } = await createRequest();
    const json = { 'content-type': 'application/json' };
    for (const [body, headers] of [
      ['', json],
      ['{', json],
      ['null', json],
      ['[true]', json],
      ['{"approved":"yes"}', json],
      ['{"approved":1}', json],
      ['{}', json],
      ['{"approved":true,"approve":true}', json],
      ['{"approved":true,"modifiedParams":[1]}', json],
      ['{"approved":false,"modifiedParams":{"amount":1}}', json],
      ['{"approved":true}', { 'content-type': 'text/plain' }],
      // As numbers they would be 9007199254740992 and Infinity.
      ['{"approved":true,"modifiedParams":{"amount":9007199254740993}}', json],
      ['{"approved":true,"modifiedParams":{"amount":1e400}}', json],
      // JSON.parse takes the last of two.
      ['{"approved":false,"approved":true}', json],
      ['{"approved":false,"approve\\u0064":true}', json],
      ['{"approved":true,"modifiedParams":{"amount":1,"amount":9999}}', json],
      [Buffer.from('{"approved":true,"reason":"\xff"}', 'latin1'), json],
    ] as const) {
      const { status, body: answer } = await post(url, body, headers);
      assert.equal(status, 400, String(body));
      assert.equal(answer.error, 'decision_invalid', String(body));
    }
    assert.equal((await post(url, { approved: true })).status, 200);
  }));

test('401: a missing, forged, tampered or foreign token; 404: an unknown request', () =>
  withCallback(async ({ createRequest, post, get }) => {
    const one = await createRequest();
    const other = await createRequest({ orderId: '2', amount: 5 });
    const token = new URL(other.url).searchParams.get('token') ?? '';
    const bad = (change: (url: URL) => void) => {
      const url = new URL(one.url);
      change(url);
      return url.href;
    };
    const wrong = [
      bad((url) => url.searchParams.delete('token')),
      bad((url) => url.searchParams.set('token', '')),
      bad((url) => url.searchParams.set('token', token)),
      bad((url) => url.searchParams.set('token', `${url.searchParams.get('token')}x`)),
      bad((url) => url.searchParams.set('token', `v2${url.searchParams.get('token')?.slice(2)}`)),
      bad((url) => url.searchParams.set('token', `v1.${'A'.repeat(43)}`)),
      bad((url) => url.searchParams.set('token', 'x'.repeat(100_000))),
    ];
    for (const url of wrong) {
      assert.equal((await post(url, { approved: true })).status, 401);
      assert.equal((await get(url)).status, 401);
    }
    const unknown = one.url.replace(one.request.requestId, 'apr_01999999-0000-7000-8000-000000000000');
    assert.equal((await post(unknown, { approved: true })).status, 404);
    for (const odd of ['apr_%27', '..', 'apr_x', encodeURIComponent("apr_' OR 1=1")]) {
      assert.equal((await post(one.url.replace(one.request.requestId, odd), { approved: true })).status, 404);
    }
    assert.equal((await post(one.url, { approved: true })).status, 200);
  }));

test('410: after the deadline', () =>
  withCallback(async ({ createRequest, post, refunds }) => {
    const { url, outcome } = await createRequest();
    assert.equal((await outcome).status, 'rejected');
    const { status, body } = await post(url, { approved: true });
    assert.equal(status, 410);
    assert.equal(body.error, 'approval_expired');
    assert.deepEqual(refunds, []);
  }, 1_000));

test('413: a body that is too large, with or without content-length', () =>
  withCallback(async ({ createRequest, post, svc }) => {
    const { url } = await createRequest();
    const large = JSON.stringify({ approved: true, reason: 'x'.repeat(70_000) });
    assert.equal((await post(url, large)).status, 413);
    let given = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        given += 1;
        controller.enqueue(new Uint8Array(8192));
      },
    });
    const request = new Request(url, { method: 'POST', body: endless, duplex: 'half' } as RequestInit);
    assert.equal((await approvalHandler(svc)(request)).status, 413);
    // More than the limit is skipped, so that who sends it gets the answer, and an endless one is not read to its end.
    assert.ok(given < 300, `${given} parts were read`);
  }));

test('422: invalid modified parameters, with the field and the reason; the request keeps waiting', () =>
  withCallback(async ({ createRequest, post, refunds }) => {
    const { url, outcome } = await createRequest();
    for (const [modifiedParams, parameter] of [
      [{ amount: -1 }, 'amount'],
      [{ amount: 'seven' }, 'amount'],
      [{ note: 'x' }, 'note'],
    ] as const) {
      const { status, body } = await post(url, { approved: true, modifiedParams });
      assert.equal(status, 422);
      assert.equal((body.problems as { parameter: string }[])[0]?.parameter, parameter);
    }
    for (const text of [
      '{"approved":true,"modifiedParams":{"__proto__":{"amount":1}}}',
      '{"approved":true,"modifiedParams":{"constructor":{}}}',
    ]) {
      const { status } = await post(url, text);
      assert.ok(status === 422 || status === 400, String(status));
    }
    assert.deepEqual(refunds, []);
    assert.equal((await post(url, { approved: true })).status, 200);
    assert.equal((await outcome).status, 'completed');
  }));

test('429: too many calls for one request; others are not affected', () =>
  withCallback(async ({ createRequest, post }) => {
    const one = await createRequest();
    const other = await createRequest({ orderId: '2', amount: 5 });
    const statuses: number[] = [];
    for (let round = 0; round < 70; round++) statuses.push((await post(one.url, '{')).status);
    assert.deepEqual([...new Set(statuses)], [400, 429]);
    for (let round = 0; round < 70; round++) await post(`${other.url}x`, { approved: true });
    assert.equal((await post(other.url, { approved: true })).status, 200);
  }));

test('503: the store is unreachable at the first call; a configuration error is thrown', async () => {
  let error = new SvcError('connection_failed', 'The server does not answer.');
  const answer = new Approvals(async () => {
    throw error;
  }).handler();
  const url = 'https://shop.example/approvals/apr_01999999-0000-7000-8000-000000000000/respond?token=x';
  const posted = await answer(new Request(url, { method: 'POST', body: '{}' }));
  assert.equal(posted.status, 503);
  assert.equal(posted.headers.get('retry-after'), '5');
  assert.equal(((await posted.json()) as { error: string }).error, 'store_unavailable');
  const shown = await answer(new Request(url));
  assert.deepEqual([shown.status, shown.headers.get('content-type')], [503, 'text/html; charset=utf-8']);
  error = new SvcError('config_invalid', 'The callback needs approvals.callbackKey.');
  await expectError(answer(new Request(url)), 'config_invalid');
});

test('405: other methods', () =>
  withCallback(async ({ createRequest, svc }) => {
    const { url } = await createRequest();
    for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const response = await approvalHandler(svc)(new Request(url, { method }));
      assert.equal(response.status, 405);
      assert.equal(response.headers.get('allow'), 'GET, HEAD, POST');
    }
  }));

test('GET shows tag, tool, deadline, product, environment and request, and decides nothing', () =>
  withCallback(async ({ createRequest, get, svc }) => {
    const { url, request } = await createRequest({ orderId: 'order-1234', amount: 20 });
    for (let round = 0; round < 3; round++) {
      const { status, page, headers } = await get(url);
      assert.equal(status, 200);
      assert.ok(page.includes('payouts') && page.includes('refund') && page.includes(utcText(request.timeout)));
      assert.ok(page.includes('<dd>shop, dev</dd>') && page.includes(`<dd>${request.requestId}</dd>`));
      assert.ok(!page.includes('order-1234'));
      assert.equal(headers.get('cache-control'), 'no-store');
      assert.equal(headers.get('referrer-policy'), 'no-referrer');
      assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'.*frame-ancestors 'none'/);
    }
    assert.equal((await svc.approvals.get(request.requestId)).status, 'waiting');
  }));

test('HEAD decides nothing, and other methods are rejected', () =>
  withCallback(async ({ createRequest, svc, refunds }) => {
    const { url, request } = await createRequest();
    const handler = approvalHandler(svc);
    for (const [method, status] of [
      ['HEAD', 200],
      ['PUT', 405],
      ['DELETE', 405],
      ['OPTIONS', 405],
    ] as const) {
      const response = await handler(new Request(`${url}&approved=true&action=approve`, { method }));
      assert.equal(response.status, status, method);
    }
    assert.equal((await svc.approvals.get(request.requestId)).status, 'waiting');
    assert.deepEqual(refunds, []);
  }));

test('the pages show everything with escapes, and then decide', () =>
  withCallback(async ({ createRequest, form, refunds }) => {
    const nasty = '<img src=x onerror=alert(1)>"\u001b[2J\u202egnirts\u200b';
    const { url, outcome } = await createRequest({ orderId: nasty, amount: 20, card: '4111' });
    // Without the token of the page, which proves that the request was shown.
    assert.equal((await form(url, { action: 'approve' })).status, 400);
    assert.equal((await form(url, { action: 'approve', view: 'v1.forged' })).status, 400);
    const { page } = await form(url, { action: 'show' });
    assert.ok(page.includes('4111'));
    assert.ok(page.includes('&lt;img src=x onerror=alert(1)&gt;') && !page.includes('<img'));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the test asserts their absence
    assert.doesNotMatch(page, /[\u001b\u202e\u200b]/);
    assert.ok(page.includes('u{202e}') && page.includes('u{200b}'));
    const view = /name="view" value="([^"]+)"/.exec(page)?.[1] ?? '';
    // Enter in a one-line field presses the first button of its form: it shows the form again.
    assert.match(page, /<form method="post" id="decision"><button class="default" name="action" value="draw"/);
    assert.ok(page.indexOf('value="draw"') < page.indexOf('value="approve"'));
    for (const modifiedParams of ['[1]', '{"amount":9007199254740993}', '{"amount":', '{"amount":1,"amount":15}']) {
      assert.equal((await form(url, { action: 'approve', view, modifiedParams })).status, 400);
    }
    const approve = new URLSearchParams({ action: 'approve', view }).toString();
    for (const changed of [
      `action=reject&${approve}`,
      Buffer.from(`${approve}&reason=%ff`),
      Buffer.from(`${approve}&reason=\xff`, 'latin1'),
    ]) {
      assert.equal((await form(url, changed)).status, 400, String(changed));
    }
    assert.equal((await form(url, { action: 'approve', view, modifiedParams: '{"amount":15}' })).status, 200);
    assert.equal((await outcome).status, 'completed');
    assert.equal((refunds[0] as { amount: number }).amount, 15);
  }));

test('the page marks what a model laid out, and its question names what it is about', () =>
  withCallback(async ({ createRequest, form, svc }) => {
    const orderId = `paid${' '.repeat(70)}\u02baamount\u02ba: 5, p\u0430ypal.com e${'\u0301'.repeat(300)} ${'lamp '.repeat(20_000)}`;
    const { url, request } = await createRequest({ orderId, amount: 9999 });
    const { requestId } = request;
    const { page } = await form(url, { action: 'show' });
    const [, parameters = ''] = /<pre>([\s\S]*?)<\/pre>/.exec(page) ?? [];
    for (const line of parameters.split('\n')) assert.match(line, /^(↪ | {2}&quot;|[{}]$)/);
    assert.deepEqual(
      parameters
        .split('\n')
        .filter((line) => line.startsWith('  '))
        .map((line) => line.slice(0, 22)),
      ['  &quot;orderId&quot;:', '  &quot;amount&quot;: 9'].map((line) => line.slice(0, 22)),
    );
    assert.ok(parameters.includes('paid\\u{20×70}\\u{2ba}amount\\u{2ba}: 5, p'));
    const [, warnings = ''] = /<pre class="warnings">([\s\S]*?)<\/pre>/.exec(page) ?? [];
    for (const what of ['look like others: p\\u{430}ypal.com', 'punctuation', '300 combining', '70 spaces']) {
      assert.ok(warnings.includes(`! orderId: `) && warnings.includes(what), warnings);
    }
    const { digest, reviewToken = '' } = await svc.approvals.get(requestId);
    assert.ok(reviewToken.startsWith(digest) && digest.length === 11);
    const question = `Let payouts call refund in shop, dev? <span>Digest of what is shown: ${digest}</span>`;
    assert.ok(page.includes(`<p class="question">${question}</p>`));
    assert.ok(page.indexOf(question) > page.indexOf('amount&quot;: 9999'));
    const view = /name="view" value="([^"]+)"/.exec(page)?.[1] ?? '';
    for (const fields of [{ action: 'reject', view }, { action: 'show' }]) {
      const closed = (await form(url, fields)).page;
      for (const name of ['shop, dev', requestId, 'payouts', 'refund']) {
        assert.ok(closed.includes(`<dd>${name}</dd>`), closed);
      }
    }
  }));

test('an old link shows the outcome of a closed request, without parameters and buttons', async () => {
  const parameters = { orderId: 'order-1234', amount: 20, card: '4111' };
  const isOver = ({ status, page }: { status: number; page: string }, said: RegExp) => {
    assert.equal(status, 200);
    assert.match(page, said);
    for (const gone of ['4111', 'order-1234', '<form', '<button']) assert.ok(!page.includes(gone), gone);
  };
  await withCallback(async ({ createRequest, form }) => {
    const { url, outcome } = await createRequest(parameters);
    assert.equal((await outcome).status, 'rejected');
    isOver(await form(url, { action: 'show' }), /has expired at \d{4}-/);
  }, 1_000);
  await withCallback(async ({ createRequest, form }) => {
    const { url, outcome } = await createRequest(parameters);
    const { page } = await form(url, { action: 'show' });
    assert.ok(page.includes('4111'));
    const view = /name="view" value="([^"]+)"/.exec(page)?.[1] ?? '';
    assert.equal((await form(url, { action: 'reject', view })).status, 200);
    assert.equal((await outcome).status, 'rejected');
    isOver(await form(url, { action: 'show' }), /was rejected at \d{4}-/);
  });
});

test('a request with sensitive parameters is not decided by who was not shown them', () =>
  withCallback(async ({ createRequest, post }) => {
    const { url } = await createRequest({ orderId: '1', amount: 1, card: '4111' });
    const { status, body } = await post(url, { approved: true });
    assert.equal(status, 403);
    assert.equal(body.error, 'approval_unseen');
  }));

test('neither the key nor a token is in the audit, a list or an error', () =>
  withCallback(async ({ createRequest, post, svc, get }) => {
    const { url } = await createRequest();
    const token = new URL(url).searchParams.get('token') ?? '';
    const said: string[] = [];
    said.push(JSON.stringify(await post(`${url}x`, { approved: true })), (await get(`${url}x`)).page);
    await post(url, { approved: true });
    for await (const entry of svc.approvals.export()) said.push(JSON.stringify(entry));
    said.push(JSON.stringify(await svc.approvals.list({ status: 'approved' })));
    for (const secret of [token, CALLBACK_KEY, WEBHOOK_SECRET]) assert.ok(!said.join('\n').includes(secret));
    assert.ok(said.join('\n').includes('callback token, unverified'));
  }));
