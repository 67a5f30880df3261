import * as assert from 'node:assert/strict';
import { DETACH } from '../../core/approval/call.ts';
import { decide, type Signal } from '../../core/approval/decide.ts';
import { listApprovals } from '../../core/approval/list-approvals.ts';
import { newRequestId } from '../../core/approval/request.ts';
import type { DeclareApprovalCase } from './approval-case.ts';
import { approve, Bank, compileTestTools, createGate, readRow, refund, reject, startCall } from './approval-setup.ts';
import { expectError } from './expect-error.ts';
import type { StoreUnderTest } from './test-database.ts';
import { waitUntil } from './wait-until.ts';

/** Declares what decides a request: once, in time, from any process, and only its own call. */
export function declareDecisionCases(on: DeclareApprovalCase, { maxWriteMs = 1_000 }: StoreUnderTest): void {
  on('one approval does not release the other calls of its turn', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const gate = createGate(app, compileTestTools(bank.tool()));
    const groupId = 'turn_1';
    const executionId = 'exe_turn';
    const pending = await Promise.all(
      [1, 2, 3].map((amount) => startCall(gate, refund({ order: 'a', amount }, { executionId, groupId }))),
    );
    await approve(app, pending[1]!.request);
    assert.deepEqual((await pending[1]!.outcome).result, { paid: 2 });
    assert.deepEqual(
      bank.paid.map(({ amount }) => amount),
      [2],
    );
    const { records } = await listApprovals(app.service, { agentTag: 'payouts' });
    assert.deepEqual(
      records.map(({ requestId }) => requestId).sort(),
      [pending[0]!.request.requestId, pending[2]!.request.requestId].sort(),
    );
    assert.ok(records.every((record) => record.groupId === groupId));
  });

  on('one rejection does not drop the approved calls of its turn', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const gate = createGate(app, compileTestTools(bank.tool()));
    const [yes, no] = await Promise.all([startCall(gate, refund()), startCall(gate, refund())]);
    await reject(app, no.request, 'Ask the customer first.');
    await approve(app, yes.request);
    assert.equal((await yes.outcome).status, 'completed');
    assert.deepEqual(
      { ...(await no.outcome) },
      {
        status: 'rejected',
        result: {
          error: 'approval_rejected',
          message: 'The approval request was rejected. The tool did not run.',
          reason: 'Ask the customer first.',
          tool: 'refund',
          parameters: { order: '1234', amount: 20, currency: 'EUR' },
        },
        requestId: no.request.requestId,
      },
    );
    assert.equal(bank.paid.length, 1);
  });

  on('a person with an id of 320 characters decides in the place of another, until that is revoked', async (open) => {
    const [app, other] = await Promise.all([open(), open()]);
    const to = `${'b'.repeat(307)}@acme.example`;
    const { delegations } = app.service;
    const from = { id: 'ann@acme.example', groups: ['finance'] };
    const until = new Date((await app.service.clock.readNow()) + 3_600_000);
    const { delegationId } = await delegations.create({ from, to, until });
    const delegators = () => other.service.delegations.delegatorsOf({ id: to, groups: [], verifiedBy: 'signal' });
    assert.deepEqual(await delegators(), [from]);
    await delegations.revoke(delegationId);
    assert.deepEqual(await delegators(), []);
  });

  on('the id of a request does not approve it for another execution', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const gate = createGate(app, compileTestTools(bank.tool()));
    const { request } = await startCall(gate, refund());
    await expectError(approve(app, { ...request, executionId: 'exe_other' }), 'approval_unknown');
    await expectError(approve(app, { ...request, requestId: newRequestId() }), 'approval_unknown');
    assert.equal((await readRow(app, request)).record.status, 'waiting');
    assert.equal(bank.paid.length, 0);
  });

  on('a decision needs only the id of the request', async (open) => {
    const [app, other, bank] = [await open(), await open(), new Bank()];
    const { request, outcome } = await startCall(createGate(app, compileTestTools(bank.tool())), refund());
    const { requestId, executionId } = request;
    const signal = (id: string, more: Partial<Signal> = {}) =>
      decide(other.service, { signal: 'approve', payload: { requestId: id }, ...more }, { actor: 'ann' });
    const unknown = await expectError(signal(newRequestId()), 'approval_unknown');
    assert.equal(unknown.message, 'No request has this id.');
    for (const wrong of ['exe_other', '', requestId]) {
      await expectError(signal(requestId, { executionId: wrong }), 'approval_unknown');
    }
    await expectError(signal(requestId, { executionId: null as never }), 'decision_invalid');
    assert.equal((await readRow(app, request)).record.status, 'waiting');
    const decided = await signal(requestId);
    assert.deepEqual({ ...decided, decidedAt: '' }, { requestId, executionId, status: 'approved', decidedAt: '' });
    assert.equal((await outcome).status, 'completed');
    assert.deepEqual(await signal(requestId), decided);
    await expectError(signal(requestId, { signal: 'reject' }), 'approval_decided');
    assert.equal(bank.paid.length, 1);
  });

  on('an invalid request id is unknown, whatever keys the store accepts', async (open) => {
    const app = await open();
    for (const requestId of ['', 'apr_', 'a\0b', '\ud83d', 'x'.repeat(3_000), 'x'.repeat(70_000)]) {
      await expectError(approve(app, { requestId, executionId: 'exe_1' }), 'approval_unknown');
      assert.equal(await app.service.getExpiringIfDue(requestId), undefined);
    }
  });

  on('a decision that arrives while no process waits is not lost', async (open) => {
    const [app, later, bank] = [await open(), await open(), new Bank()];
    const detach = new AbortController();
    const call = refund();
    const { request, outcome } = await startCall(createGate(app, compileTestTools(bank.tool())), call, {
      signal: detach.signal,
    });
    detach.abort(DETACH);
    await expectError(outcome, 'interrupted');
    await approve(app, request);
    assert.equal((await createGate(later, compileTestTools(bank.tool())).call(call)).status, 'completed');
    assert.equal(bank.paid.length, 1);
  });

  on('a decision in another process reaches the waiting call', async (open) => {
    const [app, other, bank] = [await open(), await open(), new Bank()];
    const { request, outcome } = await startCall(createGate(app, compileTestTools(bank.tool())), refund());
    await approve(other, request);
    assert.equal((await outcome).status, 'completed');
  });

  on('neither a rejection nor a timeout runs the tool', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const short = createGate(app, compileTestTools(bank.tool()), { humanInLoop: { approvalTimeout: 300 } });
    const [no, silence] = await Promise.all([
      startCall(createGate(app, compileTestTools(bank.tool())), refund()),
      startCall(short, refund()),
    ]);
    await reject(app, no.request);
    await Promise.all([no.outcome, silence.outcome]);
    assert.equal(bank.paid.length, 0);
  });

  on('a timeout is not recorded as a rejection by a human', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const gate = createGate(app, compileTestTools(bank.tool()), { humanInLoop: { approvalTimeout: 300 } });
    const { request, outcome } = await startCall(gate, refund());
    assert.deepEqual(
      { ...(await outcome) },
      {
        status: 'rejected',
        result: {
          error: 'approval_timeout',
          message: 'The approval request timed out after 300 ms.',
          tool: 'refund',
          parameters: { order: '1234', amount: 20, currency: 'EUR' },
        },
        requestId: request.requestId,
      },
    );
    const { record } = await readRow(app, request);
    assert.deepEqual([record.status, record.body.decision?.cause], ['rejected', 'timeout']);
    assert.ok(record.body.decision!.at >= request.timeout);
    await expectError(approve(app, request), 'approval_expired');
    await expectError(reject(app, request), 'approval_expired');
  });

  on('a late approval of a closed request does not release a new request for the same call', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const short = createGate(app, compileTestTools(bank.tool()), { humanInLoop: { approvalTimeout: 300 } });
    const gate = createGate(app, compileTestTools(bank.tool()));
    const call = refund();
    const expired = await startCall(short, { ...call, toolCallId: 'first' });
    assert.equal((await expired.outcome).status, 'rejected');
    const refusedOnce = await startCall(gate, { ...call, toolCallId: 'second' });
    await reject(app, refusedOnce.request);
    await refusedOnce.outcome;
    const again = await startCall(gate, { ...call, toolCallId: 'third' });
    assert.deepEqual(again.request.parameters, expired.request.parameters);
    assert.equal(new Set([expired, refusedOnce, again].map(({ request }) => request.requestId)).size, 3);
    await expectError(approve(app, expired.request), 'approval_expired');
    await expectError(approve(app, refusedOnce.request), 'approval_decided');
    assert.equal((await readRow(app, again.request)).record.status, 'waiting');
    assert.equal(bank.paid.length, 0);
    await approve(app, again.request);
    assert.equal((await again.outcome).status, 'completed');
    assert.equal(bank.paid.length, 1);
  });

  on('a repeated decision gets the same result, and a different one is an error', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const gate = createGate(app, compileTestTools(bank.tool()), {
      humanInLoop: { approvalTimeout: 2 * maxWriteMs },
    });
    const { request, outcome } = await startCall(gate, refund());
    const answer = await approve(app, request, { amount: 3, currency: 'USD' });
    await outcome;
    assert.deepEqual(await approve(app, request, { currency: 'USD', amount: 3 }), answer);
    await expectError(approve(app, request), 'approval_decided');
    const error = await expectError(reject(app, request), 'approval_decided');
    assert.equal(error.details.status, 'approved');
    await waitUntil(
      async () => (await app.service.clock.readNow()) > Date.parse(request.timeout),
      'The deadline never passed.',
    );
    assert.deepEqual(await approve(app, request, { amount: 3, currency: 'USD' }), answer);
    assert.equal(bank.paid.length, 1);
  });

  on('of two different concurrent decisions, one wins', async (open) => {
    const [app, other, bank] = [await open(), await open(), new Bank()];
    const gate = createGate(app, compileTestTools(bank.tool()));
    for (let round = 0; round < 10; round++) {
      const { request, outcome } = await startCall(gate, refund());
      const before = bank.paid.length;
      const [yes, no] = await Promise.allSettled([approve(app, request), reject(other, request)]);
      assert.notEqual(yes.status, no.status);
      const ended = await outcome;
      assert.equal(ended.status, yes.status === 'fulfilled' ? 'completed' : 'rejected');
      assert.equal(bank.paid.length - before, yes.status === 'fulfilled' ? 1 : 0);
    }
  });

  on('the same decision made twice concurrently has one effect', async (open) => {
    const [app, other, bank] = [await open(), await open(), new Bank()];
    const gate = createGate(app, compileTestTools(bank.tool()));
    for (let round = 0; round < 10; round++) {
      const { request, outcome } = await startCall(gate, refund());
      const answers = await Promise.all([approve(app, request), approve(other, request)]);
      assert.deepEqual(answers[0], answers[1]);
      await outcome;
      assert.equal(bank.paid.length, round + 1);
    }
  });

  on('a decision at the deadline counts by the clock of the store', async (open) => {
    const [app, other, bank] = [await open(), await open(), new Bank()];
    const gate = createGate(app, compileTestTools(bank.tool()), { humanInLoop: { approvalTimeout: 150 } });
    for (let round = 0; round < 8; round++) {
      const { request, outcome } = await startCall(gate, refund());
      const before = bank.paid.length;
      await waitUntil(
        async () => (await other.service.clock.readNow()) >= Date.parse(request.timeout) - (round - 4),
        'The deadline never passed.',
      );
      const answer = await approve(other, request).catch((error) => error);
      const ended = await outcome;
      const { record } = await readRow(app, request);
      assert.equal(ended.status, 'decidedAt' in answer ? 'completed' : 'rejected');
      assert.equal(record.body.decision?.cause, 'decidedAt' in answer ? undefined : 'timeout');
      if ('decidedAt' in answer) assert.ok(answer.decidedAt < request.timeout);
      else assert.ok(['approval_expired', 'approval_decided'].includes(answer.code), String(answer));
      assert.equal(bank.paid.length - before, ended.status === 'completed' ? 1 : 0);
    }
  });

  on('a deadline that passes while no process runs is a timeout', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const call = refund();
    const gate = createGate(app, compileTestTools(bank.tool()), { humanInLoop: { approvalTimeout: 200 } });
    const other = refund();
    const pending = [await startCall(gate, call), await startCall(gate, other)];
    await app.service.close();
    for (const { outcome } of pending) await expectError(outcome, 'interrupted');
    const later = await open();
    await waitUntil(
      async () => (await later.service.clock.readNow()) > Date.parse(pending[1]!.request.timeout),
      'The deadline never passed.',
    );
    // The list uses the clock of the store, whether or not the expiry is stored yet.
    assert.deepEqual((await listApprovals(later.service)).records, []);
    const ended = await createGate(later, compileTestTools(bank.tool())).call(call);
    assert.equal((ended.result as { error: string }).error, 'approval_timeout');
    // No process waits for the other request: the next one that opens the store expires it.
    const next = await open();
    await waitUntil(
      async () => (await readRow(next, pending[1]!.request)).record.status === 'rejected',
      'The overdue request never expired.',
    );
    assert.equal((await readRow(next, pending[1]!.request)).record.body.decision?.cause, 'timeout');
    assert.equal(bank.paid.length, 0);
  });

  on('the request of a cancelled run can no longer be approved', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const stop = new AbortController();
    const { request, outcome } = await startCall(createGate(app, compileTestTools(bank.tool())), refund(), {
      signal: stop.signal,
    });
    stop.abort(new Error('The customer called back.'));
    const ended = await outcome;
    assert.equal(ended.status, 'cancelled');
    assert.deepEqual((ended.result as { reason: string }).reason, 'The customer called back.');
    await expectError(approve(app, request), 'approval_decided');
    assert.equal(bank.paid.length, 0);
  });
}
