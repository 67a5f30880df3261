import * as assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { listExecutions, readExecution } from '../core/agent/read-executions.ts';
import { reconnectingBackend } from '../core/approval/backend.ts';
import { listApprovals } from '../core/approval/list-approvals.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { AgentHost } from './kit/agent-host.ts';
import { bundleScript } from './kit/bundle.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

// Three processes take over the executions of a fourth that dies, or is stopped for longer than its lease.

/** Long enough that a busy machine does not delay a heartbeat beyond it; otherwise calls count as interrupted. */
const LEASE_MS = 15_000;
const MANY = 150;
const SLOW = { timeoutMs: 300_000 };
const script = await bundleScript('many-agents-process.ts');

interface Fixture {
  readonly host: AgentHost;
  start(count: number): Promise<ChildProcess>;
  /** Approves all waiting requests from now on. */
  decideAll(): void;
  effects(): Promise<readonly { readonly execution: unknown; readonly name: unknown; readonly times: number }[]>;
}

async function withProcesses(body: (fixture: Fixture) => Promise<void>): Promise<void> {
  const { url, query, drop } = await freshDatabase();
  await query('CREATE TABLE effects (execution text, name text)');
  const backend = reconnectingBackend(async () => (await connectTarget(postgresql, url, {})).connection);
  const host = await AgentHost.open(backend, LEASE_MS);
  const children: ChildProcess[] = [];
  let done = false;
  let decider: Promise<void> | undefined;
  const decide = async (): Promise<void> => {
    while (!done) {
      const { records } = await listApprovals(host.service, { limit: 500 });
      await Promise.all(records.map((request) => host.decide(request)));
      await new Promise((next) => setTimeout(next, 20));
    }
  };
  try {
    await body({
      host,
      async start(count) {
        const child = spawn(process.execPath, [script, url, String(LEASE_MS), String(count)], {
          stdio: ['ignore', 'pipe', 'inherit'],
        });
        children.push(child);
        await once(child.stdout, 'data');
        return child;
      },
      decideAll() {
        decider ??= decide();
      },
      async effects() {
        const rows = await query('SELECT execution, name, count(*)::int AS times FROM effects GROUP BY 1, 2');
        return rows.map(({ execution, name, times }) => ({ execution, name, times: Number(times) }));
      },
    });
  } finally {
    done = true;
    await decider;
    for (const child of children) child.kill('SIGKILL');
    await Promise.all(children.map((child) => child.exitCode ?? child.signalCode ?? once(child, 'exit')));
    await host.close();
    await backend.close();
    await drop();
  }
}

/** Waits until every execution waits for an approval and has stored the result of its other call. */
async function untilAllWait({ host }: Fixture): Promise<void> {
  for (const { executionId } of await host.untilWaiting(MANY, { limit: 1000 })) {
    await waitUntil(
      async () => (await readExecution(host.executions, executionId))?.steps[0]?.calls.length === 1,
      `${executionId} never stored the result of its call without approval`,
    );
  }
}

/** Asserts that every execution completed and every handler ran once. */
async function assertAllCompleted({ host, effects }: Fixture): Promise<void> {
  const count = async (status: 'running' | 'completed') =>
    (await listExecutions(host.executions, { status, limit: 1000 })).records;
  await waitUntil(async () => (await count('completed')).length === MANY, `not all of ${MANY} ended`);
  assert.deepEqual(await count('running'), []);
  for (const { executionId } of await count('completed')) {
    const { steps, text } = (await readExecution(host.executions, executionId))!;
    assert.equal(text, 'Done.');
    for (const { status } of steps.flatMap(({ calls }) => calls)) assert.equal(status, 'completed');
    assert.equal(
      (await listApprovals(host.service, { executionId })).records.length,
      2,
      'each gated call has one request',
    );
  }
  const happened = await effects();
  assert.equal(happened.length, MANY * 4);
  assert.deepEqual(
    happened.filter(({ times }) => times !== 1),
    [],
  );
}

const missing = await unavailable();
if (missing !== undefined) test.skip('races of agents', missing);
else {
  test(
    `${MANY} executions whose process is killed: three others take over, and each step runs once`,
    () =>
      withProcesses(async (fixture) => {
        const first = await fixture.start(MANY);
        await untilAllWait(fixture);
        await Promise.all([fixture.start(0), fixture.start(0), fixture.start(0)]);
        first.kill('SIGKILL');
        fixture.decideAll();
        await assertAllCompleted(fixture);
      }),
    SLOW,
  );

  test(
    `${MANY} executions whose process is stopped for longer than its lease: when it resumes, nothing happens twice`,
    () =>
      withProcesses(async (fixture) => {
        const first = await fixture.start(MANY);
        await untilAllWait(fixture);
        await Promise.all([fixture.start(0), fixture.start(0)]);
        first.kill('SIGSTOP');
        fixture.decideAll();
        await waitUntil(
          async () => (await listExecutions(fixture.host.executions, { status: 'completed' })).records.length > 20,
          'no execution was taken over',
        );
        first.kill('SIGCONT');
        await assertAllCompleted(fixture);
      }),
    SLOW,
  );
}
