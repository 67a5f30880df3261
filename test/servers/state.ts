import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { lockFolder } from '../../plugins/dialects/postgresql/connection/folder-lock.ts';
import { cacheFolder } from './cache.ts';
import type { Engine } from './engine.ts';
import type { ProcessIdentity } from './process.ts';

/** A server started by `npm run servers` or a test run, and what has to be undone to stop it. */
export interface StartedServer {
  readonly engine: Engine;
  /** Empty until it first answers. */
  readonly url: string;
  /** The source, for example "an installed MySQL". */
  readonly from: string;
  /** Stopped in reverse order, each with its signal. */
  readonly processes: readonly (ProcessIdentity & { readonly signal: NodeJS.Signals })[];
  /** Removed after the server has stopped. */
  readonly folder: string;
  /** The Docker Compose project that runs it, instead of a process. */
  readonly project?: string;
  /** Whether it stays up without users until `down`. */
  readonly kept: boolean;
  /** Test runs that use it. */
  readonly users: readonly ProcessIdentity[];
}

/** Version of the file format. */
const VERSION = 1;
/** Longer than another run needs to bring everything up for the first time. */
const LOCK_MS = 15 * 60_000;

const file = (): string => join(cacheFolder(), 'state.json');

export function startedServers(): readonly StartedServer[] {
  try {
    const state = JSON.parse(readFileSync(file(), 'utf8'));
    return state.version === VERSION ? state.servers : [];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new Error(`${file()} cannot be read: end the processes it lists by hand, and remove it.`, { cause: error });
  }
}

/** URLs of the started servers of that engine, which may have died since. */
export const startedUrls = (engine: Engine): readonly string[] =>
  startedServers()
    .filter((server) => server.engine === engine && server.url !== '')
    .map(({ url }) => url);

/** Adds or replaces a server's entry; the caller holds the lock. */
export function saveServer(server: StartedServer): void {
  write([...startedServers().filter(({ folder }) => folder !== server.folder), server]);
}

export function removeServer({ folder }: Pick<StartedServer, 'folder'>): void {
  write(startedServers().filter((server) => server.folder !== folder));
}

function write(all: readonly StartedServer[]): void {
  const unfinished = `${file()}.${process.pid}`;
  writeFileSync(unfinished, `${JSON.stringify({ version: VERSION, servers: all }, null, 2)}\n`);
  renameSync(unfinished, file());
}

/** Lets one run at a time build, start and stop servers; `onWait` is called once if another run holds the lock. */
export async function withStateLock<T>(work: () => Promise<T>, onWait?: () => void): Promise<T> {
  const release = await lockFolder(file(), {
    busyTimeoutMs: LOCK_MS,
    onWait,
    signal: undefined,
  });
  try {
    return await work();
  } finally {
    await release();
  }
}
