import * as assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import { EXPIRY_SHARDS } from '../core/approval/schema.ts';
import type { Connection } from '../core/dialect.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { test } from './kit/test.ts';
import {
  Bank,
  compileTestTools,
  createGate,
  openApprovalProcess,
  refund,
  reject,
  startCall,
} from './suites/approval-setup.ts';
import { waitUntil } from './suites/wait-until.ts';

// Waiting requests cost the database almost nothing: counts its calls while nothing happens.

/** A connection that records the names of calls. */
function counting(connection: Connection, calls: string[]): Connection {
  const counted = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(object, name) {
        const member = Reflect.get(object, name, object);
        if (typeof member !== 'function') return member;
        return (...args: unknown[]) => {
          if (name === 'records') return counted(member.apply(object, args));
          calls.push(name === 'page' ? `page ${args[0]}` : String(name));
          return member.apply(object, args);
        };
      },
    });
  return counted(connection);
}

const IDLE_MS = 7_000;
/** Watchers poll the store every five seconds in addition to notifications. */
const POLL_MS = 5_000;
const MAX_POLLS = Math.floor(IDLE_MS / POLL_MS) + 1;

const missing = await unavailable();
if (missing !== undefined) test.skip('waiting requests cost PostgreSQL almost nothing', missing);
else {
  for (const [count, readsPerPoll] of [
    [10, 10],
    [300, 1],
  ] as const) {
    test(`${count} waiting requests cost ${readsPerPoll} reads every five seconds, and nothing else`, async () => {
      const { url, drop } = await freshDatabase();
      const backend = await postgresql.connect(url, {});
      const calls: string[] = [];
      const app = await openApprovalProcess(counting(backend, calls));
      try {
        const gate = createGate(app, compileTestTools(new Bank().tool()));
        const pending = await Promise.all(Array.from({ length: count }, () => startCall(gate, refund())));
        // The initial reads are over once there was none for a second.
        await waitUntil(async () => {
          const before = calls.length;
          await wait(1_000);
          return calls.length === before;
        }, 'The calls never stopped.');
        calls.length = 0;
        await wait(IDLE_MS);
        const polls = calls.filter((what) => what === 'get' || what === 'page byStatus').length;
        const sweeps = calls.filter((what) => what === 'page byExpiry').length;
        // A busy machine polls less often. The second sweep of a new process may happen in between.
        assert.ok(polls <= MAX_POLLS * readsPerPoll, `${polls} polls: ${calls.join()}`);
        assert.ok(sweeps <= EXPIRY_SHARDS, calls.join());
        assert.ok(calls.length - polls - sweeps <= 2, calls.join());
        await waitUntil(
          () => calls.filter((what) => what !== 'page byExpiry').length >= readsPerPoll,
          'The store was never polled.',
        );
        await Promise.all(pending.map(({ request }) => reject(app, request)));
        await Promise.all(pending.map(({ outcome }) => outcome));
      } finally {
        await app.service.close();
        await backend.close();
        await drop();
      }
    });
  }
}
