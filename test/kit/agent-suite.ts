import * as assert from 'node:assert/strict';
import type { Conversation } from '../../core/agent/model.ts';
import { listExecutions, readExecution } from '../../core/agent/read-executions.ts';
import { listApprovals } from '../../core/approval/list-approvals.ts';
import { suite, type TestFunction } from '../suites/suite.ts';
import type { StoreUnderTest } from '../suites/test-database.ts';
import { waitUntil } from '../suites/wait-until.ts';
import { AgentHost, agentDefinition } from './agent-host.ts';
import { freezableStore } from './freezable-store.ts';

const SLOW_MS = 180_000;
/** Long compared to a heartbeat on the slowest engine. */
const LEASE_MS = 3_000;

interface AgentSuiteOptions {
  /** The maximum size of a record, for stores where results can exceed it. */
  readonly maxRecordMiB?: number;
}

/**
 * Tests executions on a store: runs, the handover from a process that closes and from one that dies, the list, results
 * that exceed a record, and characters that stores reject.
 */
export function agentSuite(test: TestFunction, store: StoreUnderTest, { maxRecordMiB }: AgentSuiteOptions = {}): void {
  suite(test, store, (on) => {
    on(
      'an execution continues after its process closes, and again after the next one dies',
      () => testHandover(store),
      {
        timeoutMs: SLOW_MS,
      },
    );
    on('a large execution ends, and its end is stored', () => testLargeExecution(store), {
      timeoutMs: SLOW_MS,
    });
    on(
      'an execution ends with any error message, also with characters that stores reject',
      () => testInvalidCharacters(store),
      {
        timeoutMs: SLOW_MS,
      },
    );
    on('a model sees parameters and results in the order in which they were sent, after a takeover too', () =>
      testKeyOrder(store),
    );
    if (maxRecordMiB === undefined) return;
    on('a turn that exceeds the size of a record ends the execution, and no tool runs twice', () =>
      testRecordOverflow(store, maxRecordMiB),
    );
  });
}

async function testLargeExecution(store: StoreUnderTest): Promise<void> {
  const testStore = await store.createStore();
  const backend = await testStore.connect();
  const host = await AgentHost.open(backend);
  try {
    let reads = 0;
    const tools = [
      { tag: 'note', requiresConfirmation: true, parameters: { text: { type: 'string' } }, handler: () => 'noted' },
      { tag: 'read', handler: () => `${++reads}${'y'.repeat(200 * 1024)}` },
    ];
    const large = { calls: [{ tool: 'note', parameters: { text: 'x'.repeat(1024 * 1024) } }] };
    const read = { calls: [{ tool: 'read' }] };
    const turns = [large, read, read, read, { text: 'Done.' }];
    const run = host.run(host.define(agentDefinition(turns, { tools, humanInLoop: { enabled: true } })));
    const { status, error, steps } = await run.result;
    assert.equal((steps[0]!.calls[0]!.result as { error: string }).error, 'parameters_too_large');
    // A record of DynamoDB is limited to 400 KB.
    const ends = store.name.startsWith('DynamoDB') ? ['failed', 'value_invalid', 2] : ['completed', undefined, 3];
    assert.deepEqual([status, error?.code, reads], ends);
    assert.equal((await readExecution(host.executions, run.executionId))?.status, status);
  } finally {
    await host.close();
    await backend.close();
    await testStore.drop();
  }
}

async function testRecordOverflow(store: StoreUnderTest, holdsMiB: number): Promise<void> {
  const testStore = await store.createStore();
  const backend = await testStore.connect();
  const host = await AgentHost.open(backend);
  try {
    let reads = 0;
    const tools = [{ tag: 'read', idempotent: true, handler: () => `${++reads}${'y'.repeat(250 * 1024)}` }];
    const calls = Array.from({ length: holdsMiB * 4 + 8 }, () => ({ tool: 'read' }));
    const run = host.run(host.define(agentDefinition([{ calls }, { text: 'Never.' }], { tools })));
    const { status, error } = await run.result;
    assert.deepEqual([status, error?.code, reads], ['failed', 'value_invalid', calls.length]);
    assert.equal((await readExecution(host.executions, run.executionId))?.status, 'failed');
  } finally {
    await host.close();
    await backend.close();
    await testStore.drop();
  }
}

async function testInvalidCharacters(store: StoreUnderTest): Promise<void> {
  const testStore = await store.createStore();
  const backends = await Promise.all([testStore.connect(), testStore.connect()]);
  const [host, other] = await Promise.all(backends.map((backend) => AgentHost.open(backend)));
  const text = 'said \0 and \ud83d';
  const storedText = 'said \uFFFD and \uFFFD';
  try {
    const pay = { tag: 'pay', requiresConfirmation: true, handler: () => assert.fail('it was cancelled') };
    const options = { tools: [pay], humanInLoop: { enabled: true } };
    const agent = host!.define(agentDefinition([{ calls: [{ tool: 'pay' }] }], options));
    const waiting = async (prompt: string) => {
      const run = host!.run(agent, prompt);
      await host!.untilWaiting(1);
      return run;
    };
    const cancelled = await (await waiting(text)).cancel(text);
    assert.deepEqual([cancelled.status, cancelled.reason], ['cancelled', storedText]);
    const run = await waiting('Go.');
    const ends = [await other!.executions.cancel(run.executionId, text), await run.result];
    assert.deepEqual(
      ends.map(({ status, reason }) => [status, reason]),
      Array(2).fill(['cancelled', storedText]),
    );
    assert.deepEqual(await listApprovals(other!.service), { records: [] });
    let modelCalls = 0;
    const failingModel = () => {
      modelCalls += 1;
      throw new Error(text);
    };
    const { status, error } = await host!.run(host!.define(agentDefinition([failingModel], { tag: 'sick' }))).result;
    assert.deepEqual([status, error, modelCalls], ['failed', { code: 'model_failed', message: storedText }, 1]);
  } finally {
    await Promise.all([host!.close(), other!.close()]);
    await Promise.all(backends.map((backend) => backend.close()));
    await testStore.drop();
  }
}

