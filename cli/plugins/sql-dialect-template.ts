import type { FieldType } from '../../core/schema/model.ts';
import { dialectUnderTest, embeddedStore, type PluginFiles, registrationOfDialect } from './templates.ts';

/** A dialect from the words of `@svc/sdk/dialect`, for an engine with one file per database. */
export function sqlDialectFiles(name: string, identifier: string): PluginFiles {
  return {
    description: `dialect for ${name}: schemas, records and approvals`,
    configExample: `databases: { main: { dialect: '${name}', url: '${name}://./shop.db' } },`,
    steps: [
      '`openDriver` in `src/database.ts`: the driver, which is also a dependency in `package.json`. All statements must reach one session of the engine',
      '`catalogQuery`, `columnsQuery`, the types, `now` and `uuid` in `src/syntax.ts`',
      '`begin` and `rebuilding` in `src/index.ts`. If DROP TABLE fires ON DELETE in the engine, changing a table deletes the rows that reference it without `rebuilding`',
      '`danglingReferences` and `invalidValueCondition` in `src/syntax.ts`, if the engine does not check these itself',
      '`isEngineError` and the messages in `src/errors.ts`',
      'what the engine lacks: `unsupported` in `src/syntax.ts`, with a reason and an alternative, and reserved names: `names.problem`',
      '`syntax.now`, `notEnforced`, `addUnsupportedObject` and the skipped cases in `test/suite.test.ts`',
    ],
    files: {
      'src/index.ts': indexSource(name, identifier),
      'src/database.ts': databaseSource(name),
      'src/syntax.ts': syntaxSource(name),
      'src/errors.ts': errorsSource(name),
      'test/suite.test.ts': suiteTest(name, identifier),
    },
  };
}

const indexSource = (name: string, identifier: string): string => `import { definePlugin } from '@svc/sdk';
import { embeddedDialect } from '@svc/sdk/dialect';
import { openDatabase } from './database.ts';
import { errors } from './errors.ts';
import { rules, syntax } from './syntax.ts';

// An engine with a server uses \`textCatalogDialect\`, with \`identify\` and an \`open\` that returns a SqlDriver.
export const ${identifier} = embeddedDialect({
  rules,
  syntax,
  errors,
  // If a database is a folder: names of its files, also while it is created. A folder of something else is then refused.
  // folderFiles: /^(CURRENT|LOCK|LOG)$/,
  open: openDatabase,
  // Starts a transaction that excludes other writers; default BEGIN.
  // begin: 'BEGIN IMMEDIATE',
  // If DROP TABLE fires ON DELETE: the statements that switch that off. Without it, changing a parent deletes its children.
  // rebuilding: { before: 'PRAGMA foreign_keys = OFF', after: 'PRAGMA foreign_keys = ON' },
});

${registrationOfDialect(name, identifier)}
`;

const databaseSource = (name: string): string => `import type { EmbeddedDatabase } from '@svc/sdk/dialect';

/** What svc needs of the driver. */
interface Driver {
  readonly version: string;
  /**
   * Runs one statement, always in the same session: BEGIN, COMMIT and ROLLBACK arrive here too. \`changed\` is the number of
   * rows that it inserted, changed or deleted, 0 if it matched none. In rows, bytes are a Uint8Array.
   */
  run(sql: string): Promise<{ readonly rows: readonly Readonly<Record<string, unknown>>[]; readonly changed: number }>;
  close(): Promise<void>;
}

export async function openDatabase(file: string): Promise<EmbeddedDatabase> {
  const driver = await openDriver(file);
  return {
    server: \`${name} \${driver.version}\`,
    async exec(sql) {
      const { rows, changed } = await driver.run(sql);
      return { rows, count: changed };
    },
    close: () => driver.close(),
  };
}

/** Loads the driver, and opens the file or creates it. */
async function openDriver(file: string): Promise<Driver> {
  throw new Error(\`To do in src/database.ts: openDriver: open \${file} with the driver of ${name}\`);
}
`;

const TYPES: Readonly<Record<FieldType, string>> = {
  integer: 'INTEGER',
  bigint: 'BIGINT',
  smallint: 'SMALLINT',
  float: 'REAL',
  double: 'DOUBLE PRECISION',
  decimal: 'DECIMAL',
  string: 'VARCHAR',
  text: 'TEXT',
  boolean: 'BOOLEAN',
  date: 'DATE',
  time: 'TIME',
  datetime: 'TIMESTAMP',
  timestamp: 'TIMESTAMP WITH TIME ZONE',
  json: 'JSON',
  uuid: 'UUID',
  enum: 'ENUM',
  array: 'ARRAY',
  binary: 'VARBINARY',
  blob: 'BLOB',
};

