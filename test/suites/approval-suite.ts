import * as assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { isRunningIn } from '../../core/agent/list.ts';
import { type AuditEntry, auditTrail, pruneApprovals } from '../../core/approval/audit.ts';
import type { StorageBackend } from '../../core/approval/backend.ts';
import { decide } from '../../core/approval/decide.ts';
import { DETACH } from '../../core/approval/call.ts';
import { APPROVAL_STATUSES, listApprovals } from '../../core/approval/list.ts';
import { ToolCallReview } from '../../core/approval/policy.ts';
import { newRequestId } from '../../core/approval/request.ts';
import { approvals } from '../../core/approval/schema.ts';
import { ApprovalService } from '../../core/approval/service.ts';
import { withClaim } from '../../core/approval/state.ts';
import { Kernel } from '../../core/kernel.ts';
import { metaTable } from '../../core/migration/history-table.ts';
import type { ToolParameters } from '../../core/tool/parameters.ts';
import {
  approve,
  Bank,
  createGate,
  type ApprovalProcess,
  OWNER,
  openApprovalProcess,
  refund,
  reject,
  rowOf,
  compileTestTools,
  startCall,
} from './approval-setup.ts';
import { expectError } from './expect-error.ts';
import { type DeclareCase, suite, type TestFunction } from './suite.ts';
import type { StoreUnderTest, TestStore } from './test-database.ts';
import { waitUntil } from './wait-until.ts';

/** A first use makes tables, which takes an engine without a server of its own a while. */
const SLOW_MS = 300_000;

type Body = (open: () => Promise<ApprovalProcess>, place: TestStore) => Promise<void>;

/**
 * What approvals promise, on any store. Each case is named after what it prevents; where a fault was seen in a gate
 * elsewhere, the case is that fault.
 */
export function approvalSuite(test: TestFunction, store: StoreUnderTest): void {
  suite(test, store, (declare) => cases(declare, store));
}

