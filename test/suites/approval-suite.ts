import * as assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { isRunningIn } from '../../core/agent/execution-record.ts';
import type { DeliveryRoute } from '../../core/approval/announce.ts';
import { type AuditEntry, auditTrail, pruneApprovals, verifyAudit } from '../../core/approval/audit.ts';
import type { StorageBackend } from '../../core/approval/backend.ts';
import { DETACH } from '../../core/approval/call.ts';
import { decide, type Signal } from '../../core/approval/decide.ts';
import { listApprovals } from '../../core/approval/list-approvals.ts';
import type { CallOutcome } from '../../core/approval/outcome.ts';
import { APPROVAL_STATUSES, newRequestId } from '../../core/approval/request.ts';
import { type ApprovalRow, approvals, tools, waiters } from '../../core/approval/schema.ts';
import { ApprovalService } from '../../core/approval/service.ts';
import { validUntil, withClaim } from '../../core/approval/state.ts';
import { canonicalJson, type Json } from '../../core/json.ts';
import { Kernel } from '../../core/kernel.ts';
import { metaTable } from '../../core/migration/history-table.ts';
import type { ToolParameters } from '../../core/tool/parameters.ts';
import {
  type ApprovalProcess,
  approve,
  Bank,
  compileTestTools,
  createGate,
  OWNER,
  openApprovalProcess,
  type PendingCall,
  readRow,
  refund,
  reject,
  startCall,
} from './approval-setup.ts';
import { expectError } from './expect-error.ts';
import { sealCase } from './seal-case.ts';
import { type DeclareCase, suite, type TestFunction } from './suite.ts';
import type { StoreUnderTest, TestStore } from './test-database.ts';
import { waitUntil } from './wait-until.ts';

/** The first use creates tables, which is slow on an embedded engine. */
const SLOW_MS = 300_000;

type Body = (open: () => Promise<ApprovalProcess>, testStore: TestStore) => Promise<void>;

/** With `tampers`, the case changes stored requests by other means than svc. */
type CaseOptions = { readonly tampers?: true };

/**
 * Tests that approvals keep their guarantees on a store. Many cases are named after a fault found in other approval
 * gates.
 */
export function approvalSuite(test: TestFunction, store: StoreUnderTest): void {
  suite(test, store, (declare) => cases(declare, store));
}