const syntaxSource = (
  name: string,
): string => `import { type TextCatalogSyntax, UNSUPPORTED_BY_EMBEDDED, type ValidationRules } from '@svc/sdk/dialect';

/** Marks unfinished work; the suites in test/ fail with the message. */
function todo(what: string): never {
  throw new Error(\`To do in src/syntax.ts: \${what}\`);
}

export const syntax: TextCatalogSyntax = {
  // The engine's type of each field type. The text for \`array\` follows that of the element type. Where the name of a type decides
  // what a column converts, as in SQLite, it must keep texts: there, an enum is ENUM TEXT.
  types: {
${Object.entries(TYPES)
  .map(([type, text]) => `    ${type}: '${text}',`)
  .join('\n')}
  },
  // Expressions for a default of 'now', for a moment in a record, and for a new UUID.
  now: { date: 'CURRENT_DATE', time: 'CURRENT_TIME', datetime: 'CURRENT_TIMESTAMP', timestamp: 'CURRENT_TIMESTAMP' },
  currentTimestamp: 'CURRENT_TIMESTAMP',
  uuid: 'gen_random_uuid()',
  get catalogQuery(): string {
    return todo('catalogQuery: the CREATE statements of tables, indexes, triggers, …, with the columns "name" and "sql"');
  },
  columnsQuery: (table) => todo(\`columnsQuery: the columns of \${table}, with the column "name"\`),
  // If the engine does not check foreign keys while a table is recreated:
  // danglingReferences: (table) => \`SELECT 'A row references a missing row.' AS why FROM … LIMIT 1\`,
  // If it stores values that are not valid for the type of the column:
  // invalidValueCondition: (column, type) => (type === 'integer' ? \`typeof(\${column}) = 'text'\` : undefined),
  // Other names of types, in tables that svc did not create:
  // typeSynonyms: { INT: 'integer' },
  // Types and literals that depend on the field:
  // typeText: ({ type, precision = 38 }) => (type === 'decimal' ? \`DECIMAL(\${precision})\` : undefined),
  // quoteLiteral: (value, { type }) => (type === 'blob' ? \`from_base64('\${value}')\` : undefined),
  // arrayLiteral: (elements, type) => \`CAST([\${elements.join(', ')}] AS \${type})\`,
  // It changes the CREATE statements that it returns:
  // rewritesTexts: true,
  // It has enum types, so that no check is needed:
  // nativeEnum: true,
  // It rejects ALTER TABLE while the table has indexes:
  // alterDropsIndexes: true,
  // ALTER TABLE can only rename the table:
  // alterRenamesTableOnly: true,
};

export const rules: ValidationRules = {
  name: '${name}',
  // Names that are reserved: problem: (name) => (name.startsWith('sqlite_') ? 'It is reserved.' : undefined).
  names: { max: 63, unit: 'bytes' },
  // What the engine lacks, each with a reason and an alternative: check: { why: '…', next: '…' }.
  unsupported: { ...UNSUPPORTED_BY_EMBEDDED },
};
`;

const errorsSource = (name: string): string => `import { engineErrors } from '@svc/sdk/dialect';

export const errors = engineErrors({
  engine: '${name}',
  // To do: recognize the errors of the driver. Any other error is reported as a bug of this dialect. Without isEngineError,
  // every error is one of the engine.
  isEngineError: (error) => !error.message.startsWith('To do in '),
  // To do: the engine's words.
  messages: {
    collection_exists: /table .*already exists/i,
    index_exists: /index .*already exists/i,
    field_exists: /column .*already exists|duplicate column/i,
    collection_unknown: /table .*does not exist|no such table/i,
    data_violates: /constraint/i,
    database_in_use: /locked/i,
    connection_failed: /unable to open|not a database/i,
  },
  duplicate: /duplicate key|unique constraint/i,
});
`;

const suiteTest = (name: string, identifier: string): string => `import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { test } from 'node:test';
import { approvalSuite, dialectSuite, recordStoreSuite, type StoreUnderTest, sqlSyntax } from '@svc/sdk/testing';
import { ${identifier} } from '../src/index.ts';

${embeddedStore(name, identifier)}

const sql = sqlSyntax((column) => \`"\${column.replaceAll('"', '""')}"\`);

// One case: npm run build && node --test --test-name-pattern='<part of its name>' dist/test/suite.test.js
dialectSuite(test, {
  ...sql,
  // To do: the engine's expression for the current time.
  syntax: { ...sql.syntax, now: 'now()' },
${dialectUnderTest(name, identifier)}
  // To do: add something to a table that a model cannot express: addUnsupportedObject(connection, table) { … }
  // Rules of a field that the engine does not apply: notEnforced: { length: '${name} does not limit the length of a value' },
  // Cases that cannot pass, each with the reason.
  skip: {
    'a watcher is notified of the records that notifyOn selects': '${name} does not notify other processes; they poll',
  },
});
recordStoreSuite(test, store);
approvalSuite(test, store);
`;
