import type { Dialect } from '../../../core/dialect.ts';
import { definePlugin } from '../../../core/plugin.ts';
import type { CatalogDefault } from '../mysql/catalog/catalog-table.ts';
import { parseString } from '../mysql/compile/literal.ts';
import type { MysqlStep } from '../mysql/compile/step.ts';
import { createDialect } from '../mysql/dialect.ts';
import type { Traits, Variant } from '../mysql/variant.ts';
import { openMariadb } from './driver.ts';

export const mariadbTraits: Traits = {
  name: 'mariadb',
  title: 'MariaDB',
  tableCollation: 'utf8mb4_unicode_ci',
  descendingIndexesSince: [10, 8, 0],
  randomBytesSince: [10, 10, 0],
  replacesRoutines: true,
  dropCheck: 'DROP CONSTRAINT',
  copiesForExpressionDefaults: false,
  unshownAction: 'RESTRICT',
  hasLongLiterals: true,
  hasUnenforcedChecks: false,
  hasColumnChecks: true,
  addsZeroDefault: true,
  locksForeignKeyTypes: true,
  hasDatabaseWideCheckNames: false,
  hasSequences: true,
  followsRenames: true,
  renamedConstraintSuffixes: { foreignKey: '_ibfk_' },
  compoundStatement: (statements) => `BEGIN NOT ATOMIC\n${statements}\n;END`,
  // Since 11.5 they are unsigned 32-bit numbers, and FROM_UNIXTIME has the same range.
  jsonRoundsDecimals: false,
  maxTimestamp: "IF(FROM_UNIXTIME(2147483648) IS NULL, '2038-01-19 03:14:07.999', '2106-02-07 06:28:15.999')",
  // Includes json_valid, because a check in the definition replaces the one that the JSON type adds.
  arrayCheck: (column) => `json_valid(${column}) and json_type(${column}) = 'ARRAY'`,
  json: { equals: (column, literal) => `json_equals(${column}, ${literal})`, equalsSince: [10, 7, 0] },
  catalog: {
    // One without columns for its period, and whose columns all have a history.
    isTable: `(t.table_type = 'BASE TABLE' OR (t.table_type = 'SYSTEM VERSIONED' AND NOT EXISTS (SELECT 1 FROM information_schema.columns v
      WHERE v.table_schema = t.table_schema AND v.table_name = t.table_name
        AND (v.extra LIKE '%WITHOUT SYSTEM VERSIONING%' OR v.generation_expression IN ('ROW START', 'ROW END')))))`,
    indexExpression: 'NULL',
    isHiddenIndex: "s.ignored = 'YES'",
    hiddenIndex: 'IGNORED',
    checksQuery: `SELECT k.table_name AS t, k.constraint_name AS n, k.check_clause AS e, NULL AS native, k.level = 'Column' AS of_column
  FROM information_schema.check_constraints k WHERE k.constraint_schema = DATABASE()`,
    // Only read for spatial columns: that view opens every table.
    spatialAttribute: `CASE WHEN c.data_type IN ('geometry', 'point', 'linestring', 'polygon', 'multipoint', 'multilinestring', 'multipolygon', 'geometrycollection')
      THEN (SELECT CONCAT('REF_SYSTEM_ID=', NULLIF(g.srid, 0)) FROM information_schema.geometry_columns g
        WHERE g.g_table_schema = DATABASE() AND g.g_table_name = c.table_name AND g.g_geometry_column = c.column_name) END`,
    databaseInDefault: "CASE WHEN c.column_default LIKE '%val(%' THEN DATABASE() END",
    expressionsLoseCharacters: true,
    decodeExpression: (text) => text,
    parseDefault: (value) => (value === null ? undefined : parseDefault(value)),
    parseShownDefault: parseDefault,
  },
};

export const mariadbVariant: Variant = {
  name: 'mariadb',
  title: 'MariaDB',
  other: { name: 'mysql', title: 'MySQL' },
  schemes: ['mariadb:', 'mysql:'],
  matchesVersion: (version) => /mariadb/i.test(version),
  minimumVersion: [10, 6, 0],
  binaryCollation: 'utf8mb4_nopad_bin',
  open: openMariadb,
  traits: mariadbTraits,
};

/** MariaDB 10.6 and later. */
export const mariadb: Dialect<MysqlStep> = createDialect(mariadbVariant);

function parseDefault(value: string): CatalogDefault | undefined {
  if (value === 'NULL') return undefined;
  const string = parseString(value);
  if (string !== undefined) return { literal: string };
  return /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(value) ? { literal: value, isNumber: true } : { expression: value };
}

export default definePlugin({
  name: 'mariadb',
  apply(kernel) {
    kernel.dialects.register('mariadb', mariadb);
    kernel.lintRules.register('mariadb', {
      dialects: ['mariadb'],
      load: async () => (await import('../mysql/lint.ts')).default,
    });
  },
});
