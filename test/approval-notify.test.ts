import * as assert from 'node:assert/strict';
import type { StorageBackend } from '../core/approval/backend.ts';
import type { ApprovalRecord } from '../core/approval/request.ts';
import { newRequestId } from '../core/approval/request.ts';
import type { Connection } from '../core/dialect.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { test } from './kit/test.ts';
import {
  approve,
  Bank,
  compileTestTools,
  createGate,
  openApprovalProcess,
  refund,
  reject,
  startCall,
} from './suites/approval-setup.ts';
import { approvalSuite } from './suites/approval-suite.ts';

// A notification only triggers a read: if it is late, repeated, false or missing, only the time of the read changes.

type Watch = NonNullable<Connection['watch']>;

/** Wraps the notifications of a store. */
function withNotifications(backend: StorageBackend, watch: (real: Watch) => Watch): StorageBackend {
  const real: Watch = (topic, listener) => (backend as Connection).watch!(topic, listener);
  return new Proxy(backend, {
    get(target, name) {
      if (name === 'watch') return watch(real);
      const member = Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

/** Notifies of each key three times, the last time late, and of other keys and of no key in between. */
const noisy =
  (real: Watch): Watch =>
  (topic, listener) =>
    real(topic, (key) => {
      for (const one of [newRequestId(), key, undefined, 'not an id', key]) listener(one);
      setTimeout(() => listener(key), 20);
    });

/** Never notifies. */
const silent = (): Watch => async () => async () => {};

approvalSuite(test, {
  name: 'repeated and foreign notifications',
  async createStore() {
    const store = new MemoryStore();
    return { connect: async () => withNotifications(store, noisy), drop: async () => {} };
  },
});

test('foreign notifications decide nothing and end no wait', async () => {
  const listeners = new Set<(key?: string) => void>();
  const recording: Watch = async (_topic, listener) => {
    listeners.add(listener);
    return async () => void listeners.delete(listener);
  };
  const app = await openApprovalProcess(withNotifications(new MemoryStore(), () => recording));
  const bank = new Bank();
  const decided: ApprovalRecord[] = [];
  const onDecided = (record: ApprovalRecord) => decided.push(record);
  const gate = createGate(app, compileTestTools(bank.tool()));
  const [one, other] = [await startCall(gate, refund(), { onDecided }), await startCall(gate, refund(), { onDecided })];
  const storm = async () => {
    for (let round = 0; round < 100; round++) {
      for (const listener of listeners) {
        for (const key of [one.request.requestId, other.request.requestId, newRequestId(), '', undefined])
          listener(key);
      }
      await new Promise(setImmediate);
    }
  };
  await storm();
  assert.equal(listeners.size, 1);
  assert.deepEqual([decided.length, bank.paid.length], [0, 0]);
  const [, , ended] = await Promise.all([storm(), approve(app, one.request), one.outcome]);
  assert.equal(ended.status, 'completed');
  await storm();
  assert.deepEqual([decided.length, bank.paid.length], [1, 1]);
  await reject(app, other.request);
  assert.equal((await other.outcome).status, 'rejected');
  assert.deepEqual([decided.length, bank.paid.length], [2, 1]);
  await app.service.close();
});

const missing = await unavailable();
if (missing !== undefined) test.skip('PostgreSQL without notifications', missing);
else {
  test('without notifications, the decision of another process is found, for one and for many waiting calls', async () => {
    const { url, drop } = await freshDatabase();
    const [ownBackend, otherBackend] = await Promise.all([postgresql.connect(url, {}), postgresql.connect(url, {})]);
    const app = await openApprovalProcess(withNotifications(ownBackend, silent));
    const other = await openApprovalProcess(otherBackend);
    const bank = new Bank();
    try {
      // Long enough that the deadline does not end the wait.
      const gate = createGate(app, compileTestTools(bank.tool()), { humanInLoop: { approvalTimeout: 3_600_000 } });
      // Enough requests that they are read in pages, and then so few that each is read separately.
      for (const count of [20, 1]) {
        const before = bank.paid.length;
        const pending = await Promise.all(Array.from({ length: count }, () => startCall(gate, refund())));
        await Promise.all(
          pending.map(({ request }, at) => (at % 2 === 0 ? approve(other, request) : reject(other, request))),
        );
        const ended = await Promise.all(pending.map(({ outcome }) => outcome));
        const expected = pending.map((_, at) => (at % 2 === 0 ? 'completed' : 'rejected'));
        assert.deepEqual(
          ended.map(({ status }) => status),
          expected,
        );
        assert.equal(bank.paid.length - before, Math.ceil(count / 2));
      }
    } finally {
      await Promise.all([app.service.close(), other.service.close()]);
      await Promise.all([ownBackend.close(), otherBackend.close()]);
      await drop();
    }
  });
}
