import * as assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { isDeliveryFailed } from '../core/approval/channel.ts';
import type { ApprovalRecord } from '../core/approval/request.ts';
import { displayJson } from '../core/display/json.ts';
import { isSvcError } from '../core/errors.ts';
import {
  decisionText,
  escapeHtml,
  isEqualSecret,
  isSignedBy,
  noticeText,
  parseFormDecision,
  postJson,
  pressEndpoint,
  requestText,
  textOptions,
  urlOption,
} from '../plugins/channels/toolkit.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

/** The words of `@svc/sdk/channel` that the suites of channels do not reach. */

const unreachable = () => assert.fail('it was called');
const unreachableClient = { agents: { signal: unreachable }, approvals: { get: unreachable } };
const unreachableEndpoint = { svc: unreachableClient, verify: unreachable, read: unreachable, show: unreachable };

test('a text that fits is complete, and a longer one is cut outside of escapes and says its length', () => {
  const value = { note: '<&'.repeat(500), emoji: '😀'.repeat(500) };
  const whole = escapeHtml(displayJson(value));
  const limited = (maxLength: number) => displayJson(value, { maxLength, escape: escapeHtml });
  assert.deepEqual(limited(whole.length), { text: whole, complete: true });
  for (let maxLength = 60; maxLength < whole.length; maxLength += 7) {
    const { text, complete } = limited(maxLength);
    assert.equal(complete, false);
    assert.ok(text.length <= maxLength, `${text.length} > ${maxLength}`);
    assert.match(text, / … \(\d+ characters\)$/);
    const part = text.replace(/ … \(\d+ characters\)$/, '');
    assert.ok(whole.startsWith(part));
    assert.doesNotMatch(part, /&(?!amp;|lt;|gt;)/);
    assert.doesNotMatch(part, /\p{Surrogate}/u, 'a surrogate pair was cut');
  }
});

test('parameters in a block of code have another escape than the text around it, and fit with the block', () => {
  const markup = {
    text: (text: string) => text.replaceAll('*', '\\*'),
    code: (text: string) => text.replaceAll('`', "'"),
    block: ['```\n', '\n```'],
  } as const;
  const request = {
    ...{ requestId: 'apr_1', executionId: 'exe_1', agentTag: 'a*b', tool: 'refund', reason: '*' },
    ...{ parameters: { note: '* `' }, timestamp: '', timeout: '*', product: 'shop', env: 'dev', expiresInMs: 1 },
  };
  const { title, parameters, footer } = requestText(request, { maxLength: 100, escape: markup });
  assert.equal(title, 'a\\*b wants to call refund in shop, dev: \\*');
  assert.equal(parameters, '```\n{\n  "note": "* \'"\n}\n```');
  assert.equal(footer, 'apr_1, until \\*');
  const long = requestText({ ...request, parameters: { note: '`'.repeat(500) } }, { maxLength: 100, escape: markup });
  assert.match(long.parameters, /^```\n[^`]+\n```$/);
  assert.ok(long.parameters.length <= 100 && !long.buttons.includes('approve'));
  const record = { ...request, status: 'approved', decidedBy: '*' } as unknown as ApprovalRecord;
  assert.equal(
    decisionText(record, { maxLength: 100, escape: markup }),
    `apr_1 is approved by \\*\nrefund of a\\*b in shop, dev\n${parameters}`,
  );
  assert.match(
    decisionText(record, { maxLength: 100, escape: escapeHtml }),
    /by \*\nrefund of a\*b in shop, dev\n\{\n/,
  );
  const changed = { ...record, decisionReason: 'Half.', modifiedParams: { amount: 5 }, unattendedSince: 'today' };
  assert.equal(
    decisionText(changed, { maxLength: 100 }),
    'apr_1 is approved by *: Half.\nrefund of a*b in shop, dev, changed: amount\nNo process waits for it now\n{\n  "note": "* `",\n  "amount": 5\n}',
  );
  const named = decisionText({ ...record, decidedBy: 'a'.repeat(10_000) }, { maxLength: 100 });
  assert.match(named, /^.{1,480}a … \(\d+ characters\)\nrefund of /, 'a long name leaves no room for the message');
});

