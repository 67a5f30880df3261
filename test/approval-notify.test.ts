import * as assert from 'node:assert/strict';
import type { StorageBackend } from '../core/approval/backend.ts';
import type { ApprovalRecord } from '../core/approval/request.ts';
import { newRequestId } from '../core/approval/request.ts';
import type { Connection } from '../core/dialect.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { approvalSuite } from './suites/approval-suite.ts';
import { approve, Bank, createGate, openApprovalProcess, refund, reject, compileTestTools, startCall } from './suites/approval-setup.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { test } from './kit/test.ts';

// A hint says when to look and nothing more: late, repeated, false or missing, it changes nothing but the moment.

type Watch = NonNullable<Connection['watch']>;

/** The same store, to whom hints come in another way. */
function hintedBy(home: StorageBackend, watch: (real: Watch) => Watch): StorageBackend {
  const real: Watch = (topic, hint) => (home as Connection).watch!(topic, hint);
  return new Proxy(home, {
    get(target, name) {
      if (name === 'watch') return watch(real);
      const member = Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

/** Each key three times, the last one late, among keys of others and hints without one. */
const noisy =
  (real: Watch): Watch =>
  (topic, hint) =>
    real(topic, (key) => {
      for (const one of [newRequestId(), key, undefined, 'not an id', key]) hint(one);
      setTimeout(() => hint(key), 20);
    });

/** It listens, and nothing is ever heard. */
const silent = (): Watch => async () => async () => {};

approvalSuite(test, {
  name: 'hints that come three times, and others’ among them',
  async createStore() {
    const store = new MemoryStore();
    return { connect: async () => hintedBy(store, noisy), drop: async () => {} };
  },
});

test('hints of others, over and over, decide nothing and end no wait', async () => {
  const hints = new Set<(key?: string) => void>();
  const kept: Watch = async (_topic, hint) => {
    hints.add(hint);
    return async () => void hints.delete(hint);
  };
  const office = await openApprovalProcess(hintedBy(new MemoryStore(), () => kept));
  const bank = new Bank();
  const decided: ApprovalRecord[] = [];
  const onDecided = (record: ApprovalRecord) => decided.push(record);
  const gate = createGate(office, compileTestTools(bank.tool()));
  const [one, other] = [await startCall(gate, refund(), { onDecided }), await startCall(gate, refund(), { onDecided })];
  const storm = async () => {
    for (let round = 0; round < 100; round++) {
      for (const hint of hints) {
        for (const key of [one.request.requestId, other.request.requestId, newRequestId(), '', undefined]) hint(key);
      }
      await new Promise(setImmediate);
    }
  };
  await storm();
  assert.equal(hints.size, 1);
  assert.deepEqual([decided.length, bank.paid.length], [0, 0]);
  const [, , ended] = await Promise.all([storm(), approve(office, one.request), one.outcome]);
  assert.equal(ended.status, 'completed');
  await storm();
  assert.deepEqual([decided.length, bank.paid.length], [1, 1]);
  await reject(office, other.request);
  assert.equal((await other.outcome).status, 'rejected');
  assert.deepEqual([decided.length, bank.paid.length], [2, 1]);
  await office.service.close();
});

const missing = await unavailable();
if (missing !== undefined) test.skip('PostgreSQL that listens and is told nothing', missing);
else {
  test('who is never told finds the decision of another process, be it one who waits or many', async () => {
    const { url, drop } = await freshDatabase();
    const [home, away] = await Promise.all([postgresql.connect(url, {}), postgresql.connect(url, {})]);
    const office = await openApprovalProcess(hintedBy(home, silent));
    const elsewhere = await openApprovalProcess(away);
    const bank = new Bank();
    try {
      // Nobody finds it only because its time is over.
      const gate = createGate(office, compileTestTools(bank.tool()), { humanInLoop: { approvalTimeout: 3_600_000 } });
      // So many that what waits is asked for in pages, and then so few that each is asked for by itself.
      for (const many of [20, 1]) {
        const before = bank.paid.length;
        const pending = await Promise.all(Array.from({ length: many }, () => startCall(gate, refund())));
        await Promise.all(
          pending.map(({ request }, at) => (at % 2 === 0 ? approve(elsewhere, request) : reject(elsewhere, request))),
        );
        const ended = await Promise.all(pending.map(({ outcome }) => outcome));
        const expected = pending.map((_, at) => (at % 2 === 0 ? 'completed' : 'rejected'));
        assert.deepEqual(
          ended.map(({ status }) => status),
          expected,
        );
        assert.equal(bank.paid.length - before, Math.ceil(many / 2));
      }
    } finally {
      await Promise.all([office.service.close(), elsewhere.service.close()]);
      await Promise.all([home.close(), away.close()]);
      await drop();
    }
  });
}
