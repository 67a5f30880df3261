import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { ConnectOptions } from '../../../core/dialect.ts';
import { errorMessage, isSvcError, SvcError } from '../../../core/errors.ts';
import { SerialQueue } from '../../shared/serial-queue.ts';
import { isPathMissing, refusedPath } from './database-path.ts';
import { unrecognizedError } from './errors.ts';
import { type Options, type OptionValues, readSettings } from './settings.ts';
import { shareInstance } from './share-instance.ts';

/** An engine that runs in the process, with one file per database. */
export interface FileEngine<D extends FileDatabase, O extends Options> {
  /** The name of the dialect and of the scheme of its URLs. */
  readonly name: string;
  /** The options of the database that are the dialect's own. */
  readonly options: O | undefined;
  /** Of an engine whose databases are folders: names of files that show one. */
  readonly folderFiles: RegExp | undefined;
  /** Opens the file, and creates it if it does not exist. */
  open(file: string, options: OptionValues<O>): Promise<D>;
  toSvcError(error: unknown): unknown;
  /** Whether another process has the database. */
  isBusy(error: unknown): boolean;
}

interface FileDatabase {
  close(): void | Promise<void>;
}

/** A database that all connections of this process to its file share. */
export interface OpenFile<D> {
  readonly database: D;
  /** Runs calls one at a time. Throws `connection_lost` after `close`. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** Also names the file if another process has it. */
  toSvcError(error: unknown): unknown;
  close(): Promise<void>;
}

export const identifyFile = (dialect: string, url: string): string => `${dialect}:${databaseFile(dialect, url)}`;

