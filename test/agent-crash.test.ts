import * as assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readExecution } from '../core/agent/list.ts';
import { RecoveryWorker } from '../core/agent/recovery-worker.ts';
import { reconnectingBackend } from '../core/approval/backend.ts';
import { listApprovals } from '../core/approval/list.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { connectAdapter } from './kit/adapter.ts';
import { AgentHost } from './kit/agent-host.ts';
import { bundled } from './kit/bundled.ts';
import { CALLS, crashAgent, ONCE } from './kit/crash-agent.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

// An agent in a process of its own, killed with SIGKILL at every boundary of its run: another process takes the
// execution over and ends it; no handler that may not has run twice, and no decision is lost.

const LEASE_MS = 900;
const SLOW = { timeoutMs: 600_000 };
const script = await bundled('agent-process.ts');

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

interface Place {
  readonly url: string;
  /** Another process than the agent's: decides, and takes over. */
  readonly host: AgentHost;
  effects(executionId: string): Promise<readonly string[]>;
}

async function placed(body: (place: Place) => Promise<void>): Promise<void> {
  const { url, query, drop } = await freshDatabase();
  await query('CREATE TABLE effects (execution text, name text)');
  const home = reconnectingBackend(async () => (await connectAdapter(postgresql, url, {})).connection);
  const host = await AgentHost.open(home, LEASE_MS);
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
  const taking = new RecoveryWorker(host.executions, {}, 100);
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
    await taking.stop();
    await host.close();
    await home.close();
    await drop();
  }
}

/** The execution has ended as it must, whatever happened to its first process. Says which calls were interrupted. */
async function isWhole({ host, effects }: Place, executionId: string): Promise<readonly string[]> {
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
    if (status === 'completed') assert.ok(times >= 1, `${name} is said to be done and never happened`);
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
    'killed before every call to the store, another process ends the execution and nothing happens twice',
    () =>
      placed(async (place) => {
        const whole = await agentProcess(place.url);
        assert.equal(whole.signal, null, whole.err);
        assert.deepEqual(await isWhole(place, whole.executionId), []);
        const calls = Number(/calls (\d+)/.exec(whole.out)?.[1]);
        assert.ok(calls >= 20, whole.out);
        let stored = 0;
        const points = Array.from({ length: calls }, (_, index) => `call:${index + 1}`);
        const killThem = async (): Promise<void> => {
          for (let point = points.shift(); point !== undefined; point = points.shift()) {
            const killed = await agentProcess(place.url, point);
            if (killed.signal !== 'SIGKILL') continue;
            if (await readExecution(place.host.executions, killed.executionId)) {
              stored += 1;
              await isWhole(place, killed.executionId);
            } else assert.deepEqual(await place.effects(killed.executionId), [], 'what was not stored did nothing');
          }
        };
        await Promise.all([killThem(), killThem(), killThem(), killThem()]);
        assert.ok(stored >= 15, `only ${stored} died with an execution`);
      }),
    SLOW,
  );

  for (const name of CALLS) {
    test(
      `killed inside "${name}", before and after its effect: run again only where that is allowed`,
      () =>
        placed(async (place) => {
          const killAt = async (at: string): Promise<void> => {
            const killed = await agentProcess(place.url, `${at}:${name}`);
            assert.equal(killed.signal, 'SIGKILL', killed.err);
            const interrupted = await isWhole(place, killed.executionId);
            const isOnce = ONCE.includes(name.split(' ')[0]!);
            assert.equal(interrupted.includes(name), isOnce, `${at} ${name}: ${interrupted}`);
          };
          await Promise.all([killAt('in'), killAt('after')]);
        }),
      SLOW,
    );
  }
}
