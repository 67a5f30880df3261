import * as assert from 'node:assert/strict';
import type { ApprovalRequest } from '../core/approval/request.ts';
import { withApproval } from '../plugins/frameworks/ai-sdk.ts';
import type { Case } from './frameworks/case.ts';
import { HOST_NAMES, HOSTS, missing, reasonToSkip, testedVersions } from './frameworks/hosts.ts';
import { killChildren } from './frameworks/killed.ts';
import { KILLED_CASES } from './frameworks/killed-cases.ts';
import { PARALLEL_CASES, parallelCalls } from './frameworks/parallel-cases.ts';
import { SAVED_CASES } from './frameworks/saved-cases.ts';
import { WAITING_CASES } from './frameworks/waiting-cases.ts';
import { approve, reject, textOf, withHost } from './frameworks/with-host.ts';
import { WRAPPING_CASES } from './frameworks/wrapping-cases.ts';
import { resultsTable } from './kit/results-table.ts';
import { test } from './kit/test.ts';

// One suite, run inside each framework with its own model. What cannot be tried in a framework carries its reason. The table
// of docs/reference/frameworks.md is compared with the results of the run; Node 24 has all of them.

/**
 * They contain the seven reasons for which Google's ADK rejects a resumed call: `untrusted_request` (resumed too early: only the
 * framework's own approval was sent), `malformed_request` (a malformed decision and malformed arguments), `unknown_original_call`
 * (another id), `unregistered_tool` (renamed), `tool_name_mismatch` and `confirmation_not_required` (the name of another tool, which
 * needs none), `arguments_mismatch` (changed arguments).
 */
const CASES: readonly Case[] = [
  ...PARALLEL_CASES,
  ...WAITING_CASES,
  ...KILLED_CASES,
  ...SAVED_CASES,
  ...WRAPPING_CASES,
];

const table = resultsTable(HOSTS, CASES);

test.after(killChildren);

for (const host of HOST_NAMES) {
  for (const { title, impossible, needsPackages, run } of CASES) {
    const reason = impossible?.[host] ?? reasonToSkip(host) ?? (needsPackages ? missing : undefined);
    if (reason !== undefined) test.skip(`${HOSTS[host]}: ${title}`, reason);
    else test(`${HOSTS[host]}: ${title}`, () => table.record(host, title, () => run(host)));
  }
}

const claudeTitle = 'Claude Agent SDK: a call of a sub-agent waits in place, where the query suspends';
if (missing !== undefined) test.skip(claudeTitle, missing);
else test(claudeTitle, () => parallelCalls('claude-agent', 'suspend', { subAgent: true }));

if (missing !== undefined) test.skip('Genkit: calls of a model that gives them no ids', missing);
else
  test('Genkit: calls of a model that gives them no ids', () =>
    withHost('genkit', 60_000, async ({ svc, ran, requests, open }) => {
      const calls = [20, 30].map((amount) => ({ name: 'refund', args: { amount, note: 'none' } }));
      const run = await open({ calls, wait: 'suspend' });
      const { state } = await run.start();
      const [first, second] = requests;
      await approve(svc, first?.requestId, { amount: 15 });
      await reject(svc, second?.requestId);
      const result = await run.resume(state);
      assert.deepEqual(ran, [15]);
      assert.match(textOf(result, first?.toolCallId ?? ''), /paid 15/);
      assert.match(textOf(result, second?.toolCallId ?? ''), /approval_rejected/);
    }));

for (const wait of ['hold', 'suspend']) {
  const title = `Mastra: a tool with a toModelOutput, edited and rejected, ${wait}`;
  const reason = reasonToSkip('mastra');
  if (reason !== undefined) test.skip(title, reason);
  else
    test(title, () =>
      withHost('mastra', 60_000, async ({ svc, ran, requests, open }) => {
        const calls = [20, 30].map((amount) => ({ id: `c${amount}`, name: 'refund', args: { amount, note: 'none' } }));
        const decide = ({ requestId, toolCallId }: ApprovalRequest) =>
          toolCallId === 'c20' ? approve(svc, requestId, { amount: 15 }) : reject(svc, requestId);
        const onRequested = wait === 'hold' ? decide : undefined;
        const run = await open({ calls, wait, mapsOutput: true, ...(onRequested && { onRequested }) });
        let result = await run.start();
        for (const request of requests) await decide(request);
        if (wait === 'suspend') result = await run.resume(result.state);
        assert.match(textOf(result, 'c20'), /PAID 15.*A reviewer changed/s);
        assert.match(textOf(result, 'c30'), /approval_rejected.*Ask first/s);
        assert.deepEqual(ran, [15]);
      }),
    );
}

for (const host of ['langchain', 'langgraph'] as const) {
  const title = `${HOSTS[host]}: a tool that returns a Command, edited, and the same call again`;
  if (missing !== undefined) test.skip(title, missing);
  else
    test(title, () =>
      withHost(host, 60_000, async ({ svc, ran, open }) => {
        const onRequested = ({ requestId }: { readonly requestId: string }) => approve(svc, requestId, { amount: 15 });
        for (let round = 0; round < 2; round++) {
          const result = await (await open({ returnsCommand: true, onRequested })).start();
          assert.match(textOf(result, 'c1'), /paid 15.*A reviewer changed/s);
        }
        assert.deepEqual(ran, [15]);
      }),
    );
}

test('AI SDK: what is noted of an edit reaches no other run whose call has the same id', () =>
  withHost('ai-sdk', 60_000, async ({ svc }) => {
    const gate = svc.gate({ agentTag: 'payouts', humanInLoop: { enabled: true } });
    const refund = { inputSchema: { type: 'object' }, execute: async ({ amount }: never) => `paid ${amount}` };
    const { refund: held } = withApproval(
      gate,
      { refund },
      {
        executionId: ({ context }) => String(context),
        onRequested: ({ executionId, requestId }) =>
          approve(svc, requestId, executionId === 'edited' ? { amount: 15 } : undefined),
      },
    ) as unknown as { refund: AiSdkTool };
    const read = async (context: string, amount: number) => {
      const output = await held.execute({ amount }, { toolCallId: 'call_0', context });
      return async () => JSON.stringify(await held.toModelOutput({ toolCallId: 'call_0', input: { amount }, output }));
    };
    const [edited, other] = [await read('edited', 20), await read('other', 30)];
    assert.match(await edited(), /paid 15.*A reviewer changed/);
    assert.equal(await other(), '{"type":"text","value":"paid 30"}');
  }));

test('AI SDK: what a tool returns need not be JSON', () =>
  withHost('ai-sdk', 60_000, async ({ svc }) => {
    const gate = svc.gate({ agentTag: 'payouts', humanInLoop: { enabled: true } });
    const paid = { at: new Date(0), memo: undefined };
    const refund = { inputSchema: { type: 'object' }, execute: async () => paid };
    const options = {
      executionId: 'exe_dates',
      onRequested: ({ requestId }: { readonly requestId: string }) => approve(svc, requestId),
    };
    const { refund: held } = withApproval(gate, { refund }, options) as unknown as { refund: AiSdkTool };
    assert.equal(await held.execute({}, { toolCallId: 'c1', context: '' }), paid);
  }));

interface AiSdkTool {
  execute(input: object, options: { readonly toolCallId: string; readonly context: string }): Promise<unknown>;
  toModelOutput(result: { readonly toolCallId: string; readonly input: object; readonly output: unknown }): unknown;
}

test('the table of the docs has the result of every case, and the versions', () => {
  const page = table.compare();
  if (missing === undefined) assert.ok(page.includes(testedVersions()), testedVersions());
});
