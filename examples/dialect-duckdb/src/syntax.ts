import {
  engineErrors,
  quoteLiteral,
  type TextCatalogSyntax,
  UNSUPPORTED_BY_EMBEDDED,
  type ValidationRules,
} from '@svc/sdk/dialect';

const TYPES: TextCatalogSyntax['types'] = {
  integer: 'INTEGER',
  bigint: 'BIGINT',
  smallint: 'SMALLINT',
  float: 'FLOAT',
  double: 'DOUBLE',
  decimal: 'DECIMAL',
  string: 'VARCHAR',
  text: 'VARCHAR',
  boolean: 'BOOLEAN',
  date: 'DATE',
  time: 'TIME',
  datetime: 'TIMESTAMP',
  timestamp: 'TIMESTAMP WITH TIME ZONE',
  json: 'JSON',
  uuid: 'UUID',
  enum: 'ENUM',
  array: '[]',
  binary: 'BLOB',
  blob: 'BLOB',
};

export const SYNTAX: TextCatalogSyntax = {
  types: TYPES,
  typeText({ type, precision = 38, scale = 10, enumValues = [] }) {
    if (type === 'enum') return `ENUM (${enumValues.map((value) => quoteLiteral(value)).join(', ')})`;
    // DuckDB would round to 3 digits after the point.
    if (type === 'decimal') return `DECIMAL(${precision}, ${scale})`;
    return type === 'binary' || type === 'string' ? TYPES[type] : undefined;
  },
  quoteLiteral(value, { type }) {
    if (type === 'binary' || type === 'blob') return `from_base64(${quoteLiteral(value)})`;
    return type === 'float' ? `CAST(${value} AS FLOAT)` : undefined;
  },
  arrayLiteral: (elements, type) => `CAST([${elements.join(', ')}] AS ${type})`,
  now: {
    date: "CAST(now() AT TIME ZONE 'UTC' AS DATE)",
    time: "CAST(now() AT TIME ZONE 'UTC' AS TIME)",
    datetime: "now() AT TIME ZONE 'UTC'",
    timestamp: 'now()',
  },
  // now() is the time at which the transaction began.
  currentTimestamp: 'uuid_extract_timestamp(uuidv7())',
  uuid: 'uuid()',
  catalogQuery: `
    SELECT table_name AS name, sql FROM duckdb_tables() WHERE schema_name = current_schema()
      AND database_name = current_database() AND NOT temporary AND NOT starts_with(table_name, '_svc_')
    UNION ALL SELECT table_name, sql FROM duckdb_indexes() WHERE schema_name = current_schema()
      AND database_name = current_database() AND NOT starts_with(table_name, '_svc_')`,
  columnsQuery: (table) => `SELECT column_name AS name FROM duckdb_columns() WHERE schema_name = current_schema()
    AND database_name = current_database() AND table_name = ${quoteLiteral(table)}`,
  rewritesTexts: true,
  nativeEnum: true,
  alterDropsIndexes: true,
  // After a crash DuckDB 1.5 cannot replay a change of a column if a default of the table calls a function.
  alterRenamesTableOnly: true,
};

export const RULES: ValidationRules = {
  name: 'duckdb',
  names: { max: 63, unit: 'bytes' },
  unsupported: {
    ...UNSUPPORTED_BY_EMBEDDED,
    descendingIndex: { why: 'DuckDB ignores the order of an index.', next: 'Leave the order out.' },
    generatedInteger: {
      why: 'DuckDB numbers rows with sequences, which svc does not create.',
      next: 'Use a uuid with autoGenerate, or assign the numbers yourself.',
    },
    foreignKey: {
      why: 'DuckDB cannot change a table that another one references.',
      next: 'Leave the foreign key out, and find dangling references with a query.',
    },
    dropLastField: { why: 'DuckDB has no tables without columns.', next: 'Drop the table.' },
  },
};

export const ERRORS = engineErrors({
  engine: 'DuckDB',
  isEngineError: (error) => /^[A-Za-z ]+ Error: /.test(error.message),
  messages: {
    collection_exists: /^Catalog Error: Table with name .* already exists/,
    index_exists: /^Catalog Error: Index with name .* already exists/,
    field_exists: /^Catalog Error: Column with name .* already exists/,
    collection_unknown: /^Catalog Error: Table with name .* does not exist/,
    data_violates: /^(Constraint|Conversion) Error/,
    field_invalid: /Invalid type for index key/,
    database_in_use: /Could not set lock on file/,
    permission_denied: /read-only|Permission denied/,
    connection_failed: /^IO Error/,
  },
  duplicate: /^Constraint Error: Duplicate key .* violates primary key/,
});
