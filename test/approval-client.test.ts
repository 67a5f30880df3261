import * as assert from 'node:assert/strict';
import type { Config } from '../config/define.ts';
import { Svc } from '../config/sdk/index.ts';
import type { ApprovalRequest } from '../core/approval/request.ts';
import { withoutPassword } from '../core/url.ts';
import { engines } from './kit/engines.ts';
import { unavailable as noServer, type OwnServer, ownServer } from './kit/own-postgresql.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { waitUntil } from './suites/wait-until.ts';

const SLOW = { timeoutMs: 120_000 };
const postgresql = engines.find(({ name }) => name === 'postgresql')!;

function clientOn(url: string | undefined, env = 'dev'): Svc {
  const config: Config = {
    product: 'shop',
    ...(url !== undefined && {
      databases: { main: { dialect: 'postgresql', url: { [env]: url } } },
      approvals: { store: { database: 'main' } },
    }),
  };
  return new Svc({ config, env });
}

const refund = {
  tag: 'refund',
  description: 'Pays money back to a customer. Cannot be undone.',
  requiresConfirmation: true,
  parameters: { order: { type: 'string', required: true }, amount: { type: 'number', required: true, minimum: 0 } },
} as const;

function refundGate(svc: Svc, paid: number[]) {
  return svc.gate({
    agentTag: 'payouts',
    tools: [{ ...refund, handler: async (_ctx, { amount }) => paid.push(amount) }],
    humanInLoop: { enabled: true },
  });
}

async function untilOneWaits(svc: Svc): Promise<ApprovalRequest> {
  let found: ApprovalRequest | undefined;
  await waitUntil(async () => {
    [found] = (await svc.approvals.list({ status: 'waiting', agentTag: 'payouts' })).records;
    return found !== undefined;
  }, 'No request is waiting.');
  return found!;
}

test('a gate in memory waits for the signal of its own client', async () => {
  const svc = clientOn(undefined);
  const paid: number[] = [];
  try {
    const run = refundGate(svc, paid).run({ tool: 'refund', parameters: { order: '1234', amount: 20 } });
    const { requestId, executionId } = await untilOneWaits(svc);
    assert.match(requestId, /^apr_[0-9a-f-]{36}$/);
    assert.match(executionId, /^exe_[0-9a-f-]{36}$/);
    const arg = { executionId, signal: 'approve', payload: { requestId, modifiedParams: { amount: 15 } } } as const;
    const answer = await svc.agents.signal(arg, { actor: 'ann' });
    assert.deepEqual({ ...answer, decidedAt: '' }, { requestId, executionId, status: 'approved', decidedAt: '' });
    const outcome = await run;
    assert.deepEqual(
      { ...outcome },
      { status: 'completed', result: 1, changed: ['amount'], executedWith: { amount: 15 }, requestId },
    );
    assert.deepEqual(paid, [15]);
    const record = await svc.approvals.get(requestId);
    assert.deepEqual([record.status, record.run, record.decidedBy], ['approved', 'done', 'ann']);
    const lines = [];
    for await (const entry of svc.approvals.export()) lines.push(JSON.stringify(entry));
    assert.equal(lines.length, 4);
    assert.equal(await svc.approvals.prune({ olderThanMs: -0 }), 1);
    await expectError(svc.approvals.get(requestId), 'approval_unknown');
  } finally {
    await svc.close();
  }
});

test('a call with misspelled or invalid options is rejected before a request is created', async () => {
  const svc = clientOn(undefined);
  const paid: number[] = [];
  const gate = refundGate(svc, paid);
  const call = { tool: 'refund', parameters: { order: '1234', amount: 20 } };
  try {
    for (const [given, options, why] of [
      [{ ...call, toolCallID: 'c1' }, undefined, /did you mean "toolCallId"/],
      [{ tool: 'refund', params: call.parameters }, undefined, /params is not a known property/],
      [undefined, undefined, /is undefined, expected an object/],
      [{ ...call, groupId: { turn: 1 } }, undefined, /groupId/],
      [call, { signal: new AbortController() }, /options.signal is not an AbortSignal/],
      [call, { onRequest: () => undefined }, /did you mean "onRequested"/],
      [call, { onRequested: 'notify' }, /options.onRequested is not a function/],
    ] as const) {
      const error = await expectError(gate.run(given as never, options as never), 'value_invalid');
      assert.match(`${error.message} ${error.why}`, why);
    }
    assert.deepEqual((await svc.approvals.list()).records, []);
    assert.deepEqual(paid, []);
  } finally {
    await svc.close();
  }
});

