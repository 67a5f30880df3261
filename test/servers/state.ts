import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { lockFolder } from '../../plugins/dialects/postgresql/connection/folder-lock.ts';
import { cacheFolder } from './cache.ts';
import type { Engine } from './engine.ts';
import type { Identity } from './process.ts';

/** A server that we started, and what has to be undone to stop it. */
export interface Started {
  readonly engine: Engine;
  /** Empty until it first answered. */
  readonly url: string;
  /** As in "from an installed mysqld". */
  readonly from: string;
  /** Stopped in the reverse order, each with its signal. */
  readonly processes: readonly (Identity & { readonly signal: NodeJS.Signals })[];
  /** Removed when it has stopped: no data outlives its server. */
  readonly folder: string;
  /** The Docker Compose project that runs it, instead of a process. */
  readonly project?: string;
  /** Whether it stays when nobody uses it, until `down`. */
  readonly kept: boolean;
  /** Test runs that use it. */
  readonly users: readonly Identity[];
}

/** Where two versions of the file's shape would meet. */
const VERSION = 1;
/** The longest that another run may take to bring everything up for the first time. */
const LOCK_MS = 15 * 60_000;

const file = (): string => join(cacheFolder(), 'state.json');

export function servers(): readonly Started[] {
  try {
    const state = JSON.parse(readFileSync(file(), 'utf8'));
    return state.version === VERSION ? state.servers : [];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new Error(`${file()} cannot be read: remove it, and end what it names by hand.`, { cause: error });
  }
}

/** Where a server of that engine was started; it may have died since. */
export const started = (engine: Engine): readonly string[] =>
  servers()
    .filter((server) => server.engine === engine && server.url !== '')
    .map(({ url }) => url);

/** Puts a server's entry in the place of the one that has its folder; call it while holding the lock. */
export function record(server: Started): void {
  write([...servers().filter(({ folder }) => folder !== server.folder), server]);
}

export function forget({ folder }: Pick<Started, 'folder'>): void {
  write(servers().filter((server) => server.folder !== folder));
}

function write(all: readonly Started[]): void {
  const unfinished = `${file()}.${process.pid}`;
  writeFileSync(unfinished, `${JSON.stringify({ version: VERSION, servers: all }, null, 2)}\n`);
  renameSync(unfinished, file());
}

/** One run at a time builds, starts and stops; `onWait` is called once when another one is at it. */
export async function exclusively<T>(work: () => Promise<T>, onWait?: () => void): Promise<T> {
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
