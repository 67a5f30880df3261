import * as assert from 'node:assert/strict';
import { executionRecords, isRunningIn, type WorkerRow, workerRecords } from '../core/agent/execution-record.ts';
import type { Conversation, ModelFactory } from '../core/agent/model.ts';
import { pruneExecutions } from '../core/agent/prune-executions.ts';
import { listExecutions, readExecution } from '../core/agent/read-executions.ts';
import type { RunEvent } from '../core/agent/run.ts';
import { pruneApprovals } from '../core/approval/audit.ts';
import { listApprovals } from '../core/approval/list-approvals.ts';
import { newExecutionId } from '../core/approval/request.ts';
import type { ErrorCode } from '../core/error-codes.ts';
import { SvcError } from '../core/errors.ts';
import type { Json } from '../core/json.ts';
import { applyPlugin, definePlugin } from '../core/plugin.ts';
import type { ToolContext } from '../core/tool/tool.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { AgentHost, agentDefinition } from './kit/agent-host.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { waitUntil } from './suites/wait-until.ts';

// The run loop on a store in memory. agent-crash.test.ts uses processes and a database.

const refund = (ran: unknown[], more: object = {}) => ({
  tag: 'refund',
  requiresConfirmation: true,
  parameters: { orderId: { type: 'string', required: true }, amount: { type: 'number', required: true, minimum: 0 } },
  handler: (_ctx: unknown, params: object) => {
    ran.push({ ...params });
    return { paid: true };
  },
  ...more,
});
const pay = (amount: unknown) => ({ tool: 'refund', parameters: { orderId: '1234', amount } as object as never });
const gated = { humanInLoop: { enabled: true } };
const free = (tag: string, handler: (ctx: ToolContext) => unknown, more: object = {}) => ({ tag, handler, ...more });
const call = (tool: string) => ({ tool });

async function eventsOf(run: AsyncIterable<RunEvent>): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of run) events.push(event);
  return events;
}

async function withHost(body: (host: AgentHost, backend: MemoryStore) => Promise<void>): Promise<void> {
  const backend = new MemoryStore();
  const host = await AgentHost.open(backend);
  try {
    await body(host, backend);
  } finally {
    await host.close();
  }
}

/** The result that the model sees of one call without approval. */
async function resultFor(host: AgentHost, handler: (ctx: ToolContext) => unknown): Promise<unknown> {
  const turns = [{ calls: [call('it')] }, { text: 'Done.' }];
  const outcome = await host.run(host.define(agentDefinition(turns, { tools: [free('it', handler)] }))).result;
  assert.equal(outcome.status, 'completed', JSON.stringify(outcome));
  return outcome.steps[0]!.calls[0]!.result;
}

test('a run without tools returns the text of the model', () =>
  withHost(async (host) => {
    const run = host.run(host.define(agentDefinition([{ text: 'Hello.' }])));
    const outcome = await run.result;
    assert.equal(outcome.status, 'completed');
    assert.equal(outcome.text, 'Hello.');
    assert.deepEqual(
      (await eventsOf(run)).map(({ type }) => type),
      ['text', 'finished'],
    );
  }));

test('a gated call waits, runs with the changed parameters once approved, and the model learns of the change', () =>
  withHost(async (host) => {
    const ran: unknown[] = [];
    const seen: Conversation[] = [];
    const last = (conversation: Conversation) => {
      seen.push(conversation);
      return { text: 'Done.' };
    };
    const turns = [{ text: 'I refund.', calls: [pay(20)] }, last];
    const run = host.run(host.define(agentDefinition(turns, { tools: [refund(ran)], ...gated })));
    const [request] = await host.untilWaiting(1);
    assert.equal(ran.length, 0);
    assert.equal((await host.service.read(request!.requestId))?.record.body.modelText, 'I refund.');
    assert.equal(request!.executionId, run.executionId);
    await host.decide(request!, 'approve', { modifiedParams: { amount: 15 } });
    const outcome = await run.result;
    assert.equal(outcome.text, 'Done.');
    assert.deepEqual(ran, [{ orderId: '1234', amount: 15 }]);
    assert.deepEqual(outcome.steps[0]!.calls[0]!.changed, ['amount']);
    assert.deepEqual(seen[0]!.turns[0]!.calls[0]!.changed, ['amount']);
    assert.deepEqual(seen[0]!.turns[0]!.calls[0]!.result, { paid: true }, 'separate from the result');
    assert.ok(!/apr_|exe_/.test(JSON.stringify(seen)), 'none of our ids reaches a model');
    assert.deepEqual(
      (await eventsOf(run)).map(({ type }) => type),
      ['text', 'tool_call', 'approval_requested', 'approval_decided', 'tool_result', 'text', 'finished'],
    );
  }));

