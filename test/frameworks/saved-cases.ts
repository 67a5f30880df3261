import * as assert from 'node:assert/strict';
import { expectError } from '../suites/expect-error.ts';
import { waitUntil } from '../suites/wait-until.ts';
import type { Case } from './case.ts';
import { approve, withHost } from './with-host.ts';

export const SAVED_CASES: readonly Case[] = [
  {
    title: 'saved calls whose arguments were changed do not run',
    run: (host) =>
      withHost(host, 60_000, async ({ svc, ran, requests, open }) => {
        const run = await open({ wait: 'suspend' });
        const { state } = await run.start();
        await approve(svc, requests[0]?.requestId);
        const changed = state.replaceAll(/(amount[^0-9]{1,6})20\b/g, '$12000');
        assert.notEqual(changed, state);
        await run.resume(changed).catch(() => undefined);
        assert.deepEqual(ran, []);
        await run.resume(state);
        assert.deepEqual(ran, [20]);
      }),
  },
  {
    title: 'a malformed decision, and saved calls with malformed arguments, run nothing',
    run: (host) =>
      withHost(host, 60_000, async ({ svc, ran, requests, open }) => {
        const run = await open({ wait: 'suspend' });
        const { state } = await run.start();
        const [request] = requests;
        await expectError(approve(svc, request?.requestId, { amount: 'much' }), 'approval_parameters_invalid');
        await approve(svc, request?.requestId);
        const changed = state.replaceAll(/(amount[^0-9]{1,6})20\b/g, '$1null');
        assert.notEqual(changed, state);
        await run.resume(changed).catch(() => undefined);
        assert.deepEqual(ran, []);
        await run.resume(state);
        assert.deepEqual(ran, [20]);
      }),
  },
  {
    title: 'saved calls with another id, or the name of another tool, do not use the approval',
    run: (host) =>
      withHost(host, 60_000, async ({ svc, ran, requests, open }) => {
        const run = await open({ wait: 'suspend' });
        const { state } = await run.start();
        await approve(svc, requests[0]?.requestId);
        for (const [pattern, other] of [
          [/\bc1\b/g, 'c9'],
          [/(?<![a-z])refund(?![a-z])/g, 'lookup'],
        ] as const) {
          const changed = state.replaceAll(pattern, other);
          assert.notEqual(changed, state);
          let isOver = false;
          const end = () => {
            isOver = true;
          };
          run.resume(changed).then(end, end);
          await waitUntil(() => isOver || requests.length > 1, 'it neither ends nor asks again');
          assert.deepEqual(ran, []);
        }
      }),
  },
];
