import * as assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readExecution } from '../core/agent/read-executions.ts';
import { RecoveryWorker } from '../core/agent/recovery-worker.ts';
import { reconnectingBackend } from '../core/approval/backend.ts';
import { listApprovals } from '../core/approval/list-approvals.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { AgentHost } from './kit/agent-host.ts';
import { bundleScript } from './kit/bundle.ts';
import { CALLS, crashAgent, ONCE } from './kit/crash-agent.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

// Kills the process of an agent with SIGKILL at every boundary of its run. Another process takes over the execution and
// completes it. No handler runs twice unless its tool is idempotent, and no decision is lost.

const LEASE_MS = 900;
const SLOW = { timeoutMs: 600_000 };
const script = await bundleScript('agent-process.ts');

interface Ended {
  readonly executionId: string;
  readonly out: string;
  readonly err: string;
  readonly signal: NodeJS.Signals | null;
}

async function agentProcess(url: string, kill = ''): Promise<Ended> {
  const child = spawn(process.execPath, [script, url, String(LEASE_MS), kill], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    err += text;
  });
  const [, signal] = await once(child, 'close');
  return { executionId: out.split('\n', 1)[0] ?? '', out, err, signal };
}

const TRIES = 5;

/** A process that is killed at the point. On a busy machine another one may take its short lease over before it gets there. */
async function killedAt(url: string, point: string): Promise<Ended> {
  for (let tried = 1; ; tried += 1) {
    const ended = await agentProcess(url, point);
    if (ended.signal === 'SIGKILL' || tried === TRIES) return ended;
  }
}

interface Fixture {
  readonly url: string;
  /** Another process, which decides and takes over executions. */
  readonly host: AgentHost;
  effects(executionId: string): Promise<readonly string[]>;
}

async function withHost(body: (fixture: Fixture) => Promise<void>): Promise<void> {
  const { url, query, drop } = await freshDatabase();
  await query('CREATE TABLE effects (execution text, name text)');
  const backend = reconnectingBackend(async () => (await connectTarget(postgresql, url, {})).connection);
  const host = await AgentHost.open(backend, LEASE_MS);
  host.define(
    crashAgent(async (name, { executionId }) => {
      await query(`INSERT INTO effects VALUES ('${executionId}', '${name}')`);
    }),
  );
  let done = false;
  const decider = (async () => {
    while (!done) {
      for (const request of (await listApprovals(host.service)).records) await host.decide(request);
      await new Promise((next) => setTimeout(next, 10));
    }
  })();
  const worker = new RecoveryWorker(host.executions, {}, 100);
  try {
    await body({
      url,
      host,
      effects: async (executionId) =>
        (await query(`SELECT name FROM effects WHERE execution = '${executionId}'`)).map(({ name }) => String(name)),
    });
  } finally {
    done = true;
    await decider;
    await worker.stop();
    await host.close();
    await backend.close();
    await drop();
  }
}

/** Asserts that the execution completed correctly after its process died. Returns the interrupted calls. */
async function assertCompleted({ host, effects }: Fixture, executionId: string): Promise<readonly string[]> {
  await waitUntil(async () => {
    const found = await readExecution(host.executions, executionId);
    return found !== undefined && found.status !== 'running';
  }, `${executionId} never ended`);
  const found = await readExecution(host.executions, executionId);
  assert.equal(found!.status, 'completed', JSON.stringify(found));
  assert.equal(found!.text, 'Done.');
  const happened = await effects(executionId);
  const results = found!.steps.flatMap(({ calls }) => calls);
  assert.deepEqual(
    results.map(({ tool, parameters }) => `${tool} ${(parameters as { what: string }).what}`),
    CALLS,
  );
  const interrupted: string[] = [];
  for (const [index, name] of CALLS.entries()) {
    const times = happened.filter((one) => one === name).length;
    const { status, tool } = results[index]!;
    if (ONCE.includes(tool)) assert.ok(times <= 1, `${name} happened ${times} times`);
    if (status === 'interrupted') interrupted.push(name);
    else assert.equal(status, 'completed', name);
    if (status === 'completed') assert.ok(times >= 1, `${name} is completed but never happened`);
  }
  const { records } = await listApprovals(host.service, { executionId });
  assert.equal(records.length, 2, 'each gated call has one request');
  for (const { status } of records) assert.equal(status, 'approved');
  return interrupted;
}

const missing = await unavailable();
if (missing !== undefined) test.skip('crashes of agents', missing);
else {
  test(
    'after a kill before any call to the store, another process completes the execution and nothing happens twice',
    () =>
      withHost(async (fixture) => {
        const full = await agentProcess(fixture.url);
        assert.equal(full.signal, null, full.err);
        assert.deepEqual(await assertCompleted(fixture, full.executionId), []);
        const calls = Number(/calls (\d+)/.exec(full.out)?.[1]);
        assert.ok(calls >= 20, full.out);
        let stored = 0;
        const points = Array.from({ length: calls }, (_, index) => `call:${index + 1}`);
        const killAtPoints = async (): Promise<void> => {
          for (let point = points.shift(); point !== undefined; point = points.shift()) {
            const killed = await agentProcess(fixture.url, point);
            if (killed.signal !== 'SIGKILL') continue;
            if (await readExecution(fixture.host.executions, killed.executionId)) {
              stored += 1;
              await assertCompleted(fixture, killed.executionId);
            } else
              assert.deepEqual(
                await fixture.effects(killed.executionId),
                [],
                'an execution that was not stored had effects',
              );
          }
        };
        await Promise.all([killAtPoints(), killAtPoints(), killAtPoints(), killAtPoints()]);
        assert.ok(stored >= 15, `only ${stored} died with an execution`);
      }),
    SLOW,
  );

  for (const name of CALLS) {
    test(
      `killed inside "${name}", before and after its effect: run again only where that is allowed`,
      () =>
        withHost(async (fixture) => {
          const killAt = async (at: string): Promise<void> => {
            const killed = await killedAt(fixture.url, `${at}:${name}`);
            assert.equal(killed.signal, 'SIGKILL', killed.err);
            const interrupted = await assertCompleted(fixture, killed.executionId);
            const isOnce = ONCE.includes(name.split(' ')[0]!);
            assert.equal(interrupted.includes(name), isOnce, `${at} ${name}: ${interrupted}`);
          };
          await Promise.all([killAt('in'), killAt('after')]);
        }),
      SLOW,
    );
  }
}