test('several calls in a turn: decided in any order, each runs once decided, the model continues when all have results', () =>
  withHost(async (host) => {
    const ran: { amount?: number }[] = [];
    let modelCalls = 0;
    const turns = [
      { calls: [pay(1), pay(2), pay(3)] },
      () => {
        modelCalls += 1;
        return { text: 'Done.' };
      },
    ];
    const run = host.run(host.define(agentDefinition(turns, { tools: [refund(ran)], ...gated })));
    const requests = await host.untilWaiting(3);
    const of = (amount: number) => requests.find(({ parameters }) => parameters.amount === amount)!;
    assert.equal(new Set(requests.map(({ groupId }) => groupId)).size, 1);
    await host.decide(of(3));
    await waitUntil(() => ran.length === 1, 'the approved one waited for the others');
    await host.decide(of(1), 'reject', { reason: 'No.' });
    assert.equal(modelCalls, 0);
    await host.decide(of(2));
    const outcome = await run.result;
    assert.deepEqual(
      ran.map(({ amount }) => amount),
      [3, 2],
    );
    assert.deepEqual(
      outcome.steps[0]!.calls.map(({ status }) => status),
      ['rejected', 'completed', 'completed'],
    );
    assert.equal(modelCalls, 1);
  }));

test('a time-out has the documented result, and the agent continues', () =>
  withHost(async (host) => {
    const humanInLoop = { enabled: true, approvalTimeout: 1000 };
    const turns = [{ calls: [pay(20)] }, { text: 'Then not.' }];
    const outcome = await host.run(host.define(agentDefinition(turns, { tools: [refund([])], humanInLoop }))).result;
    assert.equal(outcome.text, 'Then not.');
    assert.deepEqual(JSON.parse(JSON.stringify(outcome.steps[0]!.calls[0]!.result)), {
      error: 'approval_timeout',
      message: 'The approval request timed out after 1000 ms.',
      tool: 'refund',
      parameters: { orderId: '1234', amount: 20 },
    });
  }));

test('a handler that throws: the model gets its message without credentials', () =>
  withHost(async (host) => {
    const result = JSON.stringify(
      await resultFor(host, () => {
        throw new Error('No route to postgresql://ada:hunter2@db/shop');
      }),
    );
    assert.match(result, /tool_failed.*No route to/);
    assert.ok(!result.includes('hunter2') && !result.includes('at '), result);
  }));

test('anything that a handler throws becomes a result', () =>
  withHost(async (host) => {
    const thrown: readonly (readonly [unknown, RegExp])[] = [
      [Object.assign(new Error(), { message: ['amount must be positive'] }), /amount must be positive/],
      [Object.assign(new TypeError(), { message: undefined }), /TypeError/],
      [Object.create(null), /without a readable message/],
      [{ message: 'Overloaded' }, /Overloaded/],
      [undefined, /undefined/],
    ];
    for (const [error, pattern] of thrown) {
      const result = await resultFor(host, () => {
        throw error;
      });
      assert.match(JSON.stringify(result), pattern);
      assert.equal((result as { error: string }).error, 'tool_failed');
    }
  }));

test('the result of a handler reaches the model as JSON', async () => {
  const cyclic: { self?: unknown } = {};
  cyclic.self = cyclic;
  const cases: [unknown, unknown][] = [
    [undefined, null],
    [new Date(0), '1970-01-01T00:00:00.000Z'],
    [{ a: undefined, b: 1 }, { b: 1 }],
    ['a\0b', 'a\uFFFDb'],
    [{ 'k\0': '\ud800' }, { 'k\uFFFD': '\uFFFD' }],
  ];
  for (const [given, expected] of cases) {
    await withHost(async (host) => assert.deepEqual(await resultFor(host, () => given), expected));
  }
  for (const given of [10n, cyclic]) {
    await withHost(async (host) => {
      assert.match(JSON.stringify(await resultFor(host, () => given)), /tool_failed.*cannot be serialized as JSON/);
    });
  }
});

test('unknown tools and invalid parameters are reported to the model; no request is made and nothing runs', () =>
  withHost(async (host) => {
    const ran: unknown[] = [];
    const deep: unknown = JSON.parse('['.repeat(20_000) + ']'.repeat(20_000));
    const turns = [{ calls: [call('wire'), pay('20'), pay(-1), pay(deep)] }, { text: 'Sorry.' }];
    const outcome = await host.run(host.define(agentDefinition(turns, { tools: [refund(ran)], ...gated }))).result;
    assert.deepEqual(
      outcome.steps[0]!.calls.map(({ status }) => status),
      ['invalid', 'invalid', 'invalid', 'invalid'],
    );
    assert.deepEqual((await listApprovals(host.service, { executionId: outcome.status })).records, []);
    assert.deepEqual(ran, []);
  }));

test('a policy denies: the model gets the reason, no request is made', () =>
  withHost(async (host) => {
    const deny = definePlugin({
      name: 'policy',
      apply: ({ hooks }) =>
        hooks.beforeToolCall.tap('policy', (review) => {
          if (Number(review.call.parameters.amount) > 10) review.deny('Over the limit.');
        }),
    });
    applyPlugin(host.kernel, deny, 'test');
    const ran: unknown[] = [];
    const turns = [{ calls: [pay(20)] }, { text: 'Sorry.' }];
    const outcome = await host.run(host.define(agentDefinition(turns, { tools: [refund(ran)], ...gated }))).result;
    assert.equal(outcome.steps[0]!.calls[0]!.status, 'denied');
    assert.match(JSON.stringify(outcome.steps[0]!.calls[0]!.result), /policy_denied.*Over the limit/);
    assert.deepEqual(ran, []);
  }));