function cases(declare: DeclareCase, store: StoreUnderTest): void {
  const { patienceMs = 1_000 } = store;
  let shared: ReturnType<StoreUnderTest['createStore']> | undefined;
  let left = 0;
  const on = (name: string, body: Body): void => {
    const held = async () => {
      shared ??= store.createStore();
      const place = await shared;
      const offices: ApprovalProcess[] = [];
      const homes: StorageBackend[] = [];
      const connect = async () => {
        const home = await place.connect();
        homes.push(home);
        return home;
      };
      try {
        await body(
          async () => {
            const office = await openApprovalProcess(await connect());
            offices.push(office);
            return office;
          },
          { connect },
        );
      } finally {
        for (const { service } of offices) await service.close();
        await empty(await connect());
        for (const home of homes) await home.close();
        left -= 1;
        if (left === 0) await place.drop();
      }
    };
    if (declare(name, held, { timeoutMs: SLOW_MS })) left += 1;
  };

  on('one approval does not release the other calls of its turn', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const gate = createGate(office, compileTestTools(bank.tool()));
    const groupId = 'turn_1';
    const executionId = 'exe_turn';
    const pending = await Promise.all(
      [1, 2, 3].map((amount) => startCall(gate, refund({ order: 'a', amount }, { executionId, groupId }))),
    );
    await approve(office, pending[1]!.request);
    assert.deepEqual((await pending[1]!.outcome).result, { paid: 2 });
    assert.deepEqual(
      bank.paid.map(({ amount }) => amount),
      [2],
    );
    const { records } = await listApprovals(office.service, { agentTag: 'payouts' });
    assert.deepEqual(
      records.map(({ requestId }) => requestId).sort(),
      [pending[0]!.request.requestId, pending[2]!.request.requestId].sort(),
    );
    assert.ok(records.every((record) => record.groupId === groupId));
  });

  on('one rejection does not drop the approved calls beside it', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const gate = createGate(office, compileTestTools(bank.tool()));
    const [yes, no] = await Promise.all([startCall(gate, refund()), startCall(gate, refund())]);
    await reject(office, no.request, 'Ask the customer first.');
    await approve(office, yes.request);
    assert.equal((await yes.outcome).status, 'completed');
    assert.deepEqual(await no.outcome, {
      status: 'rejected',
      result: {
        error: 'approval_rejected',
        message: 'The approval request was rejected. The tool did not run.',
        reason: 'Ask the customer first.',
        tool: 'refund',
        parameters: { order: '1234', amount: 20, currency: 'EUR' },
      },
      requestId: no.request.requestId,
    });
    assert.equal(bank.paid.length, 1);
  });

  on('the id of a request does not approve it for another execution', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const gate = createGate(office, compileTestTools(bank.tool()));
    const { request } = await startCall(gate, refund());
    await expectError(approve(office, { ...request, executionId: 'exe_other' }), 'approval_unknown');
    await expectError(approve(office, { ...request, requestId: newRequestId() }), 'approval_unknown');
    assert.equal((await rowOf(office, request)).record.status, 'waiting');
    assert.equal(bank.paid.length, 0);
  });

  on('an id that no request can have decides nothing, whatever the store takes for a key', async (open) => {
    const office = await open();
    for (const requestId of ['', 'apr_', 'a\0b', '\ud83d', 'x'.repeat(3_000), 'x'.repeat(70_000)]) {
      await expectError(approve(office, { requestId, executionId: 'exe_1' }), 'approval_unknown');
      assert.equal(await office.service.getExpiringIfDue(requestId), undefined);
    }
  });

  on('a handler does not run before its approval is stored and claimed', async (open) => {
    const [office, other, bank] = [await open(), await open(), new Bank()];
    const seen: string[] = [];
    const look = bank.tool({
      handler: async (ctx) => {
        const { record } = await rowOf(other, { requestId: ctx.requestId! });
        seen.push(record.status, record.body.run);
        return ctx.approvedBy;
      },
    });
    const { request, outcome } = await startCall(createGate(office, compileTestTools(look)), refund());
    await approve(office, request);
    assert.deepEqual((await outcome).result, 'ann');
    assert.deepEqual(seen, ['approved', 'claimed']);
    const { record } = await rowOf(other, request);
    assert.deepEqual([record.body.run, record.body.outcome], ['done', { status: 'completed', result: 'ann' }]);
  });

  on('declining does not execute the tool, and silence is not a yes', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const short = createGate(office, compileTestTools(bank.tool()), { humanInLoop: { approvalTimeout: 300 } });
    const [no, silence] = await Promise.all([
      startCall(createGate(office, compileTestTools(bank.tool())), refund()),
      startCall(short, refund()),
    ]);
    await reject(office, no.request);
    await Promise.all([no.outcome, silence.outcome]);
    assert.equal(bank.paid.length, 0);
  });

  on('a time-out is not recorded as a human’s no', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const gate = createGate(office, compileTestTools(bank.tool()), { humanInLoop: { approvalTimeout: 300 } });
    const { request, outcome } = await startCall(gate, refund());
    assert.deepEqual(await outcome, {
      status: 'rejected',
      result: {
        error: 'approval_timeout',
        message: 'The approval request timed out after 300 ms.',
        tool: 'refund',
        parameters: { order: '1234', amount: 20, currency: 'EUR' },
      },
      requestId: request.requestId,
    });
    const { record } = await rowOf(office, request);
    assert.deepEqual([record.status, record.body.decision?.cause], ['rejected', 'timeout']);
    assert.ok(record.body.decision!.at >= request.timeout);
    await expectError(approve(office, request), 'approval_expired');
    await expectError(reject(office, request), 'approval_expired');
  });

  on('a late yes to a request that is over does not release the same call asked again', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const short = createGate(office, compileTestTools(bank.tool()), { humanInLoop: { approvalTimeout: 300 } });
    const gate = createGate(office, compileTestTools(bank.tool()));
    const call = refund();
    const expired = await startCall(short, { ...call, toolCallId: 'first' });
    assert.equal((await expired.outcome).status, 'rejected');
    const refusedOnce = await startCall(gate, { ...call, toolCallId: 'second' });
    await reject(office, refusedOnce.request);
    await refusedOnce.outcome;
    const again = await startCall(gate, { ...call, toolCallId: 'third' });
    assert.deepEqual(again.request.parameters, expired.request.parameters);
    assert.equal(new Set([expired, refusedOnce, again].map(({ request }) => request.requestId)).size, 3);
    await expectError(approve(office, expired.request), 'approval_expired');
    await expectError(approve(office, refusedOnce.request), 'approval_decided');
    assert.equal((await rowOf(office, again.request)).record.status, 'waiting');
    assert.equal(bank.paid.length, 0);
    await approve(office, again.request);
    assert.equal((await again.outcome).status, 'completed');
    assert.equal(bank.paid.length, 1);
  });

  on('a call that ran is not run again by a later turn', async (open) => {
    const [office, later, bank] = [await open(), await open(), new Bank()];
    const call = refund();
    const { request, outcome } = await startCall(createGate(office, compileTestTools(bank.tool())), call);
    await approve(office, request);
    const first = await outcome;
    assert.deepEqual(await createGate(later, compileTestTools(bank.tool())).call(call), first);
    assert.equal(bank.paid.length, 1);
  });

  on('a call that a human refused, or that ran, does not run where a policy no longer asks', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    let isOver = true;
    office.kernel.hooks.beforeToolCall.tap('budget', (review) => {
      if (isOver) review.requireApproval('Over the budget.');
    });
    const gate = createGate(office, compileTestTools(bank.tool({ requiresConfirmation: false })));
    for (const name of [{}, { requestId: newRequestId() }]) {
      isOver = true;
      bank.paid.length = 0;
      const [no, yes, later] = [refund(undefined, name), refund(), refund()];
      const first = await startCall(gate, no);
      await reject(office, first.request);
      const told = await first.outcome;
      const second = await startCall(gate, yes);
      await approve(office, second.request);
      const done = await second.outcome;
      const third = await startCall(gate, later);
      isOver = false;
      assert.deepEqual(await gate.call(no), told);
      assert.deepEqual(await gate.call(yes), done);
      await expectError(gate.call({ ...no, parameters: { order: '1234', amount: 21 } }), 'call_conflict');
      assert.equal(bank.paid.length, 1);
      const again = await startCall(gate, later);
      assert.equal(again.request.requestId, third.request.requestId);
      await approve(office, again.request);
      assert.deepEqual(await again.outcome, await third.outcome);
      assert.equal(bank.paid.length, 2);
      assert.equal((await gate.call(refund())).requestId, undefined);
      assert.equal(bank.paid.length, 3);
    }
  });

  on('a call has one key, whether it had to be asked for or not', async (open) => {
    const [office, later, bank] = [await open(), await open(), new Bank()];
    const call = refund();
    const { request, outcome } = await startCall(createGate(office, compileTestTools(bank.tool())), call);
    await approve(office, request);
    await outcome;
    await createGate(later, compileTestTools(bank.tool({ requiresConfirmation: false }))).call(call);
    assert.equal(bank.keys.length, 2);
    assert.equal(bank.keys[0], bank.keys[1]);
  });

  on('a decision that came before anybody waited is not lost', async (open) => {
    const [office, later, bank] = [await open(), await open(), new Bank()];
    const leave = new AbortController();
    const call = refund();
    const { request, outcome } = await startCall(createGate(office, compileTestTools(bank.tool())), call, { signal: leave.signal });
    leave.abort(DETACH);
    await expectError(outcome, 'interrupted');
    await approve(office, request);
    assert.equal((await createGate(later, compileTestTools(bank.tool())).call(call)).status, 'completed');
    assert.equal(bank.paid.length, 1);
  });

  on('a restart while waiting loses nothing', async (open) => {
    const [first, bank] = [await open(), new Bank()];
    const call = refund();
    const before = await startCall(createGate(first, compileTestTools(bank.tool())), call);
    await first.service.close();
    await expectError(before.outcome, 'interrupted');
    const second = await open();
    const after = await startCall(createGate(second, compileTestTools(bank.tool())), call, { resumed: true });
    assert.equal(after.request.requestId, before.request.requestId);
    await approve(second, after.request);
    assert.equal((await after.outcome).status, 'completed');
    assert.equal(bank.paid.length, 1);
  });

  on('nobody hears of a request that is not stored', async (open) => {
    const [office, other, bank] = [await open(), await open(), new Bank()];
    const found: string[] = [];
    office.kernel.hooks.approvalRequested.tapPromise('test', async ({ requestId }) => {
      found.push((await rowOf(other, { requestId })).record.status);
    });
    const { request, outcome } = await startCall(createGate(office, compileTestTools(bank.tool())), refund());
    await waitUntil(() => found.length > 0, 'The tap was never called.');
    assert.deepEqual(found, ['waiting']);
    await reject(office, request);
    await outcome;
  });

  on('a decision in another process reaches who waits', async (open) => {
    const [office, other, bank] = [await open(), await open(), new Bank()];
    const { request, outcome } = await startCall(createGate(office, compileTestTools(bank.tool())), refund());
    await approve(other, request);
    assert.equal((await outcome).status, 'completed');
  });

  on('the model is told which parameters a human changed, and the tool runs with those', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const { request, outcome } = await startCall(createGate(office, compileTestTools(bank.tool())), refund());
    await approve(office, request, { amount: 15, currency: 'EUR' });
    assert.deepEqual(await outcome, {
      status: 'completed',
      result: { paid: 15 },
      changed: ['amount'],
      requestId: request.requestId,
    });
    assert.deepEqual(JSON.parse(JSON.stringify(bank.paid)), [{ order: '1234', amount: 15, currency: 'EUR' }]);
  });

  on('an edit that does not fit leaves the request waiting', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const { request, outcome } = await startCall(createGate(office, compileTestTools(bank.tool())), refund());
    const hostile = JSON.parse('{ "__proto__": { "amount": 1 }, "constructor": 1 }');
    for (const edit of [{ amount: 'seven' }, { amount: -1 }, { note: 'new' }, { amount: null }, hostile]) {
      await expectError(approve(office, request, edit), 'approval_parameters_invalid');
    }
    await expectError(
      decide(office.service, {
        executionId: request.executionId,
        signal: 'reject',
        payload: { requestId: request.requestId, modifiedParams: { amount: 1 } },
      }),
      'decision_invalid',
    );
    assert.equal((await rowOf(office, request)).record.status, 'waiting');
    assert.equal(bank.paid.length, 0);
    await approve(office, request, { amount: 1 });
    await outcome;
    assert.equal(bank.paid[0]!.amount, 1);
  });

  on('an edit does not slip past a process that does not define the tool', async (open) => {
    const [office, elsewhere, bank] = [await open(), await open(), new Bank()];
    const { request, outcome } = await startCall(createGate(office, compileTestTools(bank.tool())), refund());
    await expectError(approve(elsewhere, request, { amount: 'seven' }), 'approval_parameters_invalid');
    await approve(elsewhere, request, { amount: 7 });
    assert.deepEqual((await outcome).result, { paid: 7 });
  });

  on('an edit does not slip past a policy that saw the original', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    office.kernel.hooks.beforeToolCall.tap('limit', (review) => {
      if ((review.call.parameters.amount as number) > 100) review.deny('over the limit');
    });
    const gate = createGate(office, compileTestTools(bank.tool()));
    const { request, outcome } = await startCall(gate, refund());
    const error = await expectError(approve(office, request, { amount: 101 }), 'decision_refused');
    assert.equal(error.why, 'over the limit');
    await approve(office, request, { amount: 100 });
    assert.equal((await outcome).status, 'completed');
    const denied = await gate.call(refund({ order: 'a', amount: 500 }));
    assert.equal(denied.status, 'denied');
    assert.deepEqual((await listApprovals(office.service, { status: 'rejected' })).records[0]?.cause, 'policy');
    assert.equal(bank.paid.length, 1);
  });

  on('an edit does not slip past a policy that the process of the decider does not have', async (open) => {
    const [office, elsewhere, bank] = [await open(), await open(), new Bank()];
    office.kernel.hooks.beforeToolCall.tap('limit', (review) => {
      if ((review.call.parameters.amount as number) > 100) review.deny('over the limit');
    });
    const { request, outcome } = await startCall(createGate(office, compileTestTools(bank.tool())), refund());
    assert.equal((await approve(elsewhere, request, { amount: 101 })).status, 'approved');
    const ended = await outcome;
    assert.equal(ended.status, 'denied');
    const { error, reason } = ended.result as { error: string; reason: string };
    assert.deepEqual([error, reason], ['policy_denied', 'over the limit']);
    assert.equal(bank.paid.length, 0);
    const { record } = await rowOf(elsewhere, request);
    assert.deepEqual([record.status, record.body.run], ['approved', 'none']);
  });

  on('a policy that throws does not let the tool run', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    let broken = false;
    office.kernel.hooks.beforeToolCall.tap('broken', () => {
      if (broken) throw new Error('secret');
    });
    const gate = createGate(office, compileTestTools(bank.tool()));
    const { request, outcome } = await startCall(gate, refund());
    broken = true;
    await approve(office, request);
    const ended = await outcome;
    assert.equal(ended.status, 'denied');
    assert.ok(!JSON.stringify(ended).includes('secret'));
    assert.equal((await gate.call(refund())).status, 'denied');
    // A tool that needs nobody's approval is under the policy as well.
    const free = createGate(office, compileTestTools(bank.tool({ requiresConfirmation: false })));
    assert.equal((await free.call(refund())).status, 'denied');
    assert.equal(bank.paid.length, 0);
    const { record } = await rowOf(office, request);
    assert.deepEqual([record.status, record.body.run], ['approved', 'none']);
  });

  on('taps can only restrict, and cannot change what they see', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    office.kernel.hooks.beforeToolCall.tap('strict', (review) => review.requireApproval('More than nothing.'));
    office.kernel.hooks.beforeToolCall.tap('late', (review) => {
      assert.ok(review instanceof ToolCallReview);
      assert.throws(() => Object.assign(review.call.parameters, { amount: 1_000_000 }));
    });
    const gate = createGate(office, compileTestTools(bank.tool({ requiresConfirmation: false })), {
      humanInLoop: { enabled: false },
    });
    const { request, outcome } = await startCall(gate, refund());
    assert.equal(request.reason, 'More than nothing.');
    await approve(office, request);
    await outcome;
    assert.equal(bank.paid[0]!.amount, 20);
  });

  on('the requester does not approve himself where that is refused', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    office.kernel.hooks.beforeDecision.tap('four eyes', (review) => {
      if (review.decision.actor === 'bob') review.refuse('He asked for it.');
      if (review.decision.actor === 'eve') throw new Error('who?');
    });
    const { request, outcome } = await startCall(createGate(office, compileTestTools(bank.tool())), refund());
    const error = await expectError(approve(office, request, undefined, { actor: 'bob' }), 'decision_refused');
    assert.equal(error.why, 'He asked for it.');
    await expectError(approve(office, request, undefined, { actor: 'eve' }), 'decision_refused');
    await approve(office, request);
    await outcome;
    assert.equal((await rowOf(office, request)).record.body.decision?.by, 'ann');
  });

  on('the same decision again is answered alike, and another one is not told that it won', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const gate = createGate(office, compileTestTools(bank.tool()), { humanInLoop: { approvalTimeout: 2 * patienceMs } });
    const { request, outcome } = await startCall(gate, refund());
    const answer = await approve(office, request, { amount: 3, currency: 'USD' });
    await outcome;
    assert.deepEqual(await approve(office, request, { currency: 'USD', amount: 3 }), answer);
    await expectError(approve(office, request), 'approval_decided');
    const error = await expectError(reject(office, request), 'approval_decided');
    assert.equal(error.details.status, 'approved');
    await waitUntil(
      async () => (await office.service.clock.readNow()) > Date.parse(request.timeout),
      'Its time never came.',
    );
    assert.deepEqual(await approve(office, request, { amount: 3, currency: 'USD' }), answer);
    assert.equal(bank.paid.length, 1);
  });

  on('two different decisions at once do not both win', async (open) => {
    const [office, other, bank] = [await open(), await open(), new Bank()];
    const gate = createGate(office, compileTestTools(bank.tool()));
    for (let round = 0; round < 10; round++) {
      const { request, outcome } = await startCall(gate, refund());
      const before = bank.paid.length;
      const [yes, no] = await Promise.allSettled([approve(office, request), reject(other, request)]);
      assert.notEqual(yes.status, no.status);
      const ended = await outcome;
      assert.equal(ended.status, yes.status === 'fulfilled' ? 'completed' : 'rejected');
      assert.equal(bank.paid.length - before, yes.status === 'fulfilled' ? 1 : 0);
    }
  });

  on('the same decision twice at once has one effect', async (open) => {
    const [office, other, bank] = [await open(), await open(), new Bank()];
    const gate = createGate(office, compileTestTools(bank.tool()));
    for (let round = 0; round < 10; round++) {
      const { request, outcome } = await startCall(gate, refund());
      const answers = await Promise.all([approve(office, request), approve(other, request)]);
      assert.deepEqual(answers[0], answers[1]);
      await outcome;
      assert.equal(bank.paid.length, round + 1);
    }
  });

  on('a decision at the deadline does not win over the clock', async (open) => {
    const [office, other, bank] = [await open(), await open(), new Bank()];
    const gate = createGate(office, compileTestTools(bank.tool()), { humanInLoop: { approvalTimeout: 150 } });
    for (let round = 0; round < 8; round++) {
      const { request, outcome } = await startCall(gate, refund());
      const before = bank.paid.length;
      await waitUntil(
        async () => (await other.service.clock.readNow()) >= Date.parse(request.timeout) - (round - 4),
        'Its time never came.',
      );
      const answer = await approve(other, request).catch((error) => error);
      const ended = await outcome;
      const { record } = await rowOf(office, request);
      assert.equal(ended.status, 'decidedAt' in answer ? 'completed' : 'rejected');
      assert.equal(record.body.decision?.cause, 'decidedAt' in answer ? undefined : 'timeout');
      if ('decidedAt' in answer) assert.ok(answer.decidedAt < request.timeout);
      else assert.ok(['approval_expired', 'approval_decided'].includes(answer.code), String(answer));
      assert.equal(bank.paid.length - before, ended.status === 'completed' ? 1 : 0);
    }
  });

  on('what was stored for approval and then changed does not run', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const gate = createGate(office, compileTestTools(bank.tool()));
    const { request, outcome } = await startCall(gate, refund({ order: '1234', amount: 42 }));
    const row = await rowOf(office, request);
    const body = { ...row.record.body, parameters: { ...row.record.body.parameters, amount: 9999 } };
    await office.service.rows.replace(request.requestId, row.version, { ...row.record, body });
    await approve(office, request);
    assert.equal((await outcome).status, 'stale');
    assert.equal(bank.paid.length, 0);
  });

  on('a decision whose edit was changed in the store does not run', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const call = refund();
    const leave = new AbortController();
    const { request, outcome } = await startCall(createGate(office, compileTestTools(bank.tool())), call, { signal: leave.signal });
    leave.abort(DETACH);
    await expectError(outcome, 'interrupted');
    await approve(office, request, { amount: 5 });
    const row = await rowOf(office, request);
    const decision = { ...row.record.body.decision!, modifiedParams: { amount: 9999 } };
    const changed = { ...row.record, body: { ...row.record.body, decision } };
    await office.service.rows.replace(request.requestId, row.version, changed);
    assert.equal((await createGate(office, compileTestTools(bank.tool())).call(call)).status, 'stale');
    assert.equal(bank.paid.length, 0);
  });

  on('a tool that changed or went after it was shown does not run', async (open) => {
    const [office, later, bank] = [await open(), await open(), new Bank()];
    const renamed = compileTestTools(
      bank.tool({
        parameters: { order: { type: 'string', required: true }, cents: { type: 'integer', required: true } },
      }),
    );
    const described = compileTestTools(bank.tool({ description: 'Pays twice.' }));
    for (const [tools, decideFirst] of [
      [renamed, true],
      [renamed, false],
      [described, true],
      [new Map(), true],
    ] as const) {
      const leave = new AbortController();
      const call = refund(undefined, { requestId: newRequestId() });
      const { request, outcome } = await startCall(createGate(office, compileTestTools(bank.tool())), call, { signal: leave.signal });
      leave.abort(DETACH);
      await expectError(outcome, 'interrupted');
      if (decideFirst) await approve(office, request);
      const ended = await createGate(later, tools).call(call, { resumed: true });
      assert.equal(ended.status, 'stale');
      assert.equal((ended.result as { error: string }).error, 'approval_stale');
    }
    assert.equal(bank.paid.length, 0);
  });

  on('the name of a call is not given to another call', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const gate = createGate(office, compileTestTools(bank.tool()));
    const call = refund();
    const { request, outcome } = await startCall(gate, call);
    const more = { order: '1234', amount: 9999 };
    await expectError(gate.call({ ...call, parameters: more }), 'call_conflict');
    const [other, described] = [bank.tool({ tag: 'delete_account' }), bank.tool({ description: 'Pays at once.' })];
    const redeployed = createGate(office, compileTestTools(other, described));
    const conflicts = async () => {
      await expectError(redeployed.call({ ...call, tool: 'delete_account' }), 'call_conflict');
      await expectError(redeployed.call({ ...call, parameters: more }), 'call_conflict');
    };
    await conflicts();
    assert.equal((await rowOf(office, request)).record.status, 'waiting');
    await approve(office, request);
    const told = await outcome;
    assert.deepEqual(told.result, { paid: 20 });
    await conflicts();
    // Of the tool as it is now the same call is answered as it was.
    assert.deepEqual(await redeployed.call(call), told);
    assert.equal(bank.paid.length, 1);
  });

  on('two who attach to one request do not run it twice', async (open) => {
    const [office, other, bank] = [await open(), await open(), new Bank()];
    for (let round = 0; round < 5; round++) {
      const call = refund();
      const here = await startCall(createGate(office, compileTestTools(bank.tool())), call);
      const there = await startCall(createGate(other, compileTestTools(bank.tool())), call);
      assert.equal(here.request.requestId, there.request.requestId);
      await approve(office, here.request);
      assert.deepEqual(await here.outcome, await there.outcome);
      assert.equal(bank.paid.length, round + 1);
    }
  });

  on('a crash between approval and run loses neither', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const call = refund(undefined, { requestId: newRequestId() });
    const crash = createGate(office, compileTestTools(bank.tool()));
    const dies = async () => {
      throw new Error('died');
    };
    const { request, outcome } = await startCall(crash, call, { beforeRun: dies });
    await approve(office, request);
    await assert.rejects(outcome, /died/);
    assert.equal((await rowOf(office, request)).record.body.run, 'none');
    const later = await open();
    const ended = await createGate(later, compileTestTools(bank.tool())).call(call, { resumed: true });
    assert.equal(ended.status, 'completed');
    assert.equal(bank.paid.length, 1);
  });

  on('a tool that was running when its process died is not run again unsaid', async (open) => {
    const [office, later, bank] = [await open(), await open(), new Bank()];
    const call = refund(undefined, { requestId: newRequestId() });
    await claimedByTheDead(office, bank, call);
    const ended = await createGate(later, compileTestTools(bank.tool())).call(call, { resumed: true });
    assert.equal(ended.status, 'interrupted');
    assert.equal((ended.result as { error: string }).error, 'interrupted');
    assert.equal(bank.paid.length, 0);
    const { record } = await rowOf(later, { requestId: call.requestId! });
    assert.deepEqual([record.status, record.body.run], ['approved', 'unknown']);
    // Asked again, it is told the same.
    assert.deepEqual(await createGate(later, compileTestTools(bank.tool())).call(call, { resumed: true }), ended);
  });

  on('what ran and failed, or may have run, is told with the parameters it ran with', async (open) => {
    const [office, later, bank] = [await open(), await open(), new Bank()];
    const breaks = bank.tool({
      handler: async () => {
        throw new Error('no answer');
      },
    });
    const failing = await startCall(createGate(office, compileTestTools(breaks)), refund());
    await approve(office, failing.request, { amount: 15 });
    const call = refund(undefined, { requestId: newRequestId() });
    await claimedByTheDead(office, bank, call, { modifiedParams: { amount: 15 } });
    const interrupted = await createGate(later, compileTestTools(bank.tool())).call(call, { resumed: true });
    for (const [outcome, error] of [
      [await failing.outcome, 'tool_failed'],
      [interrupted, 'interrupted'],
    ] as const) {
      const { message, reason, ...told } = outcome.result as { [name: string]: unknown };
      assert.deepEqual(told, { error, tool: 'refund', parameters: { order: '1234', amount: 15, currency: 'EUR' } });
      assert.deepEqual(outcome.changed, ['amount']);
    }
  });

  on('an idempotent tool is run again under the same key', async (open) => {
    const [office, later, bank] = [await open(), await open(), new Bank()];
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    // As good as dead: it took effect, and its result is never stored while anybody looks.
    const hangs = bank.tool({
      idempotent: true,
      handler: async ({ idempotencyKey }) => {
        bank.keys.push(idempotencyKey);
        await held;
      },
    });
    const idempotent = compileTestTools(bank.tool({ idempotent: true }));
    const call = refund(undefined, { requestId: newRequestId() });
    try {
      const first = await startCall(createGate(office, compileTestTools(hangs)), call);
      await approve(office, first.request);
      await waitUntil(() => bank.keys.length === 1, 'It never ran.');
      const ended = await createGate(later, idempotent).call(call, { resumed: true });
      assert.deepEqual([ended.status, ended.result], ['completed', { paid: 20 }]);
    } finally {
      release();
    }
    assert.equal(bank.keys.length, 2);
    assert.equal(new Set(bank.keys).size, 1, 'one call, one key');
    const another = refund(undefined, { requestId: newRequestId(), executionId: call.executionId! });
    const { request, outcome } = await startCall(createGate(later, idempotent), another);
    await approve(later, request);
    await outcome;
    assert.equal(bank.keys.length, 3);
    assert.equal(new Set(bank.keys).size, 2, 'another call, another key');
  });

  on('a claim whose holder is silent is given up, and one that beats is not', async (open) => {
    const [office, later, bank] = [await open(), await open(), new Bank()];
    const dead = refund();
    await claimedByTheDead(office, bank, dead, { leaseMs: 300 });
    assert.equal((await createGate(later, compileTestTools(bank.tool())).call(dead)).status, 'interrupted');
    let release = () => {};
    const slow = bank.tool({
      handler: () =>
        new Promise((resolve) => {
          release = () => resolve('done');
        }),
    });
    const alive = refund();
    const here = await startCall(createGate(office, compileTestTools(slow), { leaseMs: 3 * patienceMs }), alive);
    await approve(office, here.request);
    const there = createGate(later, compileTestTools(slow), { leaseMs: 3 * patienceMs }).call(alive);
    let beats = 0;
    await waitUntil(async () => {
      beats = (await rowOf(later, here.request)).record.body.claim?.beat ?? 0;
      return beats >= 4;
    }, 'The claim never beat.');
    release();
    assert.deepEqual(await there, await here.outcome);
    assert.equal((await there).result, 'done');
  });

  on('a deadline that passed while everything was down is a time-out', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const call = refund();
    const gate = createGate(office, compileTestTools(bank.tool()), { humanInLoop: { approvalTimeout: 200 } });
    const other = refund();
    const pending = [await startCall(gate, call), await startCall(gate, other)];
    await office.service.close();
    for (const { outcome } of pending) await expectError(outcome, 'interrupted');
    const later = await open();
    await waitUntil(
      async () => (await later.service.clock.readNow()) > Date.parse(pending[1]!.request.timeout),
      'Its time never came.',
    );
    // Listed by the store's clock, whether anybody has decided it yet or not.
    assert.deepEqual((await listApprovals(later.service)).records, []);
    const ended = await createGate(later, compileTestTools(bank.tool())).call(call);
    assert.equal((ended.result as { error: string }).error, 'approval_timeout');
    // Nobody waits for the other: the next process that opens the store decides it.
    const next = await open();
    await waitUntil(
      async () => (await rowOf(next, pending[1]!.request)).record.status === 'rejected',
      'Nobody decided what was overdue.',
    );
    assert.equal((await rowOf(next, pending[1]!.request)).record.body.decision?.cause, 'timeout');
    assert.equal(bank.paid.length, 0);
  });

  on('a megabyte of parameters is not stored', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const gate = createGate(office, compileTestTools(bank.tool()));
    const ended = await gate.call(refund({ order: 'x'.repeat(1024 * 1024), amount: 1 }));
    assert.equal(ended.status, 'invalid');
    assert.equal((ended.result as { error: string }).error, 'parameters_too_large');
    assert.deepEqual((await listApprovals(office.service)).records, []);
    const large = await startCall(gate, refund({ order: 'ä'.repeat(100 * 1024), amount: 1 }));
    await expectError(approve(office, large.request, { order: 'ä'.repeat(200 * 1024) }), 'parameters_too_large');
    await approve(office, large.request);
    assert.equal((await large.outcome).status, 'completed');
  });

  on('a call that does not fit is told to the model and asked of nobody', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const gate = createGate(office, compileTestTools(bank.tool()));
    const wrong: [unknown, string][] = [
      [{ order: 5, amount: 1 }, 'invalid_parameters'],
      [{ order: 'a' }, 'invalid_parameters'],
      [{ order: 'a', amount: 1, extra: true }, 'invalid_parameters'],
      ['text', 'invalid_parameters'],
      [JSON.parse('{ "order": "a", "amount": 1, "__proto__": {} }'), 'invalid_parameters'],
    ];
    for (const [parameters, error] of wrong) {
      const ended = await gate.call(refund(parameters));
      assert.deepEqual([ended.status, (ended.result as { error: string }).error], ['invalid', error]);
    }
    const unknown = await gate.call({ ...refund(), tool: 'wire' });
    assert.equal((unknown.result as { error: string }).error, 'unknown_tool');
    assert.deepEqual((await listApprovals(office.service)).records, []);
  });

  on('a channel that fails does not keep the request from being decided', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const delivered: string[] = [];
    const routes = [
      {
        channel: 'down',
        deliver: async () => {
          throw new Error('unreachable');
        },
      },
      { channel: 'hangs', deliver: () => new Promise<void>(() => {}) },
      {
        channel: 'up',
        deliver: async ({ request }: { request: { requestId: string } }) => void delivered.push(request.requestId),
      },
    ];
    const { request, outcome } = await startCall(createGate(office, compileTestTools(bank.tool()), { routes }), refund());
    const attempts = async () =>
      (await office.service.deliveries.page('byRequest', { equals: { requestId: request.requestId }, limit: 10 })).records;
    await waitUntil(async () => (await attempts()).length >= 2, 'The deliveries were not recorded.');
    const told = (await attempts()).map(({ record }) => [record.channel, record.delivered]);
    assert.deepEqual(told.sort(), [
      ['down', false],
      ['up', true],
    ]);
    assert.deepEqual(delivered, [request.requestId]);
    assert.equal((await listApprovals(office.service)).records.length, 1);
    await approve(office, request);
    assert.equal((await outcome).status, 'completed');
  });

  on('sensitive parameters are not shown, and nobody decides on them unseen', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const tool = bank.tool({
      parameters: {
        order: { type: 'string', required: true },
        amount: { type: 'number', required: true },
        iban: { type: 'string', sensitive: true },
      },
    });
    const heard: object[] = [];
    office.kernel.hooks.approvalRequested.tap('test', (request) => void heard.push(request));
    office.kernel.hooks.approvalDecided.tap('test', (record) => void heard.push(record));
    const call = refund({ order: 'a', amount: 1, iban: 'DE00SECRET' });
    const { request, outcome } = await startCall(createGate(office, compileTestTools(tool)), call);
    assert.deepEqual(request.parameters.iban, { masked: true });
    await expectError(approve(office, request), 'approval_unseen');
    await expectError(reject(office, request), 'approval_unseen');
    await expectError(approve(office, request, undefined, { reviewToken: 'guess' }), 'approval_unseen');
    const reviewToken = (await rowOf(office, request)).record.body.digest;
    await approve(office, request, { iban: 'DE99SECRET' }, { reviewToken });
    assert.equal((await outcome).status, 'completed');
    assert.equal(bank.paid[0]!.iban, 'DE99SECRET');
    const trail = await trailOf(office);
    const listed = (await listApprovals(office.service, { status: 'approved' })).records;
    assert.ok(listed.length === 1 && heard.length === 2);
    assert.ok(!JSON.stringify([heard, listed, trail]).includes('SECRET'));
  });

  on('a cancelled run does not leave a request that could still release its call', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const stop = new AbortController();
    const { request, outcome } = await startCall(createGate(office, compileTestTools(bank.tool())), refund(), { signal: stop.signal });
    stop.abort(new Error('The customer called back.'));
    const ended = await outcome;
    assert.equal(ended.status, 'cancelled');
    assert.deepEqual((ended.result as { reason: string }).reason, 'The customer called back.');
    await expectError(approve(office, request), 'approval_decided');
    assert.equal(bank.paid.length, 0);
  });

  on('a handler that throws is told to the model without a secret', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const failing = bank.tool({
      handler: () => {
        throw new Error('cannot reach postgres://bank:hunter2@db/bank');
      },
    });
    const { request, outcome } = await startCall(createGate(office, compileTestTools(failing)), refund());
    await approve(office, request);
    const ended = await outcome;
    assert.equal(ended.status, 'failed');
    assert.ok(!JSON.stringify(ended).includes('hunter2'));
    assert.equal((await rowOf(office, request)).record.body.run, 'done');
  });

  on('what a handler gave is not lost for characters that no store holds', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const giving = bank.tool({ handler: () => ({ 'k\0': 'a\0b', lone: '\ud800' }) });
    const failing = bank.tool({
      handler: () => {
        throw new Error(`${'x'.repeat(1_999 - 'a\0'.length)}a\0\u{1f600}`);
      },
    });
    for (const tool of [giving, failing]) {
      const call = refund();
      const gate = createGate(office, compileTestTools(tool));
      const { request, outcome } = await startCall(gate, call);
      await approve(office, request);
      const told = await outcome;
      assert.deepEqual(await gate.call(call), told);
      if (tool === giving) assert.deepEqual(told.result, { 'k\uFFFD': 'a\uFFFDb', lone: '\uFFFD' });
      else assert.match((told.result as { message: string }).message, /xa\uFFFD\uFFFD$/);
    }
  });

  on('a result that is nested too deep for a store is told as that to who asks again', async (open) => {
    const [office, other, bank] = [await open(), await open(), new Bank()];
    for (const [depth, isKept] of [
      [65, true],
      [66, false],
      [3_600, false],
    ] as const) {
      const text = `${'['.repeat(depth)}"a\\u0000"${']'.repeat(depth)}`;
      const gate = createGate(office, compileTestTools(bank.tool({ handler: () => JSON.parse(text) })));
      const call = refund();
      const { request, outcome } = await startCall(gate, call);
      await approve(office, request);
      const given = JSON.stringify(await outcome.then(({ result }) => result));
      assert.equal(given, text.replace('\\u0000', '\uFFFD'));
      const again = await createGate(other, compileTestTools(bank.tool())).call(call);
      assert.equal(again.status, 'completed');
      if (isKept) assert.equal(JSON.stringify(again.result), given);
      else assert.equal((again.result as { error: string }).error, 'result_not_kept');
    }
    assert.deepEqual(bank.paid, []);
  });

  on('a call of the longest parameters comes to an end that is kept, as it was told', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    // Of 91 characters that are one byte each in JSON: packed, two of it are more than an item of DynamoDB holds.
    const codes = [...randomBytes(255 * 1024)].map((byte) => '#'.charCodeAt(0) + (byte % 91));
    const noise = Buffer.from(codes).toString('latin1').replaceAll('\\', '!');
    let end: () => unknown = () => 'paid';
    let isDenied = false;
    office.kernel.hooks.beforeToolCall.tap('budget', (review) => {
      if (isDenied) review.deny('Over the budget.');
    });
    const tool = bank.tool({ handler: () => bank.paid.push({}) && end() });
    const gate = createGate(office, compileTestTools(tool));
    const told = async (more: { handler?: () => unknown; isDenied?: boolean }) => {
      const call = refund({ order: noise, amount: 1 });
      const { request, outcome } = await startCall(gate, call);
      end = more.handler ?? end;
      isDenied = more.isDenied === true;
      await approve(office, request);
      const first = await outcome;
      isDenied = false;
      return [first, await gate.call(call), (await rowOf(office, request)).record.body.run] as const;
    };
    const [first, again, run] = await told({ handler: () => noise });
    assert.deepEqual([first.status, first.result, run], ['completed', noise, 'done']);
    assert.equal(again.status, 'completed');
    if (again.result !== noise) assert.equal((again.result as { error: string }).error, 'result_not_kept');
    const throws = () => {
      throw new Error('The bank is closed.');
    };
    const [failed, ...kept] = await told({ handler: throws });
    assert.equal(failed.status, 'failed');
    assert.equal((failed.result as { parameters: { order: string } }).parameters.order, noise);
    assert.deepEqual(kept, [failed, 'done']);
    const [denied, ...closed] = await told({ isDenied: true });
    assert.deepEqual([denied.status, (denied.result as { reason: string }).reason], ['denied', 'Over the budget.']);
    assert.deepEqual(closed, [denied, 'none']);
    assert.equal(bank.paid.length, 2);
  });

  on('a cancellation and a policy’s no are not lost for characters that no store holds', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const words = `never mind \0 \ud83d ${'x'.repeat(20_000)}`;
    const kept = words.slice(0, 10_000).replace('\0', '\uFFFD').replace('\ud83d', '\uFFFD');
    const gate = createGate(office, compileTestTools(bank.tool()));
    const stop = new AbortController();
    const left = await startCall(gate, refund(), { signal: stop.signal });
    stop.abort(new Error(words));
    const cancelled = await left.outcome;
    assert.deepEqual([cancelled.status, (cancelled.result as { reason: string }).reason], ['cancelled', kept]);
    const { request, outcome } = await startCall(gate, refund());
    office.kernel.hooks.beforeToolCall.tap('budget', (review) => review.deny(words));
    await approve(office, request);
    const denied = await outcome;
    assert.deepEqual([denied.status, (denied.result as { reason: string }).reason], ['denied', kept]);
    const never = await gate.call(refund());
    assert.deepEqual([never.status, (never.result as { reason: string }).reason], ['denied', kept]);
    assert.equal(bank.paid.length, 0);
  });

  on('what waits can be found by agent, execution and age, page by page', async (open) => {
    const [office, other, bank] = [await open(), await open(), new Bank()];
    const stop = new AbortController();
    const { signal } = stop;
    // Ids carry the time of the process that made them, which is not quite the store's.
    const began = new Date((await office.service.clock.readNow()) - 5_000);
    const outcomes = [];
    for (const agentTag of ['payouts', 'mails', 'payouts', 'payouts', 'mails']) {
      const gate = createGate(office, compileTestTools(bank.tool()), { agentTag });
      const call = refund(undefined, { executionId: agentTag === 'mails' ? 'exe_mails' : 'exe_payouts' });
      outcomes.push((await startCall(gate, call, { signal })).outcome);
    }
    const all = (await listApprovals(other.service)).records.map(({ requestId }) => requestId);
    assert.equal(all.length, 5);
    assert.deepEqual([...all].sort(), all);
    assert.equal((await listApprovals(other.service, { agentTag: 'mails' })).records.length, 2);
    assert.equal((await listApprovals(other.service, { executionId: 'exe_payouts' })).records.length, 3);
    assert.equal((await listApprovals(other.service, { before: began })).records.length, 0);
    assert.equal((await listApprovals(other.service, { since: began })).records.length, 5);
    const paged: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await listApprovals(other.service, {
        limit: 2,
        newestFirst: true,
        ...(cursor !== undefined && { cursor }),
      });
      paged.push(...page.records.map(({ requestId }) => requestId));
      cursor = page.cursor;
    } while (cursor !== undefined);
    assert.deepEqual(paged, [...all].reverse());
    stop.abort('over');
    await Promise.all(outcomes);
    assert.equal((await listApprovals(other.service)).records.length, 0);
    assert.equal((await listApprovals(other.service, { status: 'cancelled' })).records.length, 5);
  });

  on('the audit tells who decided what, and pruning leaves what is open', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const gate = createGate(office, compileTestTools(bank.tool()));
    const done = await startCall(gate, refund());
    await approve(office, done.request, { amount: 2 });
    await done.outcome;
    const open_ = await startCall(gate, refund());
    const trail = await trailOf(office);
    assert.match(trail.find(({ type }) => type === 'approved')?.from ?? '', /^.+:\d+$/);
    const of = (requestId: string) => trail.filter((entry) => entry.requestId === requestId);
    assert.deepEqual(
      of(done.request.requestId).map(({ type, by, as }) =>
        [type, by?.replace(/:.*/, ''), as].slice(0, by === 'ann' ? 2 : 1),
      ),
      [['requested'], ['approved', 'ann'], ['claimed'], ['finished']],
    );
    assert.deepEqual(of(done.request.requestId)[1]?.details, { modifiedParams: { amount: 2 } });
    assert.deepEqual(
      of(open_.request.requestId).map(({ type }) => type),
      ['requested'],
    );
    const isRunning = isRunningIn(office.service.backend);
    assert.equal(await pruneApprovals(office.service, { olderThanMs: 60_000 }, isRunning), 0);
    await waitUntil(
      async () => (await pruneApprovals(office.service, { olderThanMs: 0 }, isRunning)) === 1,
      'Nothing was pruned.',
    );
    assert.equal(await office.service.read(done.request.requestId), undefined);
    assert.equal((await rowOf(office, open_.request)).record.status, 'waiting');
    await reject(office, open_.request);
    await open_.outcome;
  });

  on('what is decided while the audit is read is not told twice', async (open) => {
    const [office, bank] = [await open(), new Bank()];
    const gate = createGate(office, compileTestTools(bank.tool()));
    const { request, outcome } = await startCall(gate, refund());
    const told: string[] = [];
    for await (const { type } of auditTrail(office.service)) {
      told.push(type);
      if (type !== 'requested') continue;
      await approve(office, request);
      await outcome;
    }
    assert.deepEqual(told, ['requested', 'approved', 'claimed', 'finished']);
  });

  on('tables of another product or a newer SDK are not used', async (_open, place) => {
    const home = await place.connect();
    const { service } = await openApprovalProcess(home);
    await service.close();
    const as = (owner: typeof OWNER | { product: string; env: string; database: string }) =>
      ApprovalService.open({ backend: home, hooks: new Kernel().hooks, owner });
    await expectError(as({ ...OWNER, product: 'other' }), 'database_foreign');
    await expectError(as({ ...OWNER, env: 'prd' }), 'database_foreign');
    const found = (await home.records(metaTable).get('approvals'))!;
    await home.records(metaTable).replace('approvals', found.version, { ...found.record, version: 99 });
    await expectError(as(OWNER), 'history_newer');
    await home.records(metaTable).replace('approvals', found.version + 1, found.record);
    await (await as(OWNER)).close();
  });
}

