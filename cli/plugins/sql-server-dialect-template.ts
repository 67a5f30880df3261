import { dialectUnderTest, type PluginFiles, registrationOfDialect, storeUnderTest } from './templates.ts';

/** A dialect from the words of `sqlServerDialect`, for an SQL engine with a server. */
export function sqlServerDialectFiles(name: string, identifier: string): PluginFiles {
  const variable = `${name.toUpperCase().replaceAll('-', '_')}_URL`;
  const server = `${name}://user:password@127.0.0.1:<port>/<database>`;
  return {
    description: `dialect for ${name}: schemas, records and approvals`,
    configExample: `databases: { main: { dialect: '${name}', url: '${name}://user:password@127.0.0.1/shop' } },`,
    steps: [
      `a server for the tests, on this machine: \`export ${variable}=${server}\`. Its user creates and drops databases`,
      '`connect` in `src/session.ts`: the driver, which is also a dependency in `package.json`. Then `createDatabase` in `test/suite.test.ts`, if the engine has no CREATE DATABASE',
      '`DEFAULT_PORT` in `src/session.ts`',
      'the types, the current time, `alterColumn` and `transactionalDdl` in `src/syntax.ts`',
      '`indexes` in `src/catalog.ts`, and the queries on `information_schema` that the engine answers differently',
      'the messages in `src/errors.ts`',
      'what the engine lacks: `unsupported` in `src/syntax.ts`, with a reason and an alternative, and reserved names: `names.problem`',
      '`syntax.now`, `notEnforced`, `addUnsupportedObject` and the skipped cases in `test/suite.test.ts`',
    ],
    files: {
      'src/index.ts': indexSource(name, identifier),
      'src/session.ts': sessionSource(name),
      'src/syntax.ts': syntaxSource(name),
      'src/catalog.ts': CATALOG_SOURCE,
      'src/errors.ts': errorsSource(name),
      'test/suite.test.ts': suiteTest(name, identifier, variable, server),
    },
  };
}

const indexSource = (name: string, identifier: string): string => `import { definePlugin } from '@svc/sdk';
import { sqlServerDialect } from '@svc/sdk/dialect';
import { catalog } from './catalog.ts';
import { errors } from './errors.ts';
import { DEFAULT_PORT, openSession } from './session.ts';
import { rules, syntax } from './syntax.ts';

export const ${identifier} = sqlServerDialect({
  rules,
  syntax,
  errors,
  defaultPort: DEFAULT_PORT,
  open: openSession,
  catalog,
  // Statements that differ from those of standard SQL:
  // grammar: ({ dropIndex }) => ({ dropIndex: (table, index) => … }),
  // How the driver returns the values of records, if not as numbers, texts, bytes and dates:
  // records: { read: (value, column) => (column.type === 'json' ? (value as Json) : readRecordColumn(value, column)) },
});

${registrationOfDialect(name, identifier)}
`;

const sessionSource = (name: string): string => `import type { SqlServer } from '@svc/sdk/dialect';

/** To do: the port of a URL without one. */
export const DEFAULT_PORT = 5432;

/** What svc needs of the driver: one session, never a pool. */
interface Client {
  readonly version: string;
  /**
   * Runs one statement: BEGIN, COMMIT and ROLLBACK arrive here too. \`changed\` is the number of rows that it inserted, changed or
   * deleted, 0 if it matched none. In rows, integers are numbers or bigints, decimals and JSON are texts, bytes are a
   * Uint8Array, and timestamps are dates.
   */
  run(sql: string): Promise<{ readonly rows: readonly Readonly<Record<string, unknown>>[]; readonly changed: number }>;
  close(): Promise<void>;
}

export async function openSession(
  url: string,
  { connectTimeoutMs }: { readonly connectTimeoutMs: number },
): Promise<SqlServer> {
  const client = await connect(url, connectTimeoutMs);
  return {
    server: \`${name} \${client.version}\`,
    async exec(sql) {
      const { rows, changed } = await client.run(sql);
      return { rows, count: changed };
    },
    // Several queries in one round trip, if the driver can: queryAll: (texts) => …,
    // Transactions, if the driver has them as objects: transaction: (work) => …,
    close: () => client.close(),
  };
}

/** Connects, and sets the time zone of the session to UTC. */
async function connect(_url: string, timeoutMs: number): Promise<Client> {
  throw new Error(\`To do in src/session.ts: connect: the driver of ${name}, which gives up after \${timeoutMs} ms\`);
}
`;

