import * as assert from 'node:assert/strict';
import { waitUntil } from '../suites/wait-until.ts';
import type { Case } from './case.ts';
import { approve, withHost } from './with-host.ts';

export const SAVED_CASES: readonly Case[] = [
  {
    title: 'saved calls whose arguments were changed do not run',
    impossible: { langchain: 'the saved arguments are bytes of its checkpoint' },
    run: (host) =>
      withHost(host, 60_000, async ({ svc, ran, requests, open }) => {
        const run = await open({ wait: 'suspend' });
        const { state } = await run.start();
        await approve(svc, requests[0]?.requestId);
        const changed = state.replaceAll(/(amount[^0-9]{1,6})20\b/g, '$12000');
        assert.notEqual(changed, state);
        await run.resume(changed).catch(() => undefined);
        assert.deepEqual(ran, []);
      }),
  },
  {
    title: 'saved calls with another id, or the name of another tool, do not use the approval',
    impossible: { langchain: 'the saved calls are bytes of its checkpoint' },
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