test('cancel: pending requests are cancelled, running handlers are signalled, and nothing continues', () =>
  withHost(async (host) => {
    const ran: unknown[] = [];
    let aborted = false;
    const slow = free('slow', async ({ signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      aborted = true;
      return 'stopped';
    });
    const turns = [{ calls: [pay(20), call('slow')] }, { text: 'Never.' }];
    const run = host.run(host.define(agentDefinition(turns, { tools: [refund(ran), slow], ...gated })));
    const [request] = await host.untilWaiting(1);
    const outcome = await run.cancel('The customer called back.');
    assert.equal(outcome.status, 'cancelled');
    assert.equal(outcome.reason, 'The customer called back.');
    assert.equal(aborted, true);
    const [record] = (await listApprovals(host.service, { executionId: run.executionId })).records;
    assert.equal(record!.status, 'cancelled');
    assert.match(record!.model ?? '', /^scripted\//);
    await expectError(host.decide(request!), 'approval_decided');
    assert.deepEqual(ran, []);
    assert.equal((await readExecution(host.executions, run.executionId))!.status, 'cancelled');
  }));

test('the words of a turn are stored with each of its calls, without the sensitive values of any of them', () =>
  withHost(async (host) => {
    const parameters = { iban: { type: 'string', sensitive: true } };
    const wire = { tag: 'wire', requiresConfirmation: true, parameters, handler: () => 'sent' };
    const calls = [pay(20), { tool: 'wire', parameters: { iban: 'DE00SECRET' } }];
    const turns = [{ text: 'Refund, and wire to DE00SECRET.', calls }, { text: 'Done.' }];
    const run = host.run(host.define(agentDefinition(turns, { tools: [refund([]), wire], ...gated })));
    for (const { requestId } of await host.untilWaiting(2)) {
      const row = await host.service.read(requestId);
      assert.equal(row?.record.body.modelText, 'Refund, and wire to [masked].', row?.record.body.tool);
    }
    await run.cancel('Enough seen.');
  }));

test('cancel during a model turn', () =>
  withHost(async (host) => {
    let isCalled = false;
    const hanging = definePlugin({
      name: 'hanging',
      apply: ({ models }) =>
        models.register('hanging', () => ({
          async *turn(_conversation, _tools, signal) {
            isCalled = true;
            await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('gone'))));
          },
        })),
    });
    applyPlugin(host.kernel, hanging, 'test');
    const run = host.run(host.define({ tag: 'a', model: { provider: 'hanging', model: 'x' }, tools: [] }));
    await waitUntil(() => isCalled, 'the model was never called');
    assert.equal((await run.cancel()).status, 'cancelled');
  }));

test('limits: model turns, and time including the wait for humans', () =>
  withHost(async (host) => {
    const again = () => ({ calls: [call('look')] });
    const tools = [free('look', () => 1), refund([])];
    const limited = agentDefinition([again, again, again, again], { tag: 'steps', tools, limits: { steps: 3 } });
    const outcome = await host.run(host.define(limited)).result;
    assert.equal(outcome.status, 'failed');
    assert.equal(outcome.error!.code, 'run_too_long');
    assert.equal(outcome.steps.length, 3);
    const waiting = agentDefinition([{ calls: [pay(1)] }], {
      tag: 'time',
      tools,
      ...gated,
      limits: { durationMs: 50 },
    });
    const run = host.run(host.define(waiting));
    const late = await run.result;
    assert.equal(late.status, 'failed');
    assert.match(late.error!.message, /50 ms/);
    const [record] = (await listApprovals(host.service, { executionId: run.executionId })).records;
    assert.equal(record!.status, 'cancelled');
  }));

test('a model error fails the run and keeps its steps; resumed, the model is called again', () =>
  withHost(async (host) => {
    const ran: unknown[] = [];
    let isDown = true;
    const turns = [
      { calls: [pay(20)] },
      () => {
        if (isDown) throw new Error('Overloaded.');
        return { text: 'Done.' };
      },
    ];
    const run = host.run(host.define(agentDefinition(turns, { tools: [refund(ran)], ...gated })));
    for (const request of await host.untilWaiting(1)) await host.decide(request);
    const outcome = await run.result;
    assert.equal(outcome.status, 'failed');
    assert.deepEqual(outcome.error, { code: 'model_failed', message: 'Overloaded.' });
    assert.equal(outcome.steps.length, 1);
    isDown = false;
    const again = await (await host.executions.resume(run.executionId)).result;
    assert.equal(again.status, 'completed', JSON.stringify(again));
    assert.equal(again.error, undefined);
    assert.equal(ran.length, 1);
    await expectError(host.executions.resume(run.executionId), 'execution_finished');
  }));

test('a client that closes detaches; another one continues with the decision made in between', () =>
  withHost(async (host, backend) => {
    const ran: unknown[] = [];
    const definition = agentDefinition([{ calls: [pay(20)] }, { text: 'Done.' }], { tools: [refund(ran)], ...gated });
    const first = await AgentHost.open(backend);
    const run = first.run(first.define(definition));
    const [request] = await first.untilWaiting(1);
    await first.close();
    await expectError(run.result, 'interrupted');
    await assert.rejects(eventsOf(run), { code: 'interrupted' });
    await host.decide(request!);
    await expectError(host.executions.resume(run.executionId), 'agent_unknown');
    assert.deepEqual(await host.executions.recover(), [], 'whose agent is not defined here is left alone');
    host.define(definition);
    const resumed = await host.executions.resume(run.executionId);
    assert.equal(await host.executions.resume(run.executionId), resumed, 'one run for an execution');
    assert.equal((await resumed.result).text, 'Done.');
    assert.equal(ran.length, 1);
    await expectError(host.executions.resume(run.executionId), 'execution_finished');
    await expectError(host.executions.resume('exe_nobody'), 'execution_unknown');
  }));

