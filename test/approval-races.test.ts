import * as assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import type { CallOutcome } from '../core/approval/outcome.ts';
import { newRequestId } from '../core/approval/request.ts';
import { engines } from './kit/engines.ts';
import { type GateProcess, startGateProcess } from './kit/gate-processes.ts';
import { test } from './kit/test.ts';
import {
  type ApprovalProcess,
  approve,
  compileTestTools,
  createGate,
  openApprovalProcess,
  readRow,
  refund,
  startCall,
} from './suites/approval-setup.ts';
import { waitUntil } from './suites/wait-until.ts';

// Two processes on a real database, for hundreds of rounds: concurrent actions have one outcome.

const ROUNDS = 200;
const SLOW = { timeoutMs: 300_000 };
const engine = engines.find(({ name }) => name === 'postgresql')!;

interface Fixture {
  readonly app: ApprovalProcess;
  readonly one: GateProcess;
  readonly other: GateProcess;
  effects(): Promise<Readonly<Record<string, unknown>>[]>;
}

function on(name: string, body: (fixture: Fixture) => Promise<void>): void {
  if (engine.missing !== undefined) {
    test.skip(name, engine.missing);
    return;
  }
  test(
    name,
    () =>
      engine.withUrl(async (url, connect) => {
        const { connection } = await connect();
        await connection.query('CREATE TABLE effects (requestid text, key text, pid int)');
        const app = await openApprovalProcess(connection);
        const [one, other] = await Promise.all([startGateProcess(url), startGateProcess(url)]);
        try {
          const effects = async () => [...(await connection.query('SELECT * FROM effects'))];
          await body({ app, one, other, effects });
        } finally {
          await Promise.all([one.stop(), other.stop()]);
          await app.service.close();
        }
      }),
    SLOW,
  );
}

const tool = {
  tag: 'refund',
  description: 'Pays money back to a customer.',
  requiresConfirmation: true,
  parameters: { order: { type: 'string', required: true }, amount: { type: 'number', required: true } },
} as const;

on('an approval and a rejection from two processes at once: one wins, and the other fails', async (fixture) => {
  const { app, one, other } = fixture;
  let ran = 0;
  const gate = createGate(app, compileTestTools({ ...tool, handler: () => ++ran }));
  const wins = { approved: 0, rejected: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    const { request, outcome } = await startCall(gate, refund());
    const before = ran;
    const [yes, no] = await Promise.all([one.send({ do: 'approve', request }), other.send({ do: 'reject', request })]);
    const ended = await outcome;
    assert.equal([yes, no].filter(({ error }) => error === 'approval_decided').length, 1);
    const approved = yes.error === undefined;
    assert.equal(ended.status, approved ? 'completed' : 'rejected');
    assert.equal(ran - before, approved ? 1 : 0);
    wins[approved ? 'approved' : 'rejected'] += 1;
  }
  assert.equal(wins.approved + wins.rejected, ROUNDS);
});

on('the same approval from two processes at once has one effect and one result', async ({ app, one, other }) => {
  let ran = 0;
  const gate = createGate(app, compileTestTools({ ...tool, handler: () => ++ran }));
  for (let round = 0; round < ROUNDS; round++) {
    const { request, outcome } = await startCall(gate, refund());
    const answers = await Promise.all([one, other].map((process) => process.send({ do: 'approve', request })));
    assert.deepEqual(answers[0]!.value, answers[1]!.value);
    assert.equal((await outcome).status, 'completed');
    assert.equal(ran, round + 1);
  }
});

on('two edits from two processes at once: the tool runs with the stored one', async ({ app, one, other }) => {
  const ran: unknown[] = [];
  const handler = (_: unknown, { amount }: { readonly amount: number }) => ran.push(amount);
  const gate = createGate(app, compileTestTools({ ...tool, handler } as never));
  for (let round = 0; round < ROUNDS; round++) {
    const { request, outcome } = await startCall(gate, refund());
    const answers = await Promise.all(
      [one, other].map((process, amount) => process.send({ do: 'approve', request, modifiedParams: { amount } })),
    );
    await outcome;
    const [winner, ...others] = answers.flatMap(({ error }, amount) => (error === undefined ? [amount] : []));
    assert.deepEqual(others, []);
    assert.equal(ran.length, round + 1);
    assert.equal(ran.at(-1), winner);
  }
});

