import * as assert from 'node:assert/strict';
import { compileRules } from '../config/load/approval-rules.ts';
import type { Dialect } from '../core/dialect.ts';
import { dynamodb } from '../plugins/dialects/dynamodb/dialect.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { freshPrefix } from './kit/dynamodb.ts';
import { TRIES_ALL } from './kit/every-call.ts';
import { type GateProcess, startGateProcess } from './kit/gate-processes.ts';
import { unavailable as noDynamodb, type OwnDynamodb, ownDynamodb } from './kit/own-dynamodb.ts';
import { freshDatabase, unavailable as noPostgresql } from './kit/postgresql.ts';
import { test } from './kit/test.ts';
import {
  type ApprovalProcess,
  compileTestTools,
  createGate,
  openApprovalProcess,
  readRow,
  refund,
  startCall,
} from './suites/approval-setup.ts';
import type { TestDatabase } from './suites/test-database.ts';

// Five processes vote at once on a real database, and some are killed: no vote is lost or counted twice, one effect at most.

const ROUNDS = TRIES_ALL ? 200 : 50;
const VOTERS = ['ann', 'bo', 'cy', 'dee', 'eve'];
const SLOW = { timeoutMs: 300_000 };
// Not the shared server: there an index takes half a minute.
let server: Promise<OwnDynamodb> | undefined;
test.after(async () => (await server)?.kill());
const freshTables = async () => {
  server ??= ownDynamodb();
  return freshPrefix((await server).port);
};

const STORES: readonly {
  dialect: Dialect;
  missing: string | undefined;
  fresh(): Promise<TestDatabase> | TestDatabase;
}[] = [
  { dialect: postgresql, missing: await noPostgresql(), fresh: freshDatabase },
  { dialect: dynamodb, missing: noDynamodb(), fresh: freshTables },
];

interface Fixture {
  readonly url: string;
  readonly app: ApprovalProcess;
  readonly gate: ReturnType<typeof createGate>;
  readonly ran: string[];
}

function on(what: string, count: number, body: (fixture: Fixture) => Promise<void>): void {
  const { rules } = compileRules({
    roles: { finance: ['group:finance'] },
    rules: [{ approve: [{ role: 'finance', count }], deny: 2 }],
  });
  for (const { dialect, missing, fresh } of STORES) {
    const name = `${dialect.name}: ${what}`;
    if (missing !== undefined) {
      test.skip(name, missing);
      continue;
    }
    const run = async () => {
      const { url, drop } = await fresh();
      const connection = await dialect.connect(url, {});
      const app = await openApprovalProcess(connection, undefined, rules);
      const ran: string[] = [];
      const tools = compileTestTools({
        tag: 'refund',
        description: 'Pays money back to a customer.',
        requiresConfirmation: true,
        parameters: { order: { type: 'string', required: true }, amount: { type: 'number', required: true } },
        handler: ({ requestId = '' }) => ran.push(requestId),
      });
      try {
        await body({ url, app, gate: createGate(app, tools), ran });
      } finally {
        await app.service.close();
        await connection.close();
        await drop();
      }
    };
    test(name, run, SLOW);
  }
}

const as = (id: string) => ({ principal: { id, groups: ['finance'] } });

async function withVoters(url: string, body: (voters: readonly GateProcess[]) => Promise<void>): Promise<void> {
  const voters = await Promise.all(VOTERS.map(() => startGateProcess(url)));
  try {
    await body(voters);
  } finally {
    await Promise.all(voters.map((voter) => voter.stop()));
  }
}

/** The ids of the people who voted, sorted. */
async function votersOf(app: ApprovalProcess, request: { readonly requestId: string }): Promise<string[]> {
  const { votes = [] } = (await readRow(app, request)).record.body;
  return votes.map(({ principal }) => principal.id).sort();
}

on(
  'five people approve at once, and all five are needed: the last vote decides',
  5,
  async ({ url, app, gate, ran }) => {
    await withVoters(url, async (voters) => {
      for (let round = 0; round < ROUNDS; round++) {
        const { request, outcome } = await startCall(gate, refund());
        const replies = await Promise.all(
          voters.map((voter, index) => voter.send({ do: 'approve', request, options: as(VOTERS[index]!) })),
        );
        const results = replies.map(({ value, error }) => error ?? (value as { status: string }).status);
        assert.deepEqual(results.sort(), ['approved', 'waiting', 'waiting', 'waiting', 'waiting']);
        assert.equal((await outcome).status, 'completed');
        assert.deepEqual(await votersOf(app, request), VOTERS);
        const { events } = (await readRow(app, request)).record.body;
        assert.equal(events.filter(({ type }) => type === 'voted').length, 4);
        assert.equal(ran.length, round + 1);
      }
    });
  },
);

