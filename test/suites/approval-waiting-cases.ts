import * as assert from 'node:assert/strict';
import type { DeliveryRoute } from '../../core/approval/announce.ts';
import { pruneApprovals } from '../../core/approval/audit.ts';
import { DETACH } from '../../core/approval/call.ts';
import { listApprovals } from '../../core/approval/list-approvals.ts';
import { waiters } from '../../core/approval/schema.ts';
import type { ApprovalService } from '../../core/approval/service.ts';
import type { Json } from '../../core/json.ts';
import type { DeclareApprovalCase } from './approval-case.ts';
import {
  approve,
  Bank,
  compileTestTools,
  createGate,
  type PendingCall,
  readRow,
  refund,
  reject,
  startCall,
} from './approval-setup.ts';
import { expectError } from './expect-error.ts';
import { waitUntil } from './wait-until.ts';

/** Declares what others learn of a request that waits: its channels, its approver, and who lists it. */
export function declareWaitingCases(on: DeclareApprovalCase): void {
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
}
