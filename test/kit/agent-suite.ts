import * as assert from 'node:assert/strict';
import { listExecutions, readExecution } from '../../core/agent/list.ts';
import { listApprovals } from '../../core/approval/list.ts';
import { suite, type TestFunction } from '../suites/suite.ts';
import type { StoreUnderTest } from '../suites/test-database.ts';
import { waitUntil } from '../suites/wait-until.ts';
import { AgentHost, agentOf } from './agent-host.ts';
import { freezable } from './freezable.ts';

const SLOW_MS = 180_000;
/** Long compared to a heartbeat on the slowest engine. */
const LEASE_MS = 3_000;

interface Bound {
  /** Of a store whose records have a bound that results can reach. */
  readonly holdsMiB?: number;
}

/**
 * What executions ask of any store: the run, taking over from one that said good-bye and from one that died, the list,
 * and an end for what grows beyond a record and for what is said in characters that it does not hold.
 */
export function agentSuite(test: TestFunction, store: StoreUnderTest, { holdsMiB }: Bound = {}): void {
  suite(test, store, (on) => {
    on('an execution moves from a process that closes to one that dies to one that ends it', () => passedOn(store), {
      timeoutMs: SLOW_MS,
    });
    on('an execution that grows ends, and is stored as it ended', () => grownOn(store), { timeoutMs: SLOW_MS });
    on('an execution ends with any error message, also with characters that stores reject', () => saidOn(store), {
      timeoutMs: SLOW_MS,
    });
    if (holdsMiB === undefined) return;
    on('a turn that exceeds the size of a record ends the execution, and no tool runs twice', () =>
      overflownOn(store, holdsMiB),
    );
  });
}

async function grownOn(store: StoreUnderTest): Promise<void> {
  const place = await store.createStore();
  const home = await place.connect();
  const host = await AgentHost.open(home);
  try {
    let reads = 0;
    const tools = [
      { tag: 'note', requiresConfirmation: true, parameters: { text: { type: 'string' } }, handler: () => 'noted' },
      { tag: 'read', handler: () => `${++reads}${'y'.repeat(200 * 1024)}` },
    ];
    const large = { calls: [{ tool: 'note', parameters: { text: 'x'.repeat(1024 * 1024) } }] };
    const read = { calls: [{ tool: 'read' }] };
    const turns = [large, read, read, read, { text: 'Done.' }];
    const run = host.run(host.define(agentOf(turns, { tools, humanInLoop: { enabled: true } })));
    const { status, error, steps } = await run.result;
    assert.equal((steps[0]!.calls[0]!.result as { error: string }).error, 'parameters_too_large');
    // A record of DynamoDB has 400 KB; the others hold all of it.
    const ends = store.name.startsWith('DynamoDB') ? ['failed', 'value_invalid', 2] : ['completed', undefined, 3];
    assert.deepEqual([status, error?.code, reads], ends);
    assert.equal((await readExecution(host.executions, run.executionId))?.status, status);
  } finally {
    await host.close();
    await home.close();
    await place.drop();
  }
}

async function overflownOn(store: StoreUnderTest, holdsMiB: number): Promise<void> {
  const place = await store.createStore();
  const home = await place.connect();
  const host = await AgentHost.open(home);
  try {
    let reads = 0;
    const tools = [{ tag: 'read', idempotent: true, handler: () => `${++reads}${'y'.repeat(250 * 1024)}` }];
    const calls = Array.from({ length: holdsMiB * 4 + 8 }, () => ({ tool: 'read' }));
    const run = host.run(host.define(agentOf([{ calls }, { text: 'Never.' }], { tools })));
    const { status, error } = await run.result;
    assert.deepEqual([status, error?.code, reads], ['failed', 'value_invalid', calls.length]);
    assert.equal((await readExecution(host.executions, run.executionId))?.status, 'failed');
  } finally {
    await host.close();
    await home.close();
    await place.drop();
  }
}

