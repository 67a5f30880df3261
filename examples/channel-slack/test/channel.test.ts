import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { Svc } from '@svc/sdk';
import { channelSuite } from '@svc/sdk/testing';
import plugin from '../src/index.ts';
import { slackUnderTest } from './slack.ts';

channelSuite(test, slackUnderTest);

test('a decision that is made elsewhere replaces the message and its buttons', { timeout: 30_000 }, async () => {
  const sent: { readonly method: string; readonly channel: string; readonly ts?: string; readonly blocks: object[] }[] =
    [];
  const api = createServer(async (request, response) => {
    sent.push({ method: request.url, ...JSON.parse(Buffer.concat(await request.toArray()).toString()) });
    response.end('{ "ok": true, "ts": "1700000000.000100" }');
  }).listen(0, '127.0.0.1');
  await once(api, 'listening');
  const secrets = { token: 'xoxb-1', signingSecret: 'a signing secret' };
  const options = { ...secrets, channel: 'C1', api: `http://127.0.0.1:${(api.address() as AddressInfo).port}` };
  const svc = new Svc({
    config: {
      product: 'shop',
      env: 'dev',
      plugins: [plugin],
      approvals: { channels: { ops: { type: 'slack', ...options } } },
    },
  });
  try {
    const tools = [{ tag: 'refund', requiresConfirmation: true, handler: () => 'paid' }];
    const gate = svc.gate({ agentTag: 'payouts', tools, humanInLoop: { enabled: true } });
    let requestId = '';
    const outcome = gate.run(
      { tool: 'refund', parameters: {} },
      {
        onRequested: (request) => {
          requestId = request.requestId;
        },
      },
    );
    const isDelivered = async () => requestId !== '' && (await svc.approvals.get(requestId)).deliveries.length > 0;
    while (!(await isDelivered())) await new Promise((resolve) => setTimeout(resolve, 10));
    await svc.agents.signal({ signal: 'reject', payload: { requestId } }, { actor: 'ada' });
    assert.equal((await outcome).status, 'rejected');
    while (sent.length < 2) await new Promise((resolve) => setTimeout(resolve, 10));
    const [posted, edited] = sent;
    assert.deepEqual([posted?.method, edited?.method], ['/chat.postMessage', '/chat.update']);
    assert.deepEqual([edited?.channel, edited?.ts], ['C1', '1700000000.000100']);
    assert.match(JSON.stringify(edited?.blocks), new RegExp(`${requestId} is rejected by ada`));
    assert.doesNotMatch(JSON.stringify(edited?.blocks), /"button"/);
  } finally {
    await svc.close();
    api.close();
  }
});
