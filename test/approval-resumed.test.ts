import * as assert from 'node:assert/strict';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { test } from './kit/test.ts';
import {
  approve,
  Bank,
  compileTestTools,
  createGate,
  openApprovalProcess,
  refund,
  reject,
  startCall,
} from './suites/approval-setup.ts';

// A call that is resumed keeps its request, whatever the tool's definition requires now.

for (const [decision, decide] of [
  ['rejected', (...args: Parameters<typeof reject>) => reject(...args)],
  ['approved', (...args: Parameters<typeof approve>) => approve(...args)],
] as const) {
  test(`a ${decision} call that is resumed without requiring approval anymore does not run again`, async () => {
    const process = await openApprovalProcess(new MemoryStore());
    const bank = new Bank();
    const gated = createGate(process, compileTestTools(bank.tool()));
    const call = refund();
    const { request, outcome } = await startCall(gated, call);
    await decide(process, request);
    const first = await outcome;
    const paid = bank.paid.length;
    const ungated = createGate(process, compileTestTools(bank.tool({ requiresConfirmation: false })));
    const resumed = await ungated.call({ ...call, requestId: request.requestId }, { resumed: true });
    assert.deepEqual(resumed.status, first.status);
    assert.equal(bank.paid.length, paid);
    await process.service.close();
  });
}
