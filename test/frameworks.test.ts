import * as assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { deserialize, serialize } from 'node:v8';
import { Svc } from '../config/sdk/index.ts';
import type { ApprovalRequest } from '../core/approval/request.ts';
import {
  type Difference,
  type Ended,
  effectsOf,
  type FrameworkRun,
  loadHost,
  openClient,
  openRun,
} from './frameworks/run.ts';
import { docsBlocks } from './kit/docs-blocks.ts';
import { folder } from './kit/folder.ts';
import { installFolder } from './kit/install-folder.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { waitUntil } from './suites/wait-until.ts';

// One suite, run inside each framework with its own model. What cannot be tried in a framework carries its reason, and the
// table of docs/reference/frameworks.md is compared with the suite.

const HOSTS = {
  'ai-sdk': 'AI SDK 6',
  'ai-sdk-7': 'AI SDK 7',
  'openai-agents': 'OpenAI Agents',
  langchain: 'LangChain',
  genkit: 'Genkit',
  mastra: 'Mastra',
  'claude-agent': 'Claude Agent SDK',
} as const;
type HostName = keyof typeof HOSTS;
const HOST_NAMES = Object.keys(HOSTS) as HostName[];
const PAGES: Readonly<Partial<Record<HostName, string>>> = {
  'ai-sdk': 'docs/how-to/use-the-ai-sdk.md',
  'openai-agents': 'docs/how-to/use-openai-agents.md',
  langchain: 'docs/how-to/use-langchain.md',
  genkit: 'docs/how-to/use-genkit.md',
  mastra: 'docs/how-to/use-mastra.md',
  'claude-agent': 'docs/how-to/use-claude-agent.md',
};
const WAITS = ['hold', 'suspend'] as const;

const own = new URL('./frameworks/', import.meta.url);

/** The frameworks that are not among the dependencies of the checkout have a folder of their own. */
const missing = installFolder(own, '@ai-sdk/mcp');

function reasonToSkip(host: HostName): string | undefined {
  if (host === 'ai-sdk') return undefined;
  const isOld = ['ai-sdk-7', 'mastra'].includes(host) && Number.parseInt(process.versions.node, 10) < 22;
  return isOld ? 'it needs Node 22' : missing;
}

const refundCall = (id: string, amount: number) => ({ id, name: 'refund', args: { amount, note: 'none' } });

interface Setup {
  readonly svc: Svc;
  readonly ran: number[];
  readonly requests: ApprovalRequest[];
  readonly open: (options: object) => Promise<FrameworkRun>;
}

async function withHost(host: HostName, approvalTimeout: number, body: (setup: Setup) => Promise<void>): Promise<void> {
  const framework = await loadHost(host);
  const svc = new Svc({ config: { product: 'shop', env: 'dev' } });
  const gate = svc.gate({ agentTag: 'payouts', humanInLoop: { enabled: true, approvalTimeout } });
  const ran: number[] = [];
  const requests: ApprovalRequest[] = [];
  const refund = async ({ amount }: { amount: number }) => {
    ran.push(amount);
    return `paid ${amount}`;
  };
  const base = { gate, executionId: 'exe_1', calls: [refundCall('c1', 20)], refund, lookup: async () => 'looked' };
  const onRequested = (request: ApprovalRequest) => requests.push(request);
  const runs: FrameworkRun[] = [];
  const open = async (options: object) => {
    const run = await framework.open({ ...base, onRequested, ...options });
    runs.push(run);
    return run;
  };
  try {
    await body({ svc, ran, requests, open });
  } finally {
    for (const run of runs) await run.close?.();
    await svc.close();
  }
}

const approve = (svc: Svc, requestId = '', modifiedParams?: object) =>
  svc.approvals.signal({ signal: 'approve', payload: { requestId, modifiedParams } }, { actor: 'ann' });
const reject = (svc: Svc, requestId = '') =>
  svc.approvals.signal({ signal: 'reject', payload: { requestId, reason: 'Ask first.' } }, { actor: 'bob' });

const textOf = ({ received }: Pick<Ended, 'received'>, callId: string) =>
  received.find(([id]) => id === callId)?.[1] ?? 'nothing';

const children = new Set<ChildProcess>();

function startProcess(host: HostName, path: string, phase: 'start' | 'resume'): ChildProcess {
  const script = new URL('process.ts', own).pathname;
  const stdio = ['ignore', 'pipe', 'inherit'] as const;
  const child = spawn(process.execPath, ['--import', 'tsx', script, host, path, phase], { stdio: [...stdio] });
  children.add(child);
  return child;
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  children.delete(child);
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await ended(child);
}

test.after(() => Promise.all([...children].map(kill)));

const killed = new Map<HostName, Promise<{ path: string; requestId: string }>>();

