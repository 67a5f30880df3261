import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { PGlite } from '@electric-sql/pglite';
import { isSvcError, SvcError } from '../../../../core/errors.ts';
import { type Driver, loadDriver } from '../../../shared/driver.ts';
import { SerialQueue } from '../../../shared/serial-queue.ts';
import { isPathMissing } from '../../shared/database-path.ts';
import { Mutex } from '../../shared/mutex.ts';
import { shareInstance } from '../../shared/share-instance.ts';
import type { ExecSql, Session } from '../../sql/session.ts';
import { quoteIdentifier } from '../compile/names.ts';
import { notifyOf } from '../records/notifications.ts';
import type { OpenSession } from './connection.ts';
import { toSvcError } from './errors.ts';
import { lockFolder } from './folder-lock.ts';
import { RESET_SESSION, type Settings } from './settings.ts';
import { folderOf } from './url.ts';

/*
 * PGlite is PostgreSQL inside this process, with a single session. It ignores lock_timeout and
 * statement_timeout, grants every advisory lock at once, and never calls fsync: a killed process loses nothing, a power
 * cut may lose data. So connections to one folder share one instance, the mutex is the migration lock, and `lockFolder` keeps
 * other processes out.
 */

interface SharedInstance {
  readonly pglite: PGlite;
  /** The statement that last set the search_path. */
  searchPath: string;
  readonly queue: SerialQueue;
  readonly mutex: Mutex;
  readonly unlock: () => Promise<void>;
}

const MEMORY = ':memory:';
const SESSION_SETTINGS =
  "SET timezone = 'UTC'; SET standard_conforming_strings = on; SET quote_all_identifiers = off; SET extra_float_digits = 1; SET client_min_messages = warning";
const RESET_PATH = 'RESET search_path';
/** PostgreSQL's default of 128 MB is written at every start, which takes a fifth of it and doubles the process's memory. */
const SHARED_BUFFERS = ['-c', 'shared_buffers=16MB'];

export async function openPglite(url: string, settings: Settings): Promise<Omit<OpenSession, 'settings'>> {
  const folder = folderOf(url);
  // `PG_VERSION` is in the folder of every PostgreSQL database.
  const isMissing =
    settings.readOnly === true && folder !== undefined && (await isPathMissing(join(folder, 'PG_VERSION'), folder));
  const { instance: shared, release } = await shareInstance(
    isMissing ? `pglite:missing:${folder}` : `pglite:${folder ?? MEMORY}`,
    () => start(isMissing ? undefined : folder, settings),
    async ({ pglite, unlock }) => {
      await pglite.close();
      await unlock();
    },
  );
  const searchPath =
    settings.schema === undefined ? RESET_PATH : `SET search_path TO ${quoteIdentifier(settings.schema)}`;
  return {
    session: createSession(shared, searchPath, release),
    mutex: shared.mutex,
    restoreSettings: `${RESET_SESSION}; ${SESSION_SETTINGS}; ${searchPath}`,
    async watch(channel, notify) {
      const stop = await shared.pglite.listen(channel, (payload) => notifyOf(payload, notify));
      return () => stop();
    },
  };
}

async function start(folder: string | undefined, settings: Settings): Promise<SharedInstance> {
  const { PGlite: Instance } = await loadDriver(driver, settings.root);
  const unlock = folder === undefined ? async () => {} : await lockFolder(folder, settings);
  try {
    if (folder !== undefined) await mkdir(folder, { recursive: true });
    const { defaultStartParams } = Instance as Partial<Pick<typeof Instance, 'defaultStartParams'>>; // since PGlite 0.4
    const pglite = await Instance.create({
      ...(folder !== undefined && { dataDir: folder }),
      ...(defaultStartParams && { startParams: [...defaultStartParams, ...SHARED_BUFFERS] }),
    });
    await pglite.exec(SESSION_SETTINGS);
    return { pglite, searchPath: RESET_PATH, queue: new SerialQueue(), mutex: new Mutex(), unlock };
  } catch (error) {
    await unlock();
    const svcError = toSvcError(error);
    if (isSvcError(svcError) || !(error instanceof Error)) throw svcError;
    throw new SvcError('connection_failed', 'The embedded database cannot be started.', {
      why: error.message,
      state: 'Nothing was changed.',
      next: ['Check that the disk is not full.', 'Check that the folder was created by the same version of PGlite.'],
      ...(folder !== undefined && { where: folder }),
      cause: error,
    });
  }
}

/** Sets the search_path before each text if the previous text came from a connection with another schema. */
function createSession(shared: SharedInstance, searchPath: string, release: () => Promise<void>): Session {
  const { pglite, queue } = shared;
  let closed: Promise<void> | undefined;
  const send: ExecSql = async (text) => {
    if (closed) throw new SvcError('connection_lost', 'The connection to PGlite is closed.');
    if (shared.searchPath !== searchPath) await pglite.exec(searchPath);
    shared.searchPath = searchPath;
    const results = await pglite.exec(text);
    let before = 0;
    return results.map(({ rows, affectedRows = before }) => {
      // PGlite adds up the affected rows of the statements of one text.
      const affected = affectedRows - before;
      before = affectedRows;
      return { rows, count: rows.length || affected };
    });
  };
  return {
    exec: (text) => queue.run(() => send(text)),
    exclusive: (work) => queue.run(() => work(send)),
    close() {
      closed ??= release();
      return closed;
    },
  };
}

const driver: Driver<typeof import('@electric-sql/pglite')> = {
  name: 'PGlite',
  package: '@electric-sql/pglite',
  load: () => import('@electric-sql/pglite'),
};