test('what surrounds parameters has a greatest length, with its escapes', () => {
  const [long, note] = ['&😀'.repeat(5_000), 'x'.repeat(5_000)];
  const call = { ...createWaiting(), parameters: { note }, tool: 'x'.repeat(128), reason: long };
  const options = { maxLength: 1_000, escape: escapeHtml };
  const { title, parameters, footer } = requestText({ ...call, product: 'shop', env: 'dev', expiresInMs: 1 }, options);
  assert.ok(title.length <= 500 && title.length > 450, `${title.length}`);
  assert.deepEqual([parameters.length, footer.length], [1_000, 72]);
  assert.match(title, /(&amp;😀)+(&amp;)? … \(\d+ characters\)$/);
  const decided = { ...call, status: 'approved', decidedBy: long, modifiedParams: { note } } as const;
  const report = decisionText(decided as unknown as ApprovalRecord, options);
  assert.ok(report.length <= 690 + 1_000 && report.length > 1_600, `${report.length}`);
  const to = [{ role: long, members: [] }];
  const notice = { id: '', at: '', kind: 'escalation', to, missing: [] } as const;
  assert.ok(noticeText(notice).length <= 500);
});

test('what the person who pressed is shown has at most 500 characters', async () => {
  const { requestId, ...record } = createWaiting();
  const actor = `pager:${'\u202e'.repeat(2)}${'x'.repeat(5_000)}`;
  const endpoint = pressEndpoint({
    svc: {
      agents: { signal: async () => ({ status: 'approved' }) },
      approvals: { get: async () => ({ ...record, requestId, decidedBy: actor }) as unknown as ApprovalRecord },
    },
    verify: () => true,
    read: () => ({ button: 'approve', requestId, actor }),
    show: ({ text }) => new Response(text),
  });
  const response = await endpoint(new Request('http://localhost/', { method: 'POST', body: '{}' }));
  const text = await response.text();
  assert.match(text, /^apr_.* is approved by pager:\\u\{202e×2\}x+ … \(\d+ characters\)\.?$/);
  assert.equal(text.length, 500);
});

/** A request with the longest id and time. */
function createWaiting() {
  const ids = { requestId: `apr_${'0'.repeat(36)}`, executionId: 'exe_1', agentTag: 'payouts' };
  const at = new Date().toISOString();
  return { ...ids, tool: 'refund', parameters: {}, reason: '', timestamp: at, timeout: at };
}

test('options that are missing, empty, unknown or not texts are rejected without their values', () => {
  const good = { token: 'secret', api: undefined };
  const schemes = { api: ['https'] };
  const withUrl = { token: 'secret', api: 'https://api.example' };
  assert.deepEqual(textOptions(withUrl, ['token'], ['api'], schemes), withUrl);
  assert.throws(() => textOptions({ ...withUrl, api: 'nonsense' }, ['token'], ['api'], schemes), /options of a plugin/);
  assert.deepEqual(textOptions(good, ['token'], ['api']), { token: 'secret' });
  for (const options of [
    {},
    { token: '' },
    { token: 7 },
    { token: 'secret', api: 7 },
    { token: 'secret', tokn: 'x' },
  ]) {
    assert.throws(
      () => textOptions(options, ['token'], ['api']),
      (error) => isSvcError(error) && error.code === 'config_invalid' && !inspect(error).includes('secret'),
    );
  }
  assert.equal(urlOption({ url: 'nats://a:b@c' }, ['nats', 'tls']), 'nats://a:b@c');
  for (const url of ['http://user:secret@host', 'nats', undefined]) {
    assert.throws(
      () => urlOption({ url }, ['nats', 'tls']),
      (error) =>
        isSvcError(error) &&
        /nats:\/\/ or tls:\/\/|not empty/.test(String(error.why)) &&
        !inspect(error).includes('secret'),
    );
  }
});

