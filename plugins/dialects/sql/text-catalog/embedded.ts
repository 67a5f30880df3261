import type { Dialect } from '../../../../core/dialect.ts';
import type { UnsupportedFeatures } from '../../../../core/schema/unsupported-features.ts';
import {
  type FileEngine,
  fromDialect,
  identifyFile,
  type OpenFile,
  openFile,
  retryWhileBusy,
} from '../../shared/embedded-file.ts';
import type { NoOptions, Options, OptionValues } from '../../shared/settings.ts';
import type { EngineErrors } from '../engine-errors.ts';
import { UNSUPPORTED_BY_SQL } from '../grammar.ts';
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

export interface EmbeddedDialect<O extends Options = NoOptions> extends Pick<TextCatalogDialect, 'rules' | 'syntax'> {
  /** Options of the database besides those of svc: `{ memoryMb: integerOption('…', 256, 16, 65_536) }`. */
  readonly options?: O;
  /**
   * Of an engine whose databases are folders: the names of files that show one, also while it is created. Another folder is not
   * opened, unless it is empty.
   */
  readonly folderFiles?: RegExp;
  readonly errors: EngineErrors;
  /** Starts a transaction that excludes other writers; default `BEGIN`. Some engines need `BEGIN IMMEDIATE`. */
  readonly begin?: string;
  /**
   * Statements before and after a transaction in which a table is dropped and recreated. If DROP TABLE applies ON DELETE in
   * the engine, they switch that off: without them, changing a table deletes the rows that reference it.
   */
  readonly rebuilding?: { readonly before: string; readonly after: string };
  /** Opens the file, and creates it if it does not exist. */
  open(file: string, options: OptionValues<O>): Promise<EmbeddedDatabase>;
}

/**
 * Creates a dialect for an engine that runs inside the process, with one file per database. The URL is the name of the
 * dialect and a path: `<name>://./folder/file.db`. All connections of the process to one file share an instance and take
 * turns.
 *
 * @example
 * export const myEngine = embeddedDialect({ rules, syntax, errors, open: (file) => openDatabase(file) });
 */
export function embeddedDialect<O extends Options = NoOptions>(engine: EmbeddedDialect<O>): Dialect<TextCatalogStep> {
  const { rules, syntax, errors, options: own, folderFiles } = engine;
  const file: FileEngine<EmbeddedDatabase, O> = {
    ...errors,
    name: rules.name,
    options: own,
    folderFiles,
    open: (path, values) => engine.open(path, values),
  };
  return textCatalogDialect({
    rules,
    syntax,
    identify: (url) => identifyFile(rules.name, url),
    open: async (url, options) => serialDriver(engine, await openFile(file, url, options)),
  });
}

/** How long a statement waits for another process's write. */
const WRITE_TIMEOUT_MS = 10_000;

function serialDriver(engine: Omit<EmbeddedDialect, 'options' | 'open'>, file: OpenFile<EmbeddedDatabase>): SqlDriver {
  const { rules, errors, begin = 'BEGIN', rebuilding } = engine;
  const { database } = file;
  const dialect = { ...errors, name: rules.name };
  const exec: ExecSql = (text) =>
    retryWhileBusy(errors, async () => [await fromDialect(dialect, () => database.exec(text))], {
      busyTimeoutMs: WRITE_TIMEOUT_MS,
    });
  const run = async (text: string) => void (await exec(text));
  const script = async (text: string) =>
    database.script ? fromDialect(dialect, () => database.script?.(text)) : exec(text);
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
    exec: (text) => file.run(() => exec(text)),
    transaction: (work, rebuilds) =>
      file.run(async () => {
        if (!rebuilds || !rebuilding) return transaction(work);
        await run(rebuilding.before);
        try {
          return await transaction(work);
        } finally {
          await run(rebuilding.after);
        }
      }),
    toSvcError: file.toSvcError,
    isMissing: errors.isMissing,
    isDuplicate: errors.isDuplicate,
    close: file.close,
  };
}
