import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type ApprovalRequest, defineTool, Svc } from '@svc/sdk';
import { slackInteractions } from '../src/index.ts';
import { CHANNEL, SIGNING_SECRET, signedBody, signedRequest, startResponseUrl } from './slack.ts';

/** The channel suite tries forged, replayed and repeated presses; these are Slack's own details. */

const slack = await startResponseUrl();
const svc = new Svc({ config: { product: 'shop', env: 'dev' } });
const refund = defineTool({ tag: 'refund', requiresConfirmation: true, handler: () => 'paid' });
const gate = svc.gate({ agentTag: 'payouts', tools: [refund], humanInLoop: { enabled: true } });
const handle = slackInteractions({ svc, signingSecret: SIGNING_SECRET, channel: CHANNEL });
after(async () => {
  await svc.close();
  slack.close();
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

function payload({ requestId }: ApprovalRequest, { action = 'svc_approve', user = 'U1' } = {}) {
  const actions = [{ action_id: action, value: requestId }];
  return { user: { id: user }, channel: { id: CHANNEL }, actions, response_url: slack.url };
}

test('a decision is recorded with the Slack user id, which the message mentions', async () => {
  const { request, outcome } = await startCall();
  assert.equal((await handle(signedRequest(payload(request)))).status, 200);
  assert.equal((await outcome).status, 'completed');
  assert.equal((await svc.approvals.get(request.requestId)).decidedBy, 'slack:U1');
  assert.match(slack.texts.at(-1) ?? '', /is approved by <@U1>/);
  await handle(signedRequest(payload(request, { user: 'U2' })));
  assert.match(slack.texts.at(-1) ?? '', /is already approved\./);
});

test('Slack learns that a request without a valid signature is not accepted', async () => {
  const { request } = await startCall();
  const bad = [
    signedRequest(payload(request), { secret: 'another secret' }),
    signedRequest(payload(request), { sentAt: new Date(Date.now() + 600_000) }),
    new Request('https://shop.example/slack', { method: 'POST', body: 'payload={}' }),
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