test('actor and from of a decision must be strings', async () => {
  const svc = clientOn(undefined);
  const outcome = refundGate(svc, []).run({ tool: 'refund', parameters: { order: '1234', amount: 20 } });
  try {
    const { requestId, executionId } = await untilOneWaits(svc);
    const no = { executionId, signal: 'reject', payload: { requestId } } as const;
    for (const options of [{ actor: { id: 7, password: 'hunter2' } }, { actor: null }, { from: 7 }, { actr: 'ann' }]) {
      await expectError(svc.agents.signal(no, options as never), 'decision_invalid');
    }
    await svc.agents.signal(no, { actor: 'ann', from: '203.0.113.7' });
    assert.equal((await outcome).status, 'rejected');
    const { events } = await svc.approvals.get(requestId);
    const [, { type, by, from } = {}] = events;
    assert.deepEqual([type, by, from], ['rejected', 'ann', '203.0.113.7']);
  } finally {
    await svc.close();
  }
});

test('a running tool is aborted when the client closes', async () => {
  const svc = clientOn(undefined);
  const gate = svc.gate({
    agentTag: 'payouts',
    tools: [
      {
        ...refund,
        handler: ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve('stopped'))),
      },
    ],
    humanInLoop: { enabled: true },
  });
  const outcome = gate.run({ tool: 'refund', parameters: { order: '1234', amount: 20 } });
  const { requestId, executionId } = await untilOneWaits(svc);
  await svc.agents.signal({ executionId, signal: 'approve', payload: { requestId } });
  await waitUntil(async () => (await svc.approvals.get(requestId)).run === 'claimed', 'The tool never ran.');
  await svc.close();
  assert.equal((await outcome).result, 'stopped');
});

test('an invalid gate is rejected with every mistake, before anything is read', () => {
  const svc = clientOn(undefined);
  const gate = (more: object) => svc.gate({ agentTag: 'payouts', tools: [{ ...refund, handler: () => 1 }], ...more });
  for (const [more, path] of [
    [{ agentTag: '' }, 'agentTag'],
    [{ humanInLop: { enabled: true, alwaysRequireApproval: ['refund'] } }, 'did you mean "humanInLoop"'],
    [{ humanInLoop: { enabled: true, alwaysRequireApproval: ['refnd'] } }, 'alwaysRequireApproval'],
    [{ humanInLoop: { enabled: true, approvalTimeout: 10 } }, 'approvalTimeout'],
    [{ tools: [{ tag: 'refund' }] }, 'tools'],
  ] as const) {
    assert.throws(
      () => gate(more),
      (error: { code: string; why: string }) => error.code === 'agent_invalid' && error.why.includes(path),
    );
  }
});

test('an unknown broker is rejected by the first call', async () => {
  const svc = clientOn(undefined);
  const gate = svc.gate({
    agentTag: 'payouts',
    tools: [{ ...refund, handler: () => 1 }],
    humanInLoop: { enabled: true, approvalBroker: { broker: 'bus', event: 'approvals.requested' } },
  });
  await expectError(gate.run({ tool: 'refund', parameters: {} }), 'agent_invalid');
  await svc.close();
});

