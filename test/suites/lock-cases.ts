import * as assert from 'node:assert/strict';
import type { Connection } from '../../core/dialect.ts';
import { isSvcError } from '../../core/errors.ts';
import { anyDefinition, recordWrite } from '../../core/records.ts';
import type { DeclareConnectedCase } from './dialect-case.ts';
import { thing, things } from './record-store-suite.ts';
import { waitUntil } from './wait-until.ts';

/** Cases about the lock of migrations and its epoch. Those with several processes are in `processCases`. */
export function lockCases(on: DeclareConnectedCase): void {
  on(
    'writes of an earlier epoch fail',
    '`withLock` increments the epoch by one each time. Writes with an earlier epoch or another version of the record fail with `lock_lost`, and `replace` with an earlier epoch is `stale`.',
    async ({ connection, connectAgain }) => {
      const other = await connectAgain();
      const old = await connection.withLock(async (epoch) => {
        await connection.ensureTables([anyDefinition(things)]);
        return epoch;
      });
      const epoch = await other.withLock(async (next) => next);
      assert.equal(epoch, old + 1);
      const late = await connection.run(
        [{ transactional: true, statements: [], writes: [recordWrite(things, thing('a', 1))] }],
        old,
      );
      assert.equal(isSvcError(late.failure?.error) && late.failure.error.code, 'lock_lost');
      const store = connection.records(things);
      await store.insert(thing('a', 1));
      assert.equal(await store.replace('a', 1, thing('a', 2), { epoch: old }), 'stale');
      assert.equal(await store.replace('a', 1, thing('a', 2), { epoch }), 'replaced');
      const stale = await connection.run(
        [{ transactional: true, statements: [], writes: [recordWrite(things, thing('a', 1), 1)] }],
        epoch,
      );
      assert.equal(isSvcError(stale.failure?.error) && stale.failure.error.code, 'lock_lost');
    },
  );

  on(
    'the lock has one holder, others wait, and a failure releases it',
    'The lock has one holder across all connections. While waiting, `withLock` calls `onWait`; it fails with `lock_timeout` after the timeout, and acquires the lock when the holder succeeds or fails. `isLocked` returns whether there is a holder.',
    async ({ connection, connectAgain }) => {
      const other = await connectAgain();
      let inside = 0;
      let waited = 0;
      const enter = (holder: Connection) =>
        holder.withLock(
          async () => {
            inside += 1;
            assert.equal(inside, 1);
            await holder.now();
            await waitUntil(() => waited > 0, 'onWait was never called');
            inside -= 1;
          },
          { onWait: () => (waited += 1) },
        );
      await Promise.all([enter(connection), enter(other), enter(connection), enter(other)]);
      await assert.rejects(
        connection.withLock(() => Promise.reject(new Error('mine'))),
        /mine/,
      );
      assert.equal(await other.isLocked(), false);
      await connection.withLock(async () => {
        assert.equal(await other.isLocked(), true);
        assert.equal(await connection.isLocked(), true);
        await assert.rejects(
          other.withLock(async () => {}, { timeoutMs: 30 }),
          (error) => isSvcError(error) && error.code === 'lock_timeout',
        );
      });
      await other.withLock(async () => {});
    },
  );

  on(
    'waiting for the lock can be interrupted, also on the connection that holds it',
    '`withLock` fails with `interrupted` when its `signal` is aborted, whichever connection holds the lock.',
    async ({ connection, connectAgain }) => {
      const other = await connectAgain();
      await connection.withLock(async () => {
        for (const holder of [connection, other]) {
          const signal = new AbortController();
          await assert.rejects(
            holder.withLock(async () => {}, { signal: signal.signal, onWait: () => signal.abort() }),
            (error) => isSvcError(error) && error.code === 'interrupted',
          );
        }
      });
      await other.withLock(async () => {});
    },
  );
}
