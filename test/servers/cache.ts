import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { type Identity, identify, me } from './process.ts';

/** Where what was downloaded or built is kept, with the state of what runs; outside the repository, one for a user. */
export function cacheFolder(): string {
  const { SVC_TEST_CACHE, XDG_CACHE_HOME } = process.env;
  const folder = SVC_TEST_CACHE ?? join(XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'svc-test-servers');
  mkdirSync(folder, { recursive: true });
  return folder;
}

/**
 * A folder that is there whole or not at all: it is made beside its place and renamed when it is done. What a run that
 * was killed left half made is thrown away first.
 */
export async function built(name: string, make: (folder: string) => Promise<void>): Promise<string> {
  const finished = join(cacheFolder(), name);
  const running = making.get(finished);
  if (running) return running;
  const work = makeOnce(finished, name, make).finally(() => making.delete(finished));
  making.set(finished, work);
  return work;
}

/** Two engines may want one folder at once. */
const making = new Map<string, Promise<string>>();

async function makeOnce(finished: string, name: string, make: (folder: string) => Promise<void>): Promise<string> {
  if (existsSync(finished)) return finished;
  const unfinished = `${name}.making-`;
  for (const entry of readdirSync(cacheFolder()).filter((other) => other.startsWith(unfinished)))
    if (!isBeingMade(entry.slice(unfinished.length))) remove(join(cacheFolder(), entry));
  const folder = join(cacheFolder(), unfinished + written(me()));
  mkdirSync(folder);
  try {
    await make(folder);
    renameSync(folder, finished);
  } catch (error) {
    remove(folder);
    // Another run may have been quicker.
    if (!existsSync(finished)) throw error;
  }
  return finished;
}

/** Its maker stands in the name of what is being made. */
const written = ({ pid, started }: Identity): string => `${pid}-${started.replaceAll(/\W/g, '_')}`;

function isBeingMade(maker: string): boolean {
  const identity = identify(Number.parseInt(maker, 10));
  return identity !== undefined && written(identity) === maker;
}

/** A program that outlived a killed run may still write there: what it leaves goes the next time. */
function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  } catch {
    // See above.
  }
}
