import * as assert from 'node:assert/strict';
import { listApprovals } from '../core/approval/list-approvals.ts';
import type { CallOutcome } from '../core/approval/outcome.ts';
import { newRequestId } from '../core/approval/request.ts';
import type { Target } from '../core/migration/target.ts';
import { engines } from './kit/engines.ts';
import { type GateProcess, startGateProcess } from './kit/gate-processes.ts';
import { test } from './kit/test.ts';
import {
  type ApprovalProcess,
  approve,
  openApprovalProcess,
  readRow,
  refund,
  reject,
} from './suites/approval-setup.ts';
import { expectError } from './suites/expect-error.ts';
import { waitUntil } from './suites/wait-until.ts';

// Kills processes with a gate with SIGKILL at every boundary. The handler must run at most once, a confirmed decision is
// not lost, and the next process completes the call.

/** Many processes start one after another. */
const SLOW = { timeoutMs: 600_000 };
const engine = engines.find(({ name }) => name === 'postgresql')!;

interface Fixture {
  readonly url: string;
  readonly app: ApprovalProcess;
  readonly adapter: Target;
  /** The process that continues the call of a killed one. */
  readonly next: GateProcess;
  effects(requestId: string): Promise<{ requestid: string; key: string }[]>;
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
        const adapter = await connect();
        await adapter.connection.query('CREATE TABLE effects (requestid text, key text, pid int)');
        const app = await openApprovalProcess(adapter.connection);
        const effects = async (requestId: string) =>
          (await adapter.connection.query(`SELECT * FROM effects WHERE requestid = '${requestId}'`)) as never;
        const next = await startGateProcess(url);
        try {
          await body({ url, app, adapter, effects, next });
        } finally {
          await next.stop();
          await app.service.close();
        }
      }),
    SLOW,
  );
}

/** Approves the request once it is stored. Returns false if the process died before that. */
async function approveWhenStored({ app }: Fixture, requestId: string, dying: GateProcess): Promise<boolean> {
  let isGone = false;
  void dying.ended.then(() => {
    isGone = true;
  });
  let isStored = false;
  await waitUntil(async () => {
    const row = await app.service.read(requestId);
    isStored = row !== undefined;
    return isStored || isGone;
  }, 'It neither created a request nor died.');
  isStored ||= (await app.service.read(requestId)) !== undefined;
  if (isStored) await approve(app, (await app.service.read(requestId))!.record);
  return isStored;
}

/** Runs a call whose process is killed at `killPoint`, and continues it in another process. */
async function crash(fixture: Fixture, killPoint: string, idempotent = false): Promise<'died' | 'survived'> {
  const requestId = newRequestId();
  const call = refund({ order: '1234', amount: 20 }, { requestId, toolCallId: 'call_1' });
  const dying = await startGateProcess(fixture.url, killPoint);
  const first = dying.send({ do: 'call', call, idempotent }).then(
    (report) => report.value as CallOutcome,
    () => undefined,
  );
  const isStored = await approveWhenStored(fixture, requestId, dying);
  const firstOutcome = await first;
  await dying.stop();
  const died = (await dying.ended) === 'SIGKILL';
  const before = await fixture.effects(requestId);
  const row = await fixture.app.service.read(requestId);
  assert.ok(before.length <= 1, killPoint);
  if (isStored) assert.equal(row?.record.status, 'approved', killPoint);

  const { next } = fixture;
  const continued = next.send({ do: 'call', call, resumed: true, idempotent });
  if (!isStored) await approveWhenStored(fixture, requestId, next);
  const outcome = (await continued).value as CallOutcome;
  const again = (await next.send({ do: 'call', call, resumed: true, idempotent })).value;
  const after = await fixture.effects(requestId);
  assert.deepEqual(again, outcome, `${killPoint}: repeated`);
  if (firstOutcome) assert.deepEqual(outcome, firstOutcome, `${killPoint}: the outcome changed`);
  if (idempotent) {
    assert.equal(outcome.status, 'completed', killPoint);
    assert.equal(new Set(after.map(({ key }) => key)).size, 1, `${killPoint}: one key`);
  } else {
    assert.ok(after.length <= 1, `${killPoint}: the handler ran ${after.length} times`);
    const wasRunning = row?.record.body.run === 'claimed';
    // The claim that it sent before it died may have arrived after the read: only a claim of another process interrupts.
    if (outcome.status !== 'interrupted') {
      assert.equal(outcome.status, 'completed', killPoint);
      assert.equal(after.length, 1, killPoint);
      // The result that it sent before it died may have arrived after the read: then the tool did not run again.
      if (wasRunning) assert.deepEqual(after, before, killPoint);
    }
  }
  return died ? 'died' : 'survived';
}