test('taken over by a process without the policy that required approval: the call still waits for the decision', () =>
  withHost(async (host, backend) => {
    const ran: unknown[] = [];
    const tools = [free('look', () => ran.push('look'))];
    const definition = agentDefinition([{ calls: [call('look')] }, { text: 'Done.' }], { tools, ...gated });
    const first = await AgentHost.open(backend);
    first.kernel.hooks.beforeToolCall.tap('test', (review) => review.requireApproval('Not alone.'));
    first.run(first.define(definition));
    const [request] = await first.untilWaiting(1);
    await first.close();
    host.define(definition);
    const [run] = await host.executions.recover();
    await host.decide(request!, 'reject', { reason: 'Not today.' });
    const { steps } = await run!.result;
    assert.deepEqual([steps[0]!.calls[0]!.status, ran], ['rejected', []]);
  }));

test('an execution whose stored state is damaged: the others are taken over, with a warning', () =>
  withHost(async (host, backend) => {
    const definition = agentDefinition([{ calls: [call('look')] }, { text: 'Done.' }], {
      tools: [{ tag: 'look', requiresConfirmation: true, handler: () => 'seen' }],
      humanInLoop: { enabled: true },
    });
    const first = await AgentHost.open(backend);
    const agent = first.define(definition);
    const [damaged, whole] = [first.run(agent), first.run(agent)];
    await first.untilWaiting(2);
    await first.close();
    const rows = backend.records(executionRecords);
    const { record, version } = (await rows.get(damaged.executionId))!;
    assert.equal(await rows.replace(damaged.executionId, version, { ...record, state: null as never }), 'replaced');
    host.define(definition);
    const recovered = await host.executions.recover();
    assert.deepEqual(
      recovered.map(({ executionId }) => executionId),
      [whole.executionId],
    );
    assert.match(host.warnings.join(), new RegExp(`${damaged.executionId} cannot be recovered`));
    const [request] = (await listApprovals(host.service, { executionId: whole.executionId })).records;
    await host.decide(request!);
    assert.equal((await recovered[0]!.result).text, 'Done.');
  }));

test('resumed while it is being taken over: one run continues it', () =>
  withHost(async (host, backend) => {
    const [ran, modelCalls]: [unknown[], string[]] = [[], []];
    const last = () => {
      modelCalls.push('again');
      return { text: 'Done.' };
    };
    const definition = agentDefinition([{ calls: [pay(20)] }, last], { tools: [refund(ran)], ...gated });
    const first = await AgentHost.open(backend);
    const { executionId } = first.run(first.define(definition));
    await first.untilWaiting(1);
    await first.close();
    host.define(definition);

    const rows = backend.records(executionRecords);
    const claims = async () => (await rows.get(executionId))?.version ?? 0;
    const before = await claims();
    const replace = rows.replace.bind(rows);
    let answer = () => {};
    rows.replace = async (...write) => {
      rows.replace = replace;
      const answered = await replace(...write);
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      return answered;
    };
    const taking = host.executions.recover();
    await waitUntil(async () => (await claims()) === before + 1, 'it was never taken over');
    const run = await host.executions.resume(executionId);
    await waitUntil(async () => (await claims()) === before + 2, 'it was never resumed');
    answer();
    assert.deepEqual(await taking, [], 'the run that resumed it continues');
    for (const request of await host.untilWaiting(1)) await host.decide(request);
    assert.equal((await run.result).text, 'Done.');
    assert.deepEqual([ran.length, modelCalls.length], [1, 1]);
  }));

test('an execution of another process is watched and not run: both get the same outcome', () =>
  withHost(async (host, backend) => {
    const ran: unknown[] = [];
    const definition = agentDefinition([{ calls: [pay(20)] }, { text: 'Done.' }], { tools: [refund(ran)], ...gated });
    const other = await AgentHost.open(backend);
    const run = other.run(other.define(definition));
    const [request] = await other.untilWaiting(1);
    host.define(definition);
    const watched = await host.executions.resume(run.executionId);
    assert.deepEqual(await host.executions.recover(), []);
    await host.decide(request!);
    const ends = await Promise.all([run.result, watched.result]);
    assert.deepEqual(
      ends.map(({ text }) => text),
      ['Done.', 'Done.'],
    );
    assert.equal(ran.length, 1);
    await other.close();
  }));

