import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { type ApprovalRequest, defineTool, Svc } from '@svc/sdk';
import { slackAnswers } from '../src/index.ts';

const SECRET = 'a signing secret';
const said: string[] = [];
const slack = createServer(async (request, response) => {
  said.push(Buffer.concat(await request.toArray()).toString());
  response.end('ok');
}).listen(0, '127.0.0.1');
await once(slack, 'listening');
const responseUrl = `http://127.0.0.1:${(slack.address() as AddressInfo).port}/`;

const svc = new Svc({ config: { product: 'shop', env: 'dev' } });
const refund = defineTool({ tag: 'refund', requiresConfirmation: true, handler: () => 'paid' });
const gate = svc.gate({ agentTag: 'payouts', tools: [refund], humanInLoop: { enabled: true } });
const answer = slackAnswers({ svc, signingSecret: SECRET });
after(async () => {
  await svc.close();
  slack.close();
});

/** A call that waits, and how it ends. */
async function asked() {
  const { promise, resolve } = withResolvers<ApprovalRequest>();
  const outcome = gate.run({ tool: 'refund', parameters: {} }, { onRequested: resolve });
  outcome.catch(() => undefined); // Closing the client ends what waits.
  return { request: await promise, outcome };
}

/** What Slack sends when somebody presses a button. */
function pressed(
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

test('who presses a button decides, by the name that Slack gives', async () => {
  const { request, outcome } = await asked();
  assert.equal((await answer(pressed(request))).status, 200);
  assert.equal((await outcome).status, 'completed');
  assert.equal((await svc.approvals.get(request.requestId)).decidedBy, 'slack:U1');
  assert.match(said.at(-1) ?? '', /is approved by <@U1>/);
});

test('a no is a no, and who comes later is told so', async () => {
  const { request, outcome } = await asked();
  await answer(pressed(request, { action: 'svc_reject' }));
  assert.equal((await outcome).status, 'rejected');
  assert.equal((await answer(pressed(request))).status, 200);
  assert.equal((await svc.approvals.get(request.requestId)).status, 'rejected');
  assert.match(said.at(-1) ?? '', /"ephemeral"/);
});

test('what Slack did not sign, just now, decides nothing', async () => {
  const { request } = await asked();
  const now = Math.floor(Date.now() / 1000);
  const bad = [
    pressed(request, { secret: 'another secret' }),
    pressed(request, { seconds: now - 600 }),
    pressed(request, { seconds: now + 600 }),
    pressed(request, { tamper: (body) => `${body}&more=1` }),
    new Request('https://shop.example/slack', { method: 'POST', body: 'payload={}' }),
  ];
  for (const one of bad) assert.equal((await answer(one)).status, 401);
  assert.equal((await svc.approvals.get(request.requestId)).status, 'waiting');
});

test('a button that only opens a page decides nothing', async () => {
  const { request } = await asked();
  assert.equal((await answer(pressed(request, { action: 'svc_open' }))).status, 200);
  assert.equal((await svc.approvals.get(request.requestId)).status, 'waiting');
});

/** `Promise.withResolvers` comes with Node 22. */
function withResolvers<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
