import { randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { SvcError } from '../../../../core/errors.ts';
import { codeOf } from './errors.ts';
import type { Settings } from './settings.ts';

const POLL_MS = 50;

interface Owner {
  readonly pid: number;
  /** When the process started: the system reuses the ids of dead processes. */
  readonly started: string | null;
}

type WaitOptions = Pick<Settings, 'busyTimeoutMs' | 'onWait' | 'signal'>;

/**
 * Locks a folder for this process and returns the function that unlocks it. PGlite opens a folder that another process
 * has open without an error, and rows that the other process committed are lost. The lock file is next to the folder; a
 * dead process's lock is removed. Throws `database_in_use` after `busyTimeoutMs`.
 */
export async function lockFolder(
  folder: string,
  { busyTimeoutMs, onWait, signal }: WaitOptions,
): Promise<() => Promise<void>> {
  const file = `${folder}.lock`;
  const deadline = performance.now() + busyTimeoutMs;
  let waited = false;
  await mkdir(dirname(folder), { recursive: true });
  const candidate = `${file}.${randomUUID()}`;
  const self = JSON.stringify({ pid: process.pid, started: await processStartTime(process.pid) } satisfies Owner);
  await writeFile(candidate, self);
  try {
    for (;;) {
      if (await tryLink(candidate, file)) return () => release(file, self);
      const owner = await readOwner(file);
      if (owner === 'gone') continue;
      if (!(await isAlive(owner))) await removeStaleLock(file);
      else if (signal?.aborted) throw interruptedError();
      else if (performance.now() + POLL_MS > deadline) throw inUseError(folder, owner);
      else {
        if (!waited) onWait?.();
        waited = true;
        await wait(POLL_MS);
      }
    }
  } finally {
    await rm(candidate, { force: true });
  }
}

/** Creating a hard link is atomic: of many processes, one succeeds. */
async function tryLink(candidate: string, file: string): Promise<boolean> {
  try {
    await link(candidate, file);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

async function readOwner(file: string): Promise<Owner | 'gone'> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Owner;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return 'gone';
    if (error instanceof SyntaxError) return { pid: 0, started: null };
    throw error;
  }
}

/** Removes a dead process's lock. Only the process with the guard may remove it, after reading the lock again. */
async function removeStaleLock(file: string): Promise<void> {
  const guard = `${file}.guard`;
  const candidate = `${guard}.${randomUUID()}`;
  await writeFile(
    candidate,
    JSON.stringify({ pid: process.pid, started: await processStartTime(process.pid) } satisfies Owner),
  );
  try {
    if (await tryLink(candidate, guard)) {
      const owner = await readOwner(file);
      if (owner !== 'gone' && !(await isAlive(owner))) await rm(file, { force: true });
      await rm(guard, { force: true });
      return;
    }
    const holder = await readOwner(guard);
    if (holder !== 'gone' && !(await isAlive(holder))) await rename(guard, candidate);
    else await wait(POLL_MS);
  } finally {
    await rm(candidate, { force: true });
  }
}

async function release(file: string, self: string): Promise<void> {
  const owner = await readOwner(file);
  if (owner !== 'gone' && JSON.stringify(owner) === self) await rm(file, { force: true });
}

async function isAlive({ pid, started }: Owner): Promise<boolean> {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (codeOf(error) === 'ESRCH') return false;
  }
  const now = await processStartTime(pid);
  return started === null || now === null || now === started;
}

/** Field 22 of /proc/<pid>/stat, counted from after the name, which may contain anything; null without /proc. */
async function processStartTime(pid: number): Promise<string | null> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}

function interruptedError(): SvcError {
  return new SvcError('interrupted', 'The run was interrupted while it waited for the database folder.', {
    state: 'Nothing was changed.',
    next: ['Run the command again.'],
  });
}

function inUseError(folder: string, { pid }: Owner): SvcError {
  return new SvcError('database_in_use', `Another process has the database folder ${folder} open.`, {
    why: `It is process ${pid}. Only one process at a time can open an embedded database.`,
    state: 'Nothing was changed.',
    next: ['End that process, or wait until it is done.', 'Or use a PostgreSQL server, which accepts many.'],
    details: { pid },
  });
}
