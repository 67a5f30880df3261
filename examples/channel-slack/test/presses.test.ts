import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type ApprovalRequest, defineTool, Svc } from '@svc/sdk';
import {
  CHANNEL,
  PRESS_URL,
  responseUrls,
  type SlackPayload,
  signedBody,
  signedRequest,
  slackUnderTest,
} from './slack.ts';

/** The channel suite tries forged, replayed and repeated presses; these are Slack's own details. */

const slack = await slackUnderTest.receiver();
const svc = new Svc({
  config: {
    product: 'shop',
    env: 'dev',
    plugins: [slackUnderTest.plugin],
    approvals: {
      callbackKey: 'not a real key, but long enough to be one',
      channels: { slack: { type: 'slack', ...slack.options } },
    },
  },
});
const refund = defineTool({ tag: 'refund', requiresConfirmation: true, handler: () => 'paid' });
const gate = svc.gate({ agentTag: 'payouts', tools: [refund], humanInLoop: { enabled: true } });
const handle = svc.approvals.handler();
after(async () => {
  await svc.close();
  await slack.close();
});

/** Starts a call that waits for approval. */
async function startCall() {
  let onRequested: (request: ApprovalRequest) => void = () => {};
  const requested = new Promise<ApprovalRequest>((resolve) => {
    onRequested = resolve;
  });
  const outcome = gate.run({ tool: 'refund', parameters: {} }, { onRequested });
  outcome.catch(() => undefined); // Closing the client rejects the pending call.
  return { request: await requested, outcome };
}

function payload({ requestId }: ApprovalRequest, { action = 'svc_approve', user = 'U1' } = {}): SlackPayload {
  const actions = [{ action_id: action, value: requestId }];
  return { user: { id: user }, channel: { id: CHANNEL }, actions, response_url: responseUrls.next() };
}

test('a decision is recorded with the Slack user id, which the message mentions', async () => {
  const { request, outcome } = await startCall();
  const first = payload(request);
  assert.equal((await handle(signedRequest(first))).status, 200);
  assert.equal((await outcome).status, 'completed');
  assert.equal((await svc.approvals.get(request.requestId)).decidedBy, 'slack:U1');
  assert.match(responseUrls.take(first.response_url).text, /is approved by <@U1>/);
  const later = payload(request, { user: 'U2' });
  await handle(signedRequest(later));
  assert.match(responseUrls.take(later.response_url).text, /is already approved\./);
});

test('Slack learns that a request without a valid signature is not accepted', async () => {
  const { request } = await startCall();
  const bad = [
    signedRequest(payload(request), { secret: 'another secret' }),
    signedRequest(payload(request), { sentAt: new Date(Date.now() + 600_000) }),
    new Request(PRESS_URL, { method: 'POST', body: 'payload={}' }),
  ];
  for (const one of bad) assert.equal((await handle(one)).status, 401);
  assert.equal((await svc.approvals.get(request.requestId)).status, 'waiting');
});

test('a payload that JSON.parse or a lenient decoder would change decides nothing', async () => {
  const { request } = await startCall();
  const json = JSON.stringify(payload(request));
  const encoded = (text: string) => `payload=${encodeURIComponent(text)}`;
  const bodies = [
    encoded(json.replace('"action_id":', '"action_id":"svc_reject","action_id":')),
    encoded(json.replace('{', '{"n":9007199254740993,')),
    encoded(json.replace('{', '{"n":"?",')).replace('%3F', '%FF'),
    `${encoded('{}')}&${encoded(json)}`,
    'payload=%7B',
  ];
  for (const body of bodies) assert.equal((await handle(signedBody(body))).status, 400, body);
  assert.equal((await svc.approvals.get(request.requestId)).status, 'waiting');
});

test('a button that only opens a page decides nothing', async () => {
  const { request } = await startCall();
  assert.equal((await handle(signedRequest(payload(request, { action: 'svc_open' })))).status, 200);
  assert.equal((await svc.approvals.get(request.requestId)).status, 'waiting');
});
