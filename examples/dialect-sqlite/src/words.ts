import { type KeptWords, OTHER_OPTIONS, type Rules, text } from '@svc/sdk/dialect';

const MOMENT = "strftime('%Y-%m-%dT%H:%M:%fZ')";
const NUMBERS = /^(integer|bigint|smallint|float|double|decimal|boolean)$/;

export const WORDS: KeptWords = {
  // SQLite keeps the name of a type as it was written, and decides by what is in it how values are stored.
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
  now: { date: 'date()', time: "strftime('%H:%M:%f')", datetime: MOMENT, timestamp: MOMENT },
  clock: MOMENT,
  uuid: "lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-8' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))",
  dangling: (table) =>
    `SELECT 'A row points at nothing in "' || parent || '".' AS why FROM pragma_foreign_key_check(${text(table)}) LIMIT 1`,
  misfit: (column, type) => (NUMBERS.test(type) ? `typeof(${column}) IN ('text', 'blob')` : undefined),
};

export const RULES: Rules = {
  name: 'sqlite',
  names: {
    most: 63,
    of: 'bytes',
    problem: (name) =>
      /^sqlite_/i.test(name) ? 'Names that begin with sqlite_ are kept for SQLite itself.' : undefined,
  },
  refuses: {
    ...OTHER_OPTIONS,
    temporaryTable: { why: 'It would be gone with the connection.', next: 'Leave "temporary" out.' },
    unloggedTable: { why: 'Every table of SQLite is in its journal.', next: 'Leave "unlogged" out.' },
    concurrentIndex: { why: 'SQLite has one writer at a time.', next: 'Leave "concurrently" out.' },
    generatedInteger: {
      why: 'SQLite numbers rows, not fields.',
      next: 'Use a uuid with autoGenerate, or give the numbers yourself.',
    },
  },
};