async function saidOn(store: StoreUnderTest): Promise<void> {
  const place = await store.createStore();
  const homes = await Promise.all([place.connect(), place.connect()]);
  const [host, far] = await Promise.all(homes.map((home) => AgentHost.open(home)));
  const said = 'said \0 and \ud83d';
  const kept = 'said \uFFFD and \uFFFD';
  try {
    const pay = { tag: 'pay', requiresConfirmation: true, handler: () => assert.fail('it was cancelled') };
    const gated = { tools: [pay], humanInLoop: { enabled: true } };
    const agent = host!.define(agentOf([{ calls: [{ tool: 'pay' }] }], gated));
    const waiting = async (prompt: string) => {
      const run = host!.run(agent, prompt);
      await host!.waiting(1);
      return run;
    };
    const near = await (await waiting(said)).cancel(said);
    assert.deepEqual([near.status, near.reason], ['cancelled', kept]);
    const run = await waiting('Go.');
    const ends = [await far!.executions.cancel(run.executionId, said), await run.result];
    assert.deepEqual(
      ends.map(({ status, reason }) => [status, reason]),
      Array(2).fill(['cancelled', kept]),
    );
    assert.deepEqual(await listApprovals(far!.service), { records: [] });
    let asked = 0;
    const sick = () => {
      asked += 1;
      throw new Error(said);
    };
    const { status, error } = await host!.run(host!.define(agentOf([sick], { tag: 'sick' }))).result;
    assert.deepEqual([status, error, asked], ['failed', { code: 'model_failed', message: kept }, 1]);
  } finally {
    await Promise.all([host!.close(), far!.close()]);
    await Promise.all(homes.map((home) => home.close()));
    await place.drop();
  }
}

async function passedOn(store: StoreUnderTest): Promise<void> {
  const place = await store.createStore();
  const ran: string[] = [];
  const pay = { tag: 'pay', requiresConfirmation: true, parameters: { step: { type: 'integer', required: true } } };
  const tools = [
    { ...pay, handler: (_ctx: unknown, { step }: { step: number }) => `paid ${ran.push(`pay ${step}`)}` },
    { tag: 'look', handler: () => `seen ${ran.push('look')}` },
  ];
  const step = (at: number) => ({ calls: [{ tool: 'pay', parameters: { step: at } }, { tool: 'look' }] });
  const definition = agentOf([step(1), step(2), { text: 'Done.' }], { tools, humanInLoop: { enabled: true } });

  const closingHome = await place.connect();
  const closing = await AgentHost.open(closingHome, LEASE_MS);
  const run = closing.run(closing.define(definition));
  const [first] = await closing.waiting(1);
  await waitUntil(() => ran.length === 1, 'look never ran');
  await closing.close();
  await closingHome.close();

  const dyingHome = await place.connect();
  const mortal = freezable(dyingHome);
  const dying = await AgentHost.open(mortal.home, LEASE_MS);
  dying.define(definition);
  assert.equal((await dying.executions.recover()).length, 1);
  await dying.decide(first!);
  await waitUntil(() => ran.length === 3, 'the second turn never came');
  const [second] = await dying.waiting(1);
  // Nothing of it says good-bye: its beats and its writes reach no store any more.
  mortal.bury();
  await dying.service.close();
  await dyingHome.close();

  const home = await place.connect();
  const last = await AgentHost.open(home, LEASE_MS);
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

  const stray = last.run(agent);
  await last.waiting(1);
  const farHome = await place.connect();
  const far = await AgentHost.open(farHome, LEASE_MS);
  const ends = [await far.executions.cancel(stray.executionId, 'from afar'), await stray.result];
  assert.deepEqual(
    ends.map(({ status, reason }) => [status, reason]),
    Array(2).fill(['cancelled', 'from afar']),
  );
  assert.deepEqual(await listApprovals(far.service), { records: [] });
  await far.close();
  await farHome.close();
  await last.close();
  await home.close();
  await dying.close().catch(() => undefined);
  await place.drop();
}