function databaseFile(dialect: string, url: string): string {
  const scheme = `${dialect}://`;
  const path = url.startsWith(scheme) ? url.slice(scheme.length) : '';
  const invalid = (why: string, next: string) =>
    new SvcError('url_invalid', `The URL of the ${dialect} database is invalid.`, { why, next: [next] });
  if (!/^\.\.?\//.test(path) && !isAbsolute(path))
    throw invalid(`After ${scheme} it has no path that begins with ./, ../ or /.`, `Write ${scheme}./file.db`);
  try {
    return resolve(decodeURIComponent(path));
  } catch {
    throw invalid('It contains a % that does not begin an escape sequence.', 'Write a literal % as %25.');
  }
}

interface Instance<D> {
  readonly database: D;
  readonly queue: SerialQueue;
  /** Of the connection that opened the file. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Removes the file of an empty database. */
  readonly remove?: () => Promise<void>;
}

/**
 * Opens the file of a URL, once in this process. For a caller that only reads, an empty database takes the place of one that
 * does not exist. Throws `config_invalid` for an option that neither svc nor the dialect has, or that differs from that of
 * an open connection, and `connection_failed` if the operating system refuses the path.
 */
export async function openFile<D extends FileDatabase, O extends Options>(
  { toSvcError: fromEngine, ...rest }: FileEngine<D, O>,
  url: string,
  options: ConnectOptions,
): Promise<OpenFile<D>> {
  const own = ownOptions(rest.name, rest.options, options);
  const file = databaseFile(rest.name, url);
  const toSvcError = (error: unknown) => {
    const converted = fromEngine(error);
    return converted === error ? refusedPath(error, file) : namingFile(converted, error, file);
  };
  const engine = { ...rest, toSvcError };
  const toOpenError = (error: unknown) => openError(toSvcError(error), error, file);
  const openDatabase = (path: string) => fromDialect(engine, () => engine.open(path, own));
  try {
    const isMissing = await isAbsent(engine, file, options);
    const { instance, release } = await shareInstance<Instance<D>>(
      `${engine.name}:${isMissing ? 'missing:' : ''}${file}`,
      async () => {
        const opened = isMissing
          ? await openEmpty(openDatabase)
          : { database: await retryWhileBusy(engine, () => openDatabase(file), options) };
        return { ...opened, queue: new SerialQueue(), options: own };
      },
      ({ database, queue, remove }) =>
        queue.run(async () => {
          await database.close();
          await remove?.();
        }),
    );
    const differing = Object.keys(own).filter((name) => !isDeepStrictEqual(own[name], instance.options[name]));
    if (differing.length > 0) {
      await release();
      throw otherOptions(file, differing);
    }
    let isClosed = false;
    return {
      database: instance.database,
      run(work) {
        if (isClosed) return Promise.reject(new SvcError('connection_lost', 'The connection is closed.'));
        return instance.queue.run(work);
      },
      toSvcError,
      close() {
        isClosed = true;
        return release();
      },
    };
  } catch (error) {
    throw toOpenError(error);
  }
}

/** Before a file is open, an error that the dialect does not recognize is not one of a statement. */
function openError(converted: unknown, thrown: unknown, file: string): unknown {
  if (converted === thrown || !isSvcError(converted) || converted.code !== 'migration_failed') return converted;
  const refused = refusedPath(thrown, file);
  if (isSvcError(refused)) return refused;
  return new SvcError('connection_failed', `The database file ${file} cannot be opened.`, {
    why: converted.why ?? errorMessage(thrown),
    next: ['Check that it is a file of this engine, and its permissions.'],
    cause: thrown,
  });
}

/** The dialect's own options, with their defaults. */
function ownOptions<O extends Options>(name: string, options: O | undefined, given: ConnectOptions): OptionValues<O> {
  const settings: Readonly<Record<string, unknown>> = readSettings(name, options ?? {}, given);
  const own = Object.keys(options ?? {}).map((option) => [option, settings[option]]);
  return Object.fromEntries(own) as OptionValues<O>;
}

/** Without the values, which may be secrets. */
const otherOptions = (file: string, names: readonly string[]): SvcError =>
  new SvcError('config_invalid', `The database file ${file} is open with other options.`, {
    why: `Connections of a process share a file that is open, and differ in: ${names.join(', ')}.`,
    next: ['Use the same options for each connection to the file.'],
  });

async function openEmpty<D extends FileDatabase>(
  open: (file: string) => Promise<D>,
): Promise<Pick<Instance<D>, 'database' | 'remove'>> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-empty-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    return { database: await open(join(folder, 'empty.db')), remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/**
 * Whether the caller only reads and there is no database. For one that writes, creates the folder of the file. Throws
 * `connection_failed` for a folder of something else, in which an engine would create its files.
 */
async function isAbsent(
  { name, folderFiles }: Pick<FileEngine<FileDatabase, Options>, 'name' | 'folderFiles'>,
  file: string,
  { readOnly = false }: ConnectOptions,
): Promise<boolean> {
  if (!readOnly) await mkdir(dirname(file), { recursive: true });
  if (await isPathMissing(file)) return readOnly;
  if (!(await stat(file)).isDirectory()) return false;
  if (folderFiles === undefined) {
    throw notADatabase(name, file, 'It is a folder, and databases of this dialect are files.', [
      'Write the path of a file into the URL.',
      'If databases of the engine are folders: "folderFiles" of the dialect matches names of its files.',
    ]);
  }
  const entries = await readdir(file);
  // Also one that another process begins to create.
  if (entries.some((entry) => entry.search(folderFiles) >= 0)) return false;
  if (entries.length === 0) return readOnly;
  throw notADatabase(name, file, 'The folder contains files of something else.', [
    'Write the path of a new folder into the URL, or that of a database.',
  ]);
}

const notADatabase = (dialect: string, path: string, why: string, next: readonly string[]): SvcError =>
  new SvcError('connection_failed', `${path} is not a ${dialect} database.`, {
    why,
    state: 'Nothing was changed.',
    next,
  });

function namingFile(converted: unknown, thrown: unknown, file: string): unknown {
  if (converted === thrown || !isSvcError(converted) || converted.code !== 'database_in_use') return converted;
  return new SvcError('database_in_use', `Another process uses the database file ${file}.`, {
    why: converted.why ?? errorMessage(thrown),
    next: ['Stop the process, or run the command again when it has finished.'],
    cause: thrown,
  });
}

/** Calls a function of the dialect. Throws `plugin_invalid` for an error that its `toSvcError` does not recognize. */
export async function fromDialect<T>(
  { name, toSvcError }: Pick<FileEngine<FileDatabase, Options>, 'name' | 'toSvcError'>,
  call: () => T | Promise<T>,
): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (isSvcError(toSvcError(error))) throw error;
    throw unrecognizedError(name, error);
  }
}

/** Repeats `work` while another process has the database. Throws its error after the time-out, and `interrupted`. */
export async function retryWhileBusy<T>(
  { isBusy }: Pick<FileEngine<FileDatabase, Options>, 'isBusy'>,
  work: () => Promise<T>,
  { busyTimeoutMs = 0, onWait, signal }: Pick<ConnectOptions, 'busyTimeoutMs' | 'onWait' | 'signal'>,
): Promise<T> {
  const deadline = performance.now() + busyTimeoutMs;
  for (let waited = false; ; waited = true) {
    try {
      return await work();
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error;
    }
    if (signal?.aborted)
      throw new SvcError('interrupted', 'The run was interrupted while it waited for the database.', {
        state: 'Nothing was changed.',
        next: ['Run the command again.'],
      });
    if (!waited) onWait?.();
    await wait(2 + Math.random() * 8);
  }
}
