import assert from 'node:assert/strict';
import { PGlite } from '@electric-sql/pglite';
import {
  engineErrors,
  readRecordColumn,
  type SqlServer,
  type SqlServerDialect,
  STANDARD_TYPES,
  UNSUPPORTED_BY_SQL_SERVER,
} from '@svc/sdk/dialect';
import { waitUntil } from '../suites/wait-until.ts';

export const database = new PGlite();
/** The statements of all sessions. */
const log: string[] = [];
/** The text of a statement that waits until a later one renews the lease. */
export const SLOW = 'SELECT 1 AS svc_slow';

/** Names that are reserved words of some engine, and columns without a name, which some reject in a derived table. */
const NOT_PORTABLE = /(?<!EXISTS )\(SELECT 1 FROM| AS (?!svc_|why |name |dual\b)[a-z]/;
const withUpperCaseNames = (row: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name.toUpperCase(), value]));

async function open(): Promise<SqlServer> {
  return {
    server: 'Words',
    async exec(text) {
      log.push(text);
      if (!text.includes('pg_')) assert.doesNotMatch(text, NOT_PORTABLE);
      if (text === SLOW) {
        const at = log.length;
        await waitUntil(
          () => log.slice(at).some((one) => one.startsWith('UPDATE "_svc_lock"')),
          'the lease is not renewed',
        );
      }
      const { rows, affectedRows = 0 } = await database.query<Readonly<Record<string, unknown>>>(text);
      return { rows: rows.map(withUpperCaseNames), count: affectedRows };
    },
    async close() {},
  };
}

const RULES = `CASE confdeltype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' ELSE 'NO ACTION' END`;
/** An engine for `sqlServerDialect` with every word, over PostgreSQL, which accepts all of them. */
export const words: SqlServerDialect = {
  rules: { name: 'words', names: { max: 63, unit: 'bytes' }, unsupported: UNSUPPORTED_BY_SQL_SERVER },
  syntax: {
    types: {
      ...STANDARD_TYPES,
      text: 'TEXT',
      blob: 'BYTEA',
      json: 'JSON',
      uuid: 'UUID',
      enum: 'CHARACTER VARYING(63)',
    },
    now: { timestamp: 'CURRENT_TIMESTAMP' },
    currentTimestamp: 'clock_timestamp()',
    uuid: 'gen_random_uuid()',
    quoteLiteral: (value) => (typeof value === 'boolean' ? String(value) : undefined),
    alterColumn: ({ name, type, to, default: value }) => [
      `ALTER ${name} DROP DEFAULT`,
      `ALTER ${name} TYPE ${type} USING CAST(${name} AS ${type})`,
      ...(value === undefined ? [] : [`ALTER ${name} SET DEFAULT ${value}`]),
      `ALTER ${name} ${to.required ? 'SET' : 'DROP'} NOT NULL`,
    ],
    scratchTable: 'CREATE TEMPORARY TABLE',
    restrictIsNoAction: true,
    limit: (count) => `FETCH FIRST ${count} ROWS ONLY`,
    comparesRows: false,
    oneRow: '(VALUES (1)) AS dual',
    ifNotExists: false,
    textOrder: (text) => `convert_to(${text}, 'UTF8')`,
    addColumn: 'ADD',
    dropColumn: 'DROP',
    defaultFirst: true,
  },
  errors: engineErrors({
    engine: 'Words',
    messages: {
      field_exists: /column .* already exists/,
      collection_exists: /relation .* already exists/,
      collection_unknown: /relation .* does not exist/,
      data_violates: /^(duplicate key|null value|violates)|contains null values|could not create unique/,
    },
    duplicate: /^duplicate key/,
  }),
  // PGlite parses JSON.
  records: { read: (value, column) => (column.type === 'json' ? (value as null) : readRecordColumn(value, column)) },
  defaultPort: 1234,
  open,
  catalog: (only) => ({
    tables: `SELECT relname AS table_name FROM pg_class WHERE relkind = 'r' AND pg_table_is_visible(oid)
      AND relnamespace <> 'pg_catalog'::regnamespace AND relname ${only === undefined ? "NOT LIKE '\\_svc%'" : `= '${only}'`}`,
    columns: `SELECT c.relname AS "TABLE_NAME", a.attname AS column_name,
        upper(format_type(a.atttypid, a.atttypmod)) AS data_type, regexp_replace(pg_get_expr(d.adbin, d.adrelid), '::[a-z ]+$', '') AS column_default,
        NOT a.attnotnull AS is_nullable, a.attidentity <> '' AS is_identity
      FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
      LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
      WHERE c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`,
    constraints: `SELECT r.relname AS table_name, conname AS constraint_name, (SELECT attname FROM pg_attribute WHERE
        attrelid = conrelid AND attnum = conkey[n]) AS column_name, pg_get_expr(conbin, conrelid) AS check_clause,
        CASE contype WHEN 'p' THEN 'PRIMARY KEY' WHEN 'u' THEN 'UNIQUE' WHEN 'f' THEN 'FOREIGN KEY' ELSE 'CHECK' END
        AS constraint_type, t.relname AS target_table, ${RULES} AS delete_rule,
        (SELECT attname FROM pg_attribute WHERE attrelid = confrelid AND attnum = confkey[n]) AS target_column
      FROM pg_constraint JOIN pg_class r ON r.oid = conrelid LEFT JOIN pg_class t ON t.oid = confrelid,
        LATERAL generate_series(1, cardinality(conkey)) AS n WHERE contype IN ('p', 'u', 'f', 'c') ORDER BY n`,
    indexes: `SELECT t.relname AS table_name, i.relname AS index_name, attname AS column_name, indisunique AS is_unique
      FROM pg_index JOIN pg_class i ON i.oid = indexrelid JOIN pg_class t ON t.oid = indrelid
      JOIN pg_attribute a ON a.attrelid = indexrelid
      WHERE NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid) ORDER BY attnum`,
  }),
};
