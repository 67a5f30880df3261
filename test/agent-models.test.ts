import * as assert from 'node:assert/strict';
import { applyPlugin } from '../core/plugin.ts';
import aiSdk from '../plugins/models/ai-sdk/index.ts';
import { AgentHost } from './kit/agent-host.ts';
import { ModelServer } from './kit/model-server.ts';
import { test } from './kit/test.ts';

// The real providers of the AI SDK against a server with their wire formats.

/** `kept`: the part of its reasoning that a provider requires in later turns: a reference to it, or its signature. */
const providers = {
  openai: { model: 'gpt-5', kept: '"id":"rs_0"' },
  anthropic: { model: 'claude-sonnet-4-5', kept: 'c2lnbmF0dXJl' },
} as const;
type Provider = keyof typeof providers;

interface Place {
  readonly host: AgentHost;
  readonly server: ModelServer;
  readonly ran: unknown[];
  run(settings?: object): ReturnType<AgentHost['run']>;
}

async function at(provider: Provider, body: (place: Place) => Promise<void>): Promise<void> {
  const server = new ModelServer();
  const baseURL = await server.listen();
  const host = await AgentHost.open();
  applyPlugin(host.kernel, aiSdk, 'test');
  const ran: unknown[] = [];
  let made = 0;
  try {
    await body({
      host,
      server,
      ran,
      run: (settings = {}) =>
        host.run(
          host.define({
            tag: `agent-${made++}`,
            model: {
              provider,
              model: providers[provider].model,
              settings: { baseURL, apiKey: 'sk-very-secret', ...settings },
            },
            systemPrompt: 'You pay money back.',
            tools: [
              {
                tag: 'refund',
                description: 'Pays money back.',
                requiresConfirmation: true,
                parameters: { orderId: { type: 'string', required: true }, amount: { type: 'number', required: true } },
                handler: (_ctx: unknown, params: object) => {
                  ran.push({ ...params });
                  return { paid: true };
                },
              },
              { tag: 'look_up', parameters: { id: { type: 'string' } }, handler: () => 'Ada' },
            ],
            humanInLoop: { enabled: true },
          }),
          'Refund order 1234.',
        ),
    });
  } finally {
    await host.close();
    await server.close();
  }
}

const refund = (id: string, amount: unknown = 20) => ({
  id,
  name: 'refund',
  args: JSON.stringify({ orderId: '1234', amount }),
});