on('fifty people approve at once, and all are needed: no vote is lost', 50, async ({ url, app, gate, ran }) => {
  const people = Array.from({ length: 50 }, (_, index) => `person-${String(index).padStart(2, '0')}`);
  await withVoters(url, async (voters) => {
    const { request, outcome } = await startCall(gate, refund());
    const replies = await Promise.all(
      people.map((id, index) => voters[index % voters.length]!.send({ do: 'approve', request, options: as(id) })),
    );
    const results = replies.map(({ value, error }) => error ?? (value as { status: string }).status);
    assert.deepEqual(results.sort(), ['approved', ...people.slice(1).map(() => 'waiting')]);
    assert.equal((await outcome).status, 'completed');
    assert.deepEqual(await votersOf(app, request), people);
    assert.equal(ran.length, 1);
  });
});

on('one person votes in five processes at once: that is one vote', 2, async ({ url, app, gate, ran }) => {
  await withVoters(url, async (voters) => {
    for (let round = 0; round < ROUNDS / 10; round++) {
      const { request, outcome } = await startCall(gate, refund());
      const replies = await Promise.all(
        voters.map((voter) => voter.send({ do: 'approve', request, options: as('ann') })),
      );
      assert.deepEqual([...new Set(replies.map(({ value }) => (value as { status: string }).status))], ['waiting']);
      assert.deepEqual(await votersOf(app, request), ['ann']);
      await voters[0]!.send({ do: 'approve', request, options: as('bo') });
      await outcome;
      assert.equal(ran.length, round + 1);
    }
  });
});

on(
  'approvals and rejections at once: one of them wins, and the votes say which',
  3,
  async ({ url, app, gate, ran }) => {
    await withVoters(url, async (voters) => {
      for (let round = 0; round < ROUNDS / 4; round++) {
        const { request, outcome } = await startCall(gate, refund());
        const before = ran.length;
        const replies = await Promise.all(
          voters.map((voter, index) =>
            voter.send({ do: index < 3 ? 'approve' : 'reject', request, options: as(VOTERS[index]!) }),
          ),
        );
        const { status } = await outcome;
        const { decision, votes = [] } = (await readRow(app, request)).record.body;
        const approvals = votes.filter(({ approved }) => approved).length;
        assert.equal(status === 'completed', approvals === 3);
        assert.equal(status === 'rejected', votes.length - approvals === 2);
        assert.equal(ran.length - before, status === 'completed' ? 1 : 0);
        assert.equal(decision?.deciders?.length, status === 'completed' ? 3 : 2);
        const lost = replies.filter(({ error }) => error !== undefined);
        assert.ok(lost.every(({ error }) => error === 'approval_decided'));
      }
    });
  },
);

on('a process is killed before or after it stored a vote: the others complete the quorum, once', 2, async (fixture) => {
  const { url, app, gate, ran } = fixture;
  const survivor = await startGateProcess(url);
  try {
    for (const point of ['written', 'store:3', 'store:4', 'store:5', 'store:6', 'recorded']) {
      const { request, outcome } = await startCall(gate, refund());
      const before = ran.length;
      const victim = await startGateProcess(url, point);
      await victim.send({ do: 'approve', request, options: as('ann') }).catch(() => undefined);
      await victim.stop();
      const stored = await votersOf(app, request);
      assert.ok(stored.length === 0 || stored.join() === 'ann', stored.join());
      assert.equal(ran.length, before);
      if (point === 'written' || point === 'recorded') assert.deepEqual(stored, ['ann']);
      // The person does not know whether the vote arrived, and votes again.
      for (const [voter, status] of [
        ['ann', 'waiting'],
        ['bo', 'approved'],
      ] as const) {
        const { value } = await survivor.send({ do: 'approve', request, options: as(voter) });
        assert.equal((value as { status: string }).status, status, point);
      }
      assert.equal((await outcome).status, 'completed');
      assert.deepEqual(await votersOf(app, request), ['ann', 'bo']);
      assert.equal(ran.length, before + 1);
    }
  } finally {
    await survivor.stop();
  }
});
