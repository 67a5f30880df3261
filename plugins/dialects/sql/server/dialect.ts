import type { Connection, ConnectOptions, Dialect } from '../../../../core/dialect.ts';
import type { Json } from '../../../../core/json.ts';
import type { Field } from '../../../../core/schema/model.ts';
import type { UnsupportedFeatures } from '../../../../core/schema/unsupported-features.ts';
import { convertingErrors, invalidUrlError } from '../../shared/errors.ts';
import {
  connectTimeoutMs,
  type NoOptions,
  type Options,
  readSettings,
  type SettingsOf,
} from '../../shared/settings.ts';
import { compileSql } from '../compile.ts';
import type { EngineErrors } from '../engine-errors.ts';
import { type Grammar, UNSUPPORTED_BY_SQL } from '../grammar.ts';
import type { RecordGrammar } from '../record-values.ts';
import { syntaxGrammar } from '../syntax-records.ts';
import type { UpdateSyntax } from '../update-sql.ts';
import type { ValidationRules } from '../validate.ts';
import { normalizeSqlServer } from './catalog.ts';
import type { CatalogQueries } from './catalog-rows.ts';
import { createServerConnection } from './connection.ts';
import { type SqlServer, serverSession } from './driver.ts';
import { type SqlServerStep, sqlServerGrammar } from './grammar.ts';
import { rejectedStatements } from './rejected-statements.ts';
import type { SqlServerSyntax } from './syntax.ts';

/** The features that no dialect of `sqlServerDialect` has. */
export const UNSUPPORTED_BY_SQL_SERVER: UnsupportedFeatures = {
  ...UNSUPPORTED_BY_SQL,
  changeKey: { why: 'The key of a table is fixed.', next: 'Create a new table.' },
  temporaryTable: { why: 'It would be dropped with the connection.', next: 'Leave "temporary" out.' },
  unloggedTable: { why: 'The engine logs every table.', next: 'Leave "unlogged" out.' },
  concurrentIndex: { why: 'The engine builds indexes with a lock.', next: 'Leave "concurrently" out.' },
};

/** The types of standard SQL, as `information_schema` names them. An engine adds the others: `text`, `blob`, `json`, `uuid`, `enum`. */
export const STANDARD_TYPES = {
  integer: 'INTEGER',
  bigint: 'BIGINT',
  smallint: 'SMALLINT',
  float: 'REAL',
  double: 'DOUBLE PRECISION',
  decimal: 'NUMERIC',
  string: 'CHARACTER VARYING',
  boolean: 'BOOLEAN',
  date: 'DATE',
  time: 'TIME(3)',
  datetime: 'TIMESTAMP(3)',
  timestamp: 'TIMESTAMP(3) WITH TIME ZONE',
  array: 'ARRAY',
  binary: 'BINARY VARYING',
} as const satisfies Partial<SqlServerSyntax['types']>;

export interface SqlServerDialect<O extends Options = NoOptions> {
  readonly rules: ValidationRules;
  readonly syntax: SqlServerSyntax;
  /** Statements of the engine that differ from those of standard SQL. `standard` has all of them. */
  grammar?(standard: Grammar<SqlServerStep>): Partial<Grammar<SqlServerStep>>;
  /**
   * What differs for svc's own tables and for updates: the types of their columns (`columnType`), how the driver returns values
   * (`read`), or `concat`.
   */
  readonly records?: Partial<RecordGrammar & UpdateSyntax>;
  readonly errors: EngineErrors;
  /** Options of the database besides those of svc. */
  readonly options?: O;
  /** The port of a URL without one. The URL is `<name>://user:password@host:port/database`. */
  readonly defaultPort: number;
  /**
   * Opens a session, with times in UTC. Called several times for one connection: a second session renews the migration lock.
   * Throws the error of the driver, or `driver_missing`.
   */
  open(url: string, options: SettingsOf<O & ServerOptions>): Promise<SqlServer>;
  /** Queries on the catalog: for all tables, or for the table `only`, which can be a scratch table. */
  catalog(only?: string): CatalogQueries;
}

const SERVER_OPTIONS = { connectTimeoutMs };
type ServerOptions = typeof SERVER_OPTIONS;

/**
 * Creates a dialect for an engine with a server and a full ALTER TABLE. The engine has transactions for rows, `IS DISTINCT FROM`
 * and `concat`; `syntax.transactionalDdl` says whether they cover DDL as well.
 *
 * @example
 * export const myServer = sqlServerDialect({ rules, syntax, errors, defaultPort: 5435, open, catalog });
 */
export function sqlServerDialect<O extends Options = NoOptions>(engine: SqlServerDialect<O>): Dialect<SqlServerStep> {
  const { rules, syntax } = engine;
  const errors = rejectedStatements(engine.errors);
  const grammar: Grammar<SqlServerStep> = sqlServerGrammar(rules, syntax);
  Object.assign(grammar, engine.grammar?.({ ...grammar }));
  // `syntax` has some words of records as well.
  const records = {
    ...syntax,
    ...syntaxGrammar(syntax),
    typedLiteral: comparedLiteral,
    names: rules.names,
    ...engine.records,
  };
  const ownOptions = { ...SERVER_OPTIONS, ...engine.options } as O & ServerOptions;
  const translateErrors = convertingErrors((error) => errors.toSvcError(error));
  const normalize: Dialect['normalize'] = (model) => normalizeSqlServer(syntax, grammar, model);
  /** A single-precision column stores 1.1 as 1.10000002, so a comparison with the literal 1.1 is never true. */
  function comparedLiteral(value: Json, field: Field): string {
    const text = grammar.literal(value, field);
    return field.type === 'float' ? `CAST(${text} AS ${grammar.columnType(field, '')})` : text;
  }
  async function connect(url: string, options: ConnectOptions): Promise<Connection<SqlServerStep>> {
    const settings = readSettings(rules.name, ownOptions, options);
    identify(url);
    const open = () => translateErrors(async () => serverSession(await engine.open(url, settings), errors));
    return createServerConnection({
      syntax,
      grammar,
      records,
      errors,
      catalog: (only) => engine.catalog(only),
      session: await open(),
      openAnother: open,
    });
  }
  function identify(url: string): string {
    const form = `Write ${rules.name}://user:password@host:${engine.defaultPort}/database.`;
    if (!URL.canParse(url)) throw invalidUrlError(`a ${rules.name} database`, url, 'It is not a URL.', [form]);
    const { protocol, hostname, port, pathname } = new URL(url);
    if (protocol !== `${rules.name}:` || hostname === '' || pathname.length < 2)
      throw invalidUrlError(`a ${rules.name} database`, url, 'It names no server or no database.', [form]);
    return `${rules.name}:${hostname.toLowerCase()}:${port || engine.defaultPort}${pathname}`;
  }
  return {
    name: rules.name,
    types: syntax.types,
    capabilities: {
      transactionalDdl: syntax.transactionalDdl ?? false,
      runsSegmentsSingly: true,
      names: rules.names,
      unsupported: rules.unsupported,
    },
    compile: (operation, before) => compileSql(grammar, operation, before),
    normalize,
    identify,
    connect,
  };
}
