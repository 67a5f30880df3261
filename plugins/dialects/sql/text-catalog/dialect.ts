import type {
  Connection,
  ConnectOptions,
  Dialect,
  RunOutcome,
  Segment,
  UpdateJob,
  UpdateResult,
} from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import {
  type AnyRecordDefinition,
  columnOf,
  type RecordColumn,
  type RecordValue,
  type RecordWrite,
} from '../../../../core/records.ts';
import { convertingErrors, lockLostError } from '../../shared/errors.ts';
import { isLeased, leaseTable, withLeaseLock } from '../lease.ts';
import { type RecordBackend, recordStore, recordTableStatements, VERSION_COLUMN } from '../record-store.ts';
import {
  endsElapsed,
  engineFilledColumns,
  engineFilledValues,
  type RecordGrammar,
  readRecordColumn,
  recordLiteral,
} from '../record-values.ts';
import { type ExecSql, rowsOf } from '../session.ts';
import { type UpdateSyntax, updateParts } from '../update-sql.ts';
import type { ValidationRules } from '../validate.ts';
import { compileTextCatalog, type TextCatalogStep } from './compile.ts';
import { readTextCatalog } from './read.ts';
import {
  literal,
  normalizeTextCatalog,
  quoteIdentifier,
  quoteLiteral,
  type TextCatalogSyntax,
  typeName,
} from './syntax.ts';

/**
 * The engine-specific part of `sqlConnection`, for an engine that rolls DDL back, supports IS DISTINCT FROM and RETURNING,
 * and runs the statements of `compileTextCatalog`.
 */
export interface SqlDriver extends Pick<Connection, 'close'> {
  /** Product and version of the driver, for people. */
  readonly server: string;
  /** Runs one statement. Calls may be concurrent, also with a transaction: they have to be queued. */
  readonly exec: ExecSql;
  /**
   * Runs `work` in a transaction that excludes other writers. Commits, or rolls back and throws the error of `work`.
   * `rebuilds`: a table is dropped and recreated, which must not change rows that reference it.
   */
  transaction<T>(work: (exec: ExecSql) => Promise<T>, rebuilds: boolean): Promise<T>;
  /** Runs one or more statements inside a transaction started by `transaction`. */
  script(text: string): void | Promise<void>;
  /** The column names of a table; empty if it does not exist. */
  columns(table: string): Promise<readonly string[]>;
  /** The stored CREATE statements of all tables and indexes, without those of the engine itself. */
  catalogTexts(): Promise<readonly string[]>;
  /** Converts an error of the engine to an `SvcError` with its message in `why`. Returns other errors unchanged. */
  toSvcError(error: unknown): unknown;
  /** Whether the error means that a table does not exist. */
  isMissing(error: unknown): boolean;
  /** Whether the error means that a primary key value exists already. */
  isDuplicate(error: unknown): boolean;
}