/** Indexes of some engines lag: what they still show may be gone already. */
async function empty(home: StorageBackend): Promise<void> {
  const rows = home.records(approvals);
  for (const status of APPROVAL_STATUSES) {
    for (;;) {
      const { records } = await rows.page('byStatus', { equals: { status }, limit: 1000, columns: ['requestId'] });
      if (records.length === 0) break;
      for (const { record, version } of records) await rows.remove(record.requestId, version);
    }
  }
}

async function trailOf({ service }: ApprovalProcess): Promise<AuditEntry[]> {
  const entries: AuditEntry[] = [];
  for await (const entry of auditTrail(service)) entries.push(entry);
  return entries;
}

/** Leaves a call approved and claimed by a process that is gone. */
async function claimedByTheDead(
  office: ApprovalProcess,
  bank: Bank,
  call: ReturnType<typeof refund>,
  { leaseMs = 60_000, modifiedParams }: { readonly leaseMs?: number; readonly modifiedParams?: ToolParameters } = {},
): Promise<void> {
  const leave = new AbortController();
  const gate = createGate(office, compileTestTools(bank.tool()));
  const { request, outcome } = await startCall(gate, call, { signal: leave.signal });
  leave.abort(DETACH);
  await expectError(outcome, 'interrupted');
  await approve(office, request, modifiedParams);
  const row = await rowOf(office, request);
  const claim = { token: 'dead', by: 'gone:1', beat: 0, leaseMs };
  await office.service.write(row, withClaim(row.record, claim, await office.service.clock.now()));
}
