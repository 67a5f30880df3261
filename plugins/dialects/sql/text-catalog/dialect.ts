import type { Connection, ConnectOptions, Dialect } from '../../../../core/dialect.ts';
import type { AnyRecordDefinition } from '../../../../core/records.ts';
import { convertingErrors } from '../../shared/errors.ts';
import { isLeased, withLeaseLock } from '../../shared/lease.ts';
import { countRows } from '../count-rows.ts';
import { recordStore, recordTableStatements } from '../record-store.ts';
import { type ExecSql, rowsOf } from '../session.ts';
import { recordBackend, runUpdate, syntaxGrammar, withExactNumbers } from '../syntax-records.ts';
import type { ValidationRules } from '../validate.ts';
import { compileTextCatalog, type TextCatalogStep } from './compile.ts';
import { type CatalogTexts, definitionsTable, readStoredCatalog } from './definitions.ts';
import type { SqlDriver } from './driver.ts';
import { otherObjects, readTextCatalog, type TextCatalog } from './read.ts';
import { runSegments } from './run.ts';
import { normalizeTextCatalog, quoteIdentifier, type TextCatalogSyntax } from './syntax.ts';

/** A connection over a driver. The migration lock is a lease, so it needs no session of its own. */
export function sqlConnection(syntax: TextCatalogSyntax, driver: SqlDriver): Connection<TextCatalogStep> {
  const grammar = syntaxGrammar(syntax);
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
      const [row] = await rows(`SELECT ${grammar.clock} AS svc_now`);
      return grammar.read(Object.values(row ?? {})[0], { type: 'timestamp' }) as Date;
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
