import * as assert from 'node:assert/strict';
import { Svc } from '../config/sdk/index.ts';
import { ExecutionService } from '../core/agent/execution-service.ts';
import type { Run } from '../core/agent/run.ts';
import type { ApprovalRecord } from '../core/approval/request.ts';
import { SvcError } from '../core/errors.ts';
import { agentDefinition } from './kit/agent-host.ts';
import { engines } from './kit/engines.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { waitUntil } from './suites/wait-until.ts';

// Executions through a client (svc.agents): in memory, and with two clients of one database.

const NOBODY = 'exe_01999999-0000-7000-8000-000000000000';
const postgresql = engines.find(({ name }) => name === 'postgresql')!;

function clientOn(url?: string): Svc {
  return new Svc({
    env: 'dev',
    config: {
      product: 'shop',
      ...(url !== undefined && {
        databases: { main: { dialect: 'postgresql', url: { dev: url } } },
        approvals: { store: { database: 'main' } },
      }),
    },
  });
}

/** An agent that pays once, after an approval, and reports it. */
function payouts(svc: Svc, paid: string[]) {
  const tool = { tag: 'refund', requiresConfirmation: true, handler: () => paid.push('20 EUR') };
  const turns = [{ calls: [{ tool: 'refund' }] }, { text: 'Done.' }];
  return svc.agents.define(agentDefinition(turns, { tools: [tool], humanInLoop: { enabled: true } }) as never);
}

async function request(svc: Svc, executionId: string): Promise<ApprovalRecord> {
  let found: ApprovalRecord | undefined;
  await waitUntil(async () => {
    [found] = (await svc.approvals.list({ executionId, status: 'waiting' })).records;
    return found !== undefined;
  }, 'Nothing waits.');
  return found!;
}

async function approve(svc: Svc, executionId: string): Promise<void> {
  const { requestId } = await request(svc, executionId);
  await svc.agents.signal({ executionId, signal: 'approve', payload: { requestId } });
}

function inMemory(name: string, body: (svc: Svc) => Promise<void>): void {
  test(name, async () => {
    const svc = clientOn();
    try {
      await body(svc);
    } finally {
      await svc.close();
    }
  });
}

function between(name: string, body: (one: Svc, other: Svc) => Promise<void>): void {
  if (postgresql.missing !== undefined) {
    test.skip(name, postgresql.missing);
    return;
  }
  test(name, () =>
    postgresql.withUrl(async (url) => {
      const [one, other] = [clientOn(url), clientOn(url)];
      try {
        await body(one, other);
      } finally {
        await Promise.all([one.close(), other.close()]);
      }
    }),
  );
}

inMemory('get returns an execution with its steps, and prune removes it once it has ended', async (svc) => {
  const paid: string[] = [];
  const run = payouts(svc, paid).run({ prompt: 'Pay.' });
  const { executionId } = run;
  await request(svc, executionId);
  const going = await svc.agents.get(executionId);
  assert.deepEqual([going.executionId, going.agentTag, going.status], [executionId, 'payouts', 'running']);
  assert.equal(await svc.agents.prune({ olderThanMs: 0 }), 0, 'a running execution is not removed');
  await approve(svc, executionId);
  const { steps } = await run.result;
  const ended = await svc.agents.get(executionId);
  assert.equal(ended.status, 'completed');
  assert.deepEqual(ended.steps, steps);
  assert.deepEqual((await svc.agents.list({ status: 'completed' })).records.length, 1);
  assert.equal(await svc.agents.prune({ olderThanMs: 60_000 }), 0, 'what is younger is not removed');
  await waitUntil(async () => (await svc.agents.prune({ olderThanMs: 0 })) === 1, 'It was not removed.');
  await expectError(svc.agents.get(executionId), 'execution_unknown');
  assert.deepEqual(paid, ['20 EUR']);
});

