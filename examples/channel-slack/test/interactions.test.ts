import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { type ApprovalRequest, defineTool, Svc } from '@svc/sdk';
import { slackInteractions } from '../src/index.ts';

const SECRET = 'a signing secret';
const messages: string[] = [];
const slack = createServer(async (request, response) => {
  messages.push(Buffer.concat(await request.toArray()).toString());
  response.end('ok');
}).listen(0, '127.0.0.1');
await once(slack, 'listening');
const responseUrl = `http://127.0.0.1:${(slack.address() as AddressInfo).port}/`;

const svc = new Svc({ config: { product: 'shop', env: 'dev' } });
const refund = defineTool({ tag: 'refund', requiresConfirmation: true, handler: () => 'paid' });
const gate = svc.gate({ agentTag: 'payouts', tools: [refund], humanInLoop: { enabled: true } });
const handle = slackInteractions({ svc, signingSecret: SECRET });
after(async () => {
  await svc.close();
  slack.close();
});

/** Starts a call that waits for approval. */
async function startCall() {
  const { promise, resolve } = withResolvers<ApprovalRequest>();
  const outcome = gate.run({ tool: 'refund', parameters: {} }, { onRequested: resolve });
  outcome.catch(() => undefined); // Closing the client rejects the pending call.
  return { request: await promise, outcome };
}

/** The request that Slack sends when somebody presses a button. */
function buttonPress(
  { requestId, executionId }: ApprovalRequest,
  {
    action = 'svc_approve',
    secret = SECRET,
    seconds = Math.floor(Date.now() / 1000),
    tamper = (body: string) => body,
  } = {},
): Request {
  const actions = [{ action_id: action, value: JSON.stringify({ requestId, executionId }) }];
  const payload = JSON.stringify({ user: { id: 'U1' }, actions, response_url: responseUrl });
  const body = new URLSearchParams({ payload }).toString();
  const signature = `v0=${createHmac('sha256', secret).update(`v0:${seconds}:${body}`).digest('hex')}`;
  const headers = { 'x-slack-request-timestamp': String(seconds), 'x-slack-signature': signature };
  return new Request('https://shop.example/slack', { method: 'POST', headers, body: tamper(body) });
}

test('a button press decides, recorded with the Slack user id', async () => {
  const { request, outcome } = await startCall();
  assert.equal((await handle(buttonPress(request))).status, 200);
  assert.equal((await outcome).status, 'completed');
  assert.equal((await svc.approvals.get(request.requestId)).decidedBy, 'slack:U1');
  assert.match(messages.at(-1) ?? '', /is approved by <@U1>/);
});

test('a rejection is final, and a later press gets a message', async () => {
  const { request, outcome } = await startCall();
  await handle(buttonPress(request, { action: 'svc_reject' }));
  assert.equal((await outcome).status, 'rejected');
  assert.equal((await handle(buttonPress(request))).status, 200);
  assert.equal((await svc.approvals.get(request.requestId)).status, 'rejected');
  assert.match(messages.at(-1) ?? '', /"ephemeral"/);
});

test('a request that Slack did not sign recently decides nothing', async () => {
  const { request } = await startCall();
  const now = Math.floor(Date.now() / 1000);
  const bad = [
    buttonPress(request, { secret: 'another secret' }),
    buttonPress(request, { seconds: now - 600 }),
    buttonPress(request, { seconds: now + 600 }),
    buttonPress(request, { tamper: (body) => `${body}&more=1` }),
    new Request('https://shop.example/slack', { method: 'POST', body: 'payload={}' }),
  ];
  for (const one of bad) assert.equal((await handle(one)).status, 401);
  assert.equal((await svc.approvals.get(request.requestId)).status, 'waiting');
});

test('a button that only opens a page decides nothing', async () => {
  const { request } = await startCall();
  assert.equal((await handle(buttonPress(request, { action: 'svc_open' }))).status, 200);
  assert.equal((await svc.approvals.get(request.requestId)).status, 'waiting');
});

/** Node 20 has no `Promise.withResolvers`. */
function withResolvers<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