test('cancelled from another process: its request is cancelled, the model is not called again, both get the outcome', () =>
  withHost(async (host, backend) => {
    const [ran, modelCalls]: [unknown[], string[]] = [[], []];
    const last = () => {
      modelCalls.push('again');
      return { text: 'Done.' };
    };
    const definition = agentDefinition([{ calls: [pay(20), pay(30)] }, last], { tools: [refund(ran)], ...gated });
    const other = await AgentHost.open(backend);
    const run = other.run(other.define(definition));
    await other.untilWaiting(2);
    const outcome = await host.executions.cancel(run.executionId, 'The customer called back.');
    for (const { status, reason } of [outcome, await run.result]) {
      assert.deepEqual([status, reason], ['cancelled', 'The customer called back.']);
    }
    const requests = (await listApprovals(host.service, { executionId: run.executionId })).records;
    assert.deepEqual(
      requests.map(({ status, decisionReason }) => [status, decisionReason]),
      Array(2).fill(['cancelled', 'The customer called back.']),
    );
    assert.deepEqual([ran, modelCalls], [[], []]);
    await expectError(host.executions.cancel(run.executionId), 'execution_finished');
    await expectError(host.executions.cancel('exe_nobody'), 'execution_unknown');
    await other.close();
  }));

test('cancelled from another process while a handler runs: the handler completes, and nothing follows', () =>
  withHost(async (host, backend) => {
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const ran: string[] = [];
    const slow = free('slow', () => ended.then(() => ran.push('slow')));
    const next = free('next', () => ran.push('next'));
    const other = await AgentHost.open(backend);
    const turns = [{ calls: [call('slow')] }, { calls: [call('next')] }, { text: 'Done.' }];
    const run = other.run(other.define(agentDefinition(turns, { tools: [slow, next] })));
    await waitUntil(
      async () => (await host.executions.rows.get(run.executionId))?.record.state.steps.length === 1,
      'idle',
    );
    const cancelling = host.executions.cancel(run.executionId, 'enough');
    await waitUntil(
      async () => (await host.executions.rows.get(run.executionId))?.record.state.cancel === 'enough',
      'the cancellation was never requested',
    );
    end();
    assert.deepEqual([(await cancelling).status, (await run.result).status], ['cancelled', 'cancelled']);
    assert.deepEqual(ran, ['slow']);
    await other.close();
  }));

test('an execution that nobody runs can be cancelled where its agent is not defined', () =>
  withHost(async (host, backend) => {
    const ran: unknown[] = [];
    const other = await AgentHost.open(backend);
    const run = other.run(other.define(agentDefinition([{ calls: [pay(20)] }], { tools: [refund(ran)], ...gated })));
    await other.untilWaiting(1);
    await other.close();
    const { status, reason } = await host.executions.cancel(run.executionId, 'over');
    assert.deepEqual([status, reason], ['cancelled', 'over']);
    assert.equal((await listApprovals(host.service, { executionId: run.executionId })).records[0]?.status, 'cancelled');
    assert.deepEqual((await listExecutions(host.executions, {})).records, []);
  }));

test('pruning removes only executions that ended that long ago', () =>
  withHost(async (host) => {
    const done = host.run(host.define(agentDefinition([{ text: 'Hi.' }], { tag: 'short' })));
    await done.result;
    const waits = host.run(host.define(agentDefinition([{ calls: [pay(20)] }], { tools: [refund([])], ...gated })));
    await host.untilWaiting(1);
    assert.equal(await pruneExecutions(host.executions, host.service.clock, { olderThanMs: 60_000 }), 0);
    await waitUntil(
      async () => (await pruneExecutions(host.executions, host.service.clock, { olderThanMs: 0 })) === 1,
      'the ended execution was never removed',
    );
    assert.equal(await readExecution(host.executions, done.executionId), undefined);
    assert.equal((await readExecution(host.executions, waits.executionId))?.status, 'running');
    await expectError(pruneExecutions(host.executions, host.service.clock, { olderThanMs: -1 }), 'value_invalid');
  }));

test('pruning keeps the requests of a running execution: resumed, their calls do not run again', () =>
  withHost(async (host, backend) => {
    const ran: unknown[] = [];
    const definition = agentDefinition([{ calls: [pay(1), pay(2)] }, { text: 'Done.' }], {
      tools: [refund(ran)],
      ...gated,
    });
    const run = host.run(host.define(definition));
    const [first, second] = await host.untilWaiting(2);
    await host.decide(first!);
    await waitUntil(() => ran.length === 1, 'the first never ran');
    await waitUntil(
      async () => (await host.service.read(first!.requestId))!.record.body.outcome !== undefined,
      'its result was never stored',
    );
    await waitUntil(async () => Date.now() > Date.parse(first!.timestamp) + 2, 'the clock did not advance');
    assert.equal(await pruneApprovals(host.service, { olderThanMs: 0 }, isRunningIn(backend)), 0);
    await host.close();
    await run.result.catch(() => undefined);

    const next = await AgentHost.open(backend);
    next.define(definition);
    await next.executions.recover();
    await next.decide(second!);
    assert.equal((await (await next.executions.resume(run.executionId)).result).status, 'completed');
    assert.deepEqual(ran, [
      { orderId: '1234', amount: 1 },
      { orderId: '1234', amount: 2 },
    ]);
    assert.equal(await pruneApprovals(next.service, { olderThanMs: 0 }, isRunningIn(backend)), 2);
    await next.close();
  }));

/** Stores the traces of a process that died at a time: its worker, and an execution of an agent. */
async function leftBy(backend: MemoryStore, workerId: string, beatAt: Date, agentTag?: string): Promise<void> {
  await backend.records(workerRecords).insert({ workerId, state: 'dead', beatAt, beat: 1, leaseMs: 1, at: 'gone:1' });
  if (agentTag === undefined) return;
  await backend.records(executionRecords).insert({
    executionId: newExecutionId(),
    agentTag,
    status: 'running',
    owner: workerId,
    createdAt: beatAt,
    updatedAt: beatAt,
    state: { write: 1, prompt: 'Go.', limits: { steps: 32 }, steps: [] },
  });
}