async function killWhileWaiting(host: HostName): Promise<{ path: string; requestId: string }> {
  const path = folder();
  const child = startProcess(host, path, 'start');
  let output = '';
  child.stdout?.on('data', (chunk) => {
    output += chunk;
  });
  await waitUntil(() => output.includes('\n') || child.exitCode !== null, 'no request was made');
  await kill(child);
  return { path, requestId: output.trim() };
}

/** A copy of what a process left that was killed while its request waited. */
async function leftByKilled(host: HostName): Promise<{ path: string; requestId: string }> {
  const left = killed.get(host) ?? killWhileWaiting(host);
  killed.set(host, left);
  const { path, requestId } = await left;
  const copy = folder();
  cpSync(path, copy, { recursive: true });
  return { path: copy, requestId };
}

/** Changes what is stored, as somebody with access to the store could. */
function rewriteStore(path: string, pattern: RegExp, replacement: string): void {
  const file = join(path, 'store.db');
  const before = JSON.stringify(deserialize(readFileSync(file)));
  const after = before.replaceAll(pattern, replacement);
  assert.notEqual(after, before);
  writeFileSync(file, serialize(JSON.parse(after)));
}

async function onClient<T>(path: string, work: (svc: Svc) => Promise<T>): Promise<T> {
  const svc = openClient(path);
  try {
    return await work(svc);
  } finally {
    await svc.close();
  }
}

/** Continues in this process, which is not the one that was killed. */
function resumed(
  host: HostName,
  path: string,
  difference?: Difference,
): Promise<{ text: string; effects: readonly string[] }> {
  return onClient(path, async (svc) => {
    const run = await openRun(svc, host, path, { difference });
    const text = await run.resume(readFileSync(join(path, 'state'), 'utf8')).then(
      (result) => textOf(result, 'c1'),
      (error: Error) => `${error.name}: ${error.message}`,
    );
    return { text, effects: effectsOf(path) };
  });
}

interface Case {
  readonly title: string;
  /** Why it cannot be tried in a framework. */
  readonly impossible?: Partial<Record<HostName, string>> | undefined;
  /** Whether it needs packages of the folder in every framework. */
  readonly needsPackages?: boolean | undefined;
  readonly run: (host: HostName) => Promise<void>;
}

type Wait = (typeof WAITS)[number];

interface Variant {
  readonly name: string;
  readonly options?: { readonly streams?: true; readonly subAgent?: true; readonly mcp?: true };
  readonly impossible?: { readonly [W in Wait]?: Case['impossible'] };
}

const VARIANTS: readonly Variant[] = [
  { name: '' },
  { name: 'streamed, ', options: { streams: true } },
  {
    name: 'tools of a sub-agent, ',
    options: { subAgent: true },
    impossible: {
      suspend: {
        'ai-sdk': 'the run of a sub-agent ends, and its agent continues',
        'ai-sdk-7': 'the run of a sub-agent ends, and its agent continues',
        genkit: 'the run of a sub-agent ends, and its agent continues',
        'claude-agent': 'the call of a sub-agent waits in place',
      },
    },
  },
  {
    name: 'tools of an MCP server, ',
    options: { mcp: true },
    impossible: { suspend: { 'claude-agent': 'its hooks only hold' } },
  },
];

