import * as assert from 'node:assert/strict';
import { readExecution } from '../core/agent/read-executions.ts';
import { reconnectingBackend } from '../core/approval/backend.ts';
import { onAbort } from '../core/on-abort.ts';
import type { ToolContext } from '../core/tool/tool.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { AgentHost, agentDefinition } from './kit/agent-host.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { approve, Bank, compileTestTools, createGate, readRow, refund, startCall } from './suites/approval-setup.ts';
import { expectError } from './suites/expect-error.ts';
import { waitUntil } from './suites/wait-until.ts';

// A database outage while an agent runs, shorter and longer than one retry period.

const LEASE_MS = 1_000;
const PATIENCE_MS = 300;

const missing = await unavailable();
if (missing !== undefined) test.skip('agents without their database', missing);
else {
  for (const [what, awayMs] of [
    ['a moment', 50],
    ['longer than its lease', 3 * LEASE_MS],
  ] as const) {
    on(
      `a database outage for ${what}: the run continues afterwards, and nothing happens twice`,
      async ({ host, away }) => {
        const ran: string[] = [];
        const tool = (tag: string, more: object = {}) => ({ tag, handler: () => ran.push(tag), ...more });
        const turns = [{ calls: [{ tool: 'pay' }, { tool: 'look' }] }, { calls: [{ tool: 'pay' }] }, { text: 'Done.' }];
        const agent = host.define(
          agentDefinition(turns, {
            tools: [tool('pay', { requiresConfirmation: true }), tool('look')],
            humanInLoop: { enabled: true },
          }),
        );
        const run = host.run(agent);
        await host.untilWaiting(1);
        await waitUntil(() => ran.includes('look'), 'look never ran');
        await away(true);
        await new Promise((back) => setTimeout(back, awayMs));
        await away(false);
        for (let decided = 0; decided < 2; decided++) {
          await waitUntil(async () => {
            const waiting = await host.untilWaiting(1).catch(() => []);
            for (const request of waiting) await host.decide(request);
            return waiting.length > 0;
          }, 'no request is waiting');
        }
        const outcome = await run.result;
        assert.equal(outcome.status, 'completed', JSON.stringify(outcome));
        assert.equal(outcome.text, 'Done.');
        assert.deepEqual(ran, ['look', 'pay', 'pay']);
        assert.equal((await readExecution(host.executions, run.executionId))!.status, 'completed');
      },
    );
  }

  on('the model gets the results of tools that ran during a database outage', async ({ host, away }) => {
    const ran: string[] = [];
    let [started, aborted] = [0, 0];
    let release = () => {};
    const runTest = new Promise<void>((resolve) => {
      release = resolve;
    });
    const tool = (tag: string, idempotent: boolean) => ({
      tag,
      idempotent,
      requiresConfirmation: true,
      handler: async ({ signal }: ToolContext) => {
        ran.push(tag);
        onAbort(signal, () => void aborted++);
        started += 1;
        await runTest;
        return `${tag} done`;
      },
    });
    const run = host.run(
      host.define(
        agentDefinition([{ calls: [{ tool: 'pay' }, { tool: 'mail' }] }, { text: 'Done.' }], {
          tools: [tool('pay', false), tool('mail', true)],
          humanInLoop: { enabled: true },
        }),
      ),
    );
    for (const request of await host.untilWaiting(2)) await host.decide(request);
    await waitUntil(() => started === 2, 'The tools never ran.');
    await away(true);
    await waitUntil(() => aborted === 2, 'The signal was not aborted.');
    release();
    await waitUntil(() => unstored(host).length === 2, 'The results were given up, or stored.');
    await away(false);
    const { status, steps } = await run.result;
    assert.equal(status, 'completed');
    assert.deepEqual(
      steps[0]?.calls.map((call) => [call.status, call.result]),
      [
        ['completed', 'pay done'],
        ['completed', 'mail done'],
      ],
    );
    assert.deepEqual(ran.sort(), ['mail', 'pay']);
  });

  on('a client that closes during a database outage does not wait to store a result', async ({ host, away }) => {
    let release = () => {};
    let [hasStarted, isAborted] = [false, false];
    const handler = async ({ signal }: ToolContext) => {
      hasStarted = true;
      onAbort(signal, () => {
        isAborted = true;
      });
      await new Promise<void>((resolve) => {
        release = resolve;
      });
    };
    const tools = [{ tag: 'pay', requiresConfirmation: true, handler }];
    const agent = agentDefinition([{ calls: [{ tool: 'pay' }] }], { tools, humanInLoop: { enabled: true } });
    const run = host.run(host.define(agent));
    for (const request of await host.untilWaiting(1)) await host.decide(request);
    await waitUntil(() => hasStarted, 'The tool never ran.');
    await away(true);
    await waitUntil(() => isAborted, 'The signal was not aborted.');
    release();
    await waitUntil(() => unstored(host).length === 1, 'The result was dropped or stored.');
    await host.close();
    await expectError(run.result, 'interrupted');
  });

  on('a result is stored once a read-only database accepts writes again', async ({ host, readOnly }) => {
    let paid = 0;
    let release = () => {};
    const handler = async () => {
      paid += 1;
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return 'paid';
    };
    const app = { service: host.service, kernel: host.kernel, warnings: [] };
    const gate = createGate(app, compileTestTools(new Bank().tool({ handler })));
    const call = refund();
    const { request, outcome } = await startCall(gate, call);
    await approve(app, request);
    await waitUntil(() => paid === 1, 'The tool never ran.');
    await readOnly(true);
    release();
    await waitUntil(() => unstored(host).some((one) => one.includes('read-only')), 'The result was dropped or stored.');
    await readOnly(false);
    const first = await outcome;
    assert.deepEqual([first.status, first.result], ['completed', 'paid']);
    assert.equal((await readRow(app, request)).record.body.run, 'done');
    assert.deepEqual(await gate.call(call), first);
    assert.equal(paid, 1);
  });
}

interface Fixture {
  readonly host: AgentHost;
  away(isAway: boolean): Promise<void>;
  readOnly(isReadOnly: boolean): Promise<void>;
}

function on(name: string, body: (fixture: Fixture) => Promise<void>): void {
  const runTest = async () => {
    const server = await freshDatabase();
    const backend = reconnectingBackend(
      async () => (await connectTarget(postgresql, server.url, {})).connection,
      PATIENCE_MS,
    );
    const host = await AgentHost.open(backend, LEASE_MS);
    await body({
      host,
      away: (isAway) => server.alter(`ALLOW_CONNECTIONS ${!isAway}`),
      readOnly: (isReadOnly) => server.alter(`SET default_transaction_read_only = ${isReadOnly ? 'on' : 'off'}`),
    });
    await host.close();
    await backend.close();
    await server.drop();
  };
  test(name, runTest, { timeoutMs: 120_000 });
}

const unstored = ({ warnings }: AgentHost): readonly string[] =>
  warnings.filter((message) => message.includes('could not be stored'));
