import * as assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { listApprovals } from '../core/approval/list-approvals.ts';
import { compileHumanInLoop } from '../core/tool/human-in-loop.ts';
import type { Problem } from '../core/validate-shape.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { test } from './kit/test.ts';
import {
  approve,
  Bank,
  compileTestTools,
  createGate,
  openApprovalProcess,
  refund,
  startCall,
} from './suites/approval-setup.ts';

// What docs/reference/security.md says about the limits of the gate.

test('a webhook may go to a private address, over https', () => {
  const problemsOf = (approvalWebhook: string): Problem[] => {
    const problems: Problem[] = [];
    compileHumanInLoop({ enabled: true, approvalWebhook }, ['refund'], [], problems);
    return problems;
  };
  for (const host of ['10.0.0.5', '192.168.1.1', '169.254.169.254', 'localhost', '[::1]'])
    assert.deepEqual(problemsOf(`https://${host}/approvals`), [], host);
  assert.equal(problemsOf('http://10.0.0.5/approvals').length, 1);
});

const missing = await unavailable();
if (missing !== undefined) test.skip('the database is the approver', missing);
else
  test('a database user who may only read can list and not decide; one who may write decides; parameters are in clear', async () => {
    const { url, query, drop } = await freshDatabase();
    const reader = `svc_reader_${randomUUID().replaceAll('-', '')}`;
    const app = await openApprovalProcess(await postgresql.connect(url, {}));
    try {
      const bank = new Bank();
      const parameters = { order: { type: 'string', sensitive: true }, amount: { type: 'number' } } as const;
      const gate = createGate(app, compileTestTools(bank.tool({ parameters })));
      const { request, outcome } = await startCall(gate, refund({ order: 'card 4111', amount: 20 }));
      await query(
        `CREATE ROLE ${reader} LOGIN PASSWORD 'reader'; GRANT USAGE ON SCHEMA public TO ${reader}; GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${reader}`,
      );
      const readerUrl = new URL(url);
      readerUrl.username = reader;
      readerUrl.password = 'reader';
      const dashboard = await openApprovalProcess(await postgresql.connect(readerUrl.href, {}));
      const { records } = await listApprovals(dashboard.service, {});
      assert.deepEqual(
        records.map(({ requestId }) => requestId),
        [request.requestId],
      );
      await assert.rejects(approve(dashboard, request, undefined, { reviewToken: await digestOf() }));
      await dashboard.service.close();
      const [stored] = await query('SELECT body::text AS body FROM _svc_approvals');
      assert.match(String(stored?.body), /card 4111/);
      assert.deepEqual(bank.paid, []);
      await query(
        `UPDATE _svc_approvals SET status = 'approved', _version = _version + 1, body = (body::jsonb || '{"decision":{"at":"${new Date().toISOString()}","by":"nobody"}}')::json`,
      );
      app.service.watcher.notify(request.requestId);
      assert.equal((await outcome).status, 'completed');
      assert.equal(bank.paid.length, 1);

      async function digestOf(): Promise<string> {
        return (await app.service.read(request.requestId))?.record.body.digest ?? '';
      }
    } finally {
      await app.service.close();
      await query(`DROP OWNED BY ${reader}; DROP ROLE ${reader}`);
      await drop();
    }
  });