/** A connection over a driver. The migration lock is a lease, so it needs no session of its own. */
export function sqlConnection(syntax: TextCatalogSyntax, driver: SqlDriver): Connection<TextCatalogStep> {
  const { exec } = driver;
  const grammar = textCatalogGrammar(syntax);
  const { clock } = grammar;
  const translateErrors = convertingErrors((error) => driver.toSvcError(error));
  const rows = (text: string) => translateErrors(() => rowsOf(exec, text));
  const epochIsCurrent = (epoch: number) =>
    `EXISTS (SELECT 1 FROM ${quoteIdentifier(leaseTable.collection)} WHERE ${quoteIdentifier('epoch')} = ${epoch})`;
  const backend: RecordBackend = {
    exec,
    async readColumns(query, columns) {
      return (await rowsOf(exec, query.render())).map((row) => columns.map((column) => row[column]));
    },
    grammar,
    schema: '',
    isMissing: driver.isMissing,
    isDuplicate: driver.isDuplicate,
    toSvcError: driver.toSvcError,
    epochIsCurrent,
    write: async (statement) => (await exec(statement.render())).at(-1)?.count ?? 0,
  };
  const ensureTable = async (definition: AnyRecordDefinition) => {
    const columns = await driver.columns(definition.collection);
    for (const text of recordTableStatements(backend.grammar, '', definition, columns)) await exec(text);
  };
  const now = async () =>
    backend.grammar.read((await rows(`SELECT ${clock} AS now`))[0]?.now, { type: 'timestamp' }) as Date;
  const readCatalog = async () => readTextCatalog(syntax, await translateErrors(() => driver.catalogTexts()));
  const connection: Connection<TextCatalogStep> = {
    server: driver.server,
    run: (segments, epoch, tookMs) => runSegments({ driver, backend }, segments, epoch, tookMs),
    query: rows,
    async introspect(collections) {
      const { model } = await readCatalog();
      return collections ? new Map([...model].filter(([name]) => collections.includes(name))) : model;
    },
    unsupportedObjects: async () => (await readCatalog()).unsupportedObjects,
    normalize: async (model) => normalizeTextCatalog(syntax, model),
    records: (definition) => recordStore(backend, definition),
    ensureTables: (definitions) =>
      translateErrors(async () => {
        for (const definition of definitions) await ensureTable(definition);
      }),
    update: (job) => translateErrors(() => runUpdate(grammar, exec, job)),
    now,
    async count(collection, limit) {
      const [row] = await rows(
        `SELECT count(*) AS count FROM (SELECT 1 FROM ${quoteIdentifier(collection)} LIMIT ${limit}) AS counted`,
      );
      return Number(row?.count);
    },
    withLock: (work, options) => withLeaseLock(connection, work, options),
    isLocked: () => isLeased(connection),
    close: () => driver.close(),
  };
  return connection;
}

async function runUpdate(grammar: TextCatalogGrammar, exec: ExecSql, job: UpdateJob): Promise<UpdateResult> {
  const table = grammar.quoteIdentifier(job.table);
  const { matching, changing, assignments } = updateParts(job, grammar);
  const [row] = await rowsOf(exec, `SELECT count(*) AS matched FROM ${table} WHERE ${matching}`);
  const results = await exec(`UPDATE ${table} SET ${assignments} WHERE (${matching}) AND ${changing}`);
  const modified = results.at(-1)?.count ?? 0;
  // Other sessions may have written between the two statements.
  return { matched: Math.max(Number(row?.matched), modified), modified };
}

interface RunContext {
  readonly driver: SqlDriver;
  readonly backend: RecordBackend;
}

type Written = RunOutcome['written'][number];

async function runSegments(
  context: RunContext,
  segments: readonly Segment<TextCatalogStep>[],
  epoch: number,
  tookMs = 0,
): Promise<RunOutcome> {
  const written: Written[] = [];
  let startedAt = performance.now() - tookMs;
  for (const segment of segments) {
    let at: number | undefined;
    try {
      written.push(
        await context.driver.transaction(
          async (exec) => {
            if (epoch > 0) await assertEpoch(context, exec, epoch);
            for (const [index, statement] of segment.statements.entries()) {
              at = index;
              await runStep(context.driver, exec, statement.run);
            }
            at = undefined;
            const elapsed = String(performance.now() - startedAt);
            const values: Written[number][] = [];
            for (const write of segment.writes) values.push(await writeRecord(context, exec, write, elapsed));
            return values;
          },
          segment.statements.some(({ run }) => run.rebuilds),
        ),
      );
    } catch (error) {
      const failure = { statement: at, error: context.driver.toSvcError(error), rolledBack: true };
      return { committed: written.length, written, failure };
    }
    if (endsElapsed(segment)) startedAt = performance.now();
  }
  return { committed: written.length, written };
}

async function assertEpoch({ backend }: RunContext, exec: ExecSql, epoch: number): Promise<void> {
  const current = await rowsOf(exec, `SELECT 1 AS is_current WHERE ${backend.epochIsCurrent(epoch)}`);
  if (current.length === 0) throw lockLostError();
}

