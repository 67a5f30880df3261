import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { identify, type ProcessIdentity, thisProcess } from './process.ts';

/** The folder of downloads, builds and state.json: outside the repository, one per user. */
export function cacheFolder(): string {
  const { SVC_TEST_CACHE, XDG_CACHE_HOME } = process.env;
  const folder = SVC_TEST_CACHE ?? join(XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'svc-test-servers');
  mkdirSync(folder, { recursive: true });
  return folder;
}

/**
 * Builds a folder atomically: under a temporary name, renamed when complete. Removes the incomplete folders of killed
 * runs first.
 */
export async function buildOnce(name: string, build: (folder: string) => Promise<void>): Promise<string> {
  const finished = join(cacheFolder(), name);
  const running = builds.get(finished);
  if (running) return running;
  const work = buildFolder(finished, name, build).finally(() => builds.delete(finished));
  builds.set(finished, work);
  return work;
}

/** Two engines may need one folder at once. */
const builds = new Map<string, Promise<string>>();

async function buildFolder(finished: string, name: string, build: (folder: string) => Promise<void>): Promise<string> {
  if (existsSync(finished)) return finished;
  const unfinished = `${name}.making-`;
  for (const entry of readdirSync(cacheFolder()).filter((other) => other.startsWith(unfinished)))
    if (!isBuilderAlive(entry.slice(unfinished.length))) remove(join(cacheFolder(), entry));
  const folder = join(cacheFolder(), unfinished + identityText(thisProcess()));
  mkdirSync(folder);
  try {
    await build(folder);
    renameSync(folder, finished);
  } catch (error) {
    remove(folder);
    // Another run may have finished first.
    if (!existsSync(finished)) throw error;
  }
  return finished;
}

/** The building process, as part of the folder's temporary name. */
const identityText = ({ pid, started }: ProcessIdentity): string => `${pid}-${started.replaceAll(/\W/g, '_')}`;

function isBuilderAlive(builder: string): boolean {
  const identity = identify(Number.parseInt(builder, 10));
  return identity !== undefined && identityText(identity) === builder;
}

/** A program that outlived a killed run may still write there; the next build removes the rest. */
function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  } catch {
    // See above.
  }
}
