import type { Statement } from '../../../../core/dialect.ts';
import type { CheckConstraint, Constraint, ForeignKey } from '../../../../core/schema/model.ts';
import { derivedName } from '../../../../core/schema/names.ts';
import { constraintDefinition } from '../../sql/compile.ts';
import { SCHEMA_PLACEHOLDER, sqlStatement } from '../../sql/statement.ts';
import { alter, grammar } from './grammar.ts';
import { quoteLiteral } from './literal.ts';
import { qualified, qualifiedIn, quoteIdentifier } from './names.ts';
import { doBlock, oidOf, tableOid } from './plpgsql-guards.ts';
import type { PostgresqlStep } from './step.ts';

/*
 * Changes in several statements. Those that read or write all rows are outside a transaction and under a lock that lets
 * others read and write; a transaction for the rest is short.
 */

/** The connection puts its schema here, in a `Statement.check`, which the journal stores as a text. */
export const SCHEMA_COMMENT = '/*svc:schema*/';

export const addUnchecked = (table: string, constraint: Constraint): Statement<PostgresqlStep> =>
  alter(table, [`ADD ${constraintDefinition(grammar, constraint)} NOT VALID`]);

/** The server does not look at the rows. */
export const isUnchecked = ({ native = '' }: Constraint): boolean => /\bNOT (?:VALID|ENFORCED)\b/i.test(native);

/** Checks the rows for a constraint that was added NOT VALID. */
export const validate = (table: string, constraint: string): Statement<PostgresqlStep> => ({
  ...alter(table, [`VALIDATE CONSTRAINT ${quoteIdentifier(constraint)}`]),
  transactional: false,
  idempotent: true,
});

/**
 * Fails as `validate` would, before anything has changed. Rows that come later are still checked by `validate`, and so are those that
 * the user may not read, or that a policy hides: the server reads them all. Where it does not, `isAll` refuses to leave any out.
 */
export function assertNoRow(
  table: string,
  query: string,
  violation: Violation,
  { isAll = false } = {},
): Statement<PostgresqlStep> {
  const facts = Object.entries(violation).map(([name, value]) => `${name} = ${quoteLiteral(value)}`);
  const raise = `RAISE EXCEPTION USING ${[...facts, `TABLE = ${quoteLiteral(table)}`].join(', ')}`;
  const hidden = isAll ? '' : ' EXCEPTION WHEN insufficient_privilege THEN NULL;';
  const check = sqlStatement(
    doBlock(`BEGIN SET LOCAL row_security = off; IF EXISTS (${query}) THEN ${raise}; END IF;${hidden} END`),
  );
  return {
    ...check,
    run: { ...check.run, onlyChecks: true },
    text: `${query.replaceAll(SCHEMA_PLACEHOLDER, '')} LIMIT 1 -- finds no row`,
    transactional: false,
    idempotent: true,
  };
}

/** Those of children too, unless `table` has ONLY before it. */
export const rowsWhere = (table: string, condition: string): string => `SELECT FROM ${table} WHERE ${condition}`;

/** What the server says of such a row. */
interface Violation {
  readonly ERRCODE: string;
  readonly MESSAGE: string;
  readonly CONSTRAINT?: string;
  readonly COLUMN?: string;
}

export function assertCheck(
  table: string,
  { name, expression, native = '' }: Pick<CheckConstraint, 'name' | 'expression' | 'native'>,
): Statement<PostgresqlStep> {
  const only = /\bNO INHERIT\b/i.test(native) ? 'ONLY ' : '';
  return assertNoRow(table, rowsWhere(`${only}${qualified(table)}`, `NOT (${expression})`), {
    ERRCODE: '23514',
    MESSAGE: `check constraint "${name}" of relation "${table}" is violated by some row`,
    CONSTRAINT: name,
  });
}

/** Where the rows are that a foreign key is about, if they are not yet under the names that it has. */
export interface ReferenceRows {
  /** The referencing rows, as a part of FROM. */
  readonly rows: string;
  /** Undefined for a table without rows. */
  readonly referenced: string | undefined;
}

export function assertReference(
  table: string,
  { name, columns, references, native = '' }: Pick<ForeignKey, 'name' | 'columns' | 'references' | 'native'>,
  // Children do not inherit a foreign key.
  { rows, referenced }: ReferenceRows = { rows: `ONLY ${qualified(table)}`, referenced: qualified(references.table) },
): Statement<PostgresqlStep> {
  const pairs = columns.map((column, at) => {
    const target = references.columns[at] ?? column;
    return `r.${quoteIdentifier(target)} = t.${quoteIdentifier(column)}`;
  });
  const present = columns.map((column) => `t.${quoteIdentifier(column)} IS NOT NULL`);
  const has = /^MATCH FULL\b/i.test(native) ? `(${present.join(' OR ')})` : present.join(' AND ');
  const missing =
    referenced === undefined ? 'true' : `NOT EXISTS (${rowsWhere(`${referenced} AS r`, pairs.join(' AND '))})`;
  return assertNoRow(table, rowsWhere(`${rows} AS t`, `${has} AND ${missing}`), {
    ERRCODE: '23503',
    MESSAGE: `insert or update on table "${table}" violates foreign key constraint "${name}"${referenced === undefined ? `: the table "${references.table}" is created first, without rows` : ''}`,
    CONSTRAINT: name,
  });
}

export const assertNotNull = (table: string, field: string): Statement<PostgresqlStep> =>
  assertNoRow(table, rowsWhere(qualified(table), `${quoteIdentifier(field)} IS NULL`), {
    ERRCODE: '23502',
    MESSAGE: `column "${field}" of relation "${table}" contains null values`,
    COLUMN: field,
  });

