import * as assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { DeliveryRoute } from '../core/approval/announce.ts';
import type { Notice } from '../core/approval/channel.ts';
import { toApprovalRecord } from '../core/approval/public-view.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { ann, eventsOf, gateOf, hal, noticeRoute, recording, rulesOf, toHeads } from './kit/notices.ts';
import { test } from './kit/test.ts';
import { approve, Bank, openApprovalProcess, readRow, refund, startCall } from './suites/approval-setup.ts';
import { expectError } from './suites/expect-error.ts';
import { waitUntil } from './suites/wait-until.ts';

// Reminders and escalations: each once, whichever process gives it and whichever of them is killed.

test('a waiting request is reminded of, then more people may decide it, and the channels are notified of each once', async () => {
  const app = await openApprovalProcess(
    new MemoryStore(),
    undefined,
    rulesOf({ remind: [60], escalate: [toHeads(400)] }, 2),
  );
  const { route, sent, kinds } = recording();
  const bank = new Bank();
  try {
    const { request, outcome } = await startCall(gateOf(app, bank, [route]), refund());
    await waitUntil(() => kinds().includes('reminder'), 'no reminder');
    const early = await expectError(approve(app, request, undefined, hal), 'decision_refused');
    assert.match(String(early.why), /only finance decide, and heads 400ms after the request/);
    await approve(app, request, undefined, ann);
    await waitUntil(() => kinds().includes('escalation'), 'no escalation');
    const { status } = await approve(app, request, undefined, hal);
    assert.equal(status, 'approved');
    assert.equal((await outcome).status, 'completed');
    assert.deepEqual(kinds(), ['request', 'reminder', 'escalation']);
    const [, reminder, escalation] = sent as Notice[];
    assert.deepEqual([reminder?.to, reminder?.missing], [[], [{ role: 'finance', count: 2 }]]);
    assert.deepEqual(escalation?.to, [{ role: 'heads', members: ['group:heads'] }]);
    assert.deepEqual(escalation?.missing, [{ role: 'finance', count: 1 }]);
    assert.notEqual(reminder?.id, escalation?.id);
    const events = await eventsOf(app, request);
    assert.deepEqual(events.slice(0, 4), ['reminded', 'voted approve', 'escalated heads', 'approved']);
    const { rule } = toApprovalRecord((await readRow(app, request)).record);
    assert.deepEqual([rule?.remind, rule?.escalate], [[60], [{ role: 'heads', afterMs: 400 }]]);
  } finally {
    await app.service.close();
  }
});

test('escalation needs no process that announces it: from its time on, those people may decide', async () => {
  let now = Date.parse('2026-11-27T10:00:00Z');
  const app = await openApprovalProcess(
    new MemoryStore(() => now),
    undefined,
    rulesOf({ escalate: [toHeads(30_000)] }),
  );
  const bank = new Bank();
  try {
    const { request, outcome } = await startCall(gateOf(app, bank, []), refund());
    now += 29_000;
    await app.service.clock.readNow();
    await expectError(approve(app, request, undefined, hal), 'decision_refused');
    now += 2_000;
    await app.service.clock.readNow();
    await approve(app, request, undefined, hal);
    assert.equal((await outcome).status, 'completed');
    assert.deepEqual(await eventsOf(app, request).then((events) => events.filter((type) => type === 'escalated')), []);
  } finally {
    await app.service.close();
  }
});

test('a vote that is moved to before the escalation does not count', async () => {
  let now = Date.parse('2026-11-27T10:00:00Z');
  const store = new MemoryStore(() => now);
  const app = await openApprovalProcess(store, undefined, rulesOf({ escalate: [toHeads(30_000)] }));
  const bank = new Bank();
  try {
    const gate = gateOf(app, bank, []);
    const call = refund();
    const { request } = await startCall(gate, call, { waitMs: 0 } as never);
    now += 31_000;
    await app.service.clock.readNow();
    await approve(app, request, undefined, hal);
    const row = await readRow(app, request);
    const votes = row.record.body.votes?.map((vote) => ({ ...vote, at: '2026-11-27T10:00:20.000Z' })) ?? [];
    await app.service.write(row, { ...row.record, body: { ...row.record.body, votes } });
    assert.equal((await gate.call(call)).status, 'stale');
    assert.deepEqual(bank.paid, []);
  } finally {
    await app.service.close();
  }
});

test('five processes that wait for one call give each notice once', async () => {
  const store = new MemoryStore();
  const rules = rulesOf({ remind: [50, 200], escalate: [toHeads(120)] });
  const apps = await Promise.all(Array.from({ length: 5 }, () => openApprovalProcess(store, undefined, rules)));
  const { route: fast, kinds } = recording();
  const route: DeliveryRoute = {
    ...fast,
    notify: async (...notice) => {
      // Longer than the other processes need to find out that it is due.
      await pause(100);
      await fast.notify?.(...notice);
    },
  };
  const bank = new Bank();
  const call = refund();
  try {
    const started = await Promise.all(apps.map((app) => startCall(gateOf(app, bank, [route]), call)));
    const [{ request, outcome }] = started as [(typeof started)[0]];
    const events = async () => (await eventsOf(apps[0]!, request)).filter((type) => !type.startsWith('claimed'));
    await waitUntil(async () => (await events()).length >= 3, 'three notices');
    await waitUntil(
      async () => (await apps[0]!.service.notices.get(request.requestId)) === undefined,
      'the timer is gone',
    );
    assert.deepEqual(await events(), ['reminded', 'escalated heads', 'reminded']);
    assert.deepEqual(
      kinds().filter((kind) => kind !== 'request'),
      ['reminder', 'escalation', 'reminder'],
    );
    await approve(apps[0]!, request, undefined, ann);
    assert.equal((await outcome).status, 'completed');
  } finally {
    await Promise.all(apps.map((app) => app.service.close()));
  }
});

test('a notice is tried again, and a channel without notify gets the request again', async () => {
  const app = await openApprovalProcess(new MemoryStore(), undefined, rulesOf({ remind: [50] }));
  let attempts = 0;
  const failing = noticeRoute('pager', async () => {
    attempts += 1;
    if (attempts === 1) throw new Error('the pager is off');
  });
  let delivered = 0;
  const deliver = async () => {
    delivered += 1;
  };
  const plain: DeliveryRoute = { channel: 'mail', deliver };
  try {
    const { request, outcome } = await startCall(gateOf(app, new Bank(), [failing, plain]), refund());
    const attemptsIn = async () =>
      (await app.service.deliveries.page('byRequest', { equals: request, limit: 100 })).records.length;
    await waitUntil(() => attempts === 2 && delivered === 2, 'two attempts, two messages');
    await waitUntil(async () => (await attemptsIn()) === 5, 'five attempts in the audit');
    await approve(app, request, undefined, ann);
    await outcome;
    assert.deepEqual([attempts, delivered], [2, 2]);
  } finally {
    await app.service.close();
  }
});
