import * as assert from 'node:assert/strict';
import { isRunningIn } from '../../core/agent/execution-record.ts';
import { auditTrail, pruneApprovals } from '../../core/approval/audit.ts';
import { DETACH } from '../../core/approval/call.ts';
import type { ApprovalGate } from '../../core/approval/gate.ts';
import { listApprovals } from '../../core/approval/list-approvals.ts';
import { newRequestId } from '../../core/approval/request.ts';
import { type ApprovalRow, approvals, tools } from '../../core/approval/schema.ts';
import { ApprovalService } from '../../core/approval/service.ts';
import { Kernel } from '../../core/kernel.ts';
import { metaTable } from '../../core/migration/history-table.ts';
import type { DeclareApprovalCase } from './approval-case.ts';
import {
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
  trailOf,
} from './approval-setup.ts';
import { expectError } from './expect-error.ts';
import { sealCase } from './seal-case.ts';
import { waitUntil } from './wait-until.ts';

/** Declares that what is stored is what was asked: changed and damaged rows, and the audit. */
export function declareRecordCases(on: DeclareApprovalCase): void {
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

  on('a call that is repeated after its request was pruned has one new request, in every process', async (open) => {
    const [app, other, bank] = [await open(), await open(), new Bank()];
    const [gate, otherGate] = [app, other].map((one) => createGate(one, compileTestTools(bank.tool()))) as [
      ApprovalGate,
      ApprovalGate,
    ];
    const call = refund();
    const first = await startCall(gate, call);
    await approve(app, first.request);
    await first.outcome;
    assert.equal((await gate.call(call)).requestId, first.request.requestId);
    const isRunning = isRunningIn(app.service.backend);
    await waitUntil(
      async () => (await pruneApprovals(app.service, { olderThanMs: 0 }, isRunning)) === 1,
      'Nothing was pruned.',
    );
    const again = await startCall(gate, call);
    assert.notEqual(again.request.requestId, first.request.requestId);
    const elsewhere = await startCall(otherGate, call);
    assert.equal(elsewhere.request.requestId, again.request.requestId);
    await approve(other, again.request);
    await Promise.all([again.outcome, elsewhere.outcome]);
    assert.equal(bank.paid.length, 2);
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
