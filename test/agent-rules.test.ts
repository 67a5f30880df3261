import * as assert from 'node:assert/strict';
import fc from 'fast-check';
import { readExecution } from '../core/agent/read-executions.ts';
import type { Run } from '../core/agent/run.ts';
import { listApprovals } from '../core/approval/list-approvals.ts';
import type { ToolContext } from '../core/tool/tool.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { AgentHost, agentDefinition } from './kit/agent-host.ts';
import { type FreezableStore, freezableStore } from './kit/freezable-store.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

// Random turns and decisions, with processes that freeze at random calls to the store, against the rules.

const LEASE_MS = 10_000;

type Kind = 'free' | 'again' | 'asked';
const calls = fc.array(fc.constantFrom<Kind>('free', 'again', 'asked'), { minLength: 1, maxLength: 3 });
const scenario = fc.record({
  turns: fc.array(calls, { minLength: 1, maxLength: 3 }),
  decisions: fc.array(fc.constantFrom('approve', 'reject'), { minLength: 9, maxLength: 9 }),
  /** The call to the store at which each process freezes. The last process does not freeze. */
  freezes: fc.array(fc.integer({ min: 8, max: 60 }), { maxLength: 3 }),
});

test(
  'with frozen processes: one decision per request, one run per call, a result for every call, and the agent ends',
  async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async ({ turns, decisions, freezes }) => {
        let now = Date.now();
        const backend = new MemoryStore(() => now);
        const effects: string[] = [];
        let running: FreezableStore | undefined;
        const tool = (tag: Kind, more: object) => ({
          tag,
          parameters: { at: { type: 'string', required: true } },
          handler: (_ctx: ToolContext, { at }: { at: string }) => {
            // A frozen process has no effects.
            if (running?.isFrozen()) return running.hang();
            effects.push(at);
            return 'done';
          },
          ...more,
        });
        const script = turns.map((kinds, turn) => ({
          calls: kinds.map((kind, index) => ({ tool: kind, parameters: { at: `${kind} ${turn}.${index}` } })),
        }));
        const definition = agentDefinition([...script, { text: 'Done.' }], {
          tools: [tool('free', {}), tool('again', { idempotent: true }), tool('asked', { requiresConfirmation: true })],
          humanInLoop: { enabled: true, approvalTimeout: 31_536_000_000 },
        });

        const decided = new Map<string, string>();
        const reviewer = await AgentHost.open(backend, LEASE_MS);
        const decide = async (): Promise<void> => {
          for (const request of (await listApprovals(reviewer.service)).records) {
            const decision = decisions[decided.size % decisions.length] as 'approve' | 'reject';
            decided.set(request.requestId, (await reviewer.decide(request, decision)).status);
          }
        };

        let executionId = '';
        const hosts: AgentHost[] = [];
        const processes: FreezableStore[] = [];
        for (const [index, freezeAt] of [...freezes, Number.POSITIVE_INFINITY].entries()) {
          const process = freezableStore(backend, freezeAt);
          processes.push(process);
          running = process;
          let host: AgentHost | undefined;
          AgentHost.open(process.backend, LEASE_MS).then(
            (opened) => {
              host = opened;
            },
            () => undefined,
          );
          await waitUntil(() => host !== undefined || process.isFrozen(), 'a host did not open');
          if (!host) continue;
          hosts.push(host);
          const agent = host.define(definition);
          let run: Run | undefined;
          const isStored = executionId !== '' && (await readExecution(reviewer.executions, executionId)) !== undefined;
          if (!isStored) {
            run = host.run(agent);
            executionId = run.executionId;
          } else void host.executions.recover().catch(() => undefined);
          await waitUntil(async () => {
            await decide();
            if (process.isFrozen()) return true;
            const found = await readExecution(reviewer.executions, executionId);
            return found !== undefined && found.status !== 'running';
          }, `process ${index} neither froze nor ended`);
          // Its lease expires by the clock of the store.
          now += LEASE_MS + 1;
        }

        const found = (await readExecution(reviewer.executions, executionId))!;
        assert.equal(found.status, 'completed', JSON.stringify(found));
        assert.equal(found.text, 'Done.');
        const results = found.steps.flatMap((step) => step.calls);
        const expected = script.flatMap((step) => step.calls.map(({ parameters }) => parameters.at));
        assert.deepEqual(
          results.map(({ parameters }) => (parameters as { at: string }).at),
          expected,
        );
        for (const [index, { status, tool }] of results.entries()) {
          const times = effects.filter((one) => one === expected[index]).length;
          if (tool !== 'again') assert.ok(times <= 1, `${expected[index]} happened ${times} times`);
          if (status === 'completed') assert.ok(times >= 1, `${expected[index]} never happened`);
          if (status === 'rejected') assert.equal(times, 0, `${expected[index]} was rejected and happened`);
          if (freezes.length === 0) assert.ok(['completed', 'rejected'].includes(status), status);
          assert.ok(['completed', 'rejected', 'interrupted'].includes(status), status);
        }
        const { records } = await listApprovals(reviewer.service, { executionId });
        const gatedCalls = results.filter(({ tool }) => tool === 'asked');
        assert.equal(records.length, gatedCalls.length, 'each gated call has one request');
        for (const { requestId, status } of records) assert.equal(decided.get(requestId), status);
        for (const process of processes) process.kill();
        await Promise.all(hosts.map((host) => host.close()));
        await reviewer.close();
      }),
      { numRuns: 100 },
    );
  },
  { timeoutMs: 300_000 },
);
