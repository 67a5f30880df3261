import * as assert from 'node:assert/strict';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ApprovalRequest } from '../../core/approval/request.ts';
import { folder } from '../kit/folder.ts';
import { waitUntil } from '../suites/wait-until.ts';
import type { Case } from './case.ts';
import { type HostName, own } from './hosts.ts';
import { effectsOf } from './run.ts';
import { approve, refundCall, reject, textOf, withHost } from './with-host.ts';

const WAITS = ['hold', 'suspend'] as const;
type Wait = (typeof WAITS)[number];

interface Variant {
  readonly name: string;
  readonly options?: { readonly streams?: true; readonly subAgent?: true; readonly mcp?: true };
  readonly impossible?: { readonly [W in Wait]?: Case['impossible'] };
}

const VARIANTS: readonly Variant[] = [
  { name: 'parallel calls' },
  { name: 'parallel calls, streamed', options: { streams: true } },
  {
    name: 'parallel calls of a sub-agent',
    options: { subAgent: true },
    impossible: {
      suspend: {
        'ai-sdk': 'the run of a sub-agent ends, and its agent continues',
        'ai-sdk-7': 'the run of a sub-agent ends, and its agent continues',
        genkit: 'the run of a sub-agent ends, and its agent continues',
        'claude-agent': 'the call of a sub-agent waits in place',
        'claude-hooks': 'the call of a sub-agent waits in place',
      },
    },
  },
  {
    name: 'parallel calls of tools of an MCP server',
    options: { mcp: true },
  },
];

export async function parallelCalls(host: HostName, wait: Wait, { streams, subAgent, mcp }: Variant['options'] = {}) {
  await withHost(host, 60_000, async ({ svc, ran, requests, open }) => {
    let streamed = '';
    const onPart = (part: unknown) => {
      streamed += JSON.stringify(part);
    };
    const path = folder();
    const server = fileURLToPath(new URL('mcp-server.mjs', own));
    const mcpServer = { command: process.execPath, args: [server, join(path, 'effects')] };
    const decide = async ({ requestId, toolCallId = '' }: ApprovalRequest) => {
      if (streams) await waitUntil(() => streamed.includes(toolCallId), 'the stream does not show the call that waits');
      await (toolCallId === 'c1' ? approve(svc, requestId, { amount: 15 }) : reject(svc, requestId));
    };
    const calls = [refundCall('c1', 20), refundCall('c2', 30), { id: 'c3', name: 'lookup', args: {} }];
    const onRequested = (request: ApprovalRequest) => {
      // Claude suspends one call of a turn; the others wait in place, and so do those of a sub-agent.
      const isHeld = wait === 'hold' || (host.startsWith('claude') && (subAgent || requests.length > 0));
      return isHeld ? decide(request) : requests.push(request);
    };
    const variant = { ...(streams && { onPart }), ...(mcp && { mcpServer }), subAgent };
    const run = await open({ calls, wait, onRequested, ...variant });
    let result = await run.start();
    if (requests.length > 0) {
      assert.equal(result.suspended, true);
      assert.deepEqual(ran, []);
      // In the other order than they were made.
      for (const request of [...requests].reverse()) await decide(request);
      result = await run.resume(result.state);
    }
    assert.equal(result.suspended, false);
    assert.deepEqual(mcp ? effectsOf(path) : ran.map(String), ['15']);
    assert.match(textOf(result, 'c1'), /paid 15.*A reviewer changed .* Do not call it again with the first/s);
    assert.match(textOf(result, 'c2'), /approval_rejected.*Ask first/s);
    assert.match(textOf(result, 'c3'), /looked/);
    if (streams) assert.match(streamed, /paid 15/);
  });
}

export const PARALLEL_CASES: readonly Case[] = VARIANTS.flatMap(({ name, options, impossible }) =>
  WAITS.map((wait) => ({
    title: `${name}, ${wait === 'hold' ? 'waiting in place' : 'suspended'}`,
    impossible: impossible?.[wait],
    needsPackages: options?.mcp,
    run: (host: HostName) => parallelCalls(host, wait, options),
  })),
);