export function assertDistinct(table: string, field: string): Statement<PostgresqlStep> {
  const column = quoteIdentifier(field);
  const repeated = `${rowsWhere(qualified(table), `${column} IS NOT NULL`)} GROUP BY ${column} HAVING count(*) > 1`;
  return assertNoRow(table, repeated, {
    ERRCODE: '23505',
    MESSAGE: `values of column "${field}" of relation "${table}" occur more than once`,
    COLUMN: field,
  });
}

/** NOT NULL, which the server does not check again where a valid constraint says the same. */
export function requireOnline(table: string, field: string): readonly Statement<PostgresqlStep>[] {
  const column = quoteIdentifier(field);
  const check = derivedName(table, [field, 'svc_required'], 'check');
  return [
    // One of a run that was given up may be left.
    alter(table, [
      `DROP CONSTRAINT IF EXISTS ${quoteIdentifier(check)}`,
      `ADD CONSTRAINT ${quoteIdentifier(check)} CHECK (${column} IS NOT NULL) NOT VALID`,
    ]),
    validate(table, check),
    alter(table, [`ALTER COLUMN ${column} SET NOT NULL`]),
    alter(table, [`DROP CONSTRAINT ${quoteIdentifier(check)}`]),
  ];
}

/** A unique constraint or a primary key. */
interface Key extends Pick<Constraint, 'name' | 'columns' | 'native'> {
  readonly type: 'unique' | 'primaryKey';
  /** It takes the place of this one. */
  readonly replaces?: string;
}

/** The index of a key. `attachKey` makes it the key, and gives it the name. */
export function buildKey(table: string, key: Key): Statement<PostgresqlStep> {
  const { nulls = '', options = '' } = KEY_OPTIONS.exec(key.native ?? '')?.groups ?? {};
  const [, include = '', rest = ''] = /^(INCLUDE ?\(.*?\))? ?(.*)$/is.exec(options.trim()) ?? [];
  const index = indexOf(table, key);
  const quoted = quoteIdentifier(index);
  const list = `(${key.columns.map(quoteIdentifier).join(', ')})`;
  const definition = [list, include, nulls, rest].filter((part) => part !== '').join(' ');
  return {
    ...sqlStatement(`CREATE UNIQUE INDEX CONCURRENTLY ${quoted} ON ${qualified(table)} ${definition}`),
    transactional: false,
    repair: { kind: 'dropInvalidIndex', index, table },
    check: isBuilt(table, index, key.columns, include !== ''),
  };
}

/** A query for the index of a key. Somebody else may have made another one of that name, which must not become the key. */
function isBuilt(table: string, index: string, columns: readonly string[], hasMore: boolean): string {
  const inSchema = (sql: string) => sql.replaceAll(SCHEMA_PLACEHOLDER, SCHEMA_COMMENT);
  const found =
    'ARRAY(SELECT a.attname::text FROM unnest(i.indkey::int[]) WITH ORDINALITY k(num, at) JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num WHERE k.at <= i.indnkeyatts ORDER BY k.at)';
  const conditions = [
    `i.indexrelid = ${inSchema(oidOf(qualifiedIn(table, index)))}`,
    `i.indrelid = ${inSchema(tableOid(table))}`,
    'i.indisvalid AND i.indisunique',
    `${found} = ARRAY[${columns.map(quoteLiteral).join(', ')}]`,
    `i.indnatts ${hasMore ? '>' : '='} i.indnkeyatts`,
  ];
  return `SELECT 1 FROM pg_index i WHERE ${conditions.join(' AND ')}`;
}

export function attachKey(table: string, key: Key): Statement<PostgresqlStep> {
  const { name, type, replaces, native = '' } = key;
  const { deferrable = '' } = KEY_OPTIONS.exec(native)?.groups ?? {};
  const kind = type === 'unique' ? 'UNIQUE' : 'PRIMARY KEY';
  const add = `ADD CONSTRAINT ${quoteIdentifier(name)} ${kind} USING INDEX ${quoteIdentifier(indexOf(table, key))} ${deferrable}`;
  return alter(table, [
    ...(replaces === undefined ? [] : [`DROP CONSTRAINT ${quoteIdentifier(replaces)}`]),
    add.trimEnd(),
  ]);
}

const indexOf = (table: string, { name, columns, replaces }: Key): string =>
  replaces === undefined ? name : derivedName(table, [...columns, 'new'], 'key');

const KEY_OPTIONS = /^(?<nulls>NULLS NOT DISTINCT)? ?(?<options>.*?) ?(?<deferrable>(?:NOT )?DEFERRABLE.*)?$/is;

export const dropIndexOnline = (table: string, index: string): Statement<PostgresqlStep> => ({
  ...sqlStatement(`DROP INDEX CONCURRENTLY ${qualifiedIn(table, index)}`),
  transactional: false,
  // An interrupted attempt leaves an invalid index, which the model does not contain.
  awaitEffect: { kind: 'dropInvalidIndex', index, table },
});

/** Sets the field where it is null, in batches. */
export const fill = (table: string, field: string, value: string, isNullable: boolean): Statement<PostgresqlStep> => ({
  text: `UPDATE ${qualified(table, '')} SET ${quoteIdentifier(field)} = ${value} WHERE ${quoteIdentifier(field)} IS NULL -- in batches`,
  run: { kind: 'fill', table, column: field, value, isNullable },
  transactional: false,
  destructive: false,
  idempotent: true,
});