async function testKeyOrder(store: StoreUnderTest): Promise<void> {
  const testStore = await store.createStore();
  const backends = await Promise.all([testStore.connect(), testStore.connect()]);
  const [host, other] = await Promise.all(backends.map((backend) => AgentHost.open(backend)));
  const parameters = { zone: { street: 'x', no: 1 }, b: 1, a: [{ d: 1, c: 2 }] };
  const result = { seen: 1, id: { zip: 1, at: 2 } };
  const shape = { zone: { type: 'object' }, b: { type: 'number' }, a: { type: 'array' } };
  const tools = [
    { tag: 'look', parameters: shape, handler: () => result },
    { tag: 'pay', requiresConfirmation: true, parameters: shape, handler: (_ctx: unknown, params: unknown) => params },
  ];
  let conversation = '';
  const last = ({ turns }: Conversation) => {
    conversation = JSON.stringify(turns.map(({ calls }) => calls.map((call) => [call.parameters, call.result])));
    return { text: 'Done.' };
  };
  const calls = ['look', 'pay'].map((tool) => ({ tool, parameters }));
  const definition = agentDefinition([{ calls }, last], { tools, humanInLoop: { enabled: true } });
  try {
    const run = host!.run(host!.define(definition));
    const [waiting] = await host!.untilWaiting(1);
    await host!.close();
    await assert.rejects(run.result);
    other!.define(definition);
    const [resumed] = await other!.executions.recover();
    await other!.decide(waiting!);
    assert.equal((await resumed!.result).text, 'Done.');
    const both = [
      [parameters, result],
      [parameters, parameters],
    ];
    assert.equal(conversation, JSON.stringify([both]));
    const { steps } = (await readExecution(other!.executions, run.executionId))!;
    assert.deepEqual(
      steps[0]!.calls.map((call) => [call.parameters, call.result].map((value) => JSON.stringify(value))),
      both.map((call) => call.map((value) => JSON.stringify(value))),
    );
  } finally {
    await Promise.all([host!.close(), other!.close()]);
    await Promise.all(backends.map((backend) => backend.close()));
    await testStore.drop();
  }
}

async function testHandover(store: StoreUnderTest): Promise<void> {
  const testStore = await store.createStore();
  const ran: string[] = [];
  const pay = { tag: 'pay', requiresConfirmation: true, parameters: { step: { type: 'integer', required: true } } };
  const tools = [
    { ...pay, handler: (_ctx: unknown, { step }: { step: number }) => `paid ${ran.push(`pay ${step}`)}` },
    { tag: 'look', handler: () => `seen ${ran.push('look')}` },
  ];
  const step = (at: number) => ({ calls: [{ tool: 'pay', parameters: { step: at } }, { tool: 'look' }] });
  const definition = agentDefinition([step(1), step(2), { text: 'Done.' }], { tools, humanInLoop: { enabled: true } });

  const closingBackend = await testStore.connect();
  const closing = await AgentHost.open(closingBackend, LEASE_MS);
  const run = closing.run(closing.define(definition));
  const [first] = await closing.untilWaiting(1);
  await waitUntil(() => ran.length === 1, 'look never ran');
  await closing.close();
  await closingBackend.close();

  const dyingBackend = await testStore.connect();
  const freezable = freezableStore(dyingBackend);
  const dying = await AgentHost.open(freezable.backend, LEASE_MS);
  dying.define(definition);
  assert.equal((await dying.executions.recover()).length, 1);
  await dying.decide(first!);
  await waitUntil(() => ran.length === 3, 'the second turn never came');
  const [second] = await dying.untilWaiting(1);
  // It dies without a cleanup: neither its heartbeats nor its writes reach the store.
  freezable.kill();
  await dying.service.close();
  await dyingBackend.close();

  const backend = await testStore.connect();
  const last = await AgentHost.open(backend, LEASE_MS);
  const agent = last.define(definition);
  await last.decide(second!);
  await waitUntil(async () => (await last.executions.recover()).length === 1, 'nobody was declared dead');
  const outcome = await (await last.executions.resume(run.executionId)).result.catch(() => undefined);
  if (outcome) assert.equal(outcome.text, 'Done.');
  await waitUntil(
    async () =>
      (await listExecutions(last.executions, { status: 'completed', agentTag: 'payouts' })).records.length === 1,
    'the execution never ended',
  );
  assert.deepEqual((await listExecutions(last.executions, {})).records, []);
  assert.deepEqual([...ran].sort(), ['look', 'look', 'pay 1', 'pay 2']);

  const waitingRun = last.run(agent);
  await last.untilWaiting(1);
  const otherBackend = await testStore.connect();
  const other = await AgentHost.open(otherBackend, LEASE_MS);
  const ends = [await other.executions.cancel(waitingRun.executionId, 'from afar'), await waitingRun.result];
  assert.deepEqual(
    ends.map(({ status, reason }) => [status, reason]),
    Array(2).fill(['cancelled', 'from afar']),
  );
  assert.deepEqual(await listApprovals(other.service), { records: [] });
  await other.close();
  await otherBackend.close();
  await last.close();
  await backend.close();
  await dying.close().catch(() => undefined);
  await testStore.drop();
}