test('a thousand dead workers with agents of other processes do not hide an execution from recovery', () =>
  withHost(async (host, backend) => {
    for (let at = 1; at <= 1000; at++) await leftBy(backend, `gone ${at}`, new Date(at), 'elsewhere');
    await leftBy(backend, 'last', new Date(1001), 'payouts');
    host.define(agentDefinition([{ text: 'Hi.' }]));
    const [run, ...more] = await host.executions.recover();
    assert.deepEqual(more, []);
    assert.equal((await run!.result).text, 'Hi.');
  }));

test('prune removes workers that are long dead and own nothing', () =>
  withHost(async (host, backend) => {
    await leftBy(backend, 'long gone', new Date(0));
    await leftBy(backend, 'owns', new Date(0), 'elsewhere');
    await leftBy(backend, 'just gone', new Date());
    await host.run(host.define(agentDefinition([{ text: 'Hi.' }]))).result;
    const known = async (state: WorkerRow['state']) =>
      (await backend.records(workerRecords).page('byState', { equals: { state }, limit: 10 })).records.map(
        ({ record }) => record.workerId,
      );
    const alive = await known('alive');
    assert.equal(alive.length, 1);
    await pruneExecutions(host.executions, host.service.clock, { olderThanMs: 0 });
    assert.deepEqual((await known('dead')).sort(), ['just gone', 'owns']);
    assert.deepEqual(await known('alive'), alive);
  }));

test('oversized parameters and results are reported to the model, whether a tool is gated or not', () =>
  withHost(async (host) => {
    const ran: unknown[] = [];
    const big = { orderId: 'x'.repeat(300 * 1024), amount: 1 };
    const tools = [refund(ran), free('look', () => ran.push('look')), free('read', () => 'y'.repeat(300 * 1024))];
    const calls = [
      { tool: 'refund', parameters: big as never },
      { tool: 'look', parameters: big as never },
      call('read'),
    ];
    const outcome = await host.run(host.define(agentDefinition([{ calls }, { text: 'Done.' }], { tools, ...gated })))
      .result;
    assert.equal(outcome.status, 'completed');
    assert.deepEqual(
      outcome.steps[0]!.calls.map(({ status, result }) => [status, (result as { error: string }).error]),
      [
        ['invalid', 'parameters_too_large'],
        ['invalid', 'parameters_too_large'],
        ['completed', 'result_not_kept'],
      ],
    );
    assert.deepEqual(ran, []);
  }));

test('the provider state of a turn is stored and sent again without an oversized call', () =>
  withHost(async (host) => {
    const sent: unknown[] = [];
    const model =
      (providerState: (input: Json) => Json): ModelFactory =>
      () => ({
        async *turn({ turns }) {
          sent.push(...turns);
          const input = { note: 'x'.repeat(300 * 1024) };
          if (turns.length === 0) yield { type: 'tool_call', id: '1', tool: 'look', parameters: input };
          yield { type: 'finished', inputTokens: 1, outputTokens: 1, providerState: providerState(input) };
        },
      });
    host.kernel.models.register(
      'repeats',
      model((input) => [{ input, signature: 'x' }]),
    );
    host.kernel.models.register(
      'writes',
      model((input) => [{ input: JSON.stringify(input), signature: 'x' }]),
    );
    for (const provider of ['repeats', 'writes']) {
      const definition = { tag: provider, model: { provider, model: 'test' }, tools: [free('look', () => 1)] };
      assert.equal((await host.run(host.define(definition)).result).status, 'completed');
    }
    assert.deepEqual(
      sent.map((turn) => (turn as { providerState?: unknown }).providerState),
      [[{ input: {}, signature: 'x' }], undefined],
    );
    assert.ok(JSON.stringify(sent).length < 1000);
  }));

/** Runs `body` with a store that rejects an execution of more than `longest` characters. */
async function narrow(
  body: (host: AgentHost, limit: { longest: number }, backend: MemoryStore) => Promise<void>,
  code: ErrorCode = 'value_invalid',
): Promise<void> {
  const limit = { longest: 400 * 1024 };
  await withHost(async (host, backend) => {
    const rows = backend.records(executionRecords);
    const replace = rows.replace.bind(rows);
    rows.replace = async (key, version, record, guard) => {
      if (JSON.stringify(record).length > limit.longest) throw new SvcError(code, 'A record is too long.');
      return replace(key, version, record, guard);
    };
    await body(host, limit, backend);
  });
}

const storedLength = async (host: AgentHost, { executionId }: { readonly executionId: string }): Promise<number> =>
  JSON.stringify((await host.executions.rows.get(executionId))!.record).length;

test('an execution that grows beyond the limit of its store ends, and the model is not called forever', () =>
  narrow(async (host) => {
    let reads = 0;
    const tools = [free('read', () => `${++reads}${'y'.repeat(150 * 1024)}`)];
    const turns = Array.from({ length: 6 }, () => ({ calls: [call('read')] }));
    const run = host.run(host.define(agentDefinition([...turns, { text: 'Done.' }], { tools })));
    const outcome = await run.result;
    assert.equal(outcome.status, 'failed');
    assert.equal(outcome.error?.code, 'value_invalid');
    assert.equal(reads, 3, 'the third result did not fit any more');
    assert.equal((await readExecution(host.executions, run.executionId))!.status, 'failed');
  }));

