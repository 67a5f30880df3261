import { randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { SvcError } from '../../../core/errors.ts';
import { codeOf } from './errors.ts';
import type { Settings } from './settings.ts';

const POLL_MS = 50;

interface Owner {
  readonly pid: number;
  /** When the process began, as the system tells it: a number of a dead process is used again. */
  readonly started: string | null;
}

type Waiting = Pick<Settings, 'busyTimeoutMs' | 'onWait' | 'signal'>;

/**
 * Keeps a folder for this process: PGlite opens one that another process has open without an error, and rows that
 * the other one committed are lost. The file stands beside the folder; a dead owner's is taken over. Gives what
 * lets go. Throws `database_in_use` after `busyTimeoutMs`.
 */
export async function lockFolder(
  folder: string,
  { busyTimeoutMs, onWait, signal }: Waiting,
): Promise<() => Promise<void>> {
  const file = `${folder}.lock`;
  const deadline = performance.now() + busyTimeoutMs;
  let told = false;
  await mkdir(dirname(folder), { recursive: true });
  const own = `${file}.${randomUUID()}`;
  const me = JSON.stringify({ pid: process.pid, started: await startOf(process.pid) } satisfies Owner);
  await writeFile(own, me);
  try {
    for (;;) {
      if (await taken(own, file)) return () => release(file, me);
      const owner = await ownerOf(file);
      if (owner === 'gone') continue;
      if (!(await isAlive(owner))) await takeOver(file);
      else if (signal?.aborted) throw interrupted();
      else if (performance.now() + POLL_MS > deadline) throw inUse(folder, owner);
      else {
        if (!told) onWait?.();
        told = true;
        await wait(POLL_MS);
      }
    }
  } finally {
    await rm(own, { force: true });
  }
}

/** A link is there whole or not at all, and only one of many comes first. */
async function taken(own: string, file: string): Promise<boolean> {
  try {
    await link(own, file);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

async function ownerOf(file: string): Promise<Owner | 'gone'> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Owner;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return 'gone';
    if (error instanceof SyntaxError) return { pid: 0, started: null };
    throw error;
  }
}

/** Removes a dead owner's file. Of many who try only one gets the guard, and it looks again: it may be a live one's by now. */
async function takeOver(file: string): Promise<void> {
  const guard = `${file}.guard`;
  const own = `${guard}.${randomUUID()}`;
  await writeFile(own, JSON.stringify({ pid: process.pid, started: await startOf(process.pid) } satisfies Owner));
  try {
    if (await taken(own, guard)) {
      const owner = await ownerOf(file);
      if (owner !== 'gone' && !(await isAlive(owner))) await rm(file, { force: true });
      await rm(guard, { force: true });
      return;
    }
    const holder = await ownerOf(guard);
    if (holder !== 'gone' && !(await isAlive(holder))) await rename(guard, own);
    else await wait(POLL_MS);
  } finally {
    await rm(own, { force: true });
  }
}

async function release(file: string, me: string): Promise<void> {
  const owner = await ownerOf(file);
  if (owner !== 'gone' && JSON.stringify(owner) === me) await rm(file, { force: true });
}

async function isAlive({ pid, started }: Owner): Promise<boolean> {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (codeOf(error) === 'ESRCH') return false;
  }
  const now = await startOf(pid);
  return started === null || now === null || now === started;
}

/** Field 22 of /proc/<pid>/stat, after the name, which may contain anything; null where there is no /proc. */
async function startOf(pid: number): Promise<string | null> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}

function interrupted(): SvcError {
  return new SvcError('interrupted', 'The run was interrupted while it waited for the database folder.', {
    state: 'Nothing was changed.',
    next: ['Run the command again.'],
  });
}

function inUse(folder: string, { pid }: Owner): SvcError {
  return new SvcError('database_in_use', `Another process has the database folder ${folder} open.`, {
    why: `It is process ${pid}; an embedded database serves one process at a time.`,
    state: 'Nothing was changed.',
    next: ['End that process, or wait until it is done.', 'Or use a PostgreSQL server, which serves many.'],
    details: { pid },
  });
}
