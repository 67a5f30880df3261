import * as assert from 'node:assert/strict';
import { listApprovals } from '../core/approval/list.ts';
import type { CallOutcome } from '../core/approval/outcome.ts';
import { newRequestId } from '../core/approval/request.ts';
import type { Target } from '../core/migration/target.ts';
import { approve, type ApprovalProcess, openApprovalProcess, refund, reject, rowOf } from './suites/approval-setup.ts';
import { engines } from './kit/engines.ts';
import { type GateProcess, gateProcess } from './kit/gate-processes.ts';
import { expectError } from './suites/expect-error.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

// Gates in processes of their own, killed with SIGKILL at every boundary: whatever the moment, the handler has run at
// most once, a decision that was answered is kept, and the next process brings the call to its end.

/** Many processes start one after another. */
const SLOW = { timeoutMs: 600_000 };
const engine = engines.find(({ name }) => name === 'postgresql')!;

interface Scene {
  readonly url: string;
  readonly office: ApprovalProcess;
  readonly adapter: Target;
  /** The process that goes on with what the dead left. */
  readonly next: GateProcess;
  effects(requestId: string): Promise<{ requestid: string; key: string }[]>;
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
        const adapter = await connect();
        await adapter.connection.query('CREATE TABLE effects (requestid text, key text, pid int)');
        const office = await openApprovalProcess(adapter.connection);
        const effects = async (requestId: string) =>
          (await adapter.connection.query(`SELECT * FROM effects WHERE requestid = '${requestId}'`)) as never;
        const next = await gateProcess(url);
        try {
          await body({ url, office, adapter, effects, next });
        } finally {
          await next.stop();
          await office.service.close();
        }
      }),
    SLOW,
  );
}

/** Approves the request as soon as it waits, and again until an answer comes: `undefined` where it never waited. */
async function decideWhenAsked({ office }: Scene, requestId: string, dying: GateProcess): Promise<boolean> {
  let gone = false;
  void dying.ended.then(() => {
    gone = true;
  });
  let asked = false;
  await waitUntil(async () => {
    const row = await office.service.read(requestId);
    asked = row !== undefined;
    return asked || gone;
  }, 'It neither asked nor died.');
  asked ||= (await office.service.read(requestId)) !== undefined;
  if (asked) await approve(office, (await office.service.read(requestId))!.record);
  return asked;
}

/** One call whose process dies at `where`, and the process that goes on. */
async function crash(scene: Scene, where: string, idempotent = false): Promise<'died' | 'survived'> {
  const requestId = newRequestId();
  const call = refund({ order: '1234', amount: 20 }, { requestId, toolCallId: 'call_1' });
  const dying = await gateProcess(scene.url, where);
  const first = dying.tell({ do: 'call', call, idempotent }).then(
    (report) => report.value as CallOutcome,
    () => undefined,
  );
  const asked = await decideWhenAsked(scene, requestId, dying);
  const told = await first;
  await dying.stop();
  const died = (await dying.ended) === 'SIGKILL';
  const before = await scene.effects(requestId);
  const row = await scene.office.service.read(requestId);
  assert.ok(before.length <= 1, where);
  if (asked) assert.equal(row?.record.status, 'approved', where);

  const { next } = scene;
  const going = next.tell({ do: 'call', call, resumed: true, idempotent });
  if (!asked) await decideWhenAsked(scene, requestId, next);
  const outcome = (await going).value as CallOutcome;
  const again = (await next.tell({ do: 'call', call, resumed: true, idempotent })).value;
  const after = await scene.effects(requestId);
  assert.deepEqual(again, outcome, `${where}: asked again`);
  if (told) assert.deepEqual(outcome, told, `${where}: what was told stays told`);
  if (idempotent) {
    assert.equal(outcome.status, 'completed', where);
    assert.equal(new Set(after.map(({ key }) => key)).size, 1, `${where}: one key`);
  } else {
    assert.ok(after.length <= 1, `${where}: the handler ran ${after.length} times`);
    const wasRunning = row?.record.body.run === 'claimed';
    if (!wasRunning || outcome.status !== 'interrupted') {
      assert.equal(outcome.status, 'completed', where);
      assert.equal(after.length, 1, where);
      // The result that it sent before it died may have come after what was read: then nobody ran the tool again.
      if (wasRunning) assert.deepEqual(after, before, where);
    }
  }
  return died ? 'died' : 'survived';
}

