import * as assert from 'node:assert/strict';
import { setImmediate as tick } from 'node:timers/promises';
import { onAbort } from '../core/on-abort.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { test } from './kit/test.ts';
import { Bank, compileTestTools, createGate, openApprovalProcess, refund, startCall } from './suites/approval-setup.ts';

// One signal may cancel hundreds of calls.

test('a removed callback is not called, and the same function may be added twice', () => {
  const stop = new AbortController();
  let called = 0;
  const count = () => {
    called += 1;
  };
  const [first] = [onAbort(stop.signal, count), onAbort(stop.signal, count)];
  first();
  stop.abort();
  assert.equal(called, 1);
});

test('calls that share a signal cause no leak warning, and all are cancelled', async () => {
  const warnings: string[] = [];
  const onWarning = ({ name }: Error) => void warnings.push(name);
  process.on('warning', onWarning);
  const app = await openApprovalProcess(new MemoryStore());
  const gate = createGate(app, compileTestTools(new Bank().tool()));
  const stop = new AbortController();
  const pending = await Promise.all(
    Array.from({ length: 40 }, () => startCall(gate, refund(), { signal: stop.signal })),
  );
  stop.abort('over');
  const outcomes = await Promise.all(pending.map(({ outcome }) => outcome));
  assert.ok(outcomes.every(({ status }) => status === 'cancelled'));
  await app.service.close();
  // Node emits warnings in a later tick.
  await tick();
  process.off('warning', onWarning);
  assert.deepEqual(warnings, []);
});
