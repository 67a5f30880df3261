import * as assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Attributes,
  type Context,
  type ContextManager,
  context,
  ROOT_CONTEXT,
  type Span,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import { AgentHost, agentDefinition } from './kit/agent-host.ts';
import { test } from './kit/test.ts';
import { withGate } from './suites/gate-client.ts';

interface RecordedSpan {
  readonly name: string;
  readonly attributes: Attributes;
  isEnded?: true;
  isError?: true;
}

/** Records spans, like an OpenTelemetry SDK. */
function recorder(spans: RecordedSpan[]): TracerProvider {
  const start = (name: string, { attributes = {} }: { attributes?: Attributes } = {}): Span => {
    const span: RecordedSpan = { name, attributes: { ...attributes } };
    spans.push(span);
    return {
      isRecording: () => true,
      spanContext: () => ({ traceId: '1'.repeat(32), spanId: '1'.repeat(16), traceFlags: 1 }),
      setAttribute: (key: string, value: string) => Object.assign(span.attributes, { [key]: value }),
      setAttributes: (more: Attributes) => Object.assign(span.attributes, more),
      setStatus: () => Object.assign(span, { isError: true }),
      end: () => Object.assign(span, { isEnded: true }),
    } as unknown as Span;
  };
  return { getTracer: () => ({ startSpan: start }) } as unknown as TracerProvider;
}

async function recorded(work: () => Promise<void>): Promise<RecordedSpan[]> {
  const spans: RecordedSpan[] = [];
  trace.setGlobalTracerProvider(recorder(spans));
  try {
    await work();
  } finally {
    trace.disable();
  }
  return spans;
}

const spansOf = (work: (host: AgentHost) => Promise<void>): Promise<RecordedSpan[]> =>
  recorded(async () => {
    const host = await AgentHost.open();
    await work(host).finally(() => host.close());
  });

const tools = [
  { tag: 'refund', requiresConfirmation: true, parameters: { pin: { type: 'string' } }, handler: () => 'paid' },
  {
    tag: 'broken',
    handler: () => {
      throw new Error('no');
    },
  },
];

test('spans for the agent, each model turn and each tool follow the conventions and contain no parameters', async () => {
  const spans = await spansOf(async (host) => {
    const calls = [{ tool: 'refund', parameters: { pin: 'PIN-4711' } }, { tool: 'broken' }];
    const agent = host.define(
      agentDefinition([{ calls }, { text: 'Done.' }], { tools, humanInLoop: { enabled: true } }),
    );
    const run = host.run(agent);
    for (const request of await host.untilWaiting(1)) await host.decide(request);
    await run.result;
  });
  assert.deepEqual(
    spans.map(({ name }) => name),
    ['invoke_agent payouts', 'chat test', 'execute_tool refund', 'execute_tool broken', 'chat test'],
  );
  assert.ok(spans.every(({ isEnded }) => isEnded));
  const { attributes } = spans[2]!;
  assert.equal(attributes['gen_ai.operation.name'], 'execute_tool');
  assert.equal(attributes['gen_ai.tool.name'], 'refund');
  assert.equal(attributes['gen_ai.tool.call.id'], 'call_0_0');
  assert.equal(attributes['gen_ai.agent.name'], 'payouts');
  assert.match(String(attributes['svc.approval.request_id']), /^apr_/);
  assert.equal(attributes['svc.approval.outcome'], 'completed');
  assert.equal(attributes['error.type'], undefined);
  assert.equal(spans[3]!.attributes['error.type'], 'failed');
  assert.ok(!JSON.stringify(spans).includes('PIN-4711'));
});

test('a call of svc.gate has a tool span, with or without a decision', async () => {
  await withGate({}, async ({ svc, gate, refund }) => {
    const spans = await recorded(async () => {
      const { request, outcome } = await refund();
      await svc.agents.signal({
        executionId: request.executionId,
        signal: 'reject',
        payload: { requestId: request.requestId },
      });
      await outcome;
      await gate.run({ tool: 'refund', parameters: { card: 'CARD-4711' }, toolCallId: 'call_1' });
    });
    assert.deepEqual(
      spans.map(({ name, isEnded }) => [name, isEnded]),
      [
        ['execute_tool refund', true],
        ['execute_tool refund', true],
      ],
    );
    const [rejected, invalid] = spans.map(({ attributes }) => attributes);
    assert.equal(rejected?.['error.type'], 'rejected');
    assert.match(String(rejected?.['svc.approval.request_id']), /^apr_/);
    assert.equal(rejected?.['gen_ai.agent.name'], 'payouts');
    assert.equal(invalid?.['gen_ai.tool.call.id'], 'call_1');
    assert.ok(!JSON.stringify(spans).includes('CARD-4711'));
  });
});

/** The context manager of the process, which passes the active span to nested calls. */
function contextManager(): ContextManager {
  const active = new AsyncLocalStorage<Context>();
  const manager: ContextManager = {
    active: () => active.getStore() ?? ROOT_CONTEXT,
    with: (given, work, self, ...args) => active.run(given, () => work.apply(self, args)),
    bind: (_given, target) => target,
    enable: () => manager,
    disable: () => manager,
  };
  return manager;
}

test('a run that is not sampled is one unsampled trace, not one per span', async () => {
  const roots: string[] = [];
  /** A sampler that decides at the root of a trace, and drops every trace. */
  const startSpan = (name: string, _options: unknown, given: Context = context.active()): Span => {
    const parent = trace.getSpanContext(given);
    if (!parent) roots.push(name);
    const traceId = parent?.traceId ?? `${roots.length}`.padStart(32, '0');
    return trace.wrapSpanContext({ traceId, spanId: '1'.repeat(16), traceFlags: 0 });
  };
  context.setGlobalContextManager(contextManager());
  trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan }) } as unknown as TracerProvider);
  const host = await AgentHost.open();
  try {
    const turns = [{ calls: [{ tool: 'broken' }, { tool: 'broken' }] }, { text: 'Done.' }];
    assert.equal((await host.run(host.define(agentDefinition(turns, { tools }))).result).text, 'Done.');
  } finally {
    await host.close();
    trace.disable();
    context.disable();
  }
  assert.deepEqual(roots, ['invoke_agent payouts']);
});

test('without a tracer a run is unchanged', async () => {
  assert.equal(context.active(), ROOT_CONTEXT);
  const host = await AgentHost.open();
  const outcome = await host.run(
    host.define(agentDefinition([{ calls: [{ tool: 'broken' }] }, { text: 'Done.' }], { tools })),
  ).result;
  assert.equal(outcome.text, 'Done.');
  await host.close();
});