function cases(declare: DeclareCase, store: StoreUnderTest): void {
  const { maxWriteMs = 1_000 } = store;
  let sharedStore: ReturnType<StoreUnderTest['createStore']> | undefined;
  let remaining = 0;
  const on = (name: string, body: Body, { tampers }: CaseOptions = {}): void => {
    const runCase = async () => {
      sharedStore ??= store.createStore();
      const testStore = await sharedStore;
      const apps: ApprovalProcess[] = [];
      const backends: StorageBackend[] = [];
      const connect = async () => {
        const backend = await testStore.connect();
        backends.push(backend);
        return backend;
      };
      try {
        await body(
          async () => {
            const app = await openApprovalProcess(await connect());
            apps.push(app);
            return app;
          },
          { connect },
        );
        const verifier = await openApprovalProcess(await connect());
        apps.push(verifier);
        const { broken } = await verifyAudit(verifier.service);
        if (tampers) assert.notDeepEqual(broken, [], 'svc approvals verify finds nothing');
        else assert.deepEqual(broken, [], 'svc approvals verify');
      } finally {
        try {
          for (const { service } of apps) await service.close();
          await removeAllRequests(await connect());
        } finally {
          for (const backend of backends) await backend.close();
          remaining -= 1;
          if (remaining === 0) await testStore.drop();
        }
      }
    };
    if (declare(name, runCase, { timeoutMs: SLOW_MS })) remaining += 1;
  };

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

  on('parameters, changes and results keep the order of their keys', async (open) => {
    const [app, other] = await Promise.all([open(), open()]);
    const handled: string[] = [];
    const result = {
      zone: 1,
      id: [
        { y: 1, x: { b: 1, a: 2 } },
        { y: 2, x: null },
        { x: 3, y: 3 },
      ],
      of: 'a',
    };
    const parameters = { zone: { type: 'object' }, order: { type: 'string' }, a: { type: 'number' } } as const;
    const handler = (_ctx: unknown, params: unknown) => {
      handled.push(JSON.stringify(params));
      return result;
    };
    const gate = createGate(app, compileTestTools({ tag: 'refund', requiresConfirmation: true, parameters, handler }));
    const sent = { zone: { street: 'x', no: 1, city: { zip: 'z', name: 'n' } }, order: '1', a: 2 };
    const { request, outcome } = await startCall(gate, refund(sent));
    const modifiedParams = { zone: { no: 2, city: 'c', at: 1 }, a: 3 };
    await approve(other, request, modifiedParams);
    assert.equal(JSON.stringify((await outcome).result), JSON.stringify(result));
    assert.deepEqual(handled, [JSON.stringify({ ...sent, ...modifiedParams })]);
    const { records } = await listApprovals(other.service, { status: 'approved' });
    const record = records.find(({ requestId }) => requestId === request.requestId)!;
    assert.deepEqual(
      [record.parameters, record.modifiedParams, record.outcome?.result].map((value) => JSON.stringify(value)),
      [sent, modifiedParams, result].map((value) => JSON.stringify(value)),
    );
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

  on('a channel gets its receipts back with the decision, in whichever process reports it', async (open) => {
    const [first, next, bank] = [await open(), await open(), new Bank()];
    const given = new Map<string, readonly Json[]>();
    const route = (channel: string, receipt?: Json): DeliveryRoute => ({
      channel,
      deliver: async () => receipt,
      onDecided: async (_record, _signal, receipts) => void given.set(channel, receipts),
    });
    const routes = [
      route('chat', { chat: { id: 7 }, messages: ['1', 'ünïcødé'] }),
      route('pager', 'p1'),
      route('none'),
    ];
    const tools = compileTestTools(bank.tool());
    const call = refund();
    const detach = new AbortController();
    const interrupted = await startCall(createGate(first, tools, { routes }), call, { signal: detach.signal });
    const { requestId } = interrupted.request;
    const recorded = async () =>
      (await next.service.deliveries.page('byRequest', { equals: { requestId }, limit: 10 })).records.length;
    await waitUntil(async () => (await recorded()) === 3, 'The deliveries were never recorded.');
    detach.abort(DETACH);
    await expectError(interrupted.outcome, 'interrupted');
    const { request, outcome } = await startCall(createGate(next, tools, { routes }), call);
    await approve(next, request);
    assert.equal((await outcome).status, 'completed');
    await waitUntil(() => given.size === 3, 'The decision was never reported.');
    assert.deepEqual(Object.fromEntries(given), {
      chat: [{ chat: { id: 7 }, messages: ['1', 'ünïcødé'] }],
      pager: ['p1'],
      none: [],
    });
    assert.equal(await recorded(), 3, 'the next process delivered it again');
  });

  on('an invalid request id is unknown, whatever keys the store accepts', async (open) => {
    const app = await open();
    for (const requestId of ['', 'apr_', 'a\0b', '\ud83d', 'x'.repeat(3_000), 'x'.repeat(70_000)]) {
      await expectError(approve(app, { requestId, executionId: 'exe_1' }), 'approval_unknown');
      assert.equal(await app.service.getExpiringIfDue(requestId), undefined);
    }
  });

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

  on('a call that ran does not run again in a later turn', async (open) => {
    const [app, later, bank] = [await open(), await open(), new Bank()];
    const call = refund();
    const { request, outcome } = await startCall(createGate(app, compileTestTools(bank.tool())), call);
    await approve(app, request);
    const first = await outcome;
    assert.deepEqual(await createGate(later, compileTestTools(bank.tool())).call(call), first);
    assert.equal(bank.paid.length, 1);
  });

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

  on('a request survives a restart of the process that waits for it', async (open) => {
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

  on('a request is stored before it is announced', async (open) => {
    const [app, other, bank] = [await open(), await open(), new Bank()];
    const found: string[] = [];
    app.kernel.hooks.approvalRequested.tapPromise('test', async ({ requestId }) => {
      found.push((await readRow(other, { requestId })).record.status);
    });
    const { request, outcome } = await startCall(createGate(app, compileTestTools(bank.tool())), refund());
    await waitUntil(() => found.length > 0, 'The tap was never called.');
    assert.deepEqual(found, ['waiting']);
    await reject(app, request);
    await outcome;
  });

  on('a decision in another process reaches the waiting call', async (open) => {
    const [app, other, bank] = [await open(), await open(), new Bank()];
    const { request, outcome } = await startCall(createGate(app, compileTestTools(bank.tool())), refund());
    await approve(other, request);
    assert.equal((await outcome).status, 'completed');
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

  on(
    'a call whose stored parameters were changed does not run',
    async (open) => {
      const [app, bank] = [await open(), new Bank()];
      const gate = createGate(app, compileTestTools(bank.tool()));
      const { request, outcome } = await startCall(gate, refund({ order: '1234', amount: 42 }));
      const row = await readRow(app, request);
      const body = { ...row.record.body, parameters: { ...row.record.body.parameters, amount: 9999 } };
      await app.service.rows.replace(request.requestId, row.version, { ...row.record, body });
      await approve(app, request);
      assert.equal((await outcome).status, 'stale');
      assert.equal(bank.paid.length, 0);
    },
    { tampers: true },
  );

  on(
    'a call does not run if anything that its reviewer reads was changed in the store',
    async (open) => {
      const [app, bank] = [await open(), new Bank()];
      const changes: readonly ((row: ApprovalRow) => ApprovalRow)[] = [
        (row) => ({ ...row, agentTag: 'trusted' }),
        ...[
          { reason: 'Routine.' },
          { modelText: 'Routine.' },
          { tool: 'look' },
          { toolCallId: 'another' },
          { sensitive: ['order'] },
        ].map((changed) => (row: ApprovalRow) => ({ ...row, body: { ...row.body, ...changed } })),
      ];
      for (const change of changes) {
        for (const isDetached of [false, true]) {
          const call = refund(undefined, { requestId: newRequestId() });
          const detach = new AbortController();
          const gate = createGate(app, compileTestTools(bank.tool()));
          const { request, outcome } = await startCall(gate, call, { signal: detach.signal });
          if (isDetached) {
            detach.abort(DETACH);
            await expectError(outcome, 'interrupted');
          }
          const row = await readRow(app, request);
          await app.service.rows.replace(request.requestId, row.version, change(row.record));
          const { digest } = row.record.body;
          await approve(app, request, undefined, { actor: 'ann', reviewToken: digest });
          const ended = await (isDetached ? gate.call(call, { resumed: true }) : outcome);
          assert.equal(ended.status, 'stale');
          assert.equal((ended.result as { error: string }).error, 'approval_stale');
        }
      }
      assert.equal(bank.paid.length, 0);
    },
    { tampers: true },
  );

  on(
    'what the model wrote before a call is stored with it, cut and with masked values, and is in no list',
    async (open) => {
      const [app, bank] = [await open(), new Bank()];
      const parameters = {
        order: { type: 'string' },
        amount: { type: 'number' },
        iban: { type: 'string', sensitive: true },
      };
      const gate = createGate(app, compileTestTools(bank.tool({ parameters } as never)));
      const words = 'To DE00SECRET, \u{1f642}\ud83d\0 as you said.';
      const modelText = words.padEnd(3_000, 'x');
      const call = refund({ order: 'a', amount: 1, iban: 'DE00SECRET' }, { modelText, requestId: newRequestId() });
      const { request, outcome } = await startCall(gate, call);
      const { body } = (await readRow(app, request)).record;
      assert.equal(body.modelText, `${'To [masked], \u{1f642}\ufffd\ufffd as you said.'.padEnd(2_000, 'x')}…`);
      assert.deepEqual(
        (await trailOf(app)).map(({ type, details }) => [type, (details as { modelText?: string }).modelText]),
        [['requested', body.modelText]],
      );
      const { records } = await listApprovals(app.service);
      assert.equal(records.length, 1);
      assert.ok(!JSON.stringify([request, records]).includes('as you said'));
      await approve(app, request, undefined, { reviewToken: body.digest });
      assert.equal((await outcome).status, 'completed');
      const again = await createGate(app, compileTestTools(bank.tool({ parameters } as never))).call(
        { ...call, modelText: 'Other words.' },
        { resumed: true },
      );
      assert.equal(again.status, 'completed');
      assert.equal(bank.paid.length, 1);
      const silent = await startCall(gate, refund({ order: 'b', amount: 1 }, { modelText: ' \n' }));
      assert.ok(!('modelText' in (await readRow(app, silent.request)).record.body));
      await expectError(gate.call(refund(undefined, { modelText: 5 as never })), 'value_invalid');
      await reject(app, silent.request);
      await silent.outcome;
    },
  );

  on('a stored definition of a tool that was changed is not shown, and validates nothing', async (open) => {
    const [app, other] = [await open(), await open()];
    const tool = new Bank().tool({ tag: 'tampered' });
    const { request, outcome } = await startCall(
      createGate(app, compileTestTools(tool)),
      refund(undefined, { tool: tool.tag }),
    );
    const { toolDigest } = (await readRow(app, request)).record.body;
    assert.equal((await other.service.getToolDefinition(toolDigest))?.description, tool.description);
    const stored = app.service.backend.records(tools);
    const row = (await stored.get(toolDigest))!;
    const { definition } = row.record;
    let { version } = row;
    for (const changed of [
      { ...row.record, definition: { ...definition, description: 'Looks up a balance.' } },
      { ...row.record, definition: { ...definition, schema: { ...definition.schema, properties: {} } } },
      { ...row.record, definition: { ...definition, sensitive: ['order'] } },
      { ...row.record, tag: 'look' },
    ]) {
      await stored.replace(toolDigest, version, changed);
      version += 1;
      await expectError(other.service.getToolDefinition(toolDigest), 'approval_stale');
      await expectError(approve(other, request, { amount: 5 }), 'approval_stale');
    }
    await reject(other, request);
    assert.equal((await outcome).status, 'rejected');
  });

  on(
    'a call whose stored edit was changed does not run',
    async (open) => {
      const [app, bank] = [await open(), new Bank()];
      const call = refund();
      const detach = new AbortController();
      const { request, outcome } = await startCall(createGate(app, compileTestTools(bank.tool())), call, {
        signal: detach.signal,
      });
      detach.abort(DETACH);
      await expectError(outcome, 'interrupted');
      await approve(app, request, { amount: 5 });
      const row = await readRow(app, request);
      const decision = { ...row.record.body.decision!, modifiedParams: { amount: 9999 } };
      const changed = { ...row.record, body: { ...row.record.body, decision } };
      await app.service.rows.replace(request.requestId, row.version, changed);
      assert.equal((await createGate(app, compileTestTools(bank.tool())).call(call)).status, 'stale');
      assert.equal(bank.paid.length, 0);
    },
    { tampers: true },
  );

  on('a tool that was changed or removed after the request does not run', async (open) => {
    const [app, later, bank] = [await open(), await open(), new Bank()];
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
      const detach = new AbortController();
      const call = refund(undefined, { requestId: newRequestId() });
      const { request, outcome } = await startCall(createGate(app, compileTestTools(bank.tool())), call, {
        signal: detach.signal,
      });
      detach.abort(DETACH);
      await expectError(outcome, 'interrupted');
      if (decideFirst) await approve(app, request);
      const ended = await createGate(later, tools).call(call, { resumed: true });
      assert.equal(ended.status, 'stale');
      assert.equal((ended.result as { error: string }).error, 'approval_stale');
    }
    assert.equal(bank.paid.length, 0);
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

  on('an error that quotes a sensitive parameter is stored and returned without it', async (open) => {
    const [app, other] = await Promise.all([open(), open()]);
    const parameters = {
      card: { type: 'object', sensitive: true },
      pin: { type: 'integer', sensitive: true },
      order: { type: 'string' },
    } as const;
    const handler = (_ctx: unknown, params: unknown) => {
      const { card, pin, order } = params as { card: { holder: string; number: string }; pin: number; order: string };
      const url = `https://bank.example/?n=${encodeURIComponent(card.holder)}`;
      throw new Error(
        `card ${card.number} of ${card.holder.toUpperCase()} with ${pin} (${JSON.stringify(card)}, ${url}) for order ${order}7`,
      );
    };
    const tool = { tag: 'refund', requiresConfirmation: true, parameters, handler };
    const gate = createGate(app, compileTestTools(tool));
    const card = { holder: 'Ann "A" Lee', number: '4111-1111' };
    const { request, outcome } = await startCall(gate, refund({ card, pin: 7, order: 'a7' }));
    const { digest } = (await readRow(other, request)).record.body;
    await approve(other, request, { card: { ...card, number: '5500.0000' } }, { actor: 'ann', reviewToken: digest });
    const { status, result } = await outcome;
    const message =
      'The tool failed: card [masked] of [masked] with [masked] ' +
      '({"holder":"[masked]","number":"[masked]"}, https://bank.example/?n=[masked]) for order a77';
    assert.deepEqual([status, (result as { message: string }).message], ['failed', message]);
    const stored = JSON.stringify((await readRow(other, request)).record.body.outcome);
    assert.ok(stored.includes('[masked]') && !/4111|5500|Ann|ANN/.test(stored), stored);
    const free = createGate(app, compileTestTools({ ...tool, requiresConfirmation: false }));
    const ended = await free.call({ tool: 'refund', parameters: { card, pin: 7, order: 'a7' } });
    assert.equal((ended.result as { message: string }).message, message);
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

  on(
    'an approver learns that nobody waits for the decision, once its process has ended or is not seen',
    async (open, { connect }) => {
      const [first, app, bank] = [await open(), await open(), new Bank()];
      const tools = compileTestTools(bank.tool());
      const gate = createGate(first, tools);
      const [named, unnamed] = [refund(), refund(undefined, { toolCallId: undefined })];
      const [one, other] = [await startCall(gate, named), await startCall(gate, unnamed)];
      const since = async ({ request: { requestId } }: PendingCall, { service } = app) => {
        const records = [...(await listApprovals(service)).records, ...(await approved(service))];
        return records.find((record) => record.requestId === requestId)?.unattendedSince;
      };
      const approved = async (service: ApprovalService) =>
        (await listApprovals(service, { status: 'approved' })).records;
      assert.equal(await since(one), undefined, 'its process waits');

      // It is not seen for longer than its lease, as after a crash.
      const rows = (await connect()).records(waiters);
      const [{ record, version }] = [(await rows.get(first.service.presence.id))!];
      assert.equal(await rows.replace(record.waiterId, version, { ...record, leaseMs: 0 }), 'replaced');
      await waitUntil(async () => (await since(one)) !== undefined, 'a process that is not seen still waits');
      assert.ok(Date.parse((await since(one))!) >= record.seenAt.getTime());
      assert.equal(await since(one, first), undefined, 'a process knows that it waits');

      // Another process takes one of the calls up.
      const takenUp = await startCall(createGate(app, tools), named);
      await waitUntil(
        async () => (await readRow(app, one.request)).record.body.waiters?.length === 2,
        'it is not named',
      );
      assert.equal(await since(one), undefined);
      const seenBy = await open();
      assert.equal(await since(one, seenBy), undefined);
      assert.notEqual(await since(other, seenBy), undefined);

      await first.service.close();
      for (const { outcome } of [one, other]) await expectError(outcome, 'interrupted');
      const attended = await approve(seenBy, one.request);
      assert.equal(attended.unattendedSince, undefined);
      assert.equal((await takenUp.outcome).status, 'completed');
      const { unattendedSince } = await approve(seenBy, other.request);
      assert.ok(Date.parse(unattendedSince!) >= record.seenAt.getTime());
      assert.equal((await approve(seenBy, other.request)).unattendedSince, unattendedSince, 'nor when repeated');
      assert.equal(await since(other), unattendedSince);

      // Nobody can take up a call without a name.
      assert.equal(await pruneApprovals(app.service, { olderThanMs: 0 }, async () => false), 2);
      assert.equal(await seenBy.service.read(other.request.requestId), undefined);
      assert.equal(await rows.get(first.service.presence.id), undefined);
      assert.notEqual(await rows.get(app.service.presence.id), undefined);
      assert.equal(bank.paid.length, 1);
    },
  );

  on('the waiting calls of a process are one write that says so', async (open, { connect }) => {
    const [app, bank] = [await open(), new Bank()];
    const gate = createGate(app, compileTestTools(bank.tool()));
    const pending = await Promise.all(Array.from({ length: 20 }, () => startCall(gate, refund())));
    const found = await (await connect()).records(waiters).get(app.service.presence.id);
    assert.equal(found?.version, 1);
    for (const { request } of pending) await reject(app, request);
    await Promise.all(pending.map(({ outcome }) => outcome));
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

  on(
    'a damaged row is shown, can be rejected and expires; it neither runs nor hides the others',
    async (open) => {
      const [app, bank] = [await open(), new Bank()];
      const tools = compileTestTools(bank.tool());
      const gate = createGate(app, tools);
      const brief = createGate(app, tools, { humanInLoop: { approvalTimeout: 2_000 } });
      const [empty, whole, partial] = [
        await startCall(gate, refund()),
        await startCall(gate, refund()),
        await startCall(brief, refund()),
      ];
      await app.service.close();
      for (const { outcome } of [empty, whole, partial]) await expectError(outcome, 'interrupted');
      const damage = async (
        { request }: PendingCall,
        change: (body: ApprovalRow['body']) => unknown,
      ): Promise<void> => {
        const { record, version } = await readRow(app, request);
        const body = change(record.body) as ApprovalRow['body'];
        assert.equal(
          await app.service.backend.records(approvals).replace(record.requestId, version, { ...record, body }),
          'replaced',
        );
      };
      await damage(empty, () => ({}));
      await damage(partial, (body) => ({ ...body, votes: [null] }));
      const next = await open();
      const { records } = await listApprovals(next.service);
      const shown = records.filter(({ requestId }) => requestId !== partial.request.requestId);
      assert.deepEqual(shown.map(({ tool }) => tool).sort(), ['(damaged)', 'refund']);
      await expectError(approve(next, empty.request), 'approval_stale');
      await reject(next, empty.request);
      await approve(next, whole.request);
      await waitUntil(async () => {
        await next.service.sweep();
        return (await readRow(next, partial.request)).record.status === 'rejected';
      }, 'The damaged request did not expire.');
      const { decision, damaged } = (await readRow(next, partial.request)).record.body;
      assert.equal(decision?.cause, 'timeout');
      assert.equal((damaged as { readonly tool?: string }).tool, 'refund');
      assert.equal(bank.paid.length, 0);
    },
    { tampers: true },
  );

  on('a megabyte of parameters is rejected', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const gate = createGate(app, compileTestTools(bank.tool()));
    const ended = await gate.call(refund({ order: 'x'.repeat(1024 * 1024), amount: 1 }));
    assert.equal(ended.status, 'invalid');
    assert.equal((ended.result as { error: string }).error, 'parameters_too_large');
    assert.deepEqual((await listApprovals(app.service)).records, []);
    const large = await startCall(gate, refund({ order: 'ä'.repeat(100 * 1024), amount: 1 }));
    await expectError(approve(app, large.request, { order: 'ä'.repeat(200 * 1024) }), 'parameters_too_large');
    // The size is checked before anything else is read.
    const endless = {
      order: Array.from({ length: 1024 * 1024 }, () => 1),
      get amount(): number {
        throw new Error('It was read.');
      },
    };
    const unread = await gate.call(refund(endless));
    assert.equal((unread.result as { error: string }).error, 'parameters_too_large');
    await expectError(approve(app, large.request, endless), 'parameters_too_large');
    await approve(app, large.request);
    assert.equal((await large.outcome).status, 'completed');
  });

  on('an invalid call is reported to the model and creates no request', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const gate = createGate(app, compileTestTools(bank.tool()));
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
    assert.deepEqual((await listApprovals(app.service)).records, []);
  });

  on('a channel that fails does not block the decision', async (open) => {
    const [app, bank] = [await open(), new Bank()];
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
    const { request, outcome } = await startCall(createGate(app, compileTestTools(bank.tool()), { routes }), refund());
    const attempts = async () =>
      (await app.service.deliveries.page('byRequest', { equals: { requestId: request.requestId }, limit: 10 })).records;
    await waitUntil(async () => (await attempts()).length >= 2, 'The deliveries were not recorded.');
    const recorded = (await attempts()).map(({ record }) => [record.channel, record.delivered]);
    assert.deepEqual(recorded.sort(), [
      ['down', false],
      ['up', true],
    ]);
    assert.deepEqual(delivered, [request.requestId]);
    assert.equal((await listApprovals(app.service)).records.length, 1);
    await approve(app, request);
    assert.equal((await outcome).status, 'completed');
  });

  on('sensitive parameters are masked, and a decision on them requires a review token', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const tool = bank.tool({
      parameters: {
        order: { type: 'string', required: true },
        amount: { type: 'number', required: true },
        iban: { type: 'string', sensitive: true },
      },
    });
    const events: object[] = [];
    app.kernel.hooks.approvalRequested.tap('test', (request) => void events.push(request));
    app.kernel.hooks.approvalDecided.tap('test', (record) => void events.push(record));
    const call = refund({ order: 'a', amount: 1, iban: 'DE00SECRET' });
    const { request, outcome } = await startCall(createGate(app, compileTestTools(tool)), call);
    assert.deepEqual(request.parameters.iban, { masked: true });
    await expectError(approve(app, request), 'approval_unseen');
    await expectError(reject(app, request), 'approval_unseen');
    await expectError(approve(app, request, undefined, { reviewToken: 'guess' }), 'approval_unseen');
    const reviewToken = (await readRow(app, request)).record.body.digest;
    await approve(app, request, { iban: 'DE99SECRET' }, { reviewToken });
    assert.equal((await outcome).status, 'completed');
    assert.equal(bank.paid[0]!.iban, 'DE99SECRET');
    const trail = await trailOf(app);
    const listed = (await listApprovals(app.service, { status: 'approved' })).records;
    assert.ok(listed.length === 1 && events.length === 2);
    assert.ok(!JSON.stringify([events, listed, trail]).includes('SECRET'));
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

  on('the error of a handler reaches the model without its secrets', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const failing = bank.tool({
      handler: () => {
        throw new Error('cannot reach postgres://bank:hunter2@db/bank');
      },
    });
    const { request, outcome } = await startCall(createGate(app, compileTestTools(failing)), refund());
    await approve(app, request);
    const ended = await outcome;
    assert.equal(ended.status, 'failed');
    assert.ok(!JSON.stringify(ended).includes('hunter2'));
    assert.equal((await readRow(app, request)).record.body.run, 'done');
  });

  on('a result with characters that stores reject is not lost', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const returning = bank.tool({ handler: () => ({ 'k\0': 'a\0b', lone: '\ud800' }) });
    const failing = bank.tool({
      handler: () => {
        throw new Error(`${'x'.repeat(1_999 - 'a\0'.length)}a\0\u{1f600}`);
      },
    });
    for (const tool of [returning, failing]) {
      const call = refund();
      const gate = createGate(app, compileTestTools(tool));
      const { request, outcome } = await startCall(gate, call);
      await approve(app, request);
      const ended = await outcome;
      assert.deepEqual(await gate.call(call), ended);
      if (tool === returning) assert.deepEqual(ended.result, { 'k\uFFFD': 'a\uFFFDb', lone: '\uFFFD' });
      else assert.match((ended.result as { message: string }).message, /xa\uFFFD\uFFFD$/);
    }
  });

  on('a result nested too deeply for a store is reported as not kept', async (open) => {
    const [app, other, bank] = [await open(), await open(), new Bank()];
    for (const [depth, isKept] of [
      [65, true],
      [66, false],
      [3_600, false],
    ] as const) {
      const text = `${'['.repeat(depth)}"a\\u0000"${']'.repeat(depth)}`;
      const gate = createGate(app, compileTestTools(bank.tool({ handler: () => JSON.parse(text) })));
      const call = refund();
      const { request, outcome } = await startCall(gate, call);
      await approve(app, request);
      const given = JSON.stringify(await outcome.then(({ result }) => result));
      assert.equal(given, text.replace('\\u0000', '\uFFFD'));
      const again = await createGate(other, compileTestTools(bank.tool())).call(call);
      assert.equal(again.status, 'completed');
      if (isKept) assert.equal(JSON.stringify(again.result), given);
      else assert.equal((again.result as { error: string }).error, 'result_not_kept');
    }
    assert.deepEqual(bank.paid, []);
  });

  on('a call with the longest parameters ends with an outcome that can be stored', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    // 91 different characters of one byte each: two such texts exceed an item of DynamoDB even if compressed.
    const codes = [...randomBytes(255 * 1024)].map((byte) => '#'.charCodeAt(0) + (byte % 91));
    const noise = Buffer.from(codes).toString('latin1').replaceAll('\\', '!');
    let handler: () => unknown = () => 'paid';
    let isDenied = false;
    app.kernel.hooks.beforeToolCall.tap('budget', (review) => {
      if (isDenied) review.deny('Over the budget.');
    });
    const tool = bank.tool({ handler: () => bank.paid.push({}) && handler() });
    const gate = createGate(app, compileTestTools(tool));
    const run = async (more: { handler?: () => unknown; isDenied?: boolean }) => {
      const call = refund({ order: noise, amount: 1 });
      const { request, outcome } = await startCall(gate, call);
      handler = more.handler ?? handler;
      isDenied = more.isDenied === true;
      await approve(app, request);
      const first = await outcome;
      isDenied = false;
      return [first, await gate.call(call), (await readRow(app, request)).record.body.run] as const;
    };
    const [first, again, runState] = await run({ handler: () => noise });
    assert.deepEqual([first.status, first.result, runState], ['completed', noise, 'done']);
    assert.equal(again.status, 'completed');
    if (again.result !== noise) assert.equal((again.result as { error: string }).error, 'result_not_kept');
    const throws = () => {
      throw new Error('The bank is closed.');
    };
    const [failed, ...stored] = await run({ handler: throws });
    assert.equal(failed.status, 'failed');
    assert.equal((failed.result as { parameters: { order: string } }).parameters.order, noise);
    assert.deepEqual(stored, [failed, 'done']);
    const [denied, ...closed] = await run({ isDenied: true });
    assert.deepEqual([denied.status, (denied.result as { reason: string }).reason], ['denied', 'Over the budget.']);
    assert.deepEqual(closed, [denied, 'none']);
    assert.equal(bank.paid.length, 2);
  });

  on('a cancellation or denial with characters that stores reject is not lost', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const text = `never mind \0 \ud83d ${'x'.repeat(20_000)}`;
    const stored = text.slice(0, 10_000).replace('\0', '\uFFFD').replace('\ud83d', '\uFFFD');
    const gate = createGate(app, compileTestTools(bank.tool()));
    const stop = new AbortController();
    const remaining = await startCall(gate, refund(), { signal: stop.signal });
    stop.abort(new Error(text));
    const cancelled = await remaining.outcome;
    assert.deepEqual([cancelled.status, (cancelled.result as { reason: string }).reason], ['cancelled', stored]);
    const { request, outcome } = await startCall(gate, refund());
    app.kernel.hooks.beforeToolCall.tap('budget', (review) => review.deny(text));
    await approve(app, request);
    const denied = await outcome;
    assert.deepEqual([denied.status, (denied.result as { reason: string }).reason], ['denied', stored]);
    const never = await gate.call(refund());
    assert.deepEqual([never.status, (never.result as { reason: string }).reason], ['denied', stored]);
    assert.equal(bank.paid.length, 0);
  });

  on('waiting requests can be listed by agent, execution and age, page by page', async (open) => {
    const [app, other, bank] = [await open(), await open(), new Bank()];
    const stop = new AbortController();
    const { signal } = stop;
    // Ids contain the time of the process that created them, which differs slightly from the time of the store.
    const began = new Date((await app.service.clock.readNow()) - 5_000);
    const outcomes = [];
    for (const agentTag of ['payouts', 'mails', 'payouts', 'payouts', 'mails']) {
      const gate = createGate(app, compileTestTools(bank.tool()), { agentTag });
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

  on('the audit names who decided what, and pruning keeps open requests', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const gate = createGate(app, compileTestTools(bank.tool()));
    const done = await startCall(gate, refund());
    await approve(app, done.request, { amount: 2 });
    await done.outcome;
    const openCall = await startCall(gate, refund());
    const trail = await trailOf(app);
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
      of(openCall.request.requestId).map(({ type }) => type),
      ['requested'],
    );
    const isRunning = isRunningIn(app.service.backend);
    assert.equal(await pruneApprovals(app.service, { olderThanMs: 60_000 }, isRunning), 0);
    await waitUntil(
      async () => (await pruneApprovals(app.service, { olderThanMs: 0 }, isRunning)) === 1,
      'Nothing was pruned.',
    );
    assert.equal(await app.service.read(done.request.requestId), undefined);
    assert.equal((await readRow(app, openCall.request)).record.status, 'waiting');
    await reject(app, openCall.request);
    await openCall.outcome;
  });

  on('a decision made while the audit is read is not reported twice', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const gate = createGate(app, compileTestTools(bank.tool()));
    const { request, outcome } = await startCall(gate, refund());
    const types: string[] = [];
    for await (const { type } of auditTrail(app.service)) {
      types.push(type);
      if (type !== 'requested') continue;
      await approve(app, request);
      await outcome;
    }
    assert.deepEqual(types, ['requested', 'approved', 'claimed', 'finished']);
  });

  on(
    'two processes seal the audit at once, and what is changed afterwards is found, also where all hashes fit',
    async (open) => sealCase(open),
  );

  on('tables of another product or a newer SDK are rejected', async (_open, testStore) => {
    const backend = await testStore.connect();
    const { service } = await openApprovalProcess(backend);
    await service.close();
    const as = (owner: typeof OWNER | { product: string; env: string; database: string }) =>
      ApprovalService.open({ backend, hooks: new Kernel().hooks, owner });
    await expectError(as({ ...OWNER, product: 'other' }), 'database_foreign');
    await expectError(as({ ...OWNER, env: 'prd' }), 'database_foreign');
    const found = (await backend.records(metaTable).get('approvals'))!;
    await backend.records(metaTable).replace('approvals', found.version, { ...found.record, version: 99 });
    await expectError(as(OWNER), 'history_newer');
    await backend.records(metaTable).replace('approvals', found.version + 1, found.record);
    await (await as(OWNER)).close();
  });
}

/** Removes every request. Indexes of some engines lag, so they may list requests that are gone. */
async function removeAllRequests(backend: StorageBackend): Promise<void> {
  const rows = backend.records(approvals);
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

/** Leaves a call that is approved and claimed by a dead process. */
async function claimAndDie(
  app: ApprovalProcess,
  bank: Bank,
  call: ReturnType<typeof refund>,
  { leaseMs = 60_000, modifiedParams }: { readonly leaseMs?: number; readonly modifiedParams?: ToolParameters } = {},
): Promise<void> {
  const detach = new AbortController();
  const gate = createGate(app, compileTestTools(bank.tool()));
  const { request, outcome } = await startCall(gate, call, { signal: detach.signal });
  detach.abort(DETACH);
  await expectError(outcome, 'interrupted');
  await approve(app, request, modifiedParams);
  const row = await readRow(app, request);
  const claim = { token: 'dead', by: 'gone:1', beat: 0, leaseMs };
  await app.service.write(row, withClaim(row.record, claim, await app.service.clock.now()));
}
