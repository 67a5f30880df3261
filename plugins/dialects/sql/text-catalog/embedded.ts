import { isAbsolute, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { ConnectOptions, Dialect } from '../../../../core/dialect.ts';
import { errorMessage, isSvcError, SvcError } from '../../../../core/errors.ts';
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
  /**
   * Runs one statement. It also receives `begin`, `COMMIT` and `ROLLBACK` as text, so every call must reach the same session
   * of the engine; for a driver with a pool or with transactions as objects, use `textCatalogDialect` with a `SqlDriver`.
   * Integers in rows are numbers or bigints, bytes are a `Uint8Array`. `count` is read of an INSERT, UPDATE or DELETE without
   * RETURNING: the number of rows it affected, 0 if it affected none. Of all other statements, only `rows` is read.
   */
  exec(text: string): Result | Promise<Result>;
  /** Runs one or more statements. Default: `exec`. */
  script?(text: string): unknown;
  close(): void | Promise<void>;
}

export interface EmbeddedDialect extends Pick<TextCatalogDialect, 'rules' | 'syntax'> {
  readonly errors: EngineErrors;
  /** Starts a transaction that excludes other writers; default `BEGIN`. Some engines need `BEGIN IMMEDIATE`. */
  readonly begin?: string;
  /**
   * Statements before and after a transaction in which a table is dropped and recreated. If DROP TABLE applies ON DELETE in
   * the engine, they switch that off: without them, changing a table deletes the rows that reference it.
   */
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

interface Instance {
  readonly database: EmbeddedDatabase;
  readonly queue: SerialQueue;
}

async function openShared(engine: EmbeddedDialect, file: string, options: ConnectOptions): Promise<SqlDriver> {
  const { errors } = engine;
  const { busyTimeoutMs = 0, onWait, signal } = options;
  const toSvcError = (error: unknown) => namingFile(errors.toSvcError(error), error, file);
  try {
    const { instance, release } = await shareInstance<Instance>(
      `${engine.rules.name}:${file}`,
      async () => ({
        database: await retryWhileBusy(errors, () => fromDialect(engine, () => engine.open(file)), busyTimeoutMs, {
          onWait,
          signal,
        }),
        queue: new SerialQueue(),
      }),
      ({ database, queue }) => queue.run(async () => database.close()),
    );
    return serialDriver(engine, instance, release, toSvcError);
  } catch (error) {
    throw toSvcError(error);
  }
}

function namingFile(converted: unknown, thrown: unknown, file: string): unknown {
  if (converted === thrown || !isSvcError(converted) || converted.code !== 'database_in_use') return converted;
  return new SvcError('database_in_use', `Another process uses the database file ${file}.`, {
    why: converted.why ?? errorMessage(thrown),
    next: [
      'Stop the process, or run the command again when it has finished.',
      'To wait longer: --lock-timeout <seconds>, or busyTimeoutMs in the options of the database.',
    ],
    cause: thrown,
  });
}

/** Calls a function of the dialect. Throws `plugin_invalid` for an error that its `errors` do not recognize. */
async function fromDialect<T>({ rules, errors }: EmbeddedDialect, call: () => T | Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (isSvcError(errors.toSvcError(error))) throw error;
    const frame = error instanceof Error ? /^\s+at .*$/m.exec(error.stack ?? '')?.[0].trim() : undefined;
    throw new SvcError('plugin_invalid', `The dialect "${rules.name}" threw an error that it does not recognize.`, {
      why: errorMessage(error),
      ...(frame !== undefined && { where: frame }),
      next: [
        `If the engine threw it, "isEngineError" of the dialect must accept it. Otherwise it is a bug in the dialect.`,
      ],
      cause: error,
    });
  }
}

/** How long a statement waits for another process's write. */
const WRITE_TIMEOUT_MS = 10_000;

function serialDriver(
  engine: EmbeddedDialect,
  { database, queue }: Instance,
  release: () => Promise<void>,
  toSvcError: SqlDriver['toSvcError'],
): SqlDriver {
  const { errors, begin = 'BEGIN', rebuilding } = engine;
  const exec: ExecSql = (text) =>
    retryWhileBusy(errors, async () => [await fromDialect(engine, () => database.exec(text))], WRITE_TIMEOUT_MS);
  const run = async (text: string) => void (await exec(text));
  const script = async (text: string) =>
    database.script ? fromDialect(engine, () => database.script?.(text)) : exec(text);
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
    toSvcError,
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
