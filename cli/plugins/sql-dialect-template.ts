import { PLUGIN_API_VERSION } from '../../core/kernel.ts';
import type { FieldType } from '../../core/schema/model.ts';
import { type PluginFiles, propertyName } from './templates.ts';

/** A dialect from the words of `@svc/sdk/dialect`, for an engine with one file per database. */
export function sqlDialectFiles(name: string, identifier: string): PluginFiles {
  return {
    description: `dialect for ${name}: schemas, records and approvals`,
    configExample: `databases: { main: { dialect: '${name}', url: '${name}://./shop.db' } },`,
    steps: [
      '`openDriver` in `src/database.ts`: the driver, which is also a dependency in `package.json`',
      '`catalogQuery`, `columnsQuery` and the types in `src/syntax.ts`',
      'the messages in `src/errors.ts`',
      'what the engine lacks: `unsupported` in `src/syntax.ts`, with a reason and an alternative',
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
export const ${identifier} = embeddedDialect({ rules, syntax, errors, open: openDatabase });

export default definePlugin({
  name: '${name}',
  api: ${PLUGIN_API_VERSION},
  apply: (kernel) => kernel.dialects.register('${name}', ${identifier}),
});

declare module '@svc/sdk' {
  interface Dialects {
    ${propertyName(name)}: true;
  }
}
`;

const databaseSource = (name: string): string => `import type { EmbeddedDatabase } from '@svc/sdk/dialect';

/** What svc needs of the driver. */
interface Driver {
  readonly version: string;
  /** Runs one statement. \`changed\` is the number of rows that it inserted, changed or deleted. */
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
  // The engine's type of each field type. The text for \`array\` follows that of the element type.
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
    return todo('catalogQuery: the CREATE statements of tables and indexes, with the columns "name" and "sql"');
  },
  columnsQuery: (table) => todo(\`columnsQuery: the columns of \${table}, with the column "name"\`),
  // If the engine needs it: typeText, quoteLiteral, arrayLiteral, danglingReferences, invalidValueCondition,
  // rewritesTexts, nativeEnum, alterDropsIndexes, alterRenamesTableOnly.
};

export const rules: ValidationRules = {
  name: '${name}',
  names: { max: 63, unit: 'bytes' },
  // What the engine lacks, each with a reason and an alternative: check: { why: '…', next: '…' }.
  unsupported: { ...UNSUPPORTED_BY_EMBEDDED },
};
`;

const errorsSource = (name: string): string => `import { engineErrors } from '@svc/sdk/dialect';

export const errors = engineErrors({
  engine: '${name}',
  // To do: recognize the errors of the driver. Any other error is a bug, and keeps its stack.
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

/** Creates an empty database for one case. */
async function createDatabase() {
  const folder = mkdtempSync(join(tmpdir(), 'svc-${name}-'));
  return { url: \`${name}://\${folder}/test.db\`, drop: async () => rmSync(folder, { recursive: true, force: true }) };
}

const store: StoreUnderTest = {
  name: '${name}',
  async createStore() {
    const { url, drop } = await createDatabase();
    return { connect: () => ${identifier}.connect(url, {}), drop };
  },
};

dialectSuite(test, {
  ...sqlSyntax((column) => \`"\${column.replaceAll('"', '""')}"\`),
  name: '${name}',
  dialect: ${identifier},
  // Other processes, which the suite starts and kills, load the dialect from here.
  module: new URL(\`../src/index\${extname(import.meta.url)}\`, import.meta.url),
  createDatabase,
  // To do: add something to a table that a model cannot express: addUnsupportedObject(connection, table) { … }
  // Cases that cannot pass, each with the reason: skip: { '<case>': '<reason>' },
});
recordStoreSuite(test, store);
approvalSuite(test, store);
`;
