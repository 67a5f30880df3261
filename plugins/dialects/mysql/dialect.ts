import { isUtf8 } from 'node:buffer';
import type { Dialect } from '../../../core/dialect.ts';
import { definePlugin } from '../../../core/plugin.ts';
import { compileSql } from '../sql/compile.ts';
import { normalizeModel } from './catalog/normalize.ts';
import { createGrammar } from './compile/grammar.ts';
import { parseString, unescapeString } from './compile/literal.ts';
import { mirrors } from './compile/mirror.ts';
import { objectRules } from './compile/objects.ts';
import { scriptStatement } from './compile/script.ts';
import { type MysqlStep, mergeIntoCreation, withViolations } from './compile/step.ts';
import { columnTypes } from './compile/types.ts';
import { findViolations } from './compile/violations.ts';
import { connect } from './connection/connection.ts';
import { assertMysql2, openMysql2 } from './connection/driver.ts';
import { parseSettings } from './connection/settings.ts';
import { identify } from './connection/url.ts';
import type { Traits, Variant } from './variant.ts';

export const mysqlTraits: Traits = {
  name: 'mysql',
  title: 'MySQL',
  tableCollation: 'utf8mb4_0900_ai_ci',
  randomBytesSince: [5, 6, 17],
  replacesRoutines: false,
  dropCheck: 'DROP CHECK',
  renamedConstraintSuffixes: { foreignKey: '_ibfk_', check: '_chk_' },
  copiesForExpressionDefaults: true,
  unshownAction: 'NO ACTION',
  hasLongLiterals: false,
  hasUnenforcedChecks: true,
  hasColumnChecks: false,
  addsZeroDefault: false,
  locksForeignKeyTypes: false,
  hasDatabaseWideCheckNames: true,
  hasSequences: false,
  followsRenames: false,
  jsonRoundsDecimals: true,
  maxTimestamp: "'2038-01-19 03:14:07.999'",
  arrayCheck: (column) => `json_type(${column}) = 'ARRAY'`,
  json: {
    equals: (column, literal) => `${column} = CAST(${literal} AS JSON)`,
    orderable: (literal) => `CAST(${literal} AS JSON)`,
  },
  catalog: {
    isTable: "t.table_type = 'BASE TABLE'",
    indexExpression: 's.expression',
    isHiddenIndex: "s.is_visible = 'NO'",
    hiddenIndex: 'INVISIBLE',
    // A join of the two views takes time with the square of the checks, and a database has each name of a check once.
    checksQuery: `SELECT MAX(t) AS t, n, MAX(e) AS e, MAX(native) AS native, 0 AS of_column FROM (
  SELECT table_name AS t, constraint_name AS n, NULL AS e, CASE WHEN enforced = 'NO' THEN 'NOT ENFORCED' END AS native
  FROM information_schema.table_constraints WHERE table_schema = DATABASE() AND constraint_type = 'CHECK'
  UNION ALL SELECT NULL, constraint_name, check_clause, NULL
  FROM information_schema.check_constraints WHERE constraint_schema = DATABASE()) AS checks GROUP BY n`,
    spatialAttribute: "CONCAT('SRID ', c.srs_id)",
    databaseInDefault: 'NULL',
    expressionsLoseCharacters: false,
    decodeExpression,
    parseDefault(value, extra) {
      if (value === null) return undefined;
      return /\bDEFAULT_GENERATED\b/i.test(extra) ? { expression: decodeExpression(value) } : { literal: value };
    },
    parseShownDefault(text) {
      const string = parseString(text);
      if (string !== undefined) return { literal: string };
      return { expression: text.startsWith('(') ? text.slice(1, -1) : text };
    },
  },
};

/** The catalog escapes an expression a second time, and returns each byte of its UTF-8 as a character. */
function decodeExpression(expression: string): string {
  const bytes = Buffer.from(expression, 'latin1');
  const isBytes = bytes.toString('latin1') === expression && isUtf8(bytes);
  return unescapeString(isBytes ? bytes.toString() : expression);
}

export const mysqlVariant: Variant = {
  name: 'mysql',
  title: 'MySQL',
  other: { name: 'mariadb', title: 'MariaDB' },
  schemes: ['mysql:'],
  matchesVersion: (version) => !/mariadb/i.test(version),
  // The first with the collation of record keys and with enforced checks.
  minimumVersion: [8, 0, 17],
  binaryCollation: 'utf8mb4_0900_bin',
  open: openMysql2,
  traits: mysqlTraits,
};

/** MySQL 8.0 and later. */
export const mysql: Dialect<MysqlStep> = {
  ...createDialect(mysqlVariant),
  assertDriver: (_url, root) => assertMysql2(root),
};

export function createDialect(variant: Variant): Dialect<MysqlStep> {
  const { name, title, traits, schemes } = variant;
  const plain = createGrammar(traits);
  const grammar = { ...plain, ...mirrors(plain, traits) };
  return {
    name,
    types: columnTypes,
    capabilities: {
      transactionalDdl: false,
      mirrorsFields: true,
      names: grammar.names,
      unsupported: grammar.unsupported,
    },
    compile(operation, before) {
      const [first, ...rest] = compileSql(grammar, operation, before);
      const violations = findViolations(grammar, traits, operation, before);
      return first ? [violations.length > 0 ? withViolations(first, violations) : first, ...rest] : [];
    },
    mergeIntoCreation,
    objects: objectRules(traits),
    normalize: normalizeModel,
    scriptStatement,
    identify: (url) => identify(url, schemes),
    connect: async (url, options) => connect(variant, url, parseSettings(options, title)),
  };
}

export default definePlugin({
  name: 'mysql',
  apply(kernel) {
    kernel.dialects.register('mysql', mysql);
    kernel.lintRules.register('mysql', { dialects: ['mysql'], load: async () => (await import('./lint.ts')).default });
  },
});
