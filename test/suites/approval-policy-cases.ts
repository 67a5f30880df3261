import * as assert from 'node:assert/strict';
import { DETACH } from '../../core/approval/call.ts';
import { decide } from '../../core/approval/decide.ts';
import { listApprovals } from '../../core/approval/list-approvals.ts';
import { newRequestId } from '../../core/approval/request.ts';
import { withClaim } from '../../core/approval/state.ts';
import { canonicalJson } from '../../core/json.ts';
import type { DeclareApprovalCase } from './approval-case.ts';
import {
  type ApprovalProcess,
  approve,
  Bank,
  compileTestTools,
  createGate,
  readRow,
  refund,
  reject,
  startCall,
} from './approval-setup.ts';
import { expectError } from './expect-error.ts';

/** Declares what policies, taps and edits of the parameters may do. */
export function declarePolicyCases(on: DeclareApprovalCase): void {
  on('a call that was rejected or ran does not run again when its policy no longer requires approval', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    let isOver = true;
    app.kernel.hooks.beforeToolCall.tap('budget', (review) => {
      if (isOver) review.requireApproval('Over the budget.');
    });
    const gate = createGate(app, compileTestTools(bank.tool({ requiresConfirmation: false })));
    for (const name of [{}, { requestId: newRequestId() }]) {
      isOver = true;
      bank.paid.length = 0;
      const [no, yes, later] = [refund(undefined, name), refund(), refund()];
      const first = await startCall(gate, no);
      await reject(app, first.request);
      const rejected = await first.outcome;
      const second = await startCall(gate, yes);
      await approve(app, second.request);
      const done = await second.outcome;
      const third = await startCall(gate, later);
      isOver = false;
      assert.deepEqual(await gate.call(no), rejected);
      assert.deepEqual(await gate.call(yes), done);
      await expectError(gate.call({ ...no, parameters: { order: '1234', amount: 21 } }), 'call_conflict');
      assert.equal(bank.paid.length, 1);
      const again = await startCall(gate, later);
      assert.equal(again.request.requestId, third.request.requestId);
      await approve(app, again.request);
      assert.deepEqual(await again.outcome, await third.outcome);
      assert.equal(bank.paid.length, 2);
      assert.equal((await gate.call(refund())).requestId, undefined);
      assert.equal(bank.paid.length, 3);
    }
  });

  for (const [change, definition, humanInLoop] of [
    ['approvals are disabled', {}, { enabled: false }],
    ['its tool needs no confirmation', { requiresConfirmation: false }, {}],
  ] as const) {
    on(`a call that has a request keeps it once ${change}, in every process`, async (open) => {
      const [app, bank] = [await open(), new Bank()];
      const free = (process: ApprovalProcess) =>
        createGate(process, compileTestTools(bank.tool({ tag, ...definition })), { humanInLoop });
      const tag = `refund_${Object.keys(humanInLoop).length}`;
      const other = await open();
      assert.equal((await free(app).call(refund(undefined, { tool: tag }))).requestId, undefined);
      const gated = createGate(app, compileTestTools(bank.tool({ tag })));
      for (const name of [() => ({}), () => ({ requestId: newRequestId() })]) {
        bank.paid.length = 0;
        const call = () => refund(undefined, { tool: tag, ...name() });
        const [no, yes, killed, later] = [call(), call(), call(), call()];
        const first = await startCall(gated, no);
        await reject(app, first.request, 'No.');
        const rejected = await first.outcome;
        const second = await startCall(gated, yes);
        await approve(app, second.request);
        const done = await second.outcome;
        // As a process leaves it that was killed after the effect.
        const detach = new AbortController();
        const third = await startCall(gated, killed, { signal: detach.signal });
        detach.abort(DETACH);
        await expectError(third.outcome, 'interrupted');
        await approve(app, third.request);
        const row = await readRow(app, third.request);
        const claim = { token: 'killed', by: 'killed', beat: 0, leaseMs: 100 };
        assert.ok((await app.service.write(row, withClaim(row.record, claim, Date.now()))).written);
        bank.paid.push({ effect: 'killed' });
        const fourth = await startCall(gated, later);
        const outcomes = [fourth.outcome];
        for (const process of [app, other]) {
          const gate = free(process);
          assert.deepEqual(await gate.call(no), rejected);
          assert.deepEqual(await gate.call(yes), done);
          assert.equal((await gate.call(killed)).status, 'interrupted');
          const joined = await startCall(gate, later);
          assert.equal(joined.request.requestId, fourth.request.requestId);
          outcomes.push(joined.outcome);
          await expectError(gate.call({ ...yes, parameters: { order: '1234', amount: 21 } }), 'call_conflict');
        }
        assert.equal(bank.paid.length, 2);
        await approve(app, fourth.request);
        const [ended, ...joined] = await Promise.all(outcomes);
        assert.equal(ended?.status, 'completed');
        for (const outcome of joined) assert.deepEqual(outcome, ended);
        assert.equal(bank.paid.length, 3);
      }
    });
  }

  on('a policy that throws does not let the tool run', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    let broken = false;
    app.kernel.hooks.beforeToolCall.tap('broken', () => {
      if (broken) throw new Error('secret');
    });
    const gate = createGate(app, compileTestTools(bank.tool()));
    const { request, outcome } = await startCall(gate, refund());
    broken = true;
    await approve(app, request);
    const ended = await outcome;
    assert.equal(ended.status, 'denied');
    assert.ok(!JSON.stringify(ended).includes('secret'));
    assert.equal((await gate.call(refund())).status, 'denied');
    // The policy also applies to a tool that needs no approval.
    const free = createGate(app, compileTestTools(bank.tool({ requiresConfirmation: false })));
    assert.equal((await free.call(refund())).status, 'denied');
    assert.equal(bank.paid.length, 0);
    const { record } = await readRow(app, request);
    assert.deepEqual([record.status, record.body.run], ['approved', 'none']);
  });

  on('taps can only restrict, and cannot modify the call', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    app.kernel.hooks.beforeToolCall.tap('strict', (review) => review.requireApproval('More than nothing.'));
    app.kernel.hooks.beforeToolCall.tap('late', (review) => {
      assert.throws(() => Object.assign(review.call.parameters, { amount: 1_000_000 }));
      assert.throws(() => Object.assign(review, { call: { ...review.call, parameters: { amount: 1 } } }));
    });
    const gate = createGate(app, compileTestTools(bank.tool({ requiresConfirmation: false })), {
      humanInLoop: { enabled: false },
    });
    const { request, outcome } = await startCall(gate, refund());
    assert.equal(request.reason, 'More than nothing.');
    await approve(app, request);
    await outcome;
    assert.equal(bank.paid[0]!.amount, 20);
  });

  on('a policy that returns a promise is awaited, also with tap', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    app.kernel.hooks.beforeToolCall.tap('slow', async (review) => {
      await app.service.clock.readNow();
      if (review.call.parameters.amount === 21) review.deny('Not 21.');
    });
    app.kernel.hooks.beforeDecision.tap('slow', async (review) => {
      await app.service.clock.readNow();
      if (review.decision.actor === 'bob') review.refuse('Not bob.');
    });
    const gate = createGate(app, compileTestTools(bank.tool()));
    assert.equal((await gate.call(refund({ order: 'a', amount: 21 }))).status, 'denied');
    const { request, outcome } = await startCall(gate, refund());
    await expectError(approve(app, request, undefined, { actor: 'bob' }), 'decision_refused');
    await approve(app, request);
    assert.equal((await outcome).status, 'completed');
  });

  on('a tap can keep requesters from approving their own requests', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    app.kernel.hooks.beforeDecision.tap('four eyes', (review) => {
      if (review.decision.actor === 'bob') review.refuse('They requested it.');
      if (review.decision.actor === 'eve') throw new Error('who?');
      assert.throws(() => Object.assign(review.decision, { actor: 'ceo' }));
      assert.throws(() => Object.assign(review, { decision: { ...review.decision, actor: 'ceo' } }));
    });
    const { request, outcome } = await startCall(createGate(app, compileTestTools(bank.tool())), refund());
    const error = await expectError(approve(app, request, undefined, { actor: 'bob' }), 'decision_refused');
    assert.equal(error.why, 'They requested it.');
    await expectError(approve(app, request, undefined, { actor: 'eve' }), 'decision_refused');
    await approve(app, request);
    await outcome;
    assert.equal((await readRow(app, request)).record.body.decision?.by, 'ann');
  });

  on('the tool runs with edited parameters, and the result names them', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const { request, outcome } = await startCall(createGate(app, compileTestTools(bank.tool())), refund());
    await approve(app, request, { amount: 15, currency: 'EUR' });
    assert.deepEqual(
      { ...(await outcome) },
      {
        status: 'completed',
        result: { paid: 15 },
        changed: ['amount'],
        executedWith: { amount: 15 },
        requestId: request.requestId,
      },
    );
    assert.deepEqual(JSON.parse(JSON.stringify(bank.paid)), [{ order: '1234', amount: 15, currency: 'EUR' }]);
  });

  on('an invalid edit leaves the request waiting', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const { request, outcome } = await startCall(createGate(app, compileTestTools(bank.tool())), refund());
    const hostile = JSON.parse('{ "__proto__": { "amount": 1 }, "constructor": 1 }');
    for (const edit of [{ amount: 'seven' }, { amount: -1 }, { note: 'new' }, { amount: null }, hostile]) {
      await expectError(approve(app, request, edit), 'approval_parameters_invalid');
    }
    await expectError(
      decide(app.service, {
        executionId: request.executionId,
        signal: 'reject',
        payload: { requestId: request.requestId, modifiedParams: { amount: 1 } },
      }),
      'decision_invalid',
    );
    assert.equal((await readRow(app, request)).record.status, 'waiting');
    assert.equal(bank.paid.length, 0);
    await approve(app, request, { amount: 1 });
    await outcome;
    assert.equal(bank.paid[0]!.amount, 1);
  });

  on('an edit is validated in a process that does not define the tool', async (open) => {
    const [app, other, bank] = [await open(), await open(), new Bank()];
    const { request, outcome } = await startCall(createGate(app, compileTestTools(bank.tool())), refund());
    await expectError(approve(other, request, { amount: 'seven' }), 'approval_parameters_invalid');
    await approve(other, request, { amount: 7 });
    assert.deepEqual((await outcome).result, { paid: 7 });
  });

  on('an edit is checked by the policies again', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    app.kernel.hooks.beforeToolCall.tap('limit', (review) => {
      if ((review.call.parameters.amount as number) > 100) review.deny('over the limit');
    });
    const gate = createGate(app, compileTestTools(bank.tool()));
    const { request, outcome } = await startCall(gate, refund());
    const error = await expectError(approve(app, request, { amount: 101 }), 'decision_refused');
    assert.equal(error.why, 'over the limit');
    await approve(app, request, { amount: 100 });
    assert.equal((await outcome).status, 'completed');
    const denied = await gate.call(refund({ order: 'a', amount: 500 }));
    assert.equal(denied.status, 'denied');
    assert.deepEqual((await listApprovals(app.service, { status: 'rejected' })).records[0]?.cause, 'policy');
    assert.equal(bank.paid.length, 1);
  });

  on('an edit is checked by a policy that only the waiting process has', async (open) => {
    const [app, other, bank] = [await open(), await open(), new Bank()];
    app.kernel.hooks.beforeToolCall.tap('limit', (review) => {
      if ((review.call.parameters.amount as number) > 100) review.deny('over the limit');
    });
    const { request, outcome } = await startCall(createGate(app, compileTestTools(bank.tool())), refund());
    assert.equal((await approve(other, request, { amount: 101 })).status, 'approved');
    const ended = await outcome;
    assert.equal(ended.status, 'denied');
    const { error, reason } = ended.result as { error: string; reason: string };
    assert.deepEqual([error, reason], ['policy_denied', 'over the limit']);
    assert.equal(bank.paid.length, 0);
    const { record } = await readRow(other, request);
    assert.deepEqual([record.status, record.body.run], ['approved', 'none']);
  });

  on('a call runs with what was shown, where a default depends on a default or on a change', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const fee = { type: 'number', default: 100 } as const;
    const fees = {
      type: 'object',
      required: true,
      properties: { mode: { type: 'string', default: 'fast' }, fee: { type: 'number' } },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      ...{ if: { properties: { mode: { const: 'fast' } }, required: ['mode'] }, then: { properties: { fee } } },
    } as const;
    const ran: unknown[] = [];
    const tool = bank.tool({
      parameters: { fees, o: { type: 'object', default: {}, properties: { a: { type: 'string' }, fee } } },
      handler: async (_context, parameters) => void ran.push(parameters),
    });
    const gate = createGate(app, compileTestTools(tool));
    const first = await startCall(gate, refund({ fees: {}, o: { fee: 0 } }));
    assert.equal(canonicalJson(first.request.parameters), '{"fees":{"fee":100,"mode":"fast"},"o":{"fee":0}}');
    await approve(app, first.request);
    await first.outcome;
    const changed = await startCall(gate, refund({ fees: { mode: 'slow' }, o: { fee: 0 } }));
    const answer = await approve(app, changed.request, { o: { a: 'b' } });
    assert.deepEqual(await approve(app, changed.request, { o: { a: 'b' } }), answer);
    await expectError(approve(app, changed.request, { o: { a: 'c' } }), 'approval_decided');
    assert.deepEqual((await changed.outcome).changed, ['o']);
    const { decision } = (await readRow(app, changed.request)).record.body;
    assert.equal(canonicalJson(decision?.modifiedParams), '{"o":{"a":"b","fee":100}}');
    assert.deepEqual(ran.map(canonicalJson), [
      canonicalJson(first.request.parameters),
      '{"fees":{"mode":"slow"},"o":{"a":"b","fee":100}}',
    ]);
  });
}
