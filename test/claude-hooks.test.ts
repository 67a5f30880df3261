import * as assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Svc } from '../config/sdk/index.ts';

import { type ApprovalHookOptions, approvalHooks, type RequestedCall } from '../plugins/frameworks/claude-agent.ts';
import { loadHost } from './frameworks/run.ts';
import { folder } from './kit/folder.ts';
import { installFolder } from './kit/install-folder.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

// A built-in tool of the real Claude Code, with a scripted model. test/frameworks.test.ts has the tools that a program defines.

const missing = installFolder(new URL('frameworks/', import.meta.url), '@ai-sdk/mcp');

type RunCalls = (
  calls: readonly object[],
  options: object,
  home: string,
) => Promise<readonly (readonly [string, string])[]>;

interface Setup {
  readonly svc: Svc;
  readonly requests: RequestedCall[];
  /** The lines of the file that the command of the call appends to, or another one. */
  readonly lines: () => string[];
  readonly commandOf: (line: string) => string;
  /** Runs a query whose model calls Bash. Returns what it reads as the result. */
  readonly ask: (
    options: Partial<ApprovalHookOptions>,
    other?: () => Promise<object>,
    query?: object,
  ) => Promise<string>;
}

async function withClaude(body: (setup: Setup) => Promise<void>): Promise<void> {
  const { runCalls } = (await loadHost('claude-agent')) as unknown as { runCalls: RunCalls };
  const svc = new Svc({ config: { product: 'shop', env: 'dev' } });
  const gate = svc.gate({ agentTag: 'ops', humanInLoop: { enabled: true, approvalTimeout: 60_000 } });
  const home = folder();
  const file = join(folder(), 'file');
  const commandOf = (line: string) => `echo ${line} >> ${file}; echo said ${line}`;
  const requests: RequestedCall[] = [];
  try {
    await body({
      svc,
      requests,
      commandOf,
      lines: () => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []),
      async ask(options, other, query) {
        const hooks = approvalHooks(gate, { tools: { Bash: {} }, executionId: 'exe_1', ...options });
        const PreToolUse = [...hooks.PreToolUse, ...(other ? [{ hooks: [other] }] : [])];
        const calls = [{ id: 'c1', name: 'Bash', args: { command: commandOf('first') } }];
        const settings = { tools: ['Bash'], hooks: { ...hooks, PreToolUse }, ...query };
        const received = await runCalls(calls, settings, home);
        return received.map(([, text]) => text).join('\n');
      },
    });
  } finally {
    await svc.close();
  }
}

function claudeTest(title: string, body: (setup: Setup) => Promise<void>): void {
  if (missing !== undefined) test.skip(title, missing);
  else test(title, () => withClaude(body));
}

const approve =
  ({ svc, requests, commandOf }: Setup, line: string) =>
  (request: RequestedCall) => {
    requests.push(request);
    const payload = { requestId: request.requestId, modifiedParams: { command: commandOf(line) } };
    return svc.approvals.signal({ signal: 'approve', payload }, { actor: 'ann' });
  };

const recordOf = ({ svc, requests }: Setup) => svc.approvals.get(requests[0]?.requestId ?? '');

claudeTest('an edited command runs once, and its output is stored', async (setup) => {
  const onRequested = approve(setup, 'second');
  assert.match(await setup.ask({ onRequested }), /said second.*A reviewer changed these parameters/s);
  assert.deepEqual(setup.lines(), ['second']);
  assert.match(JSON.stringify(await recordOf(setup)), /"run":"done".*said second/);
  assert.match(await setup.ask({ onRequested }), /The call ran before, with this result:.*said second/);
  assert.deepEqual(setup.lines(), ['second']);
});

claudeTest('a rejected command does not run, and the model reads why', async (setup) => {
  const onRequested = ({ requestId }: RequestedCall) =>
    setup.svc.approvals.signal({ signal: 'reject', payload: { requestId, reason: 'Ask first.' } }, { actor: 'bob' });
  assert.match(await setup.ask({ onRequested }), /approval_rejected.*Ask first/);
  assert.deepEqual(setup.lines(), []);
});

claudeTest('a hook that fails blocks the command', async ({ ask, lines }) => {
  const executionId = () => {
    throw new Error('No conversation.');
  };
  assert.match(await ask({ executionId }), /blocking because onFailure/);
  assert.deepEqual(lines(), []);
});

claudeTest('an approved command that another hook denies counts as ended', async (setup) => {
  const hookSpecificOutput = { hookEventName: 'PreToolUse', permissionDecision: 'deny' };
  await setup.ask({ onRequested: approve(setup, 'second') }, async () => ({ hookSpecificOutput }));
  assert.deepEqual(setup.lines(), []);
  await waitUntil(async () => (await recordOf(setup))?.run === 'done', 'the call still counts as running');
});

claudeTest('tools that are not named are not asked about', async (setup) => {
  const other = async () => ({ hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'allow' } });
  assert.match(await setup.ask({ tools: {}, onRequested: approve(setup, 'second') }, other), /said first/);
  assert.deepEqual(setup.requests, []);
});

claudeTest('a command that waits is deferred, and the session that continues runs what was approved', async (setup) => {
  const { svc, requests, commandOf, lines, ask } = setup;
  const options = { wait: 'suspend', onRequested: (request: RequestedCall) => requests.push(request) } as const;
  await ask(options);
  assert.equal((await recordOf(setup))?.status, 'waiting');
  const [{ requestId } = { requestId: '' }] = requests;
  const modifiedParams = { command: commandOf('second') };
  await svc.approvals.signal({ signal: 'approve', payload: { requestId, modifiedParams } }, { actor: 'ann' });
  assert.match(await ask(options, undefined, { continue: true }), /said second/);
  assert.deepEqual(lines(), ['second']);
});

claudeTest('a command that runs when the query is aborted does not hold the client', async (setup) => {
  const { svc, requests, commandOf, lines, ask } = setup;
  const abortController = new AbortController();
  const onRequested = (request: RequestedCall) => {
    requests.push(request);
    const modifiedParams = { command: `${commandOf('second')}; sleep 60` };
    return svc.approvals.signal({ signal: 'approve', payload: { requestId: request.requestId, modifiedParams } });
  };
  const asked = ask({ onRequested, signal: abortController.signal }, undefined, { abortController });
  await waitUntil(() => lines().length > 0, 'the command does not run');
  abortController.abort();
  await asked.catch(() => undefined);
  await waitUntil(async () => (await recordOf(setup))?.run === 'done', 'the call still counts as running');
  assert.match(JSON.stringify(await recordOf(setup)), /unknown whether it had an effect/);
});
