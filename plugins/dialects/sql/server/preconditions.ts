import type { Collection, Constraint, Field } from '../../../../core/schema/model.ts';
import { TEXT_TYPES } from '../../shared/text-types.ts';
import { ONE_TEXT_TYPES } from '../text-catalog/compile.ts';
import { quoteIdentifier, quoteLiteral, type TextCatalogSyntax, typeText } from '../text-catalog/syntax.ts';

/** A query that returns a row, with the reason as `why`, if the rows of a table do not allow a change. */
export interface Precondition {
  readonly query: string;
  readonly reads: readonly { readonly table: string; readonly columns: readonly string[] }[];
}

/** `counted` is a query for the violations as its column `svc_count`. */
const atMostNone = (why: string, counted: string, ...reads: Precondition['reads']): Precondition => ({
  query: `SELECT ${quoteLiteral(`${why}: `)} || svc_count AS why FROM (${counted}) AS svc_rows WHERE svc_count > 0`,
  reads,
});
const rowsWhere = (table: string, condition: string) =>
  `SELECT count(*) AS svc_count FROM ${quoteIdentifier(table)} WHERE ${condition}`;
const allHaveValues = (columns: readonly string[]) =>
  columns.map((column) => `${quoteIdentifier(column)} IS NOT NULL`).join(' AND ');

/** No two rows have the same values, apart from nulls. */
export function isUnique(table: string, columns: readonly string[]): Precondition {
  const duplicates = `SELECT 1 AS svc_one FROM ${quoteIdentifier(table)} WHERE ${allHaveValues(columns)} GROUP BY ${columns.map(quoteIdentifier).join(', ')} HAVING count(*) > 1`;
  const why = `Values of "${table}" (${columns.join(', ')}) that several rows have`;
  return atMostNone(why, `SELECT count(*) AS svc_count FROM (${duplicates}) AS svc_duplicates`, { table, columns });
}

export const hasValues = (table: string, columns: readonly string[]): Precondition =>
  atMostNone(
    `Rows of "${table}" without a value of ${columns.join(' or ')}`,
    rowsWhere(table, columns.map((column) => `${quoteIdentifier(column)} IS NULL`).join(' OR ')),
    { table, columns },
  );

/** The table has no rows. */
export const isEmpty = (table: string, field: string): Precondition =>
  atMostNone(`Rows of "${table}", which would have no value of ${field}`, rowsWhere(table, '1 = 1'), {
    table,
    columns: [],
  });

/** The rows satisfy a constraint. */
export function satisfies(table: string, constraint: Constraint): readonly Precondition[] {
  const { name, columns } = constraint;
  switch (constraint.type) {
    case 'unique':
      return [isUnique(table, columns)];
    case 'primaryKey':
      return [hasValues(table, columns), isUnique(table, columns)];
    case 'check':
      return [
        atMostNone(`Rows of "${table}" that violate ${name}`, rowsWhere(table, `NOT (${constraint.expression})`), {
          table,
          columns,
        }),
      ];
    case 'foreignKey': {
      const target = constraint.references;
      const pairs = columns.map(
        (column, at) =>
          `svc_target.${quoteIdentifier(target.columns[at] ?? '')} = ${quoteIdentifier(table)}.${quoteIdentifier(column)}`,
      );
      const found = `EXISTS (SELECT 1 FROM ${quoteIdentifier(target.table)} svc_target WHERE ${pairs.join(' AND ')})`;
      const dangling = rowsWhere(table, `${allHaveValues(columns)} AND NOT ${found}`);
      return [
        atMostNone(
          `Rows of "${table}" that refer to no row of "${target.table}"`,
          dangling,
          { table, columns },
          target,
        ),
      ];
    }
  }
}

/** The values can be converted, and texts remain the same when they are converted back: 00501 would become 501, and a cast to a shorter text cuts it. */
export function converts(
  syntax: Pick<TextCatalogSyntax, 'types' | 'typeText'>,
  { name: table }: Collection,
  from: Field,
  to: Field,
): readonly Precondition[] {
  const [before, after] = [typeText(syntax, from), typeText(syntax, to)];
  if (before === after) return [];
  const column = quoteIdentifier(from.name);
  const cast = `CAST(${column} AS ${after})`;
  const text = typeText(syntax, { type: 'text' });
  const changes =
    to.type === 'string' || (TEXT_TYPES.has(from.type) && ONE_TEXT_TYPES.has(to.type))
      ? `CAST(${cast} AS ${text}) <> CAST(${column} AS ${text})`
      : `${cast} IS NULL AND ${column} IS NOT NULL`;
  const why = `Rows of "${table}" whose ${from.name} would be another value as ${to.type}`;
  return [atMostNone(why, rowsWhere(table, changes), { table, columns: [from.name] })];
}
