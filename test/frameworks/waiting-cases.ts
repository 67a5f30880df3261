import * as assert from 'node:assert/strict';
import type { ApprovalRequest } from '../../core/approval/request.ts';
import { expectError } from '../suites/expect-error.ts';
import { waitUntil } from '../suites/wait-until.ts';
import type { Case } from './case.ts';
import type { HostName } from './hosts.ts';
import { approve, reject, textOf, withHost } from './with-host.ts';

/** If a run is resumed too early. */
const SUSPENDS_AGAIN: readonly HostName[] = ['langchain', 'langgraph', 'mastra', 'claude-agent', 'claude-hooks'];

export const WAITING_CASES: readonly Case[] = [
  {
    title: 'a request that expires does not run',
    run: (host) =>
      withHost(host, 1_000, async ({ ran, open }) => {
        const result = await (await open({})).start();
        assert.match(textOf(result, 'c1'), /approval_timeout/);
        assert.deepEqual(ran, []);
      }),
  },
  {
    title: 'the same decision twice counts once; another one is refused',
    run: (host) =>
      withHost(host, 60_000, async ({ svc, ran, requests, open }) => {
        const run = await open({ wait: 'suspend' });
        const { state } = await run.start();
        const [request] = requests;
        for (let round = 0; round < 2; round++) await approve(svc, request?.requestId);
        await expectError(reject(svc, request?.requestId), 'approval_decided');
        for (let round = 0; round < 2; round++) assert.match(textOf(await run.resume(state), 'c1'), /paid 20/);
        assert.deepEqual(ran, [20], 'a state that is resumed twice runs the tool once');
      }),
  },
  {
    title: 'a suspended run that is resumed too early waits',
    run: (host) =>
      withHost(host, 60_000, async ({ svc, ran, requests, open }) => {
        const run = await open({ wait: 'suspend' });
        const first = await run.start();
        const early = run.resume(first.state);
        const suspendsAgain = SUSPENDS_AGAIN.includes(host);
        if (suspendsAgain) assert.equal((await early).suspended, true);
        else await Promise.race([early, waitUntil(() => requests.length > 1, 'the resumed call does not wait')]);
        assert.deepEqual(ran, []);
        await approve(svc, requests[0]?.requestId);
        const result = suspendsAgain ? await run.resume(first.state) : await early;
        assert.match(textOf(result, 'c1'), /paid 20/);
        assert.deepEqual(ran, [20]);
      }),
  },
  {
    title: 'aborting a run that waits in place cancels the request',
    run: (host) =>
      withHost(host, 60_000, async ({ svc, ran, open }) => {
        const aborting = new AbortController();
        let requestId = '';
        const onRequested = (request: ApprovalRequest) => {
          requestId = request.requestId;
          aborting.abort();
        };
        const run = await open({ onRequested });
        await run.start(aborting.signal).catch(() => undefined);
        await waitUntil(
          async () => (await svc.approvals.get(requestId))?.status === 'cancelled',
          'it was not cancelled',
        );
        assert.deepEqual(ran, []);
      }),
  },
  {
    title: 'aborting a suspended run that is resumed too early leaves the request',
    impossible: {
      ...Object.fromEntries(SUSPENDS_AGAIN.map((host) => [host, 'it is suspended again at once'])),
    },
    run: (host) =>
      withHost(host, 60_000, async ({ svc, ran, requests, open }) => {
        const run = await open({ wait: 'suspend' });
        const { state } = await run.start();
        const aborting = new AbortController();
        const early = run.resume(state, aborting.signal).catch(() => undefined);
        await waitUntil(() => requests.length > 1, 'the resumed call does not wait');
        aborting.abort(new Error('the user left'));
        await early;
        assert.equal((await svc.approvals.get(requests[0]?.requestId ?? '')).status, 'waiting');
        await approve(svc, requests[0]?.requestId);
        assert.match(textOf(await (await open({ wait: 'suspend' })).resume(state), 'c1'), /paid 20/);
        assert.deepEqual(ran, [20]);
      }),
  },
  {
    title: 'a time-out of the run that is shorter than the approval cancels the request',
    impossible: {
      ...Object.fromEntries(
        ['openai-agents', 'genkit', 'mastra', 'claude-agent', 'claude-hooks'].map((host) => [
          host,
          'its runs have no time-out',
        ]),
      ),
    },
    run: (host) =>
      withHost(host, 60_000, async ({ svc, ran, requests, open }) => {
        const run = await open({ runTimeoutMs: 300 });
        await run.start().catch(() => undefined);
        const requestId = requests[0]?.requestId ?? '';
        await waitUntil(
          async () => (await svc.approvals.get(requestId))?.status === 'cancelled',
          'it was not cancelled',
        );
        await expectError(approve(svc, requestId), 'approval_decided');
        assert.deepEqual(ran, []);
      }),
  },
  {
    title: 'reviewers read what the model wrote before the call',
    impossible: {
      ...{ 'ai-sdk': 'a tool gets only the messages before', 'ai-sdk-7': 'a tool gets only the messages before' },
      ...{ 'openai-agents': 'a tool gets only its call', mastra: 'a tool gets only the messages before' },
      'claude-agent': 'a tool gets only its call',
      'claude-hooks': 'a hook gets only its call',
    },
    run: (host) =>
      withHost(host, 60_000, async ({ svc, open }) => {
        await (await open({ wait: 'suspend' })).start();
        const entries: object[] = [];
        for await (const entry of svc.approvals.export()) entries.push(entry);
        assert.match(JSON.stringify(entries), /"modelText":"I pay it back[.]"/);
      }),
  },
];
