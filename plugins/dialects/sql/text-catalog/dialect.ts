import type { Connection, ConnectOptions, Dialect, UpdateJob, UpdateResult } from '../../../../core/dialect.ts';
import type { AnyRecordDefinition, RecordColumn, RecordValue } from '../../../../core/records.ts';
import { convertingErrors } from '../../shared/errors.ts';
import { isLeased, leaseTable, withLeaseLock } from '../../shared/lease.ts';
import { countRows } from '../count-rows.ts';
import { type RecordBackend, recordStore, recordTableStatements } from '../record-store.ts';
import { type RecordGrammar, readRecordColumn } from '../record-values.ts';
import { type ExecSql, rowsOf } from '../session.ts';
import { type UpdateSyntax, updateParts } from '../update-sql.ts';
import type { ValidationRules } from '../validate.ts';
import { compileTextCatalog, type TextCatalogStep } from './compile.ts';
import { type CatalogTexts, definitionsTable, readStoredCatalog } from './definitions.ts';
import type { SqlDriver } from './driver.ts';
import { otherObjects, readTextCatalog, type TextCatalog } from './read.ts';
import { runSegments } from './run.ts';
import {
  literal,
  normalizeTextCatalog,
  quoteIdentifier,
  quoteLiteral,
  type TextCatalogSyntax,
  typeText,
} from './syntax.ts';

/** A connection over a driver. The migration lock is a lease, so it needs no session of its own. */
export function sqlConnection(syntax: TextCatalogSyntax, driver: SqlDriver): Connection<TextCatalogStep> {
  const grammar = textCatalogGrammar(syntax);
  const translateErrors = convertingErrors((error) => driver.toSvcError(error));
  const rows = (text: string) => translateErrors(() => rowsOf(driver.exec, text));
  const backend = (exec: ExecSql) => recordBackend(grammar, driver, exec);
  const own = backend(driver.exec);
  const ensureTable = async (exec: ExecSql, definition: AnyRecordDefinition) => {
    const found = await rowsOf(exec, syntax.columnsQuery(definition.collection));
    const columns = found.map(({ name }) => String(name));
    const texts = recordTableStatements(grammar, '', definition, columns, syntax.alterDropsIndexes);
    for (const text of texts) await exec(text);
  };
  const readTexts = async (exec: ExecSql): Promise<CatalogTexts> => {
    const texts = new Map<string, string[]>();
    for (const { name, sql } of await rowsOf(exec, syntax.catalogQuery)) {
      const table = String(name);
      texts.set(table, [...(texts.get(table) ?? []), String(sql)].sort());
    }
    return texts;
  };
  const readCatalog = (exec = driver.exec) =>
    translateErrors(async (): Promise<TextCatalog> => {
      const texts = await readTexts(exec);
      const { model, unsupportedObjects } = syntax.rewritesTexts
        ? await readStoredCatalog(syntax, texts, recordStore(backend(exec), definitionsTable))
        : readTextCatalog(syntax, [...texts.values()].flat());
      return { model, unsupportedObjects: [...unsupportedObjects, ...otherObjects(texts)] };
    });
  const introspect = async (collections: readonly string[] | undefined, exec?: ExecSql) => {
    const { model } = await readCatalog(exec);
    return collections ? new Map([...model].filter(([name]) => collections.includes(name))) : model;
  };
  const connection: Connection<TextCatalogStep> = {
    server: driver.server,
    run: (segments, epoch, tookMs) =>
      runSegments({ syntax, driver, backend, readTexts, ensureTable, introspect }, segments, epoch, tookMs),
    query: async (text) => (await rows(text)).map(withExactNumbers),
    introspect: (collections) => introspect(collections),
    unsupportedObjects: async () => (await readCatalog()).unsupportedObjects,
    normalize: async (model) => normalizeTextCatalog(syntax, model),
    records: (definition) => recordStore(own, definition),
    ensureTables: (definitions) =>
      translateErrors(async () => {
        for (const definition of definitions) await ensureTable(driver.exec, definition);
      }),
    update: (job) => translateErrors(() => runUpdate(grammar, driver.exec, job)),
    async now() {
      const [row] = await rows(`SELECT ${grammar.clock} AS now`);
      return grammar.read(row?.now, { type: 'timestamp' }) as Date;
    },
    count: (collection, limit) => countRows(rows, { table: quoteIdentifier(collection), limit }),
    countValues: (collection, field, limit) =>
      countRows(rows, { table: quoteIdentifier(collection), field: quoteIdentifier(field), limit }),
    withLock: (work, options) => withLeaseLock(connection, work, options),
    isLocked: () => isLeased(connection),
    close: () => driver.close(),
  };
  return connection;
}

/** Drivers return a bigint for every integer, or for none. */
const withExactNumbers = (row: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, exactNumber(value)]));

/** A bigint as a number, if the number is exact. */
const exactNumber = (value: unknown): unknown =>
  typeof value === 'bigint' && BigInt(Number(value)) === value ? Number(value) : value;

function recordBackend(grammar: RecordGrammar, driver: SqlDriver, exec: ExecSql): RecordBackend {
  const { isMissing, isDuplicate, toSvcError } = driver;
  return {
    exec,
    async readColumns(query, columns) {
      return (await rowsOf(exec, query.render())).map((row) => columns.map((column) => row[column]));
    },
    grammar,
    schema: '',
    isMissing,
    isDuplicate,
    toSvcError,
    epochIsCurrent: (epoch) =>
      `EXISTS (SELECT 1 FROM ${quoteIdentifier(leaseTable.collection)} WHERE ${quoteIdentifier('epoch')} = ${epoch})`,
    write: async (statement) => (await exec(statement.render())).at(-1)?.count ?? 0,
  };
}

async function runUpdate(grammar: TextCatalogGrammar, exec: ExecSql, job: UpdateJob): Promise<UpdateResult> {
  const table = grammar.quoteIdentifier(job.table);
  const { matching, changing, assignments } = updateParts(job, grammar);
  const [row] = await rowsOf(exec, `SELECT count(*) AS matched FROM ${table} WHERE ${matching}`);
  const results = await exec(`UPDATE ${table} SET ${assignments} WHERE ${changing}`);
  const modified = results.at(-1)?.count ?? 0;
  // Other sessions may have written between the two statements.
  return { matched: Math.max(Number(row?.matched), modified), modified };
}

type TextCatalogGrammar = RecordGrammar & UpdateSyntax;

/** The grammar of records and updates. `elapsed` is set for each write. */
function textCatalogGrammar(syntax: TextCatalogSyntax): TextCatalogGrammar {
  const { currentTimestamp } = syntax;
  const literalOf: RecordGrammar['literal'] = (value, field) => literal(syntax, value, field);
  return {
    elapsed: '0',
    quoteIdentifier,
    literal: literalOf,
    read: readRecordValue,
    clock: currentTimestamp,
    columnType: (field) => typeText(syntax, field),
    typedLiteral: literalOf,
    now: ({ type }) => `(${syntax.now[type] ?? currentTimestamp})`,
    concat: (parts) =>
      `concat(${parts.map((part) => ('field' in part ? quoteIdentifier(part.field.name) : quoteLiteral(part.literal))).join(', ')})`,
  };
}

function readRecordValue(value: unknown, column: RecordColumn): RecordValue {
  if (value === null || value === undefined) return null;
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