inMemory('an unknown execution and one that has ended are rejected with different codes', async (svc) => {
  await expectError(svc.agents.get(NOBODY), 'execution_unknown');
  await expectError(svc.agents.resume(NOBODY), 'execution_unknown');
  await expectError(svc.agents.cancel(NOBODY), 'execution_unknown');
  const run = payouts(svc, []).run({ prompt: 'Pay.' });
  await approve(svc, run.executionId);
  await run.result;
  await expectError(svc.agents.resume(run.executionId), 'execution_finished');
  await expectError(svc.agents.cancel(run.executionId), 'execution_finished');
});

inMemory('cancel ends a pending request, with its reason; an approval is too late', async (svc) => {
  const paid: string[] = [];
  const run = payouts(svc, paid).run({ prompt: 'Pay.' });
  const { executionId, requestId } = await request(svc, run.executionId);
  const outcome = await svc.agents.cancel(executionId, 'The customer called back.');
  assert.deepEqual([outcome.status, outcome.reason], ['cancelled', 'The customer called back.']);
  assert.deepEqual(await run.result, outcome);
  assert.equal((await svc.approvals.get(requestId)).status, 'cancelled');
  await expectError(svc.agents.signal({ executionId, signal: 'approve', payload: { requestId } }), 'approval_decided');
  assert.deepEqual(paid, []);
});

inMemory('an aborted signal cancels its run: before the start, while it waits, but not after its end', async (svc) => {
  const paid: string[] = [];
  const agent = payouts(svc, paid);
  const early = agent.run({ prompt: 'Pay.', signal: AbortSignal.abort(new Error('never mind')) });
  const { status, reason } = await early.result;
  assert.equal(status, 'cancelled');
  assert.equal(reason, 'never mind');

  const stop = new AbortController();
  const run = agent.run({ prompt: 'Pay.', signal: stop.signal });
  const { executionId, requestId } = await request(svc, run.executionId);
  stop.abort(new Error('The customer called back.'));
  const outcome = await run.result;
  assert.equal(outcome.status, 'cancelled');
  assert.match(outcome.reason ?? '', /The customer called back\.$/);
  assert.equal((await svc.agents.get(executionId)).status, 'cancelled');
  assert.equal((await svc.approvals.get(requestId)).status, 'cancelled');
  await expectError(svc.agents.signal({ executionId, signal: 'approve', payload: { requestId } }), 'approval_decided');
  assert.deepEqual(paid, []);

  const late = new AbortController();
  const third = agent.run({ prompt: 'Pay.', signal: late.signal });
  await approve(svc, third.executionId);
  const ended = await third.result;
  late.abort();
  assert.equal(ended.status, 'completed');
  assert.equal((await svc.agents.get(third.executionId)).status, 'completed');
  assert.deepEqual(paid, ['20 EUR']);
});

between('resume continues what another client left waiting, and its tool runs once', async (one, other) => {
  const paid: string[] = [];
  const left = payouts(one, paid).run({ prompt: 'Pay.' });
  const { executionId } = left;
  const before = await request(one, executionId);
  await expectError(other.agents.resume(executionId), 'agent_unknown');
  await Promise.all([expectError(left.result, 'interrupted'), one.close()]);
  payouts(other, paid);
  const run = await other.agents.resume(executionId);
  assert.equal(run.executionId, executionId);
  assert.equal((await request(other, executionId)).requestId, before.requestId, 'a second request was created');
  await approve(other, executionId);
  assert.equal((await run.result).text, 'Done.');
  assert.deepEqual(paid, ['20 EUR']);
});

between('resume watches what another client runs', async (one, other) => {
  const paid: string[] = [];
  const run = payouts(one, paid).run({ prompt: 'Pay.' });
  await request(one, run.executionId);
  payouts(other, paid);
  const watched = await other.agents.resume(run.executionId);
  await approve(other, run.executionId);
  assert.deepEqual(await watched.result, JSON.parse(JSON.stringify(await run.result)));
  assert.deepEqual(paid, ['20 EUR']);
});

