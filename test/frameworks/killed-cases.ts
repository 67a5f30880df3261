import * as assert from 'node:assert/strict';
import type { Case } from './case.ts';
import { ended, leftByKilled, onClient, resumed, rewriteStore, startProcess } from './killed.ts';
import { approve } from './with-host.ts';

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
    title: 'kill -9 after the effect: it happens once, and the model reads that nobody knows',
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
    title: 'a schema that was changed since the approval',
    run: async (host) => {
      const { path, requestId } = await leftByKilled(host);
      await onClient(path, (svc) => approve(svc, requestId));
      const { text, effects } = await resumed(host, path, 'schema');
      assert.match(text, /approval_stale/);
      assert.deepEqual(effects, []);
    },
  },
  {
    title: 'a tool that was renamed since the approval',
    run: async (host) => {
      const { path, requestId } = await leftByKilled(host);
      await onClient(path, (svc) => approve(svc, requestId));
      const { effects } = await resumed(host, path, 'name');
      assert.deepEqual(effects, []);
    },
  },
];
