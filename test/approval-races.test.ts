import * as assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import type { CallOutcome } from '../core/approval/outcome.ts';
import { newRequestId } from '../core/approval/request.ts';
import { approve, createGate, type ApprovalProcess, openApprovalProcess, refund, rowOf, compileTestTools, startCall } from './suites/approval-setup.ts';
import { engines } from './kit/engines.ts';
import { type GateProcess, gateProcess } from './kit/gate-processes.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

// Two processes and a real database, hundreds of rounds: what both do at once has one outcome.

const ROUNDS = 200;
const SLOW = { timeoutMs: 300_000 };
const engine = engines.find(({ name }) => name === 'postgresql')!;

interface Scene {
  readonly office: ApprovalProcess;
  readonly one: GateProcess;
  readonly other: GateProcess;
  effects(): Promise<Readonly<Record<string, unknown>>[]>;
}

function on(name: string, body: (scene: Scene) => Promise<void>): void {
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
        const office = await openApprovalProcess(connection);
        const [one, other] = await Promise.all([gateProcess(url), gateProcess(url)]);
        try {
          const effects = async () => [...(await connection.query('SELECT * FROM effects'))];
          await body({ office, one, other, effects });
        } finally {
          await Promise.all([one.stop(), other.stop()]);
          await office.service.close();
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

on('yes and no from two processes at once: one wins, and the other is not told that it did', async (scene) => {
  const { office, one, other } = scene;
  let ran = 0;
  const gate = createGate(office, compileTestTools({ ...tool, handler: () => ++ran }));
  const wins = { approved: 0, rejected: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    const { request, outcome } = await startCall(gate, refund());
    const before = ran;
    const [yes, no] = await Promise.all([one.tell({ do: 'approve', request }), other.tell({ do: 'reject', request })]);
    const ended = await outcome;
    assert.equal([yes, no].filter(({ refused }) => refused === 'approval_decided').length, 1);
    const approved = yes.refused === undefined;
    assert.equal(ended.status, approved ? 'completed' : 'rejected');
    assert.equal(ran - before, approved ? 1 : 0);
    wins[approved ? 'approved' : 'rejected'] += 1;
  }
  assert.equal(wins.approved + wins.rejected, ROUNDS);
});

on('the same yes from two processes at once has one effect and one answer', async ({ office, one, other }) => {
  let ran = 0;
  const gate = createGate(office, compileTestTools({ ...tool, handler: () => ++ran }));
  for (let round = 0; round < ROUNDS; round++) {
    const { request, outcome } = await startCall(gate, refund());
    const answers = await Promise.all([one, other].map((process) => process.tell({ do: 'approve', request })));
    assert.deepEqual(answers[0]!.value, answers[1]!.value);
    assert.equal((await outcome).status, 'completed');
    assert.equal(ran, round + 1);
  }
});

on('two edits from two processes at once: the tool runs with the one that stands', async ({ office, one, other }) => {
  const ran: unknown[] = [];
  const handler = (_: unknown, { amount }: { readonly amount: number }) => ran.push(amount);
  const gate = createGate(office, compileTestTools({ ...tool, handler } as never));
  for (let round = 0; round < ROUNDS; round++) {
    const { request, outcome } = await startCall(gate, refund());
    const answers = await Promise.all(
      [one, other].map((process, amount) => process.tell({ do: 'approve', request, modifiedParams: { amount } })),
    );
    await outcome;
    const [winner, ...others] = answers.flatMap(({ refused }, amount) => (refused === undefined ? [amount] : []));
    assert.deepEqual(others, []);
    assert.equal(ran.length, round + 1);
    assert.equal(ran.at(-1), winner);
  }
});

/** Milliseconds around the deadline at which a round decides: most within a few, the first and the last far away. */
const WIDEST_MS = 200;
const LANES = 8;
const offsetOf = (round: number): number => WIDEST_MS * ((2 * round) / (ROUNDS - 1) - 1) ** 3;

on(
  'a decision of another process races the clock: one of the two wins, and all that is left tells which',
  async (scene) => {
    const { office, one, other } = scene;
    const ran: unknown[] = [];
    const tools = compileTestTools({ ...tool, handler: ({ requestId }) => ran.push(requestId) });
    const gate = createGate(office, tools, { humanInLoop: { approvalTimeout: 2 * WIDEST_MS } });
    const wins = { approved: 0, rejected: 0, timeout: 0 };
    const race = async (round: number): Promise<void> => {
      const { request, outcome } = await startCall(gate, refund());
      const left = office.service.clock.msUntil(Date.parse(request.timeout));
      await wait(Math.max(0, left + offsetOf(round)));
      const told = await (round % 2 === 0
        ? one.tell({ do: 'approve', request })
        : other.tell({ do: 'reject', request }));
      const ended = await outcome;
      const { status, body } = (await rowOf(office, request)).record;
      const winner = told.refused === undefined ? (round % 2 === 0 ? 'approved' : 'rejected') : 'timeout';
      wins[winner] += 1;
      assert.ok(told.refused === undefined || told.refused === 'approval_expired', told.refused);
      assert.equal(status, winner === 'approved' ? 'approved' : 'rejected');
      assert.equal(body.decision?.cause, { approved: undefined, rejected: 'human', timeout: 'timeout' }[winner]);
      assert.equal(ended.status, winner === 'approved' ? 'completed' : 'rejected');
      assert.equal(ran.filter((requestId) => requestId === request.requestId).length, winner === 'approved' ? 1 : 0);
      assert.equal(
        body.decision!.at < request.timeout,
        winner !== 'timeout',
        `${body.decision!.at}, ${request.timeout}`,
      );
      if (winner === 'timeout') assert.equal((ended.result as { error: string }).error, 'approval_timeout');
    };
    await Promise.all(
      Array.from({ length: LANES }, async (_, lane) => {
        for (let round = lane; round < ROUNDS; round += LANES) await race(round);
      }),
    );
    assert.ok(wins.approved > 0 && wins.rejected > 0 && wins.timeout > 0, JSON.stringify(wins));
  },
);

on('two processes that put the same call to their gates run it once and are told the same', async (scene) => {
  const { office, one, other, effects } = scene;
  const told: CallOutcome[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const requestId = newRequestId();
    const call = refund({ order: 'a', amount: round }, { requestId });
    const outcomes = [one, other].map((process) => process.tell({ do: 'call', call }));
    await waitUntil(async () => (await office.service.read(requestId)) !== undefined, 'It was never asked.');
    await approve(office, { requestId, executionId: call.executionId! });
    const [a, b] = await Promise.all(outcomes);
    assert.deepEqual(a!.value, b!.value);
    told.push(a!.value as CallOutcome);
  }
  assert.ok(told.every(({ status }) => status === 'completed'));
  const ids = (await effects()).map(({ requestid }) => requestid);
  assert.equal(ids.length, ROUNDS);
  assert.equal(new Set(ids).size, ROUNDS);
});

on('two processes that give one call its name at once ask once', async ({ office, one, other, effects }) => {
  for (let round = 0; round < ROUNDS; round++) {
    const call = refund({ order: 'a', amount: round });
    const outcomes = [one, other].map((process) => process.tell({ do: 'call', call }));
    const found = async () =>
      (await office.service.rows.page('byExecution', { equals: { executionId: call.executionId! }, limit: 10 })).records;
    await waitUntil(async () => (await found()).length > 0, 'It was never asked.');
    await approve(office, (await found())[0]!.record);
    const [a, b] = await Promise.all(outcomes);
    assert.deepEqual(a!.value, b!.value);
    assert.equal((await found()).length, 1);
  }
  assert.equal((await effects()).length, ROUNDS);
});