test('a signature is valid for its content, its secret and five minutes', () => {
  const signedAt = Date.now();
  const signature = createHmac('sha256', 'key').update('1.body').digest('hex');
  const signed = { secret: 'key', content: ['1.', Buffer.from('body')], signature, signedAt };
  assert.ok(isSignedBy(signed));
  const empty = createHmac('sha256', '').update('1.body').digest('hex');
  for (const change of [
    { secret: 'other' },
    { secret: '', signature: empty },
    { content: ['1.other'] },
    { signature: '' },
    { signedAt: signedAt - 301_000 },
    { signedAt: signedAt + 301_000 },
    { signedAt: Number.NaN },
  ]) {
    assert.equal(isSignedBy({ ...signed, ...change }), false, JSON.stringify(change));
  }
  assert.deepEqual(
    [isEqualSecret('a', 'a'), isEqualSecret('a', 'b'), isEqualSecret(null, ''), isEqualSecret('', '')],
    [true, false, false, false],
  );
});

test('an Ed25519 signature is valid for its content, its key and five minutes', () => {
  const [signedAt, { publicKey, privateKey }] = [Date.now(), generateKeyPairSync('ed25519')];
  const hexOf = (key: typeof publicKey) => key.export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex');
  const key = hexOf(publicKey);
  const signature = sign(null, Buffer.from('1.body'), privateKey).toString('hex');
  const signed = { publicKey: key, content: ['1.', Buffer.from('body')], signature, signedAt };
  assert.ok(isSignedBy(signed));
  for (const change of [
    { publicKey: hexOf(generateKeyPairSync('ed25519').publicKey) },
    { publicKey: '' },
    { publicKey: key.slice(2) },
    { publicKey: `${key}00` },
    { secret: 'also a secret' },
    { content: ['1.other'] },
    { signature: '' },
    { signature: 'not hexadecimal' },
    { signedAt: signedAt - 301_000 },
  ])
    assert.equal(isSignedBy({ ...signed, ...change }), false, JSON.stringify(change));
  assert.equal(isSignedBy({ content: ['1.body'], signature, signedAt }), false);
});

test('a form that has other fields, or is not UTF-8, is not a decision', () => {
  assert.deepEqual(parseFormDecision(Buffer.from('payload=%7B%22a%22%3A+1%7D'), 'payload'), { a: 1 });
  for (const body of [
    'payload=%7B%7D&payload=%7B%7D',
    'other=%7B%7D',
    'payload=%FF',
    '',
    'payload=%7B%22a%22%3A1%2C%22a%22%3A2%7D',
  ])
    assert.throws(() => parseFormDecision(Buffer.from(body), 'payload'), body);
});

const PATHS = { retryAfter: ['parameters', 'retry_after'], reason: ['error', 'text'] };

