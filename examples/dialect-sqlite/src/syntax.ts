import { quoteLiteral, type TextCatalogSyntax, UNSUPPORTED_BY_SQL, type ValidationRules } from '@svc/sdk/dialect';

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
  now: { date: 'date()', time: "strftime('%H:%M:%f')", datetime: NOW, timestamp: NOW },
  currentTimestamp: NOW,
  uuid: "lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-8' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))",
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
    ...UNSUPPORTED_BY_SQL,
    temporaryTable: { why: 'It would be dropped with the connection.', next: 'Leave "temporary" out.' },
    unloggedTable: { why: 'SQLite journals every table.', next: 'Leave "unlogged" out.' },
    concurrentIndex: { why: 'SQLite has one writer at a time.', next: 'Leave "concurrently" out.' },
    generatedInteger: {
      why: 'SQLite numbers rows, not fields.',
      next: 'Use a uuid with autoGenerate, or assign the numbers yourself.',
    },
  },
};
