import * as assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import type { Svc } from '../config/sdk/index.ts';
import { HOSTS, type HostName, own, reasonToSkip } from './frameworks/hosts.ts';
import type { Ended } from './frameworks/run.ts';
import { textOf } from './frameworks/with-host.ts';
import { svc } from './kit/cli.ts';
import { type DocsBlock, docsBlocks } from './kit/docs-blocks.ts';
import { folder } from './kit/folder.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { LONG } from './kit/project.ts';
import { test } from './kit/test.ts';

// The programs of each framework's page, run as printed with a model of the suite in frameworks.test.ts.

const REFERENCE = 'docs/reference/frameworks.md';
const DEFINE_CONFIG = new URL('../config/define.ts', import.meta.url).pathname;
const PAGES: Readonly<Partial<Record<HostName, string>>> = {
  'ai-sdk': 'docs/how-to/use-the-ai-sdk.md',
  'ai-sdk-7': 'docs/how-to/use-the-ai-sdk.md',
  'openai-agents': 'docs/how-to/use-openai-agents.md',
  langchain: 'docs/how-to/use-langchain.md',
  langgraph: 'docs/how-to/use-langgraph.md',
  genkit: 'docs/how-to/use-genkit.md',
  mastra: 'docs/how-to/use-mastra.md',
  'claude-agent': 'docs/how-to/use-claude-agent.md',
};

/** What the page of the AI SDK says of version 7. */
const AI_SDK_7 = [
  ["'ai'", "'ai-7'"],
  ['stepCountIs', 'isStepCount'],
  ['{ text, response }', '{ text, responseMessages }'],
  ['response.messages', 'responseMessages'],
] as const;

/** A program as printed, in a folder with the packages of the frameworks. */
function write(host: HostName, { text }: DocsBlock, name: string): URL {
  assert.ok(text.trim().split('\n').length < 30);
  const file = new URL(`${name}-${host}.ts`, own);
  const source = host === 'ai-sdk-7' ? AI_SDK_7.reduce((all, [from, to]) => all.replaceAll(from, to), text) : text;
  writeFileSync(
    file,
    source
      .replace("'./model.ts'", `'./${host}.mjs'`)
      .replaceAll(/'@svc\/sdk\/(.+)'/g, "'../../plugins/frameworks/$1.ts'")
      .replaceAll("'@svc/sdk'", "'../../config/sdk/index.ts'"),
  );
  return file;
}

const programsOf = (page: string) => docsBlocks().filter((one) => one.page === page && one.language === 'ts');

async function runsAsPrinted(host: HostName, block: DocsBlock): Promise<void> {
  const file = write(host, block, 'program');
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
}

/** The tools of the first program are a module of their own. */
async function streamsWhileItWaits(host: HostName, [program, , streaming]: readonly DocsBlock[]): Promise<void> {
  const text = `${program?.text.split('const { text }')[0]}export { gate, model, refund, svc };\n`;
  const tools = write(host, { ...(program ?? assert.fail()), text }, 'tools');
  const block = streaming ?? assert.fail('there is no third program');
  const file = write(host, { ...block, text: block.text.replace('./tools.ts', `./tools-${host}.ts`) }, 'streaming');
  try {
    const { svc } = (await import(tools.href)) as { svc: Svc };
    const { stream } = (await import(file.href)) as { stream: ReadableStream<{ type: string; id?: string }> };
    const types: string[] = [];
    for await (const { type, id = '' } of stream) {
      types.push(type);
      if (type === 'data-approval') await svc.approvals.signal({ signal: 'approve', payload: { requestId: id } });
    }
    const tail = ['tool-input-available', 'data-approval', 'tool-output-available'];
    assert.deepEqual(
      types.filter((type) => tail.includes(type)),
      tail,
    );
    await svc.close();
  } finally {
    for (const one of [tools, file]) rmSync(one);
  }
}

/** Runs a program twice, and decides in between on the command line. */
async function continuesInAnotherProcess(host: HostName, block: DocsBlock): Promise<void> {
  const database = await freshDatabase();
  const config = docsBlocks().find(({ page, text }) => page === REFERENCE && text.includes('defineConfig('));
  const cwd = folder({ 'svc.config.ts': String(config?.text).replace('@svc/sdk/config', DEFINE_CONFIG) });
  const env = { DATABASE_URL: database.url, TEST_HOME: cwd };
  const script = write(host, block, 'suspending');
  try {
    const first = await svc([], { cwd, env, script: script.pathname });
    assert.equal(first.status, 0, first.stderr);
    const [, requestId = ''] = /^waits: (\S+)\nsuspended\n$/.exec(first.stdout) ?? assert.fail(first.stdout);
    const shown = await svc(['approvals', 'show', requestId, '--json'], { cwd, env });
    const { reviewToken } = JSON.parse(shown.stdout).request;
    const approve = ['approvals', 'approve', requestId, '--set', 'amount=15', '--review-token', reviewToken, '--yes'];
    const approved = await svc(approve, { cwd, env });
    assert.equal(approved.status, 0, approved.stderr);
    const second = await svc([], { cwd, env, script: script.pathname });
    assert.deepEqual([second.status, second.stdout], [0, 'Done.\n'], second.stderr);
    const after = await svc(['approvals', 'show', requestId, '--json'], { cwd, env });
    assert.match(after.stdout, /Paid 15 for 1234/);
  } finally {
    rmSync(script);
    await database.drop();
  }
}

for (const [host, page] of Object.entries(PAGES) as [HostName, string][]) {
  const [program, suspending] = programsOf(page);
  const reason = reasonToSkip(host);
  const title = `${HOSTS[host]}: the program of its page runs as printed`;
  if (reason !== undefined) test.skip(title, reason);
  else test(title, () => runsAsPrinted(host, program ?? assert.fail(page)));
  if (page === PAGES['ai-sdk']) {
    const streams = `${HOSTS[host]}: the third program of its page writes to a stream while a call waits`;
    if (reason !== undefined) test.skip(streams, reason);
    else test(streams, () => streamsWhileItWaits(host, programsOf(page)));
  }
  const otherTitle = `${HOSTS[host]}: the second program of its page is continued by another process`;
  const otherReason = reason ?? (await unavailable());
  if (otherReason !== undefined) test.skip(otherTitle, otherReason);
  else test(otherTitle, () => continuesInAnotherProcess(host, suspending ?? assert.fail(page)), LONG);
}