test('a write that a store always rejects without a clear reason ends the execution, and its tools do not run again', () =>
  narrow(async (host) => {
    let reads = 0;
    const tools = [{ ...free('read', () => `${++reads}${'y'.repeat(150 * 1024)}`), idempotent: true }];
    const turns = Array.from({ length: 6 }, () => ({ calls: [call('read')] }));
    const run = host.run(host.define(agentDefinition([...turns, { text: 'Done.' }], { tools })));
    const outcome = await run.result;
    assert.deepEqual([outcome.status, outcome.error?.code], ['failed', 'migration_failed']);
    assert.deepEqual(
      outcome.steps.map(({ calls }) => calls.map(({ status }) => status)),
      [['completed'], ['completed'], []],
    );
    assert.equal(reads, 2 + 9, 'the third was tried nine times');
    assert.equal((await readExecution(host.executions, run.executionId))!.status, 'failed');
  }, 'migration_failed'));

test('an execution that grows too large while a call waits: its request is cancelled', () =>
  narrow(async (host, limit) => {
    const ran: unknown[] = [];
    let request: { readonly executionId: string; readonly requestId: string } | undefined;
    const look = free('look', async (ctx) => {
      [request] = await host.untilWaiting(1);
      limit.longest = (await storedLength(host, ctx)) + 500;
      return 'y'.repeat(1000);
    });
    const turns = [{ calls: [pay(20), call('look')] }, { text: 'Never.' }];
    const run = host.run(host.define(agentDefinition(turns, { tools: [refund(ran), look], ...gated })));
    const outcome = await run.result;
    assert.deepEqual([outcome.status, outcome.error?.code], ['failed', 'value_invalid']);
    assert.equal((outcome.steps[0]!.calls[0]!.result as { error: string }).error, 'result_not_kept');
    assert.deepEqual((await listApprovals(host.service)).records, []);
    await expectError(host.decide(request!), 'approval_decided');
    assert.deepEqual(ran, []);
  }));

test('a cancellation that the store cannot hold is rejected, and not retried forever', () =>
  narrow(async (host, limit, backend) => {
    const agent = host.define(
      agentDefinition([{ calls: [pay(20)] }, { text: 'Done.' }], { tools: [refund([])], ...gated }),
    );
    const run = host.run(agent);
    const [request] = await host.untilWaiting(1);
    limit.longest = (await storedLength(host, run)) + 500;
    const far = await AgentHost.open(backend);
    await expectError(far.executions.cancel(run.executionId, 'x'.repeat(1000)), 'value_invalid');
    await far.close();
    await host.decide(request!);
    assert.equal((await run.result).status, 'completed');
  }));

const NOT_KEPT = '{"error":"result_not_kept","message":"The execution was too large for the store."}';

test('an execution that grew too large drops results before it drops calls that ran', () =>
  narrow(async (host, limit) => {
    const look = free('look', async (ctx) => {
      const [request] = await host.untilWaiting(1);
      await host.decide(request!);
      const isDone = async () => (await host.service.read(request!.requestId))?.record.body.run === 'done';
      await waitUntil(isDone, 'what was approved never ran');
      limit.longest = (await storedLength(host, ctx)) + 50;
      return 'y'.repeat(1000);
    });
    const read = free('read', () => 'x'.repeat(2000));
    const turns = [{ calls: [call('read')] }, { calls: [pay(20), call('look')] }, { text: 'Never.' }];
    const run = host.run(host.define(agentDefinition(turns, { tools: [refund([]), look, read], ...gated })));
    const { status, steps } = await run.result;
    assert.equal(status, 'failed');
    assert.deepEqual(
      steps.map(({ calls }) => calls.map(({ tool, status, result }) => [tool, status, JSON.stringify(result)])),
      [
        [['read', 'completed', NOT_KEPT]],
        [
          ['refund', 'completed', '{"paid":true}'],
          ['look', 'completed', NOT_KEPT],
        ],
      ],
    );
  }));

test('every iterator sees every event, however late it starts', () =>
  withHost(async (host) => {
    const run = host.run(host.define(agentDefinition([{ text: 'One.', calls: [call('x')] }, { text: 'Two.' }])));
    const early = eventsOf(run);
    await run.result;
    const [one, two, three] = await Promise.all([early, eventsOf(run), eventsOf(run)]);
    assert.deepEqual(one, two);
    assert.deepEqual(two, three);
    assert.equal(one.at(-1)!.type, 'finished');
  }));

test('an iterator that returns while it waits for an event ends at once', () =>
  withHost(async (host) => {
    const run = host.run(
      host.define(agentDefinition([{ calls: [pay(20)] }, { text: 'Done.' }], { tools: [refund([])], ...gated })),
    );
    const events = run[Symbol.asyncIterator]();
    while ((await events.next()).value?.type !== 'approval_requested');
    const waiting = events.next();
    assert.deepEqual(await events.return?.(), { done: true, value: undefined });
    assert.equal((await waiting).done, true);
    assert.equal((await events.next()).done, true);
    await run.cancel();
  }));

