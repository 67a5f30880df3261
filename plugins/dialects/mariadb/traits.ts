import type { CatalogDefault } from '../mysql/default.ts';
import { stringOf } from '../mysql/string-literal.ts';
import type { Traits } from '../mysql/traits.ts';

export const mariadbTraits: Traits = {
  name: 'mariadb',
  title: 'MariaDB',
  collation: 'utf8mb4_unicode_ci',
  since: [{ version: [10, 8, 0], clause: /^ADD (UNIQUE )?INDEX .* DESC[,)]/s, what: 'an index in descending order' }],
  randomSince: [10, 10, 0],
  dropCheck: 'DROP CONSTRAINT',
  copiesForExpressions: false,
  ownsColumnChecks: true,
  inventsZero: true,
  fixesKeyTypes: true,
  sharesCheckNames: false,
  carries: { foreignKey: '_ibfk_' },
  block: (statements) => `BEGIN NOT ATOMIC\n${statements}\n;END`,
  // From 11.5 on they are numbers of 32 bits without a sign, and FROM_UNIXTIME knows as many.
  lastTimestamp: "IF(FROM_UNIXTIME(2147483648) IS NULL, '2038-01-19 03:14:07.999', '2106-02-07 06:28:15.999')",
  // With json_valid: a check of ours stands in place of the one that the type would have.
  arrayCheck: (column) => `json_valid(${column}) and json_type(${column}) = 'ARRAY'`,
  json: { same: (column, literal) => `json_equals(${column}, ${literal})`, since: [10, 7, 0] },
  catalog: {
    oddIndex:
      "CASE WHEN s.ignored = 'YES' THEN 'is ignored' WHEN s.index_type = 'HASH' THEN 'is a hash of long values' END",
    checks: `SELECT k.table_name AS t, k.constraint_name AS n, k.check_clause AS e, NULL AS odd, k.level = 'Column' AS own
  FROM information_schema.check_constraints k WHERE k.constraint_schema = DATABASE()`,
    // Of no other columns that view is asked: it opens every table.
    spatial: `CASE WHEN c.data_type IN ('geometry', 'point', 'linestring', 'polygon', 'multipoint', 'multilinestring', 'multipolygon', 'geometrycollection')
      THEN (SELECT CONCAT('REF_SYSTEM_ID=', NULLIF(g.srid, 0)) FROM information_schema.geometry_columns g
        WHERE g.g_table_schema = DATABASE() AND g.g_table_name = c.table_name AND g.g_geometry_column = c.column_name) END`,
    marksExpressions: true,
    expression: (text) => text,
    default: (value) => (value === null ? undefined : read(value)),
    shownDefault: read,
  },
};

function read(value: string): CatalogDefault | undefined {
  if (value === 'NULL') return undefined;
  const string = stringOf(value);
  if (string !== undefined) return { literal: string };
  return /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(value) ? { literal: value } : { expression: value };
}
