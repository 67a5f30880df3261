import type { Statement } from '../../../../core/dialect.ts';
import type { Constraint, ForeignKey } from '../../../../core/schema/model.ts';
import { derivedName } from '../../../../core/schema/names.ts';
import { SCHEMA_PLACEHOLDER, sqlStatement } from '../../sql/statement.ts';
import { alter, quoteIdentifier } from './grammar.ts';
import { quoteLiteral } from './literal.ts';
import { doBlock, tableOid } from './plpgsql-guards.ts';
import type { PostgresqlStep } from './step.ts';

/*
 * Changes in several statements. Those that read or write all rows are outside a transaction and under a lock that lets
 * others read and write; a transaction for the rest is short.
 */

/** The connection puts its schema here, in a `Statement.check`, which the journal stores as a text. */
export const SCHEMA_COMMENT = '/*svc:schema*/';

/** Checks the rows for a constraint that was added NOT VALID. */
export const validate = (table: string, constraint: string): Statement<PostgresqlStep> => ({
  ...alter(table, [`VALIDATE CONSTRAINT ${quoteIdentifier(constraint)}`]),
  transactional: false,
  idempotent: true,
});

/**
 * Fails as `validate` would, before anything has changed. Rows that come later are still checked by `validate`. `first` runs before
 * the query.
 */
export function assertNoRow(table: string, query: string, violation: Violation, first = ''): Statement<PostgresqlStep> {
  const facts = Object.entries(violation).map(([name, value]) => `${name} = ${quoteLiteral(value)}`);
  const raise = `RAISE EXCEPTION USING ${[...facts, `TABLE = ${quoteLiteral(table)}`].join(', ')}`;
  const check = sqlStatement(doBlock(`BEGIN ${first} IF EXISTS (${query}) THEN ${raise}; END IF; END`));
  return {
    ...check,
    run: { ...check.run, onlyChecks: true },
    text: `${query.replaceAll(SCHEMA_PLACEHOLDER, '')} LIMIT 1 -- finds no row`,
    transactional: false,
    idempotent: true,
  };
}

export const rowsWhere = (table: string, condition: string, alias = ''): string =>
  `SELECT FROM ${SCHEMA_PLACEHOLDER}${quoteIdentifier(table)}${alias} WHERE ${condition}`;

/** What the server says of such a row. */
interface Violation {
  readonly ERRCODE: string;
  readonly MESSAGE: string;
  readonly CONSTRAINT?: string;
  readonly COLUMN?: string;
}

export const assertCheck = (table: string, name: string, expression: string): Statement<PostgresqlStep> =>
  assertNoRow(table, rowsWhere(table, `NOT (${expression})`), {
    ERRCODE: '23514',
    MESSAGE: `check constraint "${name}" of relation "${table}" is violated by some row`,
    CONSTRAINT: name,
  });

export function assertReference(
  table: string,
  { name, columns, references }: Pick<ForeignKey, 'name' | 'columns' | 'references'>,
): Statement<PostgresqlStep> {
  const pairs = columns.map((column, at) => {
    const target = references.columns[at] ?? column;
    return `r.${quoteIdentifier(target)} = t.${quoteIdentifier(column)}`;
  });
  const present = columns.map((column) => `t.${quoteIdentifier(column)} IS NOT NULL`);
  const missing = `NOT EXISTS (${rowsWhere(references.table, pairs.join(' AND '), ' AS r')})`;
  return assertNoRow(table, rowsWhere(table, [...present, missing].join(' AND '), ' AS t'), {
    ERRCODE: '23503',
    MESSAGE: `insert or update on table "${table}" violates foreign key constraint "${name}"`,
    CONSTRAINT: name,
  });
}

export const assertNotNull = (table: string, field: string): Statement<PostgresqlStep> =>
  assertNoRow(table, rowsWhere(table, `${quoteIdentifier(field)} IS NULL`), {
    ERRCODE: '23502',
    MESSAGE: `column "${field}" of relation "${table}" contains null values`,
    COLUMN: field,
  });

export function assertDistinct(table: string, field: string): Statement<PostgresqlStep> {
  const column = quoteIdentifier(field);
  const repeated = `${rowsWhere(table, `${column} IS NOT NULL`)} GROUP BY ${column} HAVING count(*) > 1`;
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
    alter(table, [`ADD CONSTRAINT ${quoteIdentifier(check)} CHECK (${column} IS NOT NULL) NOT VALID`]),
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
  const oid = tableOid(quoted).replaceAll(SCHEMA_PLACEHOLDER, SCHEMA_COMMENT);
  return {
    ...sqlStatement(
      `CREATE UNIQUE INDEX CONCURRENTLY ${quoted} ON ${SCHEMA_PLACEHOLDER}${quoteIdentifier(table)} ${definition}`,
    ),
    transactional: false,
    repair: { kind: 'dropInvalidIndex', index, table },
    check: `SELECT 1 FROM pg_index WHERE indexrelid = ${oid} AND indisvalid`,
  };
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
  ...sqlStatement(`DROP INDEX CONCURRENTLY ${SCHEMA_PLACEHOLDER}${quoteIdentifier(index)}`),
  transactional: false,
  // An interrupted attempt leaves an invalid index, which the model does not contain.
  awaitEffect: { kind: 'dropInvalidIndex', index, table },
});

/** Sets the field where it is null, in batches. */
export const fill = (table: string, field: string, value: string, isNullable: boolean): Statement<PostgresqlStep> => ({
  text: `UPDATE ${quoteIdentifier(table)} SET ${quoteIdentifier(field)} = ${value} WHERE ${quoteIdentifier(field)} IS NULL -- in batches`,
  run: { kind: 'fill', table, column: field, value, isNullable },
  transactional: false,
  destructive: false,
  idempotent: true,
});
