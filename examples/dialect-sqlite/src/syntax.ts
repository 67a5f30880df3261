import {
  engineErrors,
  quoteLiteral,
  type TextCatalogSyntax,
  UNSUPPORTED_BY_EMBEDDED,
  type ValidationRules,
} from '@svc/sdk/dialect';

const NOW = "strftime('%Y-%m-%dT%H:%M:%fZ')";
const NUMBERS = /^(integer|bigint|smallint|float|double|decimal|boolean)$/;

export const SYNTAX: TextCatalogSyntax = {
  // SQLite stores a type's name as written, and derives the storage of values from it ("type affinity").
  types: {
    integer: 'INTEGER',
    bigint: 'BIGINT',
    smallint: 'SMALLINT',
    float: 'FLOAT',
    double: 'DOUBLE',
    decimal: 'DECIMAL',
    string: 'VARCHAR',
    text: 'TEXT',
    boolean: 'BOOLEAN',
    date: 'DATE',
    time: 'TIME',
    datetime: 'DATETIME',
    timestamp: 'TIMESTAMP',
    json: 'JSON TEXT',
    uuid: 'UUID TEXT',
    enum: 'ENUM TEXT',
    array: 'ARRAY TEXT',
    binary: 'BINARY BLOB',
    blob: 'BLOB',
  },
  // Common names in tables that svc did not create.
  typeSynonyms: { INT: 'integer', REAL: 'double', NUMERIC: 'decimal', NVARCHAR: 'string' },
  now: { date: 'date()', time: "strftime('%H:%M:%f')", datetime: NOW, timestamp: NOW },
  currentTimestamp: NOW,
  uuid: "lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-8' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))",
  catalogQuery: `SELECT tbl_name AS name, sql FROM sqlite_schema WHERE sql IS NOT NULL
    AND substr(tbl_name, 1, 5) <> '_svc_' AND substr(tbl_name, 1, 7) <> 'sqlite_'`,
  columnsQuery: (table) => `SELECT name FROM pragma_table_info(${quoteLiteral(table)})`,
  danglingReferences: (table) =>
    `SELECT 'A row references a missing row of "' || parent || '".' AS why FROM pragma_foreign_key_check(${quoteLiteral(table)}) LIMIT 1`,
  invalidValueCondition: (column, type) => (NUMBERS.test(type) ? `typeof(${column}) IN ('text', 'blob')` : undefined),
};

export const RULES: ValidationRules = {
  name: 'sqlite',
  names: {
    max: 63,
    unit: 'bytes',
    problem: (name) => (/^sqlite_/i.test(name) ? 'Names that begin with sqlite_ are reserved for SQLite.' : undefined),
  },
  unsupported: {
    ...UNSUPPORTED_BY_EMBEDDED,
    dropLastField: { why: 'SQLite has no tables without columns.', next: 'Drop the table.' },
    generatedInteger: {
      why: 'SQLite numbers rows, not fields.',
      next: 'Use a uuid with autoGenerate, or assign the numbers yourself.',
    },
  },
};

export const ERRORS = engineErrors({
  engine: 'SQLite',
  isEngineError: (error) => error.name === 'SQLite3Error' || ('code' in error && error.code === 'ERR_SQLITE_ERROR'),
  messages: {
    collection_exists: /^table .* already exists/s,
    index_exists: /^index .* already exists/s,
    field_exists: /^duplicate column name/,
    collection_unknown: /^no such table/,
    data_violates: /constraint failed/,
    database_in_use: /database is locked/,
    connection_failed: /unable to open|not a database/,
    permission_denied: /readonly/,
  },
  duplicate: /^UNIQUE constraint failed/,
});
