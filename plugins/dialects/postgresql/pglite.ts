import { mkdir } from 'node:fs/promises';
import type { PGlite } from '@electric-sql/pglite';
import { isSvcError, SvcError } from '../../../core/errors.ts';
import { type Driver, loadDriver } from '../../driver.ts';
import { Queue } from '../../sql/queue.ts';
import type { Exec, Session } from '../../sql/session.ts';
import { Turns } from '../../sql/turns.ts';
import type { Opened } from './connection.ts';
import { refusal } from './errors.ts';
import { lockFolder } from './folder-lock.ts';
import { quote } from './grammar.ts';
import { folderOf } from './identify.ts';
import { RESET, type Settings } from './settings.ts';

/*
 * PGlite is PostgreSQL in this process, with one session for all. It ignores lock_timeout and statement_timeout,
 * gives every advisory lock at once, and never calls fsync: a process that is killed loses nothing, a power cut may.
 * So callers of one folder share one instance, the turns before the lock are the lock, and `lockFolder` keeps other
 * processes out.
 */

interface Shared {
  readonly pglite: PGlite;
  /** The statement that its search_path was set with last. */
  path: string;
  readonly queue: Queue;
  readonly turns: Turns;
  readonly unlock: () => Promise<void>;
}

interface Entry {
  users: number;
  readonly ready: Promise<Shared>;
}

const MEMORY = ':memory:';
const SESSION =
  "SET timezone = 'UTC'; SET standard_conforming_strings = on; SET quote_all_identifiers = off; SET extra_float_digits = 1; SET client_min_messages = warning";
const RESET_PATH = 'RESET search_path';
const open = new Map<string, Entry>();
/** A folder that is being closed is opened again only afterwards. */
const closing = new Map<string, Promise<void>>();

export async function openPglite(url: string, settings: Settings): Promise<Omit<Opened, 'settings'>> {
  const folder = folderOf(url);
  const key = folder ?? MEMORY;
  while (closing.has(key)) await closing.get(key);
  let entry = open.get(key);
  if (!entry) {
    entry = { users: 0, ready: start(folder, settings) };
    open.set(key, entry);
  }
  entry.users += 1;
  const mine = entry;
  try {
    const shared = await mine.ready;
    const path = settings.schema === undefined ? RESET_PATH : `SET search_path TO ${quote(settings.schema)}`;
    return {
      session: sessionOf(shared, path, () => leave(key, mine)),
      turns: shared.turns,
      restore: `${RESET}; ${SESSION}; ${path}`,
      async watch(channel, hint) {
        const stop = await shared.pglite.listen(channel, (key) => hint(key === '' ? undefined : key));
        return () => stop();
      },
    };
  } catch (error) {
    mine.users -= 1;
    if (mine.users === 0 && open.get(key) === mine) open.delete(key);
    throw error;
  }
}

async function start(folder: string | undefined, settings: Settings): Promise<Shared> {
  const { PGlite: Instance } = await loadDriver(driver, settings.root);
  const unlock = folder === undefined ? async () => {} : await lockFolder(folder, settings);
  try {
    if (folder !== undefined) await mkdir(folder, { recursive: true });
    const pglite = folder === undefined ? await Instance.create() : await Instance.create(folder);
    await pglite.exec(SESSION);
    return { pglite, path: RESET_PATH, queue: new Queue(), turns: new Turns(), unlock };
  } catch (error) {
    await unlock();
    const told = refusal(error);
    if (isSvcError(told) || !(error instanceof Error)) throw told;
    throw new SvcError('connection_failed', 'The embedded database cannot be started.', {
      why: error.message,
      state: 'Nothing was changed.',
      next: ['Look whether its disk is full.', 'Look whether its folder is that of another version of PGlite.'],
      ...(folder !== undefined && { where: folder }),
      cause: error,
    });
  }
}

async function leave(key: string, entry: Entry): Promise<void> {
  entry.users -= 1;
  if (entry.users > 0) return;
  open.delete(key);
  const done = entry.ready.then(async ({ pglite, unlock }) => {
    await pglite.close();
    await unlock();
  });
  closing.set(key, done);
  try {
    await done;
  } finally {
    closing.delete(key);
  }
}

/** Names that a user leaves unqualified are looked for where this connection lives, whoever spoke before it. */
function sessionOf(shared: Shared, path: string, leaving: () => Promise<void>): Session {
  const { pglite, queue } = shared;
  let left: Promise<void> | undefined;
  const send: Exec = async (text) => {
    if (left) throw new SvcError('connection_lost', 'The connection to PGlite is closed.');
    if (shared.path !== path) await pglite.exec(path);
    shared.path = path;
    const answers = await pglite.exec(text);
    let before = 0;
    return answers.map(({ rows, affectedRows = before }) => {
      // PGlite counts on from one statement of a text to the next.
      const touched = affectedRows - before;
      before = affectedRows;
      return { rows, count: rows.length || touched };
    });
  };
  return {
    exec: (text) => queue.run(() => send(text)),
    alone: (work) => queue.run(() => work(send)),
    close() {
      left ??= leaving();
      return left;
    },
  };
}

const driver: Driver<typeof import('@electric-sql/pglite')> = {
  name: 'PGlite',
  package: '@electric-sql/pglite',
  load: () => import('@electric-sql/pglite'),
};
