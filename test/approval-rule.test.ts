import * as assert from 'node:assert/strict';
import { Svc } from '../config/sdk/index.ts';
import type { ApprovalRequest } from '../core/approval/request.ts';
import { test } from './kit/test.ts';

// SPEC 3.1.1 and 2.2: which calls wait, why, and for how long.

/** A gate over three tools, and what ran. */
async function withTools(
  humanInLoop: object | undefined,
  body: (scene: {
    readonly ran: string[];
    /** The request of a call that waits, rejected again; undefined of one that ran. */
    asked(tool: string): Promise<ApprovalRequest | undefined>;
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
      async asked(name) {
        let asked: ApprovalRequest | undefined;
        const before = ran.length;
        const { status } = await gate.run(
          { tool: name, parameters: {} },
          {
            onRequested(request) {
              asked = request;
              assert.equal(ran.length, before, `${name} ran before anybody was asked`);
              const { executionId, requestId } = request;
              void svc.agents.signal({ executionId, signal: 'reject', payload: { requestId } });
            },
          },
        );
        assert.equal(status, asked ? 'rejected' : 'completed');
        assert.equal(ran.length - before, asked ? 0 : 1);
        return asked;
      },
    });
  } finally {
    await svc.close();
  }
}

test('what requires confirmation waits, what is listed waits, what is neither runs; the request says why', () =>
  withTools({ enabled: true, alwaysRequireApproval: ['wire'] }, async ({ asked, ran }) => {
    assert.equal((await asked('refund'))?.reason, 'The tool requires confirmation.');
    assert.equal((await asked('wire'))?.reason, 'The tool always needs approval for this agent.');
    assert.equal(await asked('look'), undefined);
    assert.deepEqual(ran, ['look']);
  }));

test('of a tool that requires confirmation and is listed, the reason is that it requires confirmation', () =>
  withTools({ enabled: true, alwaysRequireApproval: ['look', 'refund'] }, async ({ asked }) => {
    assert.equal((await asked('refund'))?.reason, 'The tool requires confirmation.');
    assert.equal((await asked('look'))?.reason, 'The tool always needs approval for this agent.');
    assert.equal(await asked('wire'), undefined);
  }));

test('unless it is enabled, nothing waits: a tool that requires confirmation runs, and so does one that is listed', async () => {
  for (const humanInLoop of [
    { enabled: false, alwaysRequireApproval: ['wire'] },
    { alwaysRequireApproval: ['wire'] },
    {},
    undefined,
  ]) {
    await withTools(humanInLoop, async ({ asked, ran }) => {
      for (const tool of ['refund', 'wire', 'look']) assert.equal(await asked(tool), undefined);
      assert.deepEqual(ran, ['refund', 'wire', 'look']);
    });
  }
});

test('a request waits as long as it is said, and for 300,000 ms where nothing is said', async () => {
  for (const [more, expected] of [
    [{}, 300_000],
    [{ approvalTimeout: 1_000 }, 1_000],
    [{ approvalTimeout: 31_536_000_000 }, 31_536_000_000],
  ] as const) {
    await withTools({ enabled: true, ...more }, async ({ asked }) => {
      const request = (await asked('refund'))!;
      assert.equal(Date.parse(request.timeout) - Date.parse(request.timestamp), expected);
    });
  }
});