on('a process killed at any boundary of a call runs it at most once and loses no decision', async (scene) => {
  // `written:n`: tool, request, claim, result. `announced` before a channel, `claimed` before the effect, `ran` after.
  for (const where of ['written:1', 'written:2', 'announced', 'written:3', 'claimed', 'ran', 'written:4', 'recorded']) {
    assert.equal(await crash(scene, where), 'died', where);
  }
});

on('a process killed before any call to the store runs it at most once and loses no decision', async (scene) => {
  for (let at = 1; ; at++) {
    assert.ok(at < 60, 'It never came to its end.');
    if ((await crash(scene, `store:${at}`)) === 'survived') break;
  }
});

on('an idempotent tool that was running when its process was killed is run again', async (scene) => {
  for (const where of ['claimed', 'ran', 'written:3']) assert.equal(await crash(scene, where, true), 'died', where);
});

on('a decision whose process was killed right after it is kept', async (scene) => {
  const { next: waiter } = scene;
  const call = refund({ order: '1234', amount: 20 }, { requestId: newRequestId() });
  const outcome = waiter.tell({ do: 'call', call });
  await waitUntil(async () => (await listApprovals(scene.office.service)).records.length === 1, 'It never waited.');
  const request = { requestId: call.requestId!, executionId: call.executionId! };
  const decider = await gateProcess(scene.url, 'decided');
  await assert.rejects(decider.tell({ do: 'approve', request }), /SIGKILL/);
  assert.equal(((await outcome).value as CallOutcome).status, 'completed');
  const answer = await approve(scene.office, request);
  assert.equal(answer.status, 'approved');
  assert.equal((await scene.effects(call.requestId!)).length, 1);
});

on('a claim of a killed process is given up by one that only waited beside it', async (scene) => {
  const call = refund({ order: '1234', amount: 20 }, { requestId: newRequestId() });
  const dying = await gateProcess(scene.url, 'ran');
  const { next: beside } = scene;
  dying.tell({ do: 'call', call }).catch(() => undefined);
  await waitUntil(async () => (await listApprovals(scene.office.service)).records.length === 1, 'It never waited.');
  // Only the one that dies sees the decision while it waits: the other begins when it is gone.
  await approve(scene.office, { requestId: call.requestId!, executionId: call.executionId! });
  assert.equal(await dying.ended, 'SIGKILL');
  const outcome = (await beside.tell({ do: 'call', call })).value as CallOutcome;
  assert.equal(outcome.status, 'interrupted');
  assert.equal((await scene.effects(call.requestId!)).length, 1);
});

on('a no after the effect of a process that was killed is refused, and what was approved stands', async (scene) => {
  const { office, next } = scene;
  const requestId = newRequestId();
  const call = refund({ order: '1234', amount: 20 }, { requestId });
  const request = { requestId, executionId: call.executionId! };
  const dying = await gateProcess(scene.url, 'ran');
  dying.tell({ do: 'call', call }).catch(() => undefined);
  await decideWhenAsked(scene, requestId, dying);
  assert.equal(await dying.ended, 'SIGKILL');
  const late = async () => {
    const { details } = await expectError(reject(office, request), 'approval_decided');
    assert.equal(details.status, 'approved');
  };
  await late();
  const outcome = (await next.tell({ do: 'call', call, resumed: true })).value as CallOutcome;
  assert.equal((outcome.result as { error: string }).error, 'interrupted');
  await late();
  const { status, body } = (await rowOf(office, request)).record;
  assert.deepEqual([status, body.decision?.by, body.run], ['approved', 'ann', 'unknown']);
  assert.equal((await scene.effects(requestId)).length, 1);
});