/** Returns the values the engine filled in. Throws `lock_lost` if the record has changed since it was read. */
async function writeRecord(
  { backend: { grammar: plain, isDuplicate } }: RunContext,
  exec: ExecSql,
  write: RecordWrite,
  elapsed: string,
): Promise<Written[number]> {
  const { definition, record, version } = write;
  const grammar = { ...plain, elapsed };
  const table = quoteIdentifier(definition.collection);
  const names = Object.keys(version === undefined ? definition.columns : record);
  const valueSql = (name: string) => recordLiteral(grammar, record[name], columnOf(definition, name));
  const returning = `RETURNING ${[quoteIdentifier(definition.key), ...engineFilledColumns(write).map(quoteIdentifier)].join(', ')}`;
  const text =
    version === undefined
      ? `INSERT INTO ${table} (${[...names, VERSION_COLUMN].map(quoteIdentifier).join(', ')}) VALUES (${[...names.map(valueSql), '1'].join(', ')}) ${returning}`
      : `UPDATE ${table} SET ${names.map((name) => `${quoteIdentifier(name)} = ${valueSql(name)}`).join(', ')}, ${quoteIdentifier(VERSION_COLUMN)} = ${version + 1} WHERE ${quoteIdentifier(definition.key)} = ${valueSql(definition.key)} AND ${quoteIdentifier(VERSION_COLUMN)} = ${version} ${returning}`;
  const found = await rowsOf(exec, text).catch((error: unknown) => {
    throw isDuplicate(error) ? lockLostError(error) : error;
  });
  const [row] = found;
  if (!row) throw lockLostError();
  return engineFilledValues(grammar, write, row);
}

async function runStep(driver: SqlDriver, exec: ExecSql, { texts, mustBeEmpty }: TextCatalogStep): Promise<void> {
  for (const text of texts) await driver.script(text);
  for (const query of mustBeEmpty) {
    const [violation] = await rowsOf(exec, query);
    if (!violation) continue;
    throw new SvcError('data_violates', 'Rows in the table do not allow the change.', {
      why: String(violation.why),
      next: ['Correct or delete those rows, or leave the change out.'],
    });
  }
}

type TextCatalogGrammar = RecordGrammar & UpdateSyntax;

/** The grammar of records and updates. `elapsed` is set for each write. */
function textCatalogGrammar(syntax: TextCatalogSyntax): TextCatalogGrammar {
  const { currentTimestamp } = syntax;
  return {
    elapsed: '0',
    quoteIdentifier,
    literal,
    read: readRecordValue,
    clock: currentTimestamp,
    columnType: (field) => typeName(syntax, field),
    typedLiteral: literal,
    now: (type) => `(${syntax.now[type] ?? currentTimestamp})`,
    concat: (parts) =>
      `concat(${parts.map((part) => ('field' in part ? quoteIdentifier(part.field.name) : quoteLiteral(part.literal))).join(', ')})`,
  };
}

function readRecordValue(value: unknown, column: RecordColumn): RecordValue {
  if (value === null || value === undefined) return null;
  if (column.type === 'json') return JSON.parse(String(value)) as RecordValue;
  return column.type === 'boolean' ? Number(value) !== 0 : readRecordColumn(value, column);
}

export interface TextCatalogDialect extends Pick<Dialect, 'identify'> {
  readonly rules: ValidationRules;
  readonly syntax: TextCatalogSyntax;
  /** Throws `url_invalid`, `connection_failed`, `authentication_failed` or `driver_missing`. */
  open(url: string, options: ConnectOptions): Promise<SqlDriver>;
}

/**
 * Creates a dialect for an engine that stores the CREATE statements of its tables, rolls DDL back, and has a limited ALTER
 * TABLE.
 *
 * @example
 * const dialect = textCatalogDialect({ rules, syntax, identify, open });
 */
export function textCatalogDialect({ rules, syntax, identify, open }: TextCatalogDialect): Dialect<TextCatalogStep> {
  return {
    name: rules.name,
    types: syntax.types,
    capabilities: { transactionalDdl: true, names: rules.names, unsupported: rules.unsupported },
    compile: (operation, before) => compileTextCatalog(syntax, rules, operation, before),
    normalize: (model) => normalizeTextCatalog(syntax, model),
    identify,
    connect: async (url, options) => sqlConnection(syntax, await open(url, options)),
  };
}