const syntaxSource = (name: string): string => `import {
  type SqlServerSyntax,
  STANDARD_TYPES,
  UNSUPPORTED_BY_SQL_SERVER,
  type ValidationRules,
} from '@svc/sdk/dialect';

const TYPES: SqlServerSyntax['types'] = {
  // As information_schema names them: INTEGER, CHARACTER VARYING, DOUBLE PRECISION, …
  ...STANDARD_TYPES,
  text: 'CLOB',
  blob: 'BLOB',
  json: 'JSON',
  uuid: 'UUID',
  enum: 'CHARACTER VARYING(255)',
};

export const syntax: SqlServerSyntax = {
  types: TYPES,
  // Types with a length or digits that are not in \`types\`:
  typeText({ type, length = 255, precision = 38, scale = 10 }) {
    if (type === 'string' || type === 'binary') return \`\${TYPES[type]}(\${length})\`;
    return type === 'decimal' ? \`\${TYPES[type]}(\${precision}, \${scale})\` : undefined;
  },
  // Other names of types in the catalog:
  typeSynonyms: { TIME: 'time', TIMESTAMP: 'datetime', 'TIMESTAMP WITH TIME ZONE': 'timestamp' },
  // Literals that are not numbers or texts in single quotes:
  quoteLiteral: (value) => (typeof value === 'boolean' ? String(value) : undefined),
  arrayLiteral: (elements, type) => \`CAST(ARRAY [\${elements.join(', ')}] AS \${type})\`,
  // Expressions for a default of 'now', for a moment in a record, and for a new UUID. In a transaction, the moment of the
  // statement, not that of its beginning.
  now: {
    date: 'CURRENT_DATE',
    time: 'LOCALTIME',
    datetime: 'LOCALTIMESTAMP',
    timestamp: 'CURRENT_TIMESTAMP',
  },
  currentTimestamp: 'CURRENT_TIMESTAMP',
  uuid: 'gen_random_uuid()',
  // What follows ALTER TABLE and its name when a field changes, also if \`from.autoGenerate\` or \`to.autoGenerate\` makes the engine
  // number it. Each text can run again.
  alterColumn: ({ name, type, to, default: value }) => [
    \`ALTER COLUMN \${name} DROP DEFAULT\`,
    \`ALTER COLUMN \${name} SET DATA TYPE \${type}\`,
    ...(value === undefined ? [] : [\`ALTER COLUMN \${name} SET DEFAULT \${value}\`]),
    \`ALTER COLUMN \${name} \${to.required ? 'SET' : 'DROP'} NOT NULL\`,
  ],
  // It rolls DDL back, and a transaction sees the tables that it created:
  // transactionalDdl: true,
  // It spells expressions in its own way, so that a check is not read as it was written:
  // scratchTable: 'CREATE TEMPORARY TABLE',
  // Other words: renameColumn, addColumn, dropColumn, identity, defaultFirst, restrictIsNoAction, nativeEnum, namesQuery, limit, oneRow,
  // textOrder, comparesRows, ifNotExists. The documentation of each says for which engine it is.
};

export const rules: ValidationRules = {
  name: '${name}',
  // Names that are reserved: problem: (name) => (name.startsWith('sys_') ? 'It is reserved.' : undefined).
  names: { max: 63, unit: 'bytes' },
  // What the engine lacks, each with a reason and an alternative: check: { why: '…', next: '…' }.
  unsupported: { ...UNSUPPORTED_BY_SQL_SERVER },
};
`;

const CATALOG_SOURCE = `import type { CatalogQueries } from '@svc/sdk/dialect';

/** Marks unfinished work; the suites in test/ fail with the message. */
function todo(what: string): never {
  throw new Error(\`To do in src/catalog.ts: \${what}\`);
}

/** The schema, and that of scratch tables if it is another one. */
const isHere = (schema: string) => \`\${schema} = CURRENT_SCHEMA\`;
/** A type with its length or digits, of a column or of the elements of an array. */
const TYPE = \`UPPER(data_type) || CASE WHEN UPPER(data_type) LIKE '% VARYING'
    THEN COALESCE('(' || character_maximum_length || ')', '')
  WHEN UPPER(data_type) = 'NUMERIC' THEN COALESCE('(' || numeric_precision || ', ' || numeric_scale || ')', '')
  ELSE '' END\`;

/** For all tables of the schema, or for the table \`only\`, a scratch table. */
export const catalog = (only?: string): CatalogQueries => ({
  tables: \`SELECT table_name FROM information_schema.tables WHERE \${isHere('table_schema')} AND table_type <> 'VIEW'
    AND \${only === undefined ? "SUBSTRING(table_name FROM 1 FOR 5) <> '_svc_'" : \`table_name = '\${only}'\`} ORDER BY table_name\`,
  columns: \`SELECT table_name, column_name, column_default, is_nullable, is_identity,
      COALESCE((SELECT \${TYPE} || ' ARRAY' FROM information_schema.element_types e WHERE e.object_schema = c.table_schema
        AND e.object_name = c.table_name AND e.collection_type_identifier = c.dtd_identifier), \${TYPE}) AS data_type
    FROM information_schema.columns c WHERE \${isHere('table_schema')} ORDER BY ordinal_position\`,
  // If the engine lists NOT NULL as a check, leave those out.
  constraints: \`SELECT c.table_name, c.constraint_name, c.constraint_type, k.column_name, k.ordinal_position AS place,
      NULL AS check_clause, t.table_name AS target_table, t.column_name AS target_column, r.delete_rule, r.update_rule
    FROM information_schema.table_constraints c
    JOIN information_schema.key_column_usage k
      ON k.constraint_schema = c.constraint_schema AND k.constraint_name = c.constraint_name
    LEFT JOIN information_schema.referential_constraints r
      ON r.constraint_schema = c.constraint_schema AND r.constraint_name = c.constraint_name
    LEFT JOIN information_schema.key_column_usage t ON t.constraint_schema = r.unique_constraint_schema
      AND t.constraint_name = r.unique_constraint_name AND t.ordinal_position = k.position_in_unique_constraint
    WHERE \${isHere('c.table_schema')}
    UNION ALL SELECT u.table_name, c.constraint_name, 'CHECK', u.column_name, 0, c.check_clause, NULL, NULL, NULL, NULL
    FROM information_schema.check_constraints c JOIN information_schema.constraint_column_usage u
      ON u.constraint_schema = c.constraint_schema AND u.constraint_name = c.constraint_name
    WHERE \${isHere('c.constraint_schema')} ORDER BY place\`,
  // information_schema has no indexes.
  get indexes(): string {
    return todo(
      'indexes: a row for each column of an index, in their order: table_name, index_name, column_name, is_unique, is_descending',
    );
  },
  unsupported: \`SELECT event_object_table AS table_name, 'has the trigger ' || trigger_name AS what
      FROM information_schema.triggers WHERE \${isHere('event_object_schema')}
    UNION ALL SELECT NULL, 'has the view ' || table_name FROM information_schema.views WHERE \${isHere('table_schema')}\`,
});
`;