on('a call whose process is killed at any boundary runs at most once, and no decision is lost', async (fixture) => {
  // `written:n`: tool, its mark, request, claim, result. `announced`: before a channel. `claimed`: before the effect. `ran`: after it.
  for (const killPoint of [
    'written:1',
    'written:2',
    'written:3',
    'announced',
    'written:4',
    'claimed',
    'ran',
    'written:5',
    'recorded',
  ]) {
    assert.equal(await crash(fixture, killPoint), 'died', killPoint);
  }
});

on(
  'a call whose process is killed before any call to the store runs at most once, and no decision is lost',
  async (fixture) => {
    for (let at = 1; ; at++) {
      assert.ok(at < 60, 'It never ended.');
      if ((await crash(fixture, `store:${at}`)) === 'survived') break;
    }
  },
);

on('an idempotent tool whose process was killed runs again', async (fixture) => {
  for (const killPoint of ['claimed', 'ran', 'written:4'])
    assert.equal(await crash(fixture, killPoint, true), 'died', killPoint);
});

on(
  'a call whose process was killed after its effect does not run again under settings that free it',
  async (fixture) => {
    for (const ungated of ['disabled', 'unconfirmed'] as const) {
      const call = refund({ order: '1234', amount: 20 }, { requestId: newRequestId() });
      const requestId = call.requestId!;
      const dying = await startGateProcess(fixture.url, 'ran');
      const first = dying.send({ do: 'call', call }).catch(() => undefined);
      assert.ok(await approveWhenStored(fixture, requestId, dying));
      await first;
      assert.equal(await dying.ended, 'SIGKILL');
      const outcome = (await fixture.next.send({ do: 'call', call, ungated })).value as CallOutcome;
      assert.equal(outcome.status, 'interrupted');
      assert.equal((await fixture.effects(requestId)).length, 1);
    }
  },
);

on('a decision is kept if its process is killed directly after it', async (fixture) => {
  const { next: waiter } = fixture;
  const call = refund({ order: '1234', amount: 20 }, { requestId: newRequestId() });
  const outcome = waiter.send({ do: 'call', call });
  await waitUntil(
    async () => (await listApprovals(fixture.app.service)).records.length === 1,
    'It never created a request.',
  );
  const request = { requestId: call.requestId!, executionId: call.executionId! };
  const decider = await startGateProcess(fixture.url, 'decided');
  await assert.rejects(decider.send({ do: 'approve', request }), /SIGKILL/);
  assert.equal(((await outcome).value as CallOutcome).status, 'completed');
  const answer = await approve(fixture.app, request);
  assert.equal(answer.status, 'approved');
  assert.equal((await fixture.effects(call.requestId!)).length, 1);
});

on('a claim of a killed process expires in a process that waits for the same request', async (fixture) => {
  const call = refund({ order: '1234', amount: 20 }, { requestId: newRequestId() });
  const dying = await startGateProcess(fixture.url, 'ran');
  const { next: other } = fixture;
  dying.send({ do: 'call', call }).catch(() => undefined);
  await waitUntil(
    async () => (await listApprovals(fixture.app.service)).records.length === 1,
    'It never created a request.',
  );
  // Only the killed process handles the decision: the other one starts afterwards.
  await approve(fixture.app, { requestId: call.requestId!, executionId: call.executionId! });
  assert.equal(await dying.ended, 'SIGKILL');
  const outcome = (await other.send({ do: 'call', call })).value as CallOutcome;
  assert.equal(outcome.status, 'interrupted');
  assert.equal((await fixture.effects(call.requestId!)).length, 1);
});

on('a rejection after the effect of a killed process is an error, and the approval remains', async (fixture) => {
  const { app, next } = fixture;
  const requestId = newRequestId();
  const call = refund({ order: '1234', amount: 20 }, { requestId });
  const request = { requestId, executionId: call.executionId! };
  const dying = await startGateProcess(fixture.url, 'ran');
  dying.send({ do: 'call', call }).catch(() => undefined);
  await approveWhenStored(fixture, requestId, dying);
  assert.equal(await dying.ended, 'SIGKILL');
  const late = async () => {
    const { details } = await expectError(reject(app, request), 'approval_decided');
    assert.equal(details.status, 'approved');
  };
  await late();
  const outcome = (await next.send({ do: 'call', call, resumed: true })).value as CallOutcome;
  assert.equal((outcome.result as { error: string }).error, 'interrupted');
  await late();
  const { status, body } = (await readRow(app, request)).record;
  assert.deepEqual([status, body.decision?.by, body.run], ['approved', 'ann', 'unknown']);
  assert.equal((await fixture.effects(requestId)).length, 1);
});
