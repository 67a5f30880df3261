import * as assert from 'node:assert/strict';
import { expectError } from '../suites/expect-error.ts';
import type { Case } from './case.ts';
import { withHost } from './with-host.ts';

export const WRAPPING_CASES: readonly Case[] = [
  {
    title: 'a tool that the framework does not run itself is rejected',
    impossible: { 'claude-agent': 'it has no such tools', 'claude-hooks': 'it has no such tools' },
    run: (host) =>
      withHost(host, 60_000, async ({ open }) => {
        const started = open({ unheld: true }).then((run) => run.start());
        // LangChain wraps what a middleware throws.
        const refused = started.catch((error: Error) => Promise.reject(error.cause ?? error));
        await expectError(refused, 'agent_invalid');
      }),
  },
  {
    title: 'a time-out of the tool that is shorter than the approval is rejected',
    impossible: {
      'ai-sdk': 'only its runs have time-outs',
      'ai-sdk-7': 'only its runs have time-outs',
      langchain: 'only its runs have time-outs',
      langgraph: 'its runs and nodes have them, which cancel the request',
      genkit: 'its tools have no time-out',
      'claude-agent': 'the server of the tool has it',
      'claude-hooks': 'the server of the tool has it',
    },
    run: (host) =>
      withHost(host, 60_000, async ({ open }) => {
        const { next } = await expectError(open({ timeoutMs: 5_000 }), 'agent_invalid');
        assert.match(next.join(), /Set a longer one/);
        await open({ timeoutMs: 60_000 });
      }),
  },
];
