import * as assert from 'node:assert/strict';
import { Validator } from '@seriousme/openapi-schema-validator';
import type { Run } from '../core/agent/run.ts';
import { version } from '../core/version.ts';
import { agentDefinition } from './kit/agent-host.ts';
import { EventReader } from './kit/event-reader.ts';
import { assertEvent, assertWebhook, documentedResults, operationsOf } from './kit/openapi.ts';
import { type Api, SERVER, withApi } from './kit/people-api.ts';
import { test } from './kit/test.ts';
import { WEBHOOK_SECRET } from './suites/gate-client.ts';
import { waitUntil } from './suites/wait-until.ts';
import { startWebhookReceiver } from './suites/webhook-receiver.ts';

// The description of the API is compared with every answer that other tests of it get, too (kit/people-api.ts).

const RULE = {
  match: { agent: 'payouts', tool: 'refund' },
  approve: [{ role: 'deciders', count: 2 }],
  deny: 2,
  not: ['user:dee'],
  override: 'heads',
  standing: 'heads',
  expires: '1h',
  remind: '10m',
  escalate: [{ after: '10m', to: 'heads' }],
};

async function descriptionOf({ call }: Pick<Api, 'call'>) {
  const { status, body } = await call('GET', '/openapi.json');
  assert.equal(status, 200);
  return body;
}

test('anybody can read the description, and it is valid OpenAPI 3.1', () =>
  withApi(async (api) => {
    const description = await descriptionOf(api);
    const { valid, errors } = await new Validator().validate(structuredClone(description));
    assert.ok(valid, JSON.stringify(errors));
    assert.deepEqual([description.openapi, description.info.version], ['3.1.0', version]);
    const base = new URL(description.servers[0].url, 'https://shop.example/svc/api/v1/openapi.json');
    assert.equal(base.href, 'https://shop.example/svc/api/v1');
    const ids = operationsOf(description).map(({ operation }) => operation.operationId);
    assert.equal(new Set(ids).size, ids.length);
  }));

test('every operation answers as it is described', () =>
  withApi(
    async (api) => {
      const { call, tokenOf, refund, svc, fetch } = api;
      const token = await tokenOf('ann', 'finance');
      const bo = await tokenOf('bo', 'finance', 'heads');
      const results = new Set<string | undefined>();
      const ask = async (...[method, path, more]: Parameters<Api['call']>) => {
        const answer = await call(method, path, { token, ...more });
        results.add(answer.result);
        assert.ok(answer.status < 300, `${method} ${path}: ${JSON.stringify(answer.body)}`);
        return answer.body;
      };
      const stream = new EventReader(await fetch('/events', { token }));
      results.add('streamEvents 200');
      const { request } = await refund({ orderId: '1', amount: 5, card: '4111-secret' }, 'cy');
      const path = `/approvals/${request.requestId}`;
      for (const own of ['/login', '/openapi.json', '/me', '/count', '/approvals', path]) await ask('GET', own);
      const { reviewToken } = (await ask('POST', `${path}/reveal`, { body: {} })).request;
      const body = { approved: true, modifiedParams: { amount: 4 }, reviewToken, reason: 'less' };
      await ask('POST', `${path}/decision`, { body, headers: { 'idempotency-key': 'k' } });
      await ask('POST', `${path}/decision`, { body, token: bo });
      const over = (await refund()).request.requestId;
      await ask('POST', `/approvals/${over}/decision`, {
        body: { ...body, reviewToken: undefined, override: true },
        token: bo,
      });
      const entries = (await ask('GET', `${path}/audit`)).entries;
      assert.deepEqual(entries.map(({ type }: { type: string }) => type).slice(0, 4), [
        'requested',
        'revealed',
        'voted',
        'approved',
      ]);
      assert.ok(!JSON.stringify(entries).includes('secret'));
      await ask('GET', `/approvals/${over}`);
      const until = new Date(Date.now() + 60_000).toISOString();
      const { delegationId } = await ask('POST', '/delegations', { body: { to: 'bo', until } });
      await ask('POST', `/delegations/${delegationId}/revoke`, { body: {} });
      await ask('GET', '/delegations');
      const standing = { requestId: over, uses: 1, until };
      const { standingId } = await ask('POST', '/standing-rules', { body: standing, token: bo });
      await ask('POST', `/standing-rules/${standingId}/revoke`, { body: {}, token: bo });
      await ask('GET', '/standing-rules');
      await ask('GET', `/executions/${request.executionId}`);
      await ask('GET', '/approvals?status=approved&newestFirst=true&limit=1');
      const agent = svc.agents.define(
        agentDefinition([{ calls: [{ tool: 'pay' }] }, { text: 'model-secret' }], {
          tools: [{ tag: 'pay', requiresConfirmation: true, handler: () => 'handler-secret' }],
          humanInLoop: { enabled: true },
        }) as never,
      );
      const run = (await agent.run({ prompt: 'prompt-secret' })) as Run;
      for await (const event of run) {
        if (event.type !== 'approval_requested') continue;
        const { execution } = await ask('GET', `/executions/${run.executionId}`);
        assert.equal(execution.status, 'running');
        await svc.agents.cancel(run.executionId, 'enough');
      }
      const seen = await ask('GET', `/executions/${run.executionId}`);
      assert.deepEqual([seen.execution.status, seen.records[0].status], ['cancelled', 'cancelled']);
      assert.ok(!JSON.stringify(seen).includes('secret'));
      for (const { data } of await stream.take(6)) assertEvent(data);
      await stream.close();
      assert.deepEqual([...results].sort(), [...documentedResults].sort());
    },
    { ...SERVER, rules: [RULE] },
  ));

test('a webhook is as the description has it', async () => {
  const receiver = await startWebhookReceiver(200);
  try {
    const humanInLoop = { approvalWebhook: receiver.url };
    await withApi(
      async ({ refund }) => {
        await refund({ orderId: '1', amount: 5, card: '4111-secret' });
        await waitUntil(() => receiver.received.length > 0, 'no webhook arrived');
        const [delivery] = receiver.received;
        assertWebhook(JSON.parse(delivery?.body ?? ''));
      },
      { ...SERVER, webhook: { secrets: { [receiver.url]: [WEBHOOK_SECRET] } } },
      { humanInLoop },
    );
  } finally {
    receiver.close();
  }
});
