import * as assert from 'node:assert/strict';
import type { Case } from './case.ts';
import { ended, killWhileWaiting, leftByKilled, onClient, resumed, rewriteStore, startProcess } from './killed.ts';
import { effectsOf, openRun } from './run.ts';
import { approve, textOf } from './with-host.ts';

export const KILLED_CASES: readonly Case[] = [
  {
    title: 'kill -9 while it waits, a decision elsewhere, and another process',
    run: async (host) => {
      const { path, requestId } = await leftByKilled(host);
      await onClient(path, (svc) => approve(svc, requestId, { amount: 15 }));
      const { text, effects } = await resumed(host, path);
      assert.match(text, /paid 15/);
      assert.deepEqual(effects, ['15']);
    },
  },
  {
    title: 'kill -9 while it waits in place, a decision elsewhere: the call, made again with the same id, runs once',
    run: async (host) => {
      const { path, requestId } = await killWhileWaiting(host, 'hold');
      await onClient(path, async (svc) => {
        await approve(svc, requestId, { amount: 15 });
        for (let round = 0; round < 2; round++) {
          const again = await openRun(svc, host, path, { wait: 'hold' });
          assert.match(textOf(await again.start(), 'c1'), /paid 15/);
        }
      });
      assert.deepEqual(effectsOf(path), ['15']);
    },
  },
  {
    title: 'kill -9 after the effect: it happens once, and the model reads that its end is unknown',
    run: async (host) => {
      const { path, requestId } = await leftByKilled(host);
      await onClient(path, (svc) => approve(svc, requestId));
      const child = startProcess(host, path, 'resume');
      await ended(child);
      assert.equal(child.signalCode, 'SIGKILL');
      // The claim of the killed process is lost after half a minute.
      rewriteStore(path, /(leaseMs[^0-9]{1,6})30000\b/g, '$1500');
      const { text, effects } = await resumed(host, path);
      assert.match(text, /interrupted/);
      assert.deepEqual(effects, ['20']);
    },
  },
  {
    title: 'stored parameters that were changed do not run',
    run: async (host) => {
      const { path, requestId } = await leftByKilled(host);
      await onClient(path, (svc) => approve(svc, requestId));
      rewriteStore(path, /(amount[^0-9]{1,6})20\b/g, '$12000');
      const { text, effects } = await resumed(host, path);
      assert.match(text, /approval_stale|call_conflict|different call/);
      assert.deepEqual(effects, []);
    },
  },
  {
    title: 'a schema that was changed since the approval: the call does not run',
    run: async (host) => {
      const { path, requestId } = await leftByKilled(host);
      await onClient(path, (svc) => approve(svc, requestId));
      const { text, effects } = await resumed(host, path, 'schema');
      assert.match(text, /approval_stale/);
      assert.deepEqual(effects, []);
    },
  },
  {
    title: 'a tool that was renamed since the approval does not run',
    run: async (host) => {
      const { path, requestId } = await leftByKilled(host);
      await onClient(path, (svc) => approve(svc, requestId));
      assert.deepEqual((await resumed(host, path, 'name')).effects, []);
      assert.deepEqual((await resumed(host, path)).effects, ['20']);
    },
  },
];
