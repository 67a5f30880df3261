import * as assert from 'node:assert/strict';
import { compileRules } from '../config/load/approval-rules.ts';
import type { DeliveryRoute } from '../core/approval/announce.ts';
import { hasQuorum } from '../core/approval/apply-decision.ts';
import type { Notice } from '../core/approval/channel.ts';
import { NoticeSweep } from '../core/approval/notices.ts';
import { toApprovalRecord } from '../core/approval/public-view.ts';
import { newRequestId } from '../core/approval/request.ts';
import type { StoredRule } from '../core/approval/rule.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import {
  ann,
  eventsOf,
  MINUTE,
  noticeRoute,
  person,
  recording,
  roles,
  rulesOf,
  toHeads,
  toOwners,
} from './kit/notices.ts';
import { test } from './kit/test.ts';
import {
  type ApprovalProcess,
  approve,
  Bank,
  compileTestTools,
  createGate,
  openApprovalProcess,
  readRow,
  refund,
} from './suites/approval-setup.ts';
import { waitUntil } from './suites/wait-until.ts';

// Notices of requests that no caller waits for: another process finds those that are due.

/** A request that no caller waits for, and a clock to step. */
async function abandoned(
  rules: readonly StoredRule[],
  body: (fixture: {
    app: ApprovalProcess;
    chat: ReturnType<typeof recording>;
    requestId: string;
    pass(ms: number): Promise<void>;
    sweep(routes: 'own' | 'fallback'): Promise<number>;
  }) => Promise<void>,
): Promise<void> {
  let now = Date.parse('2026-11-27T10:00:00Z');
  const app = await openApprovalProcess(new MemoryStore(() => now), undefined, rules);
  const chat = recording();
  const humanInLoop = { approvalTimeout: 60 * MINUTE };
  const gate = createGate(app, compileTestTools(new Bank().tool()), { routes: [chat.route], humanInLoop });
  const requestId = newRequestId();
  const sweeps: NoticeSweep[] = [];
  try {
    const pending = await gate.callOrLeave(refund(undefined, { requestId }), { waitMs: 0 });
    assert.equal(pending.status, 'waiting');
    await body({
      app,
      chat,
      requestId,
      async pass(ms) {
        now += ms;
        await app.service.clock.readNow();
      },
      async sweep(routes) {
        const sweep = new NoticeSweep(app.service);
        sweeps.push(sweep);
        if (routes === 'own') sweep.add('payouts', [chat.route]);
        else sweep.addFallback([chat.route]);
        return sweep.sweep();
      },
    });
  } finally {
    await app.service.close();
    await Promise.all(sweeps.map((sweep) => sweep.close()));
  }
}

test('without a caller, a process of the agent gives the notice, and after that one with the channels of the configuration', () =>
  abandoned(rulesOf({ remind: [10 * MINUTE, 20 * MINUTE] }), async ({ chat, pass, sweep }) => {
    await pass(10 * MINUTE);
    assert.equal(await sweep('own'), 0, 'a caller may still give it');
    await pass(MINUTE);
    assert.equal(await sweep('fallback'), 0, 'a process of the agent may still give it');
    assert.equal(await sweep('own'), 1);
    assert.equal(await sweep('own'), 0, 'it was given');
    await pass(12 * MINUTE);
    assert.equal(await sweep('fallback'), 1);
    assert.equal(await sweep('own'), 0);
    assert.deepEqual(chat.kinds(), ['request', 'reminder', 'reminder']);
  }));

test('five processes that find it at the same time give it once', () =>
  abandoned(rulesOf({ remind: [MINUTE] }), async ({ chat, pass, sweep }) => {
    await pass(10 * MINUTE);
    await Promise.all(Array.from({ length: 5 }, () => sweep('own')));
    assert.deepEqual(chat.kinds(), ['request', 'reminder']);
  }));

test('notices that are late are given as one, and none is given after the decision', () =>
  abandoned(
    rulesOf({ remind: [MINUTE, 2 * MINUTE, 20 * MINUTE], escalate: [toHeads(3 * MINUTE), toOwners(4 * MINUTE)] }),
    async ({ app, chat, requestId, pass, sweep }) => {
      await pass(10 * MINUTE);
      assert.equal(await sweep('own'), 1);
      assert.deepEqual(chat.kinds(), ['request', 'escalation']);
      assert.deepEqual(
        (chat.sent.at(-1) as Notice).to.map(({ role }) => role),
        ['heads', 'owners'],
      );
      assert.deepEqual(await eventsOf(app, { requestId }), ['escalated heads, owners']);
      const { record } = await readRow(app, { requestId });
      await approve(app, record, undefined, person('olga'));
      await pass(20 * MINUTE);
      assert.equal(await sweep('own'), 1, 'its timer is found');
      assert.equal(await sweep('own'), 0, 'and removed');
      assert.deepEqual(chat.kinds(), ['request', 'escalation']);
    },
  ));