const errorsSource = (name: string): string => `import { engineErrors } from '@svc/sdk/dialect';

export const errors = engineErrors({
  engine: '${name}',
  // Any other error is reported as a bug of this dialect.
  isEngineError: (error) => !error.message.startsWith('To do in '),
  // To do: the engine's words, or what its driver has as the \`code\` of an error, such as an SQLSTATE: /^42P01$/.
  messages: {
    index_exists: /index .*already exists/i,
    constraint_exists: /constraint .*already exists/i,
    field_exists: /column .*already exists/i,
    field_unknown: /column .*does not exist/i,
    collection_exists: /(table|relation) .*already exists/i,
    collection_unknown: /(table|relation) .*does not exist/i,
    data_violates: /constraint|violates|contains null values/i,
    table_locked: /lock timeout|deadlock/i,
    authentication_failed: /password authentication failed|access denied/i,
    permission_denied: /permission denied/i,
    connection_lost: /Connection terminated|ECONNRESET|EPIPE/,
    connection_failed: /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|timeout expired/,
  },
  duplicate: /duplicate key/i,
});
`;

const suiteTest = (
  name: string,
  identifier: string,
  variable: string,
  server: string,
): string => `import { randomUUID } from 'node:crypto';
import { extname } from 'node:path';
import { test } from 'node:test';
import { quoteIdentifier } from '@svc/sdk/dialect';
import { approvalSuite, dialectSuite, recordStoreSuite, type StoreUnderTest, sqlSyntax } from '@svc/sdk/testing';
import { ${identifier} } from '../src/index.ts';
import { openSession } from '../src/session.ts';

const { ${variable} } = process.env;

/** Creates an empty database for one case. */
async function createDatabase() {
  if (!${variable})
    throw new Error('To do in test/suite.test.ts: a server: export ${variable}=${server}');
  const url = new URL(${variable});
  const name = \`t\${randomUUID().replaceAll('-', '')}\`;
  const onServer = async (statement: string) => {
    const session = await openSession(${variable}, { connectTimeoutMs: 5_000 });
    await session.exec(statement).finally(() => session.close());
  };
  await onServer(\`CREATE DATABASE \${name}\`);
  url.pathname = \`/\${name}\`;
  return { url: url.href, drop: () => onServer(\`DROP DATABASE \${name}\`) };
}

${storeUnderTest(name, identifier)}

// The second argument writes bytes, if the engine has no x'00ff'.
const sql = sqlSyntax(quoteIdentifier);

// One case: npm run build && node --test --test-name-pattern='<part of its name>' dist/test/suite.test.js
dialectSuite(test, {
  ...sql,
  // To do: the engine's expression for the current time, as its catalog spells it.
  syntax: { ...sql.syntax, now: 'CURRENT_TIMESTAMP' },
${dialectUnderTest(name, identifier)}
  // For a server that answers slowly: timeoutMs: 600_000, randomSchemas: 5,
  // Rules of a field that the engine does not apply: notEnforced: { length: '${name} does not limit the length of a value' },
  async addUnsupportedObject(connection, table) {
    await connection.query(\`CREATE VIEW seen AS SELECT * FROM \${quoteIdentifier(table)}\`);
  },
  // Cases that cannot pass, each with the reason.
  skip: {
    'a watcher is notified of the records that notifyOn selects': '${name} does not notify other processes; they poll',
  },
});
recordStoreSuite(test, store);
approvalSuite(test, store);
`;