test('a call that waits when the client closes is interrupted, and its request is not lost', async () => {
  if (postgresql.missing !== undefined) return;
  await postgresql.withUrl(async (url) => {
    const [one, other] = [clientOn(url), clientOn(url)];
    const paid: number[] = [];
    try {
      const call = { tool: 'refund', parameters: { order: 'a', amount: 1 }, executionId: 'thread 7', toolCallId: 'c1' };
      const interrupted = refundGate(one, paid).run(call);
      const { requestId, executionId } = await untilOneWaits(other);
      await Promise.all([expectError(interrupted, 'interrupted'), one.close()]);
      await expectError(one.approvals.list(), 'connection_failed');
      await other.agents.signal({ executionId, signal: 'approve', payload: { requestId } });
      assert.equal((await refundGate(other, paid).run(call)).status, 'completed');
      assert.deepEqual(paid, [1]);
    } finally {
      await Promise.all([one.close(), other.close()]);
    }
  });
});

test('a tool that runs when the client closes completes, and its result is stored', async () => {
  if (postgresql.missing !== undefined) return;
  await postgresql.withUrl(async (url) => {
    const [one, other] = [clientOn(url), clientOn(url)];
    const gate = (svc: Svc, handler: () => unknown) =>
      svc.gate({ agentTag: 'payouts', tools: [{ ...refund, handler }], humanInLoop: { enabled: true } });
    let onStarted = () => {};
    let pay = () => {};
    const running = new Promise<void>((resolve) => {
      onStarted = resolve;
    });
    const paid = new Promise<string>((resolve) => {
      pay = () => resolve('receipt 77');
    });
    try {
      const call = { tool: 'refund', parameters: { order: 'a', amount: 1 }, executionId: 'thread 8', toolCallId: 'c1' };
      const slow = () => {
        onStarted();
        return paid;
      };
      const outcome = gate(one, slow).run(call);
      const interrupted = gate(one, slow).run({ ...call, toolCallId: 'c2' });
      await waitUntil(
        async () => (await other.approvals.list()).records.length === 2,
        'There were never two requests.',
      );
      const { records } = await other.approvals.list();
      const { requestId, executionId } = records.find(({ toolCallId }) => toolCallId === 'c1')!;
      await other.agents.signal({ executionId, signal: 'approve', payload: { requestId } });
      await running;
      let isClosed = false;
      const closing = one.close().then(() => {
        isClosed = true;
      });
      await expectError(interrupted, 'interrupted');
      // Longer than an idle client takes to close.
      for (let attempt = 0; attempt < 50 && !isClosed; attempt++) await other.approvals.list();
      assert.ok(!isClosed, 'it closed while a tool was running');
      pay();
      await closing;
      assert.equal((await outcome).result, 'receipt 77');
      assert.equal((await other.approvals.get(requestId)).run, 'done');
      const again = await gate(other, () => assert.fail('it ran before')).run(call);
      assert.equal(again.result, 'receipt 77');
    } finally {
      await Promise.all([one.close(), other.close()]);
    }
  });
});

if (noServer() !== undefined) {
  test.skip('a server restart loses no request and no decision', noServer() ?? '');
} else {
  test(
    'a server restart loses no request and no decision',
    async () => {
      const server: OwnServer = await ownServer();
      const svc = clientOn(server.url());
      const paid: number[] = [];
      try {
        const run = refundGate(svc, paid).run({ tool: 'refund', parameters: { order: 'a', amount: 1 } });
        const { requestId, executionId } = await untilOneWaits(svc);
        await server.kill();
        await server.start();
        const answer = await svc.agents.signal({ executionId, signal: 'approve', payload: { requestId } });
        assert.equal(answer.status, 'approved');
        assert.equal((await run).status, 'completed');
        assert.deepEqual(paid, [1]);
      } finally {
        await svc.close();
        await server.remove();
      }
    },
    SLOW,
  );

  test(
    'an unreachable server is reported with the reason and without its password',
    async () => {
      const server: OwnServer = await ownServer();
      const url = server.url();
      await server.kill();
      const svc = clientOn(url);
      try {
        const error = await expectError(svc.approvals.list(), 'connection_failed');
        assert.ok(!JSON.stringify([error.message, error.why, error.next]).includes(new URL(url).password));
        assert.ok(!withoutPassword(url).includes(new URL(url).password));
      } finally {
        await svc.close();
        await server.remove();
      }
    },
    SLOW,
  );
}
