import * as assert from 'node:assert/strict';
import { Svc } from '../config/sdk/index.ts';
import type { ApprovalRequest } from '../core/approval/request.ts';
import { test } from './kit/test.ts';

// Which calls wait for approval, why, and for how long (docs/reference/approvals.md).

/** A gate with three tools, and the tools that ran. */
async function withTools(
  humanInLoop: object | undefined,
  body: (fixture: {
    readonly ran: string[];
    /** Starts a call. Returns its request, which is then rejected, or undefined if the call ran without one. */
    requestOf(tool: string): Promise<ApprovalRequest | undefined>;
  }) => Promise<void>,
): Promise<void> {
  const svc = new Svc({ config: { product: 'shop' }, env: 'dev' });
  const ran: string[] = [];
  const tool = (tag: string, more: object = {}) => ({ tag, handler: () => ran.push(tag), ...more });
  const gate = svc.gate({
    agentTag: 'payouts',
    tools: [tool('refund', { requiresConfirmation: true }), tool('wire'), tool('look')],
    ...(humanInLoop && { humanInLoop }),
  });
  try {
    await body({
      ran,
      async requestOf(name) {
        let created: ApprovalRequest | undefined;
        const before = ran.length;
        const { status } = await gate.run(
          { tool: name, parameters: {} },
          {
            onRequested(request) {
              created = request;
              assert.equal(ran.length, before, `${name} ran before a request was created`);
              const { executionId, requestId } = request;
              void svc.agents.signal({ executionId, signal: 'reject', payload: { requestId } });
            },
          },
        );
        assert.equal(status, created ? 'rejected' : 'completed');
        assert.equal(ran.length - before, created ? 0 : 1);
        return created;
      },
    });
  } finally {
    await svc.close();
  }
}

test('tools that require confirmation or are listed wait, with the reason; the others run', () =>
  withTools({ enabled: true, alwaysRequireApproval: ['wire'] }, async ({ requestOf, ran }) => {
    assert.equal((await requestOf('refund'))?.reason, 'The tool requires confirmation.');
    assert.equal((await requestOf('wire'))?.reason, 'The tool always needs approval for this agent.');
    assert.equal(await requestOf('look'), undefined);
    assert.deepEqual(ran, ['look']);
  }));

test('the reason for a tool that requires confirmation and is listed is the confirmation', () =>
  withTools({ enabled: true, alwaysRequireApproval: ['look', 'refund'] }, async ({ requestOf }) => {
    assert.equal((await requestOf('refund'))?.reason, 'The tool requires confirmation.');
    assert.equal((await requestOf('look'))?.reason, 'The tool always needs approval for this agent.');
    assert.equal(await requestOf('wire'), undefined);
  }));

test('if approvals are not enabled, no tool waits', async () => {
  for (const humanInLoop of [
    { enabled: false, alwaysRequireApproval: ['wire'] },
    { alwaysRequireApproval: ['wire'] },
    {},
    undefined,
  ]) {
    await withTools(humanInLoop, async ({ requestOf, ran }) => {
      for (const tool of ['refund', 'wire', 'look']) assert.equal(await requestOf(tool), undefined);
      assert.deepEqual(ran, ['refund', 'wire', 'look']);
    });
  }
});

test('a request waits for approvalTimeout, 300,000 ms by default', async () => {
  for (const [more, expected] of [
    [{}, 300_000],
    [{ approvalTimeout: 1_000 }, 1_000],
    [{ approvalTimeout: 31_536_000_000 }, 31_536_000_000],
  ] as const) {
    await withTools({ enabled: true, ...more }, async ({ requestOf }) => {
      const request = (await requestOf('refund'))!;
      assert.equal(Date.parse(request.timeout) - Date.parse(request.timestamp), expected);
    });
  }
});
