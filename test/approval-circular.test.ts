import * as assert from 'node:assert/strict';
import type { GateCall } from '../core/approval/call.ts';
import type { ApprovalGate } from '../core/approval/gate.ts';
import type { CallOutcome } from '../core/approval/outcome.ts';
import type { ToolDefinition } from '../core/tool/tool.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { test } from './kit/test.ts';
import {
  type ApprovalProcess,
  approve,
  compileTestTools,
  createGate,
  openApprovalProcess,
  startCall,
} from './suites/approval-setup.ts';
import { expectError } from './suites/expect-error.ts';

// A handler that calls its gate again. A call that would wait for the handler itself is rejected at once.

const tool = (tag: string, handler: () => unknown): ToolDefinition => ({ tag, requiresConfirmation: true, handler });
const named = (name: string): GateCall => ({ tool: name, parameters: {}, executionId: 'exe_1', toolCallId: name });

async function startAndApprove(app: ApprovalProcess, gate: ApprovalGate, call: GateCall): Promise<CallOutcome> {
  const { request, outcome } = await startCall(gate, call);
  await approve(app, request);
  return outcome;
}

const ways: Readonly<Record<string, (call: () => Promise<unknown>) => Promise<unknown>>> = {
  directly: (call) => call(),
  'after a timer': (call) => new Promise((resolve, reject) => setTimeout(() => call().then(resolve, reject), 1)),
  'through a promise with two readers': async (call) => {
    const outcome = call();
    outcome.catch(() => undefined);
    await outcome;
  },
};

for (const [way, makeCall] of Object.entries(ways)) {
  test(`a handler that makes its own call again, ${way}: rejected, and the handler ends`, async () => {
    const store = new MemoryStore();
    // Two clients of one process on one store.
    const apps = [await openApprovalProcess(store), await openApprovalProcess(store)] as const;
    let runs = 0;
    const gates: ApprovalGate[] = [];
    const tools = compileTestTools(
      tool('pay', async () => {
        runs += 1;
        for (const gate of gates) {
          const error = await expectError(
            makeCall(() => gate.call(named('pay'))),
            'call_circular',
          );
          assert.match(error.why ?? '', /apr_/);
        }
        return 'paid';
      }),
    );
    gates.push(...apps.map((app) => createGate(app, tools)));
    const outcome = await startAndApprove(apps[0], gates[0]!, named('pay'));
    assert.deepEqual([outcome.status, outcome.result, runs], ['completed', 'paid', 1]);
    for (const { service } of apps) await service.close();
  });
}

test('a handler whose call makes the first one again: only that one is rejected', async () => {
  const app = await openApprovalProcess(new MemoryStore());
  const gate: ApprovalGate = createGate(
    app,
    compileTestTools(
      tool('outer', async () => (await startAndApprove(app, gate, named('inner'))).result),
      tool('inner', async () => {
        await expectError(gate.call(named('outer')), 'call_circular');
        return 'done';
      }),
    ),
  );
  const { result } = await startAndApprove(app, gate, named('outer'));
  assert.equal(result, 'done');
  await app.service.close();
});

test('two handlers that wait for each other: the second one to wait is rejected', async () => {
  const app = await openApprovalProcess(new MemoryStore());
  const running = { left: deferred(), right: deferred() };
  const codes: string[] = [];
  const waitFor = (own: keyof typeof running, other: keyof typeof running) => async () => {
    running[own].resolve();
    await running[other].promise;
    try {
      return (await gate.call(named(other))).result;
    } catch (error) {
      codes.push((error as { readonly code: string }).code);
      return own;
    }
  };
  const gate: ApprovalGate = createGate(
    app,
    compileTestTools(tool('left', waitFor('left', 'right')), tool('right', waitFor('right', 'left'))),
  );
  const outcomes = await Promise.all(['left', 'right'].map((name) => startAndApprove(app, gate, named(name))));
  assert.deepEqual(codes, ['call_circular']);
  assert.equal(outcomes[0]?.result, outcomes[1]?.result);
  await app.service.close();
});

test('the same call from elsewhere, and another call from the handler, wait as before', async () => {
  const app = await openApprovalProcess(new MemoryStore());
  const started = deferred();
  const end = deferred();
  let runs = 0;
  const gate: ApprovalGate = createGate(
    app,
    compileTestTools(
      tool('slow', async () => {
        runs += 1;
        started.resolve();
        await end.promise;
        return 'slow';
      }),
      tool('caller', async () => {
        const outcome = gate.call(named('slow'));
        end.resolve();
        return (await outcome).result;
      }),
    ),
  );
  const first = startAndApprove(app, gate, named('slow'));
  await started.promise;
  const repeated = gate.call(named('slow'));
  const { result } = await startAndApprove(app, gate, named('caller'));
  assert.deepEqual([result, (await first).result, (await repeated).result, runs], ['slow', 'slow', 'slow', 1]);
  await app.service.close();
});

interface Deferred {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
}

function deferred(): Deferred {
  let resolve = (): void => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
