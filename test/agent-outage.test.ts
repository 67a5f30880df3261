import * as assert from 'node:assert/strict';
import { readExecution } from '../core/agent/list.ts';
import { reconnecting } from '../core/approval/home.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { connectAdapter } from './kit/adapter.ts';
import { AgentHost, agentOf } from './kit/agent-host.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { test } from './kit/test.ts';
import { until } from './kit/until.ts';

// A database that goes away while an agent runs, for less and for more than what is waited for at a time.

const LEASE_MS = 1_000;
const PATIENCE_MS = 300;

const missing = await unavailable();
if (missing !== undefined) test.skip('agents without their database', missing);
else {
  for (const [what, awayMs] of [
    ['a moment', 50],
    ['longer than its lease', 3 * LEASE_MS],
  ] as const) {
    test(
      `a database that is away for ${what}: the run goes on when it is back, and nothing happens twice`,
      async () => {
        const server = await freshDatabase();
        const control = await freshDatabase();
        const name = new URL(server.url).pathname.slice(1);
        const away = async (isAway: boolean): Promise<void> => {
          await control.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS ${!isAway}`);
          await control.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`);
        };
        const home = reconnecting(
          async () => (await connectAdapter(postgresql, server.url, {})).connection,
          PATIENCE_MS,
        );
        const host = await AgentHost.open(home, LEASE_MS);
        const ran: string[] = [];
        const tool = (tag: string, more: object = {}) => ({ tag, handler: () => ran.push(tag), ...more });
        const turns = [{ calls: [{ tool: 'pay' }, { tool: 'look' }] }, { calls: [{ tool: 'pay' }] }, { text: 'Done.' }];
        const agent = host.define(
          agentOf(turns, {
            tools: [tool('pay', { requiresConfirmation: true }), tool('look')],
            humanInLoop: { enabled: true },
          }),
        );
        const run = host.run(agent);
        await host.waiting(1);
        await until(() => ran.includes('look'), 'look never ran');
        await away(true);
        await new Promise((back) => setTimeout(back, awayMs));
        await away(false);
        for (let decided = 0; decided < 2; decided++) {
          await until(async () => {
            const waiting = await host.waiting(1).catch(() => []);
            for (const request of waiting) await host.decide(request);
            return waiting.length > 0;
          }, 'nothing waits any more');
        }
        const outcome = await run.result;
        assert.equal(outcome.status, 'completed', JSON.stringify(outcome));
        assert.equal(outcome.text, 'Done.');
        assert.deepEqual(ran, ['look', 'pay', 'pay']);
        assert.equal((await readExecution(host.executions, run.executionId))!.status, 'completed');
        await host.close();
        await home.close();
        await server.drop();
        await control.drop();
      },
      { timeoutMs: 120_000 },
    );
  }
}
