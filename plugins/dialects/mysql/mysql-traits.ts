import { isUtf8 } from 'node:buffer';
import { stringOf, unescaped } from './string-literal.ts';
import type { Traits } from './traits.ts';

export const mysqlTraits: Traits = {
  name: 'mysql',
  title: 'MySQL',
  collation: 'utf8mb4_0900_ai_ci',
  since: [],
  randomSince: [5, 6, 17],
  dropCheck: 'DROP CHECK',
  carries: { foreignKey: '_ibfk_', check: '_chk_' },
  copiesForExpressions: true,
  ownsColumnChecks: false,
  inventsZero: false,
  fixesKeyTypes: false,
  sharesCheckNames: true,
  lastTimestamp: "'2038-01-19 03:14:07.999'",
  arrayCheck: (column) => `json_type(${column}) = 'ARRAY'`,
  json: {
    same: (column, literal) => `${column} = CAST(${literal} AS JSON)`,
    ordered: (literal) => `CAST(${literal} AS JSON)`,
  },
  catalog: {
    oddIndex:
      "CASE WHEN s.expression IS NOT NULL THEN 'is on an expression' WHEN s.is_visible = 'NO' THEN 'is invisible' END",
    checks: `SELECT c.table_name AS t, c.constraint_name AS n, k.check_clause AS e, CASE WHEN c.enforced = 'NO' THEN 'is not enforced' END AS odd, 0 AS own
  FROM information_schema.table_constraints c JOIN information_schema.check_constraints k
  ON k.constraint_schema = c.constraint_schema AND k.constraint_name = c.constraint_name
  WHERE c.table_schema = DATABASE() AND c.constraint_type = 'CHECK'`,
    spatial: "CONCAT('SRID ', c.srs_id)",
    marksExpressions: false,
    expression: written,
    default(value, extra) {
      if (value === null) return undefined;
      return /\bDEFAULT_GENERATED\b/i.test(extra) ? { expression: written(value) } : { literal: value };
    },
    shownDefault(text) {
      const string = stringOf(text);
      if (string !== undefined) return { literal: string };
      return { expression: text.startsWith('(') ? text.slice(1, -1) : text };
    },
  },
};

/** The catalog escapes an expression once more than it was written, and gives each byte of its UTF-8 as a character. */
function written(expression: string): string {
  const bytes = Buffer.from(expression, 'latin1');
  const isBytes = bytes.toString('latin1') === expression && isUtf8(bytes);
  return unescaped(isBytes ? bytes.toString() : expression);
}