test('a sensitive value under a misspelled name is masked as well', () =>
  withHost(async (host) => {
    const tools = [
      {
        tag: 'pay',
        parameters: { card: { type: 'string', required: true, sensitive: true }, to: { type: 'string' } },
        handler: () => assert.fail('it does not fit'),
      },
    ];
    const calls = [
      { tool: 'pay', parameters: { Card: 'CARD-4711', to: 'Ada' } },
      { tool: 'pya', parameters: { card: 'CARD-4711' } },
    ];
    const run = host.run(host.define(agentDefinition([{ calls }, { text: 'Done.' }], { tools })));
    const shown = JSON.stringify([await run.result, await eventsOf(run)]);
    assert.ok(!shown.includes('CARD-4711') && shown.includes('Ada'), shown);
  }));

test('sensitive parameters are in no event, outcome or list, and reach the handler', () =>
  withHost(async (host) => {
    const got: string[] = [];
    const card = (tag: string, more: object) => ({
      tag,
      parameters: { pin: { type: 'string', required: true, sensitive: true }, to: { type: 'string' } },
      handler: (_ctx: unknown, { pin }: { pin: string }) => void got.push(pin),
      ...more,
    });
    const parameters = { pin: 'PIN-4711', to: 'Ada' };
    const turns = [
      {
        calls: [
          { tool: 'free', parameters },
          { tool: 'asked', parameters },
        ],
      },
      { text: 'Done.' },
    ];
    const tools = [card('free', {}), card('asked', { requiresConfirmation: true })];
    const run = host.run(host.define(agentDefinition(turns, { tools, ...gated })));
    const [request] = await host.untilWaiting(1);
    await expectError(host.decide(request!), 'approval_unseen');
    await host.decide(request!, 'reject').catch(() => undefined);
    const outcome = await run.cancel();
    assert.deepEqual(got, ['PIN-4711']);
    const shown = JSON.stringify([outcome, await eventsOf(run), await readExecution(host.executions, run.executionId)]);
    assert.ok(!shown.includes('PIN-4711'), shown);
    assert.match(shown, /"masked":true/);
    assert.match(shown, /Ada/);
  }));

test('sensitive parameters are masked if they are not an object, not JSON, or repeated in a result that was not stored', () =>
  withHost(async (host) => {
    const tools = [
      {
        tag: 'pay',
        parameters: { pin: { type: 'string', sensitive: true } },
        handler: () => 'x'.repeat(300 * 1024),
      },
    ];
    const invalid = ['{"pin":"PIN-4711", ', ['PIN-4711'], { pin: 'PIN-4711\0' }, { pin: 'PIN-4711' }];
    const calls = invalid.map((parameters) => ({ tool: 'pay', parameters: parameters as never }));
    const run = host.run(host.define(agentDefinition([{ calls }, { text: 'Done.' }], { tools, ...gated })));
    const outcome = await run.result;
    assert.deepEqual(
      outcome.steps[0]!.calls.map(({ result, parameters }) => [(result as { error: string }).error, parameters]),
      [
        ['invalid_parameters', { masked: true }],
        ['invalid_parameters', { masked: true }],
        ['invalid_parameters', { masked: true }],
        ['result_not_kept', { pin: { masked: true } }],
      ],
    );
    const shown = JSON.stringify([outcome, await eventsOf(run), await readExecution(host.executions, run.executionId)]);
    assert.ok(!shown.includes('PIN-4711'), shown);
  }));

test('executions are listed by status and agent, page by page, without their steps', () =>
  withHost(async (host) => {
    const agents = ['a', 'b'].map((tag) => host.define(agentDefinition([{ text: 'Hi.' }], { tag })));
    for (let made = 0; made < 5; made++) await host.run(agents[made % 2]!).result;
    const all = await listExecutions(host.executions, { status: 'completed', limit: 3 });
    assert.equal(all.records.length, 3);
    const rest = await listExecutions(host.executions, { status: 'completed', limit: 3, cursor: all.cursor! });
    assert.equal(rest.records.length, 2);
    assert.equal(rest.cursor, undefined);
    const ofA = await listExecutions(host.executions, { status: 'completed', agentTag: 'a', newestFirst: true });
    assert.deepEqual(
      ofA.records.map(({ agentTag }) => agentTag),
      ['a', 'a', 'a'],
    );
    assert.deepEqual((await listExecutions(host.executions, {})).records, []);
    assert.ok(!JSON.stringify(all).includes('Go.'));
    for (const query of [{ limit: 0 }, { limit: 1001 }, { status: 'waiting' }, { agentag: 'a' }]) {
      await expectError(listExecutions(host.executions, query as object), 'value_invalid');
    }
  }));

test('the idempotency key is the same for a call and different for another', () =>
  withHost(async (host) => {
    const keys: string[] = [];
    const it = free('it', ({ idempotencyKey }) => void keys.push(idempotencyKey));
    const turns = [{ calls: [call('it'), call('it')] }, { calls: [call('it')] }, { text: 'Done.' }];
    const agent = host.define(agentDefinition(turns, { tools: [it] }));
    await host.run(agent).result;
    await host.run(agent).result;
    assert.equal(new Set(keys).size, 6);
  }));
