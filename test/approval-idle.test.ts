import * as assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import { EXPIRY_SHARDS } from '../core/approval/schema.ts';
import type { Connection } from '../core/dialect.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { Bank, createGate, openApprovalProcess, refund, reject, compileTestTools, startCall } from './suites/approval-setup.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

// Who waits costs the database next to nothing: what is asked of it is counted while nothing happens.

/** The same connection, which counts what is asked of it by name. */
function counting(connection: Connection, asked: string[]): Connection {
  const counted = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(object, name) {
        const member = Reflect.get(object, name, object);
        if (typeof member !== 'function') return member;
        return (...args: unknown[]) => {
          if (name === 'records') return counted(member.apply(object, args));
          asked.push(name === 'page' ? `page ${args[0]}` : String(name));
          return member.apply(object, args);
        };
      },
    });
  return counted(connection);
}

const IDLE_MS = 7_000;
/** Hints are listened for; the store is looked at all the same, every five seconds. */
const LOOK_MS = 5_000;
const MOST_LOOKS = Math.floor(IDLE_MS / LOOK_MS) + 1;

const missing = await unavailable();
if (missing !== undefined) test.skip('waiting on PostgreSQL costs next to nothing', missing);
else {
  for (const [many, aLook] of [
    [10, 10],
    [300, 1],
  ] as const) {
    test(`${many} who wait ask for ${aLook} reads every five seconds, and for nothing else`, async () => {
      const { url, drop } = await freshDatabase();
      const home = await postgresql.connect(url, {});
      const asked: string[] = [];
      const office = await openApprovalProcess(counting(home, asked));
      try {
        const gate = createGate(office, compileTestTools(new Bank().tool()));
        const pending = await Promise.all(Array.from({ length: many }, () => startCall(gate, refund())));
        // The looks of the beginning are over once there was none for a while.
        await waitUntil(async () => {
          const before = asked.length;
          await wait(1_000);
          return asked.length === before;
        }, 'It never came to rest.');
        asked.length = 0;
        await wait(IDLE_MS);
        const looks = asked.filter((what) => what === 'get' || what === 'page byStatus').length;
        const sweeps = asked.filter((what) => what === 'page byExpiry').length;
        // Load makes looks fewer and never more. The second look of a new process for what fell due may come in between.
        assert.ok(looks <= MOST_LOOKS * aLook, `${looks} looks: ${asked.join()}`);
        assert.ok(sweeps <= EXPIRY_SHARDS, asked.join());
        assert.ok(asked.length - looks - sweeps <= 2, asked.join());
        await waitUntil(() => asked.filter((what) => what !== 'page byExpiry').length >= aLook, 'It was never looked at.');
        await Promise.all(pending.map(({ request }) => reject(office, request)));
        await Promise.all(pending.map(({ outcome }) => outcome));
      } finally {
        await office.service.close();
        await home.close();
        await drop();
      }
    });
  }
}