test('a deadline that passes while a notice is given ends the request, and nobody is notified', () =>
  abandoned(rulesOf({ remind: [59 * MINUTE] }), async ({ app, chat, requestId, pass, sweep }) => {
    await pass(59.9 * MINUTE);
    const read = app.service.read.bind(app.service);
    let reads = 0;
    app.service.read = async (id) => {
      reads += 1;
      if (reads === 1) await pass(MINUTE);
      if (reads > 20) throw new Error('It reads again and again.');
      return read(id);
    };
    await sweep('own');
    assert.ok(reads <= 20, 'it reads again and again');
    const { status, body } = (await readRow(app, { requestId })).record;
    assert.deepEqual([status, body.decision?.cause], ['rejected', 'timeout']);
    assert.deepEqual(chat.kinds(), ['request']);
    assert.equal(await app.service.notices.get(requestId), undefined);
  }));

test('votes that are enough since people were added decide, when they are added or when a vote is repeated', async () => {
  const halAndFinance = person('hal', 'finance', 'heads');
  const rules = compileRules({
    roles: { ...roles, ops: ['group:ops'] },
    rules: [
      { approve: [{ role: 'finance' }, { role: 'ops' }], escalate: [{ after: '10m', to: 'heads' }], expires: '1h' },
    ],
  }).rules;
  for (const how of ['added', 'repeated'] as const) {
    await abandoned(rules, async ({ app, chat, requestId, pass, sweep }) => {
      const { record } = await readRow(app, { requestId });
      await approve(app, record, undefined, halAndFinance);
      assert.equal((await approve(app, record, undefined, ann)).status, 'waiting');
      const { missing, status } = await approve(app, record, undefined, ann);
      assert.deepEqual([status, missing], ['waiting', [{ role: 'ops', count: 1 }]]);
      await pass(11 * MINUTE);
      if (how === 'added') await sweep('own');
      else assert.equal((await approve(app, record, undefined, halAndFinance)).status, 'approved');
      const decided = toApprovalRecord((await readRow(app, { requestId })).record);
      assert.deepEqual([decided.status, decided.decidedBy], ['approved', 'hal, ann']);
      assert.deepEqual(chat.kinds(), ['request'], 'nobody is notified of what is decided');
      assert.equal(hasQuorum((await readRow(app, { requestId })).record), true);
      await sweep('own');
      assert.equal(await app.service.notices.get(requestId), undefined);
    });
  }
});

test('a channel that fails delays neither the next notice nor other agents', () =>
  abandoned(rulesOf({ remind: [MINUTE, 2 * MINUTE] }), async ({ app, chat, requestId, pass }) => {
    const { sent } = chat;
    const hanging = noticeRoute('pager', async (_announcement, _notice, signal) => {
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
    });
    const sweep = new NoticeSweep(app.service);
    sweep.add('payouts', [hanging, chat.route]);
    const sweeps: Promise<unknown>[] = [];
    try {
      for (const [passed, count] of [
        // Far enough from the second reminder: a reading of the clock is extended for a second.
        [2 * MINUTE - 10_000, 2],
        [MINUTE, 3],
      ] as const) {
        await pass(passed);
        sweeps.push(sweep.sweep());
        await waitUntil(() => sent.length === count, `${count} messages`);
      }
      assert.deepEqual(await eventsOf(app, { requestId }), ['reminded', 'reminded']);
    } finally {
      await app.service.close();
      await Promise.all(sweeps);
      await sweep.close();
    }
  }));

test('requests of one agent whose channel does not answer leave the other agents theirs', async () => {
  let now = Date.parse('2026-11-27T10:00:00Z');
  const app = await openApprovalProcess(new MemoryStore(() => now), undefined, rulesOf({ remind: [MINUTE] }));
  const warnings: string[] = [];
  const onWarning = (warning: Error) => warnings.push(warning.message);
  process.on('warning', onWarning);
  const { route, kinds } = recording();
  let asked = 0;
  const failing = noticeRoute('pager', async () => {
    asked += 1;
    throw new Error('the pager is off');
  });
  const sweep = new NoticeSweep(app.service);
  const requestOf = async (agentTag: string, routes: readonly DeliveryRoute[]) => {
    const gate = createGate(app, compileTestTools(new Bank().tool()), {
      agentTag,
      routes,
      humanInLoop: { approvalTimeout: 60 * MINUTE },
    });
    await gate.callOrLeave(refund(undefined, { requestId: newRequestId() }), { waitMs: 0 });
  };
  let swept: Promise<unknown> = Promise.resolve();
  try {
    for (let count = 0; count < 60; count += 1) await requestOf('broken', [failing]);
    await requestOf('payouts', [route]);
    sweep.add('broken', [failing]);
    sweep.add('payouts', [route]);
    now += 2 * MINUTE;
    await app.service.clock.readNow();
    swept = sweep.sweep();
    await waitUntil(() => kinds().includes('reminder') && asked >= 50, 'a reminder');
    assert.deepEqual(warnings, []);
  } finally {
    process.off('warning', onWarning);
    await app.service.close();
    await swept;
    await sweep.close();
  }
});

test('without channels a notice is an event, and its timer ends', () =>
  abandoned(rulesOf({ escalate: [toHeads(MINUTE)] }), async ({ app, requestId, pass }) => {
    await pass(2 * MINUTE);
    const sweep = new NoticeSweep(app.service);
    sweep.add('payouts', []);
    await sweep.sweep();
    await sweep.close();
    assert.deepEqual(await eventsOf(app, { requestId }), ['escalated heads']);
    assert.equal(await app.service.notices.get(requestId), undefined);
  }));
