import * as assert from 'node:assert/strict';
import type { DeliveryRoute } from '../core/approval/announce.ts';
import { DETACH } from '../core/approval/call.ts';
import { APPROVALS_VERSION, approvals, calls, deliveries, tools } from '../core/approval/schema.ts';
import type { Json } from '../core/json.ts';
import { metaTable } from '../core/migration/history-table.ts';
import { type AnyRecordDefinition, anyDefinition, type RecordValues } from '../core/records.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { freshFolder } from './kit/pglite.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { test } from './kit/test.ts';
import {
  approve,
  Bank,
  compileTestTools,
  createGate,
  OWNER,
  openApprovalProcess,
  refund,
  startCall,
} from './suites/approval-setup.ts';
import { expectError } from './suites/expect-error.ts';
import { waitUntil } from './suites/wait-until.ts';

// Tables of an earlier version of the SDK are upgraded, and a process that still runs it may write to them.

/** Version 2 added the receipts of deliveries. */
function firstVersion(): AnyRecordDefinition {
  const { receipt, ...columns } = anyDefinition(deliveries).columns;
  assert.ok(receipt);
  return { ...anyDefinition(deliveries), columns };
}

for (const [name, createDatabase, missing] of [
  ['pglite', freshFolder, undefined],
  ['postgresql', freshDatabase, await unavailable()],
] as const) {
  const title = `${name}: the tables of version 1 get receipts, and deliveries without one are kept`;
  if (missing !== undefined) {
    test.skip(title, missing);
    continue;
  }
  test(title, async () => {
    const { url, drop } = await createDatabase();
    const backend = await postgresql.connect(url, {});
    try {
      const others = [metaTable, approvals, calls, tools].map((one) => anyDefinition(one as typeof approvals));
      await backend.ensureTables([...others, firstVersion()]);
      await backend.records(metaTable).insert({ id: 'approvals', version: 1, ...OWNER });
      const [app, next] = [await openApprovalProcess(backend), await openApprovalProcess(backend)];
      assert.equal((await backend.records(metaTable).get('approvals'))?.record.version, APPROVALS_VERSION);

      const bank = new Bank();
      const call = refund();
      const detach = new AbortController();
      const interrupted = await startCall(createGate(app, compileTestTools(bank.tool())), call, {
        signal: detach.signal,
      });
      const { requestId } = interrupted.request;
      detach.abort(DETACH);
      await expectError(interrupted.outcome, 'interrupted');
      const old: RecordValues = { id: 'd1', requestId, channel: 'old', at: new Date(), delivered: true, error: null };
      assert.equal(await backend.records<RecordValues>(firstVersion()).insert(old), 'inserted');

      const delivered: string[] = [];
      const given = new Map<string, readonly Json[]>();
      const route = (channel: string): DeliveryRoute => ({
        channel,
        deliver: async () => {
          delivered.push(channel);
          return { sent: channel };
        },
        onDecided: async (_record, _signal, receipts) => void given.set(channel, receipts),
      });
      const routes = [route('old'), route('new')];
      const { request, outcome } = await startCall(createGate(next, compileTestTools(bank.tool()), { routes }), call);
      const recorded = async () =>
        (await next.service.deliveries.page('byRequest', { equals: { requestId }, limit: 10 })).records.length;
      await waitUntil(async () => (await recorded()) === 2, 'Nothing was delivered.');
      await approve(next, request);
      await outcome;
      await waitUntil(() => given.size === 2, 'The decision was never reported.');
      assert.deepEqual(Object.fromEntries(given), { old: [], new: [{ sent: 'new' }] });
      assert.deepEqual(delivered, ['new']);
      for (const { service, warnings } of [app, next]) {
        assert.deepEqual(warnings, []);
        await service.close();
      }
    } finally {
      await backend.close();
      await drop();
    }
  });
}