between('resumeAll takes over the executions of a client that closed, and later ones', async (one, other) => {
  const paid: string[] = [];
  const agent = payouts(one, paid);
  const runs = [agent.run({ prompt: 'Pay.' }), agent.run({ prompt: 'Pay.' })];
  for (const { executionId } of runs) await request(one, executionId);
  payouts(other, paid);
  const taken: Run[] = [];
  const errors: unknown[] = [];
  const options = { onRun: (run: Run) => void taken.push(run), onError: (error: unknown) => void errors.push(error) };
  const worker = await other.agents.resumeAll(options);
  assert.deepEqual(await worker.initialRuns, [], 'what is run elsewhere is left alone');
  await one.close();
  await waitUntil(() => taken.length === 2, 'They were never taken over.');
  assert.deepEqual(
    taken.map(({ executionId }) => executionId).sort(),
    runs.map(({ executionId }) => executionId).sort(),
  );
  await worker.stop();
  for (const run of taken) {
    await approve(other, run.executionId);
    assert.equal((await run.result).status, 'completed', 'what was taken over runs on');
  }
  assert.deepEqual(paid, ['20 EUR', '20 EUR']);
  assert.deepEqual(errors, []);
});

inMemory('resumeAll that throws because it cannot read the store stops polling', async (svc) => {
  const { recover } = ExecutionService.prototype;
  ExecutionService.prototype.recover = async () => {
    throw new SvcError('connection_lost', 'The server is gone.');
  };
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  try {
    await svc.agents.list();
    const before = timers();
    for (let call = 0; call < 3; call++) await expectError(svc.agents.resumeAll(), 'connection_lost');
    assert.equal(timers(), before);
  } finally {
    ExecutionService.prototype.recover = recover;
  }
});

between('an invalid agent does not prevent resuming the others', async (one, other) => {
  const paid: string[] = [];
  const agent = payouts(one, paid);
  const runs = [agent.run({ prompt: 'Pay.' }), agent.run({ prompt: 'Pay.' })] as const;
  for (const { executionId } of runs) await request(one, executionId);
  await one.close();
  const broken = { tag: 'other', humanInLoop: { enabled: true, approvalBroker: { broker: 'bus', event: 'e' } } };
  other.agents.define(agentDefinition([{ text: 'Hi.' }], broken) as never);
  payouts(other, paid);
  await expectError(other.agents.resume(NOBODY), 'execution_unknown');
  const resumed = await other.agents.resume(runs[0].executionId);
  const warned: string[] = [];
  const onWarning = ({ message }: Error) => void warned.push(message);
  process.on('warning', onWarning);
  const taken: Run[] = [];
  const worker = await other.agents.resumeAll({ onRun: (run) => void taken.push(run) });
  await waitUntil(() => taken.length === 1, 'It was not taken over.');
  await worker.stop();
  for (const run of [resumed, ...taken]) {
    await approve(other, run.executionId);
    assert.equal((await run.result).status, 'completed');
  }
  process.off('warning', onWarning);
  assert.deepEqual(paid, ['20 EUR', '20 EUR']);
  assert.match(warned.join('\n'), /does not take over executions of the agent "other": .*approvalBroker/);
});

between(
  'an execution of an agent that is invalid here is rejected as that, and can be cancelled',
  async (one, other) => {
    const run = payouts(one, []).run({ prompt: 'Pay.' });
    await request(one, run.executionId);
    await one.close();
    const broken = { humanInLoop: { enabled: true, approvalBroker: { broker: 'bus', event: 'e' } } };
    other.agents.define(agentDefinition([{ text: 'Hi.' }], broken) as never);
    await expectError(other.agents.resume(run.executionId), 'agent_invalid');
    assert.equal((await other.agents.cancel(run.executionId, 'Enough.')).status, 'cancelled');
  },
);

between('cancel reaches an execution that another client runs', async (one, other) => {
  const paid: string[] = [];
  const run = payouts(one, paid).run({ prompt: 'Pay.' });
  const { executionId, requestId } = await request(one, run.executionId);
  const outcome = await other.agents.cancel(executionId, 'Enough.');
  assert.deepEqual([outcome.status, outcome.reason], ['cancelled', 'Enough.']);
  assert.equal((await run.result).status, 'cancelled');
  assert.equal((await one.approvals.get(requestId)).status, 'cancelled');
  assert.deepEqual(paid, []);
});