test('postJson follows no redirect, retries what may succeed later, and puts no URL or header into an error', async () => {
  let answer: { status: number; headers?: Record<string, string>; body?: string } = { status: 200 };
  let requests = 0;
  const server = createServer((_request, response) => {
    requests += 1;
    response.writeHead(answer.status, answer.headers).end(answer.body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const url = `http://${host}/bot-secret/send?token=secret`;
  const post = (to = url, headers = {}) => postJson(to, {}, { headers, signal: AbortSignal.timeout(15_000), ...PATHS });
  const failure = async (...args: Parameters<typeof post>) => {
    const error = await post(...args).then(
      () => assert.fail('it resolved'),
      (reason: unknown) => reason,
    );
    assert.ok(isDeliveryFailed(error));
    assert.ok(!inspect(error, { depth: 5 }).includes('secret'), inspect(error));
    return [error.message, error.retry, error.afterMs];
  };
  try {
    assert.equal(await post(), undefined);
    answer = { status: 200, body: '{"id":1}' };
    assert.deepEqual(await post(), { id: 1 });
    answer = { status: 429, headers: { 'retry-after': '7' } };
    assert.deepEqual(await failure(), [`POST to ${host} was answered with 429`, true, 7000]);
    for (const [body, afterMs] of [
      ['{"parameters":{"retry_after":9}}', 9000],
      ['{"parameters":{"retry_after":1e9}}', 3_600_000],
      ['{"parameters":{"retry_after":"9"}}', 0],
      ['{"parameters":null}', 0],
      ['no json', 0],
    ] as const) {
      answer = { status: 429, body };
      assert.deepEqual(await failure(), [`POST to ${host} was answered with 429`, true, afterMs]);
    }
    for (const [body, why] of [
      ['{"error":{"text":"chat not\\u202e found"}}', ': chat not\\u{202e} found'],
      [JSON.stringify({ error: { text: 'x'.repeat(500) } }), `: ${'x'.repeat(181)} … (500 characters)`],
      ['{"error":{"text":{}}}', ''],
      ['{"error":{"text":""}}', ''],
      ['{"error":"text"}', ''],
      ['no json', ''],
    ] as const) {
      answer = { status: 400, body };
      assert.deepEqual(await failure(), [`POST to ${host} was answered with 400${why}`, false, 0]);
    }
    answer = { status: 404 };
    assert.deepEqual(await failure(), [`POST to ${host} was answered with 404`, false, 0]);
    answer = { status: 302, headers: { location: url } };
    const before = requests;
    assert.deepEqual(await failure(), [`POST to ${host} was answered with 302: redirects are not followed`, false, 0]);
    assert.equal(requests, before + 1);
    const invalid: Parameters<typeof post>[] = [
      ['secret'],
      ['http://user:secret@127.0.0.1/'],
      [url, { authorization: 'secret\u0000' }],
    ];
    for (const args of invalid) await failure(...args);
  } finally {
    server.close();
  }
});

test('a request that is not a press gets the response that read returns', async () => {
  const endpoint = pressEndpoint({
    svc: unreachableClient,
    verify: () => true,
    read: () => Response.json({ type: 1 }),
    show: unreachable,
  });
  const response = await endpoint(new Request('http://localhost/', { method: 'POST', body: '{}' }));
  assert.deepEqual(await response.json(), { type: 1 });
});

test('a press of more than 1 MiB is not read to its end', async () => {
  const endpoint = pressEndpoint(unreachableEndpoint);
  let pulled = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      pulled += 1;
      controller.enqueue(new Uint8Array(64 * 1024));
    },
  });
  const request = { method: 'POST', body: endless, duplex: 'half' } as const;
  assert.equal((await endpoint(new Request('http://localhost/', request))).status, 413);
  // 2 MiB more, so that a client that still sends gets the answer.
  assert.ok(pulled < 60, `${pulled} parts`);
});

test('a press whose body does not end gets 408, and its stream is cancelled', async () => {
  const endpoint = pressEndpoint(unreachableEndpoint);
  let cancelled = false;
  const stalled = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new Uint8Array(1)),
    cancel: () => {
      cancelled = true;
    },
  });
  const request = { method: 'POST', body: stalled, duplex: 'half' } as const;
  assert.equal((await endpoint(new Request('http://localhost/', request))).status, 408);
  assert.ok(cancelled);
});

test('an error of read about the body is a 400, and any other is a 500 with a warning', async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning);
  process.on('warning', onWarning);
  const statusOf = async (read: (body: Uint8Array) => undefined) => {
    const endpoint = pressEndpoint({ svc: unreachableClient, verify: () => true, read, show: unreachable });
    const response = await endpoint(new Request('http://localhost/', { method: 'POST', body: '{"user":"%' }));
    assert.equal(await response.text(), '');
    return response.status;
  };
  try {
    assert.equal(await statusOf((body) => void parseFormDecision(body, 'payload')), 400);
    assert.equal(await statusOf((body) => JSON.parse(Buffer.from(body).toString())), 400);
    assert.equal(await statusOf((body) => void decodeURIComponent(Buffer.from(body).toString())), 400);
    assert.equal(warnings.length, 0);
    assert.equal(await statusOf(() => (undefined as unknown as { user: { id: undefined } }).user.id), 500);
    await waitUntil(() => warnings.length > 0, 'nothing was warned of');
    assert.equal(warnings[0]?.name, 'SvcWarning');
    assert.match(`${warnings[0]?.message}`, /read threw.*reading 'user'/);
  } finally {
    process.off('warning', onWarning);
  }
});