for (const provider of Object.keys(providers) as Provider[]) {
  test(`${provider}: text, several calls in a turn, a changed parameter, and the results that are sent`, () =>
    at(provider, async ({ host, server, ran, run }) => {
      server.replies.push(
        {
          text: 'I look first.',
          reasoning: 'c2lnbmF0dXJl',
          calls: [refund('call_a'), { id: 'call_b', name: 'look_up', args: '{"id":"1"}' }],
        },
        { text: 'All done.' },
      );
      const going = run();
      const [request] = await host.untilWaiting(1);
      await host.decide(request!, 'approve', { modifiedParams: { amount: 15 } });
      const outcome = await going.result;
      assert.equal(outcome.status, 'completed', JSON.stringify(outcome.error));
      assert.equal(outcome.text, 'All done.');
      assert.deepEqual(outcome.usage, { inputTokens: 22, outputTokens: 14 });
      assert.deepEqual(ran, [{ orderId: '1234', amount: 15 }]);
      const texts: string[] = [];
      for await (const event of going) if (event.type === 'text') texts.push(event.text);
      assert.ok(texts.length > 2, 'the text came in pieces');
      assert.equal(texts.join(''), 'I look first.All done.');

      const [first, second] = server.requests.map(({ body }) => JSON.stringify(body));
      assert.match(first!, /You pay money back\./);
      assert.match(first!, /"amount":\{"type":"number"\}/);
      assert.match(second!, /call_a/);
      assert.match(second!, /Ada/);
      assert.match(second!, /A reviewer changed these parameters before the tool ran: amount\. It ran with /);
      assert.ok(second!.includes(providers[provider].kept), second!);
      for (const sent of [first!, second!]) {
        assert.ok(!sent.includes('apr_') && !sent.includes('exe_'), 'none of our ids reaches a model');
        assert.ok(!sent.includes('very-secret'));
      }
    }));

  test(`${provider}: arguments that are not JSON are reported to the model, and nothing runs`, () =>
    at(provider, async ({ server, ran, run }) => {
      server.replies.push(
        { calls: [{ id: 'call_a', name: 'refund', args: '{"orderId": "1234", "amount": 2' }] },
        { text: 'Sorry.' },
      );
      const outcome = await run().result;
      assert.equal(outcome.status, 'completed', JSON.stringify(outcome.error));
      assert.equal(outcome.steps[0]!.calls[0]!.status, 'invalid');
      assert.match(JSON.stringify(server.requests[1]!.body), /invalid_parameters/);
      assert.deepEqual(ran, []);
    }));

  test(`${provider}: oversized arguments are reported to the model, and neither stored nor sent again`, () =>
    at(provider, async ({ host, server, ran, run }) => {
      const args = JSON.stringify({ orderId: 'x'.repeat(300 * 1024), amount: 1 });
      server.replies.push(
        { reasoning: 'c2lnbmF0dXJl', calls: [{ id: 'call_a', name: 'refund', args }] },
        { text: 'Sorry.' },
      );
      const going = run();
      const outcome = await going.result;
      assert.equal(outcome.status, 'completed', JSON.stringify(outcome.error));
      const sent = JSON.stringify(server.requests[1]!.body);
      assert.match(sent, /parameters_too_large/);
      assert.ok(sent.includes(providers[provider].kept), sent.slice(0, 2000));
      const stored = JSON.stringify((await host.executions.rows.get(going.executionId))!.record);
      for (const text of [sent, stored]) assert.ok(text.length < 10_000, `${text.length} characters`);
      assert.deepEqual(ran, []);
    }));

  test(`${provider}: unknown tools and parameters of a wrong type are reported to the model`, () =>
    at(provider, async ({ server, ran, run }) => {
      server.replies.push(
        { calls: [{ id: 'call_a', name: 'wire', args: '{}' }, refund('call_b', 'twenty')] },
        { text: 'Sorry.' },
      );
      const outcome = await run().result;
      assert.equal(outcome.status, 'completed', JSON.stringify(outcome.error));
      assert.deepEqual(
        outcome.steps[0]!.calls.map(({ status }) => status),
        ['invalid', 'invalid'],
      );
      assert.deepEqual(ran, []);
    }));

  test(`${provider}: repeated call ids are made unique`, () =>
    at(provider, async ({ host, server, ran, run }) => {
      server.replies.push({ calls: [refund('same', 1), refund('same', 2)] }, { text: 'Done.' });
      const going = run();
      for (const request of await host.untilWaiting(2)) await host.decide(request);
      const outcome = await going.result;
      assert.equal(outcome.status, 'completed', JSON.stringify(outcome.error));
      assert.equal(ran.length, 2);
      const sent = JSON.stringify(server.requests[1]!.body);
      const ids = [...sent.matchAll(/"(?:call_id|tool_use_id)":"([^"]+)"/g)].map((match) => match[1]);
      assert.equal(new Set(ids).size, 2, sent);
    }));

  test(`${provider}: an answer of 429 is retried`, () =>
    at(provider, async ({ server, run }) => {
      const headers = { 'retry-after-ms': '10' };
      server.replies.push({ status: 429, headers, body: { error: { message: 'Slow down.', type: 'rate_limit' } } });
      server.replies.push({ text: 'Here.' });
      const outcome = await run().result;
      assert.equal(outcome.text, 'Here.');
      assert.equal(server.requests.length, 2);
    }));

  test(`${provider}: 401, 500, a cut connection, an error in the middle and a turn that is too long fail the run, with a reason and without the key`, () =>
    at(provider, async ({ server, ran, run }) => {
      const headers = { 'retry-after-ms': '10' };
      const broken = { status: 500, headers, body: { error: { message: 'Out of order.', type: 'server_error' } } };
      server.replies.push({ status: 401, body: { error: { message: 'Bad key sk-very-secret', type: 'auth' } } });
      const refused = await run().result;
      assert.equal(refused.status, 'failed');
      assert.equal(refused.error!.code, 'model_failed');
      assert.match(refused.error!.message, /credentials \(401\)/);
      assert.ok(!JSON.stringify(refused).includes('very-secret'));

      server.replies.push(broken, broken, broken);
      const failed = await run().result;
      assert.match(failed.error!.message, /500/);
      assert.equal(server.requests.length, 4, 'three attempts');

      server.replies.push({ text: 'I was about to', disconnects: true });
      const cut = await run().result;
      assert.equal(cut.status, 'failed', JSON.stringify(cut));
      server.replies.push({ text: 'I was about to', fails: 'Overloaded, try later.' });
      const overloaded = await run().result;
      assert.equal(overloaded.status, 'failed', JSON.stringify(overloaded));
      assert.match(overloaded.error!.message, /Overloaded, try later/);
      server.replies.push({ calls: [refund('call_a')], isTooLong: true });
      const long = await run().result;
      assert.equal(long.status, 'failed', JSON.stringify(long));
      assert.match(long.error!.message, /maximum length/);
      assert.deepEqual(ran, []);
    }));
}
