import { resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { ConnectOptions, Dialect } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import type { UnsupportedFeatures } from '../../../../core/schema/unsupported-features.ts';
import { shareInstance } from '../../shared/share-instance.ts';
import type { EngineErrors } from '../engine-errors.ts';
import { UNSUPPORTED_BY_SQL } from '../grammar.ts';
import { SerialQueue } from '../mutex.ts';
import type { ExecSql, Result } from '../session.ts';
import type { TextCatalogStep } from './compile.ts';
import { type TextCatalogDialect, textCatalogDialect } from './dialect.ts';
import type { RunScript, SqlDriver } from './driver.ts';

/** The features that engines with one writer per file lack. */
export const UNSUPPORTED_BY_EMBEDDED: UnsupportedFeatures = {
  ...UNSUPPORTED_BY_SQL,
  temporaryTable: { why: 'It would be dropped with the connection.', next: 'Leave "temporary" out.' },
  unloggedTable: { why: 'The engine logs every table.', next: 'Leave "unlogged" out.' },
  concurrentIndex: { why: 'There is one writer at a time.', next: 'Leave "concurrently" out.' },
};

/** One open database file. Its functions are never called concurrently. */
export interface EmbeddedDatabase {
  /** Product and version, for people. */
  readonly server: string;
  /** Runs one statement. Integers in rows are numbers or bigints. */
  exec(text: string): Result | Promise<Result>;
  /** Runs one or more statements. Default: `exec`. */
  script?(text: string): unknown;
  close(): void | Promise<void>;
}

export interface EmbeddedDialect extends Pick<TextCatalogDialect, 'rules' | 'syntax'> {
  readonly errors: EngineErrors;
  /** Starts a transaction that excludes other writers; default `BEGIN`. */
  readonly begin?: string;
  /** Statements before and after a transaction in which a table is dropped and recreated. */
  readonly rebuilding?: { readonly before: string; readonly after: string };
  /** Opens the file, and creates it if it does not exist. */
  open(file: string): Promise<EmbeddedDatabase>;
}

/**
 * Creates a dialect for an engine that runs inside the process, with one file per database. The URL is the name of the
 * dialect and a path: `<name>://./folder/file.db`. All connections of the process to one file share an instance and take
 * turns.
 *
 * @example
 * export const myEngine = embeddedDialect({ rules, syntax, errors, open: (file) => openDatabase(file) });
 */
export function embeddedDialect(engine: EmbeddedDialect): Dialect<TextCatalogStep> {
  const { rules, syntax } = engine;
  return textCatalogDialect({
    rules,
    syntax,
    identify: (url) => `${rules.name}:${databaseFile(rules.name, url)}`,
    open: (url, options) => openShared(engine, databaseFile(rules.name, url), options),
  });
}

function databaseFile(dialect: string, url: string): string {
  const scheme = `${dialect}://`;
  if (url.startsWith(scheme) && url.length > scheme.length)
    return resolve(decodeURIComponent(url.slice(scheme.length)));
  throw new SvcError('url_invalid', `The URL of the ${dialect} database is invalid.`, {
    next: [`Use the form ${scheme}./folder/file.db`],
  });
}

interface Instance {
  readonly database: EmbeddedDatabase;
  readonly queue: SerialQueue;
}

async function openShared(engine: EmbeddedDialect, file: string, options: ConnectOptions): Promise<SqlDriver> {
  const { errors } = engine;
  const { busyTimeoutMs = 0, onWait, signal } = options;
  try {
    const { instance, release } = await shareInstance<Instance>(
      `${engine.rules.name}:${file}`,
      async () => ({
        database: await retryWhileBusy(errors, () => engine.open(file), busyTimeoutMs, { onWait, signal }),
        queue: new SerialQueue(),
      }),
      ({ database, queue }) => queue.run(async () => database.close()),
    );
    return serialDriver(engine, instance, release);
  } catch (error) {
    throw errors.toSvcError(error);
  }
}

/** How long a statement waits for another process's write. */
const WRITE_TIMEOUT_MS = 10_000;

function serialDriver(engine: EmbeddedDialect, { database, queue }: Instance, release: () => Promise<void>): SqlDriver {
  const { errors, begin = 'BEGIN', rebuilding } = engine;
  const exec: ExecSql = (text) => retryWhileBusy(errors, async () => [await database.exec(text)], WRITE_TIMEOUT_MS);
  const run = async (text: string) => void (await exec(text));
  const script = async (text: string) => (database.script ? database.script(text) : exec(text));
  let isClosed = false;
  const whileOpen = <T>(work: () => Promise<T>): Promise<T> => {
    if (isClosed) return Promise.reject(new SvcError('connection_lost', 'The connection is closed.'));
    return queue.run(work);
  };
  const transaction = async <T>(work: (exec: ExecSql, script: RunScript) => Promise<T>): Promise<T> => {
    await run(begin);
    try {
      const result = await work(exec, script);
      await run('COMMIT');
      return result;
    } catch (error) {
      // A failed COMMIT can have ended the transaction.
      await run('ROLLBACK').catch(() => undefined);
      throw error;
    }
  };
  return {
    server: database.server,
    exec: (text) => whileOpen(() => exec(text)),
    transaction: (work, rebuilds) =>
      whileOpen(async () => {
        if (!rebuilds || !rebuilding) return transaction(work);
        await run(rebuilding.before);
        try {
          return await transaction(work);
        } finally {
          await run(rebuilding.after);
        }
      }),
    toSvcError: errors.toSvcError,
    isMissing: errors.isMissing,
    isDuplicate: errors.isDuplicate,
    close() {
      isClosed = true;
      return release();
    },
  };
}

/** Repeats `work` while another process has the database. Throws its error after the time-out, and `interrupted`. */
async function retryWhileBusy<T>(
  { isBusy }: EngineErrors,
  work: () => Promise<T>,
  timeoutMs: number,
  { onWait, signal }: { readonly onWait?: (() => void) | undefined; readonly signal?: AbortSignal | undefined } = {},
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
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