/** How far from the deadline a round decides, in milliseconds: most rounds are close, the first and the last far away. */
const MAX_OFFSET_MS = 200;
const CONCURRENCY = 8;
const offsetOf = (round: number): number => MAX_OFFSET_MS * ((2 * round) / (ROUNDS - 1) - 1) ** 3;

on('a decision of another process races the deadline: one of the two wins, and all records agree', async (fixture) => {
  const { app, one, other } = fixture;
  const ran: unknown[] = [];
  const tools = compileTestTools({ ...tool, handler: ({ requestId }) => ran.push(requestId) });
  const gate = createGate(app, tools, { humanInLoop: { approvalTimeout: 2 * MAX_OFFSET_MS } });
  const wins = { approved: 0, rejected: 0, timeout: 0 };
  const race = async (round: number): Promise<void> => {
    const { request, outcome } = await startCall(gate, refund());
    const left = app.service.clock.msUntil(Date.parse(request.timeout));
    await wait(Math.max(0, left + offsetOf(round)));
    const reply = await (round % 2 === 0
      ? one.send({ do: 'approve', request })
      : other.send({ do: 'reject', request }));
    const ended = await outcome;
    const { status, body } = (await readRow(app, request)).record;
    const winner = reply.error === undefined ? (round % 2 === 0 ? 'approved' : 'rejected') : 'timeout';
    wins[winner] += 1;
    assert.ok(reply.error === undefined || reply.error === 'approval_expired', reply.error);
    assert.equal(status, winner === 'approved' ? 'approved' : 'rejected');
    assert.equal(body.decision?.cause, { approved: undefined, rejected: 'human', timeout: 'timeout' }[winner]);
    assert.equal(ended.status, winner === 'approved' ? 'completed' : 'rejected');
    assert.equal(ran.filter((requestId) => requestId === request.requestId).length, winner === 'approved' ? 1 : 0);
    assert.equal(body.decision!.at < request.timeout, winner !== 'timeout', `${body.decision!.at}, ${request.timeout}`);
    if (winner === 'timeout') assert.equal((ended.result as { error: string }).error, 'approval_timeout');
  };
  await Promise.all(
    Array.from({ length: CONCURRENCY }, async (_, lane) => {
      for (let round = lane; round < ROUNDS; round += CONCURRENCY) await race(round);
    }),
  );
  assert.ok(wins.approved > 0 && wins.rejected > 0 && wins.timeout > 0, JSON.stringify(wins));
});

on('two processes with the same call run it once and get the same outcome', async (fixture) => {
  const { app, one, other, effects } = fixture;
  const completed: CallOutcome[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const requestId = newRequestId();
    const call = refund({ order: 'a', amount: round }, { requestId });
    const outcomes = [one, other].map((process) => process.send({ do: 'call', call }));
    await waitUntil(async () => (await app.service.read(requestId)) !== undefined, 'The request was never created.');
    await approve(app, { requestId, executionId: call.executionId! });
    const [a, b] = await Promise.all(outcomes);
    assert.deepEqual(a!.value, b!.value);
    completed.push(a!.value as CallOutcome);
  }
  assert.ok(completed.every(({ status }) => status === 'completed'));
  const ids = (await effects()).map(({ requestid }) => requestid);
  assert.equal(ids.length, ROUNDS);
  assert.equal(new Set(ids).size, ROUNDS);
});

on('two processes that create the request of one call at once create one', async ({ app, one, other, effects }) => {
  for (let round = 0; round < ROUNDS; round++) {
    const call = refund({ order: 'a', amount: round });
    const outcomes = [one, other].map((process) => process.send({ do: 'call', call }));
    const found = async () =>
      (await app.service.rows.page('byExecution', { equals: { executionId: call.executionId! }, limit: 10 })).records;
    await waitUntil(async () => (await found()).length > 0, 'The request was never created.');
    await approve(app, (await found())[0]!.record);
    const [a, b] = await Promise.all(outcomes);
    assert.deepEqual(a!.value, b!.value);
    assert.equal((await found()).length, 1);
  }
  assert.equal((await effects()).length, ROUNDS);
});
