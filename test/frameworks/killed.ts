import * as assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deserialize, serialize } from 'node:v8';
import type { Svc } from '../../config/sdk/index.ts';
import { folder } from '../kit/folder.ts';
import { waitUntil } from '../suites/wait-until.ts';
import { type HostName, own } from './hosts.ts';
import { type Difference, effectsOf, openClient, openRun } from './run.ts';
import { textOf } from './with-host.ts';

const children = new Set<ChildProcess>();

export function startProcess(host: HostName, path: string, phase: 'start' | 'hold' | 'resume'): ChildProcess {
  const script = new URL('process.ts', own).pathname;
  const stdio = ['ignore', 'pipe', 'inherit'] as const;
  const child = spawn(process.execPath, ['--import', 'tsx', script, host, path, phase], { stdio: [...stdio] });
  children.add(child);
  return child;
}

export async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  children.delete(child);
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await ended(child);
}

export const killChildren = () => Promise.all([...children].map(kill));

const killed = new Map<HostName, Promise<{ path: string; requestId: string }>>();

export async function killWhileWaiting(
  host: HostName,
  phase: 'start' | 'hold' = 'start',
): Promise<{ path: string; requestId: string }> {
  const path = folder();
  const child = startProcess(host, path, phase);
  let output = '';
  child.stdout?.on('data', (chunk) => {
    output += chunk;
  });
  await waitUntil(() => output.includes('\n') || child.exitCode !== null, 'no request was made');
  await kill(child);
  return { path, requestId: output.trim() };
}

/** A copy of what a process left that was killed while its request waited. */
export async function leftByKilled(host: HostName): Promise<{ path: string; requestId: string }> {
  const left = killed.get(host) ?? killWhileWaiting(host);
  killed.set(host, left);
  const { path, requestId } = await left;
  const copy = folder();
  cpSync(path, copy, { recursive: true });
  return { path: copy, requestId };
}

/** Changes what is stored, as somebody with access to the store could. */
export function rewriteStore(path: string, pattern: RegExp, replacement: string): void {
  const file = join(path, 'store.db');
  const before = JSON.stringify(deserialize(readFileSync(file)));
  const after = before.replaceAll(pattern, replacement);
  assert.notEqual(after, before);
  writeFileSync(file, serialize(JSON.parse(after)));
}

export async function onClient<T>(path: string, work: (svc: Svc) => Promise<T>): Promise<T> {
  const svc = openClient(path);
  try {
    return await work(svc);
  } finally {
    await svc.close();
  }
}

/** Continues in this process, which is not the one that was killed. */
export function resumed(
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
