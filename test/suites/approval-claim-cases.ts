import * as assert from 'node:assert/strict';
import { pruneApprovals } from '../../core/approval/audit.ts';
import { listApprovals } from '../../core/approval/list-approvals.ts';
import type { CallOutcome } from '../../core/approval/outcome.ts';
import { newRequestId } from '../../core/approval/request.ts';
import { validUntil } from '../../core/approval/state.ts';
import type { DeclareApprovalCase } from './approval-case.ts';
import {
  approve,
  Bank,
  claimAndDie,
  compileTestTools,
  createGate,
  readRow,
  refund,
  startCall,
} from './approval-setup.ts';
import { expectError } from './expect-error.ts';
import type { StoreUnderTest } from './test-database.ts';
import { waitUntil } from './wait-until.ts';

/** Declares that an approved call runs at most once, whatever dies between its approval and its result. */
export function declareClaimCases(on: DeclareApprovalCase, { maxWriteMs = 1_000 }: StoreUnderTest): void {
  on('a handler does not run before its approval is stored and claimed', async (open) => {
    const [app, other, bank] = [await open(), await open(), new Bank()];
    const seen: string[] = [];
    const reading = bank.tool({
      handler: async (ctx) => {
        const { record } = await readRow(other, { requestId: ctx.requestId! });
        seen.push(record.status, record.body.run);
        return ctx.approvedBy;
      },
    });
    const { request, outcome } = await startCall(createGate(app, compileTestTools(reading)), refund());
    await approve(app, request);
    assert.deepEqual((await outcome).result, 'ann');
    assert.deepEqual(seen, ['approved', 'claimed']);
    const { record } = await readRow(other, request);
    assert.deepEqual([record.body.run, record.body.outcome], ['done', { status: 'completed', result: 'ann' }]);
  });

  on('a call that ran does not run again in a later turn', async (open) => {
    const [app, later, bank] = [await open(), await open(), new Bank()];
    const call = refund();
    const { request, outcome } = await startCall(createGate(app, compileTestTools(bank.tool())), call);
    await approve(app, request);
    const first = await outcome;
    assert.deepEqual(await createGate(later, compileTestTools(bank.tool())).call(call), first);
    assert.equal(bank.paid.length, 1);
  });

  on('a call has the same idempotency key with and without an approval', async (open) => {
    const [app, later, bank] = [await open(), await open(), new Bank()];
    const call = refund();
    await createGate(later, compileTestTools(bank.tool({ requiresConfirmation: false }))).call(call);
    const { request, outcome } = await startCall(createGate(app, compileTestTools(bank.tool())), call);
    await approve(app, request);
    await outcome;
    assert.equal(bank.keys.length, 2);
    assert.equal(bank.keys[0], bank.keys[1]);
  });

  on('another call with the same id is a conflict', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const gate = createGate(app, compileTestTools(bank.tool()));
    const call = refund();
    const { request, outcome } = await startCall(gate, call);
    const more = { order: '1234', amount: 9999 };
    await expectError(gate.call({ ...call, parameters: more }), 'call_conflict');
    const [other, described] = [bank.tool({ tag: 'delete_account' }), bank.tool({ description: 'Pays at once.' })];
    const redeployed = createGate(app, compileTestTools(other, described));
    const conflicts = async () => {
      await expectError(redeployed.call({ ...call, tool: 'delete_account' }), 'call_conflict');
      await expectError(redeployed.call({ ...call, parameters: more }), 'call_conflict');
    };
    await expectError(
      createGate(app, compileTestTools(bank.tool()), { agentTag: 'other' }).call(call),
      'call_conflict',
    );
    await conflicts();
    assert.equal((await readRow(app, request)).record.status, 'waiting');
    await approve(app, request);
    const completed = await outcome;
    assert.deepEqual(completed.result, { paid: 20 });
    await conflicts();
    // The same call of the redeployed tool gets the stored result.
    assert.deepEqual(await redeployed.call(call), completed);
    assert.equal(bank.paid.length, 1);
  });

  on('two processes that wait for one request run it once', async (open) => {
    const [app, other, bank] = [await open(), await open(), new Bank()];
    for (let round = 0; round < 5; round++) {
      const call = refund();
      const here = await startCall(createGate(app, compileTestTools(bank.tool())), call);
      const there = await startCall(createGate(other, compileTestTools(bank.tool())), call);
      assert.equal(here.request.requestId, there.request.requestId);
      await approve(app, here.request);
      assert.deepEqual(await here.outcome, await there.outcome);
      assert.equal(bank.paid.length, round + 1);
    }
  });

  on('a crash between the approval and the run does not lose the call', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const call = refund(undefined, { requestId: newRequestId() });
    const crash = createGate(app, compileTestTools(bank.tool()));
    const dies = async () => {
      throw new Error('died');
    };
    const { request, outcome } = await startCall(crash, call, { beforeRun: dies });
    await approve(app, request);
    await assert.rejects(outcome, /died/);
    assert.equal((await readRow(app, request)).record.body.run, 'none');
    const later = await open();
    const ended = await createGate(later, compileTestTools(bank.tool())).call(call, { resumed: true });
    assert.equal(ended.status, 'completed');
    assert.equal(bank.paid.length, 1);
  });

  on('a call whose process died while the tool ran is interrupted, not run again', async (open) => {
    const [app, later, bank] = [await open(), await open(), new Bank()];
    const call = refund(undefined, { requestId: newRequestId() });
    await claimAndDie(app, bank, call);
    const ended = await createGate(later, compileTestTools(bank.tool())).call(call, { resumed: true });
    assert.equal(ended.status, 'interrupted');
    assert.equal((ended.result as { error: string }).error, 'interrupted');
    assert.equal(bank.paid.length, 0);
    const { record } = await readRow(later, { requestId: call.requestId! });
    assert.deepEqual([record.status, record.body.run], ['approved', 'unknown']);
    // A repeated call gets the same outcome.
    assert.deepEqual(await createGate(later, compileTestTools(bank.tool())).call(call, { resumed: true }), ended);
  });

  on('an approved call that no process takes up in time does not run, says so, and can be pruned', async (open) => {
    const [first, app, bank] = [await open(), await open(), new Bank()];
    const tools = compileTestTools(bank.tool());
    const options = { humanInLoop: { approvalValidFor: 1_000 } };
    const [named, forgotten] = [refund(), refund()];
    const gate = createGate(first, tools, options);
    const pending = [await startCall(gate, named), await startCall(gate, forgotten)];
    await first.service.close();
    for (const { outcome } of pending) await expectError(outcome, 'interrupted');
    for (const { request } of pending) await approve(app, request);
    const find = async () => (await listApprovals(app.service, { status: 'approved' })).records;
    const ends = (await find()).map((record) => Date.parse(record.validUntil!));
    for (const { validUntil: until, decidedAt } of await find()) {
      assert.equal(Date.parse(until!), Date.parse(decidedAt!) + 1_000);
    }
    await waitUntil(async () => (await app.service.clock.readNow()) > Math.max(...ends), 'the approvals never lapsed');
    const ended = await createGate(app, tools, options).call(named);
    assert.equal(ended.status, 'lapsed');
    const { error, message } = ended.result as { error: string; message: string };
    assert.deepEqual(
      [error, message],
      ['approval_lapsed', 'The approval was no longer valid when the call could start. The tool did not run.'],
    );
    assert.deepEqual(bank.paid, []);
    const { events = [] } = (await find()).find(({ requestId }) => requestId === ended.requestId) ?? {};
    assert.deepEqual([events.at(-1)?.type, events.at(-1)?.as], ['closed', 'lapsed']);
    assert.equal(await pruneApprovals(app.service, { olderThanMs: 0 }, async () => false), 2);
    assert.deepEqual(await find(), []);
  });

  on('an approved call does not run if its approval lapses while the claim is stored', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const { service } = app;
    const gate = createGate(app, compileTestTools(bank.tool()), { humanInLoop: { approvalValidFor: 1_000 } });
    const { request, outcome } = await startCall(gate, refund());
    const write = service.write.bind(service);
    service.write = async (row, next, guard) => {
      const hasLapsed = async () => (await service.clock.readNow()) > validUntil(row.record);
      if (next.body.run === 'claimed') await waitUntil(hasLapsed, 'the approval never lapsed');
      return write(row, next, guard);
    };
    await approve(app, request);
    assert.equal((await outcome).status, 'lapsed');
    assert.deepEqual(bank.paid, []);
    const { status, body } = (await readRow(app, request)).record;
    assert.deepEqual([status, body.run, body.outcome?.status], ['approved', 'none', 'lapsed']);
  });

  on('a failed or interrupted call reports the parameters it ran with', async (open) => {
    const [app, later, bank] = [await open(), await open(), new Bank()];
    const breaks = bank.tool({
      handler: async () => {
        throw new Error('no answer');
      },
    });
    const failing = await startCall(createGate(app, compileTestTools(breaks)), refund());
    await approve(app, failing.request, { amount: 15 });
    const call = refund(undefined, { requestId: newRequestId() });
    await claimAndDie(app, bank, call, { modifiedParams: { amount: 15 } });
    const interrupted = await createGate(later, compileTestTools(bank.tool())).call(call, { resumed: true });
    for (const [outcome, error] of [
      [await failing.outcome, 'tool_failed'],
      [interrupted, 'interrupted'],
    ] as const) {
      const { message, reason, ...rest } = outcome.result as { [name: string]: unknown };
      assert.deepEqual(rest, { error, tool: 'refund', parameters: { order: '1234', amount: 15, currency: 'EUR' } });
      assert.deepEqual(outcome.changed, ['amount']);
    }
  });

  on('an idempotent tool runs again with the same key', async (open) => {
    const [app, later, bank] = [await open(), await open(), new Bank()];
    let release = () => {};
    const runCase = new Promise<void>((resolve) => {
      release = resolve;
    });
    // Simulates a dead process: the tool took effect, but its result is not stored during the test.
    const hangs = bank.tool({
      idempotent: true,
      handler: async ({ idempotencyKey }) => {
        bank.keys.push(idempotencyKey);
        await runCase;
      },
    });
    const idempotent = compileTestTools(bank.tool({ idempotent: true }));
    const call = refund(undefined, { requestId: newRequestId() });
    try {
      const first = await startCall(createGate(app, compileTestTools(hangs)), call);
      await approve(app, first.request);
      await waitUntil(() => bank.keys.length === 1, 'The tool never ran.');
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

  on('a claim that was taken for lost while it was stored does not start the tool', async (open) => {
    const [app, later, bank] = [await open(), await open(), new Bank()];
    const { service } = app;
    const tools = compileTestTools(bank.tool());
    const call = refund();
    const { request, outcome } = await startCall(createGate(app, tools, { leaseMs: 300 }), call);
    const write = service.write.bind(service);
    let elsewhere: Promise<CallOutcome> | undefined;
    service.write = async (row, next, guard) => {
      const result = await write(row, next, guard);
      const { run, claim } = next.body;
      if (run === 'claimed' && claim?.beat === 0) {
        elsewhere = createGate(later, tools).call(call);
        await elsewhere;
      }
      return result;
    };
    await approve(app, request);
    assert.equal((await outcome).status, 'interrupted');
    assert.equal((await elsewhere)?.status, 'interrupted');
    assert.deepEqual(bank.paid, []);
  });

  on('a claim without heartbeats expires, and one with heartbeats does not', async (open) => {
    const [app, later, bank] = [await open(), await open(), new Bank()];
    const dead = refund();
    await claimAndDie(app, bank, dead, { leaseMs: 300 });
    assert.equal((await createGate(later, compileTestTools(bank.tool())).call(dead)).status, 'interrupted');
    let release = () => {};
    const slow = bank.tool({
      handler: () =>
        new Promise((resolve) => {
          release = () => resolve('done');
        }),
    });
    const alive = refund();
    const here = await startCall(createGate(app, compileTestTools(slow), { leaseMs: 3 * maxWriteMs }), alive);
    await approve(app, here.request);
    const there = createGate(later, compileTestTools(slow), { leaseMs: 3 * maxWriteMs }).call(alive);
    let beats = 0;
    await waitUntil(async () => {
      beats = (await readRow(later, here.request)).record.body.claim?.beat ?? 0;
      return beats >= 4;
    }, 'The claim had no heartbeats.');
    release();
    assert.deepEqual(await there, await here.outcome);
    assert.equal((await there).result, 'done');
  });
}