async function parallelCalls(host: HostName, wait: Wait, { streams, subAgent, mcp }: Variant['options'] = {}) {
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
      const isHeld = wait === 'hold' || (host === 'claude-agent' && (subAgent || requests.length > 0));
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

/**
 * They contain the seven reasons for which Google's ADK rejects a resumed call: no decision at all (resumed too early), a second
 * decision, a changed id, a tool that is gone, one that needs no approval, a changed name, changed arguments.
 */
const CASES: Case[] = [
  ...VARIANTS.flatMap(({ name, options, impossible }) =>
    WAITS.map((wait) => ({
      title: `${name}${wait === 'hold' ? 'waiting in place' : 'suspended'}: parallel calls, one edited, one rejected, one without approval`,
      impossible: impossible?.[wait],
      needsPackages: options?.mcp,
      run: (host: HostName) => parallelCalls(host, wait, options),
    })),
  ),
  {
    title: 'a request that expires',
    run: (host) =>
      withHost(host, 1_000, async ({ ran, open }) => {
        const result = await (await open({})).start();
        assert.match(textOf(result, 'c1'), /approval_timeout/);
        assert.deepEqual(ran, []);
      }),
  },
  {
    title: 'a second, other decision is refused',
    run: (host) =>
      withHost(host, 60_000, async ({ svc, ran, requests, open }) => {
        const run = await open({ wait: 'suspend' });
        const { state } = await run.start();
        const [request] = requests;
        await approve(svc, request?.requestId);
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
        const suspendsAgain = ['langchain', 'mastra', 'claude-agent'].includes(host);
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
  {
    title: 'reviewers read what the model wrote before the call',
    impossible: {
      ...{ 'ai-sdk': 'a tool gets only the messages before', 'ai-sdk-7': 'a tool gets only the messages before' },
      ...{ 'openai-agents': 'a tool gets only its call', mastra: 'a tool gets only the messages before' },
      'claude-agent': 'a tool gets only its call',
    },
    run: (host) =>
      withHost(host, 60_000, async ({ svc, open }) => {
        await (await open({ wait: 'suspend' })).start();
        const entries: object[] = [];
        for await (const entry of svc.approvals.export()) entries.push(entry);
        assert.match(JSON.stringify(entries), /"modelText":"I pay it back[.]"/);
      }),
  },
  {
    title: 'a tool that the framework does not run itself is rejected',
    impossible: { 'claude-agent': 'it has none' },
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
      'ai-sdk': 'it has none',
      'ai-sdk-7': 'it has none',
      langchain: 'it has none',
      genkit: 'it has none',
      'claude-agent': 'the server of the tool has it',
    },
    run: (host) =>
      withHost(host, 60_000, async ({ open }) => {
        await expectError(open({ timeoutMs: 5_000 }), 'agent_invalid');
        await open({ timeoutMs: 60_000 });
      }),
  },
];

for (const host of HOST_NAMES) {
  for (const { title, impossible, needsPackages, run } of CASES) {
    const reason = impossible?.[host] ?? reasonToSkip(host) ?? (needsPackages ? missing : undefined);
    if (reason !== undefined) test.skip(`${HOSTS[host]}: ${title}`, reason);
    else test(`${HOSTS[host]}: ${title}`, () => run(host));
  }
}

const claudeTitle = 'Claude Agent SDK: a call of a sub-agent waits in place, where the query suspends';
if (missing !== undefined) test.skip(claudeTitle, missing);
else test(claudeTitle, () => parallelCalls('claude-agent', 'suspend', { subAgent: true }));

if (missing !== undefined) test.skip('Genkit: calls of a model that gives them no ids', missing);
else
  test('Genkit: calls of a model that gives them no ids', () =>
    withHost('genkit', 60_000, async ({ svc, ran, requests, open }) => {
      const calls = [20, 30].map((amount) => ({ name: 'refund', args: { amount, note: 'none' } }));
      const run = await open({ calls, wait: 'suspend' });
      const { state } = await run.start();
      const [first, second] = requests;
      await approve(svc, first?.requestId, { amount: 15 });
      await reject(svc, second?.requestId);
      const result = await run.resume(state);
      assert.deepEqual(ran, [15]);
      assert.match(textOf(result, first?.toolCallId ?? ''), /paid 15/);
      assert.match(textOf(result, second?.toolCallId ?? ''), /approval_rejected/);
    }));

for (const [host, page] of Object.entries(PAGES) as [HostName, string][]) {
  const reason = reasonToSkip(host);
  const title = `${HOSTS[host]}: the program of its page runs as printed`;
  if (reason !== undefined) test.skip(title, reason);
  else
    test(title, async () => {
      const block = docsBlocks().find((one) => one.page === page && one.language === 'ts');
      assert.ok(block && block.text.trim().split('\n').length < 30);
      const source = block.text
        .replace("'./model.ts'", `'./${host}.mjs'`)
        .replaceAll(/'@svc\/sdk\/(.+)'/g, "'../../plugins/frameworks/$1.ts'")
        .replaceAll("'@svc/sdk'", "'../../config/sdk/index.ts'");
      const file = new URL(`program-${host}.ts`, own);
      writeFileSync(file, source);
      const printed: unknown[] = [];
      const { log } = console;
      console.log = (text: unknown) => printed.push(text);
      try {
        await import(file.href);
      } finally {
        console.log = log;
        rmSync(file);
      }
      const { pageReceived } = (await import(new URL(`${host}.mjs`, own).href)) as { pageReceived: Ended['received'] };
      assert.deepEqual(printed, ['Done.']);
      assert.match(textOf({ received: pageReceived }, 'c1'), /Paid 15 for 1234.*A reviewer changed/s);
    });
}

const typesTitle = 'the types of the tools of each framework are unchanged';
if (missing !== undefined) test.skip(typesTitle, missing);
else
  test(typesTitle, async () => {
    const tsc = new URL('../node_modules/typescript/bin/tsc', import.meta.url).pathname;
    const project = new URL('types', own).pathname;
    await promisify(execFile)(process.execPath, [tsc, '-p', project, '--pretty', 'false']).catch(
      ({ stdout }: { stdout: string }) => assert.fail(stdout),
    );
  });

/** The table of the docs. */
function table(): string {
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const rows = CASES.map(({ title, impossible }) =>
    row([title, ...HOST_NAMES.map((host) => impossible?.[host] ?? 'yes')]),
  );
  return [row(['', ...Object.values(HOSTS)]), row(['---', ...HOST_NAMES.map(() => '---')]), ...rows].join('\n');
}

test('the table of the docs has every case', () => {
  const page = readFileSync(new URL('../docs/reference/frameworks.md', import.meta.url), 'utf8');
  assert.ok(page.includes(table()), `docs/reference/frameworks.md has no such table:\n${table()}`);
});
